//! The little of Python's literals that `.npy` headers use.
//!
//! Strings, integers, booleans, tuples, lists and dictionaries with string keys; anything else is
//! refused. Depth is bounded, since headers come from anywhere.

use serde_json::{Map, Value, json};

/// Deeper nesting is taken for an attack on the stack.
const MAX_DEPTH: usize = 16;

/// Parses one literal; tuples become lists. `None` if it is malformed.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser { rest: text };
    let value = parser.value(0)?;
    parser.space();
    parser.rest.is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: char) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        match self.rest.chars().next()? {
            '\'' | '"' => self.string().map(Value::String),
            '{' => self.dictionary(depth),
            '(' => self.list('(', ')', depth),
            '[' => self.list('[', ']', depth),
            c if c.is_ascii_digit() || c == '-' => self.integer(),
            _ => self.word(),
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest.chars();
        let quote = chars.next()?;
        let mut out = String::new();
        loop {
            match chars.next()? {
                c if c == quote => break,
                '\\' => match chars.next()? {
                    c @ ('\\' | '\'' | '"') => out.push(c),
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'x' => out.push(code_point(&mut chars, 2)?),
                    'u' => out.push(code_point(&mut chars, 4)?),
                    'U' => out.push(code_point(&mut chars, 8)?),
                    _ => return None,
                },
                c => out.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(out)
    }

    fn integer(&mut self) -> Option<Value> {
        let len = self
            .rest
            .find(|c: char| !c.is_ascii_digit() && c != '-')
            .unwrap_or(self.rest.len());
        let number: i64 = self.rest[..len].parse().ok()?;
        // Python 2 wrote long integers with an L.
        self.rest = self.rest[len..]
            .strip_prefix('L')
            .unwrap_or(&self.rest[len..]);
        Some(json!(number))
    }

    fn word(&mut self) -> Option<Value> {
        for (word, value) in [
            ("True", json!(true)),
            ("False", json!(false)),
            ("None", Value::Null),
        ] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    fn list(&mut self, open: char, close: char, depth: usize) -> Option<Value> {
        self.eat(open);
        let mut items = Vec::new();
        loop {
            if self.eat(close) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.eat(',') {
                return self.eat(close).then_some(Value::Array(items));
            }
        }
    }

    fn dictionary(&mut self, depth: usize) -> Option<Value> {
        self.eat('{');
        let mut map = Map::new();
        loop {
            if self.eat('}') {
                return Some(Value::Object(map));
            }
            self.space();
            if !self.rest.starts_with(['\'', '"']) {
                return None;
            }
            let key = self.string()?;
            if !self.eat(':') {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            if !self.eat(',') {
                return self.eat('}').then_some(Value::Object(map));
            }
        }
    }
}

fn code_point(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let hex: String = chars.take(digits).collect();
    if hex.len() != digits {
        return None;
    }
    char::from_u32(u32::from_str_radix(&hex, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numpy_are_read() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4L,), }   \n";
        assert_eq!(
            parse(text).unwrap(),
            json!({"descr": "<f4", "fortran_order": false, "shape": [3, 4]})
        );
        assert_eq!(
            parse("[('a', '<i2'), (\"b\\'\", '|S3')]").unwrap(),
            json!([["a", "<i2"], ["b'", "|S3"]])
        );
        assert_eq!(parse("()").unwrap(), json!([]));
        assert_eq!(parse("'\\u20ac\\x41'").unwrap(), json!("€A"));
    }

    #[test]
    fn malformed_literals_are_refused() {
        for bad in [
            "",
            "{",
            "{'a' 1}",
            "{1: 2}",
            "(1, 2",
            "'a",
            "1 2",
            "lambda: 0",
            "'\\q'",
            "--1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"(".repeat(100_000)), None);
    }
}
