//! Columns of text, aligned; legible without colour.

/// Which side a column's text stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The left one, for words.
    Left,
    /// The right one, for numbers.
    Right,
}

/// Lays rows out in columns that are two spaces apart; the last column is never padded.
pub fn lay_out(sides: &[Side], rows: &[Vec<String>]) -> String {
    let mut widths = vec![0; sides.len()];
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let pad = widths[column].saturating_sub(text.chars().count());
            let padding = " ".repeat(pad);
            if column > 0 {
                line.push_str("  ");
            }
            match sides[column] {
                Side::Left => {
                    line.push_str(text);
                    line.push_str(&padding);
                }
                Side::Right => {
                    line.push_str(&padding);
                    line.push_str(text);
                }
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_owned(), "1".into()],
            vec!["ännchen".into(), "200".into()],
        ];
        let text = lay_out(&[Side::Left, Side::Right], &rows);
        assert_eq!(text, "a          1\nännchen  200\n");
    }
}
