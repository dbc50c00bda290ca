//! Patterns as text, in the paper's form: the number of boxes, then a line for each, with its sides
//! and how often it is read.

use super::Pattern;
use crate::{Error, Result};

impl Pattern {
    /// Reads the paper's form. Empty lines and what stands behind `#` mean nothing.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Pattern> {
        let lines = text.lines().enumerate().filter_map(|(i, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            (!line.is_empty()).then_some((i + 1, line))
        });
        let mut lines = lines.peekable();
        let (at, first) = lines
            .next()
            .ok_or_else(|| Error::invalid("the access pattern is empty").with_hint(FORM))?;
        let count: usize = first.parse().map_err(|_| {
            let message = format!("line {at} of the access pattern is not a number of boxes");
            Error::invalid(message).with_hint(FORM)
        })?;
        let mut boxes = Vec::new();
        for (at, line) in lines {
            boxes.push(parse_box(line).map_err(|what| {
                Error::invalid(format!("line {at} of the access pattern {what}")).with_hint(FORM)
            })?);
        }
        if boxes.len() != count {
            return Err(Error::invalid(format!(
                "the access pattern says that it has {count} boxes, but has {}",
                boxes.len()
            ))
            .with_hint(FORM));
        }
        Pattern::new(shape, boxes)
    }

    /// Writes the paper's form; frequencies are of a million reads.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.classes.len());
        for class in &self.classes {
            for side in &class.extent {
                text.push_str(&format!("{side} "));
            }
            let often = (class.weight * 1e6).round().max(1.0);
            text.push_str(&format!("{often}\n"));
        }
        text
    }
}

const FORM: &str = "the first line is the number of boxes; each other line has the sides of one and how often it is read, a whole number from 1";

fn parse_box(line: &str) -> Result<(Vec<u64>, f64), String> {
    let numbers: Vec<i128> = line
        .split_whitespace()
        .map(|word| {
            word.parse()
                .map_err(|_| format!("has {word:?}, which is not a whole number"))
        })
        .collect::<Result<_, _>>()?;
    let Some((often, sides)) = numbers.split_last() else {
        return Err("is empty".into());
    };
    if *often < 1 {
        return Err(format!("has the frequency {often}, which is less than 1"));
    }
    let sides: Option<Vec<u64>> = sides.iter().map(|side| u64::try_from(*side).ok()).collect();
    let sides = sides.ok_or("has a side that is negative or too large")?;
    Ok((sides, *often as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_paper_comes_back() {
        let text = "2 # boxes\n\n10 400 10 3\n20 5 400 1\n";
        let pattern = Pattern::parse(text, &[100, 2000, 8000]).unwrap();
        assert_eq!(pattern.classes()[0].extent, [10, 400, 10]);
        assert_eq!(pattern.classes()[0].weight, 0.75);
        let again = Pattern::parse(&pattern.to_text(), pattern.shape()).unwrap();
        assert_eq!(again, pattern);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("", "the access pattern is empty"),
            (
                "many\n1 1 1",
                "line 1 of the access pattern is not a number of boxes",
            ),
            ("2\n1 1 1", "says that it has 2 boxes, but has 1"),
            (
                "1\n1 1 0",
                "line 2 of the access pattern has the frequency 0",
            ),
            ("1\n1 1 -4", "has the frequency -4"),
            ("1\n1 -1 4", "has a side that is negative"),
            ("1\n1 1.5 4", "has \"1.5\", which is not a whole number"),
            (
                "1\n1 1 1 4",
                "the box (1, 1, 1) has 3 dimensions, but the array (10, 20) has 2",
            ),
            (
                "1\n11 1 4",
                "is larger than the array (10, 20) along dimension 0",
            ),
            ("1\n1 0 4", "has no cells along dimension 1"),
            ("0", "the access pattern has no boxes"),
        ];
        for (text, expected) in cases {
            let message = Pattern::parse(text, &[10, 20]).unwrap_err().to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
        let empty = Pattern::parse("1\n1 1 1", &[10, 0]).unwrap_err();
        assert!(empty.to_string().contains("no cells along dimension 1"));
    }
}
