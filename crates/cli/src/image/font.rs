//! A bitmap font of the few characters that numbers are made of.

use super::Canvas;

/// Pixels of a glyph before scaling.
const COLUMNS: usize = 3;
const ROWS: usize = 5;
/// Each dot of a glyph is drawn this large.
const DOT: usize = 2;

/// Height of a line of text in pixels.
pub(crate) const GLYPH_HEIGHT: usize = ROWS * DOT;

/// Rows of a glyph, three bits each, the leftmost first.
fn glyph(c: char) -> [u8; ROWS] {
    match c {
        '0' => [0b111, 0b101, 0b101, 0b101, 0b111],
        '1' => [0b010, 0b110, 0b010, 0b010, 0b111],
        '2' => [0b111, 0b001, 0b111, 0b100, 0b111],
        '3' => [0b111, 0b001, 0b011, 0b001, 0b111],
        '4' => [0b101, 0b101, 0b111, 0b001, 0b001],
        '5' => [0b111, 0b100, 0b111, 0b001, 0b111],
        '6' => [0b111, 0b100, 0b111, 0b101, 0b111],
        '7' => [0b111, 0b001, 0b010, 0b010, 0b010],
        '8' => [0b111, 0b101, 0b111, 0b101, 0b111],
        '9' => [0b111, 0b101, 0b111, 0b001, 0b111],
        '.' => [0b000, 0b000, 0b000, 0b000, 0b010],
        '-' => [0b000, 0b000, 0b111, 0b000, 0b000],
        '+' => [0b000, 0b010, 0b111, 0b010, 0b000],
        'e' => [0b000, 0b111, 0b111, 0b100, 0b111],
        _ => [0; ROWS],
    }
}

/// Width of a text in pixels.
pub(crate) fn text_width(text: &str) -> usize {
    text.chars().count() * (COLUMNS + 1) * DOT
}

/// Draws a text whose upper left corner is at (x, y).
pub(crate) fn draw_text(canvas: &mut Canvas, x: usize, y: usize, text: &str, colour: [u8; 3]) {
    for (at, c) in text.chars().enumerate() {
        let left = x + at * (COLUMNS + 1) * DOT;
        for (row, bits) in glyph(c).into_iter().enumerate() {
            for column in 0..COLUMNS {
                if bits >> (COLUMNS - 1 - column) & 1 == 1 {
                    for dot in 0..DOT * DOT {
                        let (dx, dy) = (dot % DOT, dot / DOT);
                        canvas.set(left + column * DOT + dx, y + row * DOT + dy, colour);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_a_number_has_its_own_glyph() {
        let all: Vec<[u8; ROWS]> = "0123456789.-+e".chars().map(glyph).collect();
        for (at, one) in all.iter().enumerate() {
            assert!(one.iter().any(|row| *row != 0));
            assert!(!all[..at].contains(one));
        }
        assert_eq!(text_width("12"), 16);
    }
}
