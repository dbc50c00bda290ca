//! A picture as PNG, for programs and papers that take no SVG.
//!
//! Beside [`super::svg`]; the light colours only, for pixels cannot know what they are shown on. A
//! unit of the picture is two pixels, so that lines and letters stay legible.

use hyperslab::Result;

use super::font::{ADVANCE, COLUMNS, ROWS, glyph};
use super::picture::{Anchor, DOT, Picture, Point, Shape, Stroke, Words};
use crate::image::Canvas;

/// Pixels of a unit.
const UNIT: f64 = 2.0;
/// Pixels of a letter's dots, and of those of the heading.
const LETTER: usize = 2;
const HEADING: usize = 3;
/// Pixels of thin strokes and of the curve.
const THIN: f64 = 2.0;
const THICK: f64 = 4.0;

const BLACK: [u8; 3] = [0x1c, 0x1c, 0x1c];
const GREY: [u8; 3] = [0x55, 0x55, 0x55];
const PALE: [u8; 3] = [0xdd, 0xdd, 0xdd];
const BLUE: [u8; 3] = [0x0b, 0x61, 0xa4];
const TINT: [u8; 3] = [0xe2, 0xec, 0xf4];
const ORANGE: [u8; 3] = [0xb0, 0x4a, 0x00];

/// The bytes of a PNG file.
pub(crate) fn render(picture: &Picture) -> Result<Vec<u8>> {
    let pixels = |units: f64| (units * UNIT).ceil() as usize;
    let mut canvas = Canvas::new(pixels(picture.width), pixels(picture.height));
    // Bands are not transparent here, so they lie below everything.
    let is_band = |shape: &&Shape| matches!(shape, Shape::Band { .. });
    let (bands, others): (Vec<&Shape>, Vec<&Shape>) = picture.shapes.iter().partition(is_band);
    for shape in bands.into_iter().chain(others) {
        draw(&mut canvas, shape);
    }
    canvas.encode()
}

fn draw(canvas: &mut Canvas, shape: &Shape) {
    match shape {
        Shape::Text {
            words,
            at,
            anchor,
            text,
        } => {
            let (dot, colour) = match words {
                Words::Heading => (HEADING, BLACK),
                Words::Title => (LETTER, BLACK),
                Words::Note | Words::Tick => (LETTER, GREY),
            };
            write(canvas, *at, *anchor, text, dot, colour);
        }
        Shape::Upwards { at, text } => write_upwards(canvas, *at, text),
        Shape::Stroke { what, from, to } => {
            let colour = match what {
                Stroke::Axis => BLACK,
                Stroke::Grid => PALE,
                Stroke::Whisker => ORANGE,
            };
            segment(canvas, *from, *to, THIN, colour);
        }
        Shape::Band { corner, size } => {
            let (x, y) = (pixel(corner.0), pixel(corner.1));
            let (right, bottom) = (pixel(corner.0 + size.0), pixel(corner.1 + size.1));
            canvas.fill(
                x,
                y,
                right.saturating_sub(x),
                bottom.saturating_sub(y),
                TINT,
            );
        }
        Shape::Line(points) => {
            for pair in points.windows(2) {
                segment(canvas, pair[0], pair[1], THICK, BLUE);
            }
        }
        Shape::Dot(at) => blot(canvas, (at.0 * UNIT, at.1 * UNIT), DOT * UNIT, BLUE),
    }
}

/// The pixel of a coordinate; what is left of or above the picture is at its edge.
fn pixel(units: f64) -> usize {
    (units * UNIT).round().max(0.0) as usize
}

/// A straight line as a row of round blots.
fn segment(canvas: &mut Canvas, from: Point, to: Point, width: f64, colour: [u8; 3]) {
    let (dx, dy) = ((to.0 - from.0) * UNIT, (to.1 - from.1) * UNIT);
    let steps = dx.hypot(dy).ceil().max(1.0) as u32;
    for step in 0..=steps {
        let share = f64::from(step) / f64::from(steps);
        let at = (from.0 * UNIT + share * dx, from.1 * UNIT + share * dy);
        blot(canvas, at, width / 2.0, colour);
    }
}

/// A disc; places are in pixels.
fn blot(canvas: &mut Canvas, centre: Point, radius: f64, colour: [u8; 3]) {
    let first = |middle: f64| (middle - radius).floor().max(0.0) as usize;
    let last = |middle: f64| (middle + radius).ceil().max(0.0) as usize;
    for y in first(centre.1)..last(centre.1) {
        for x in first(centre.0)..last(centre.0) {
            let (dx, dy) = (x as f64 + 0.5 - centre.0, y as f64 + 0.5 - centre.1);
            if dx.hypot(dy) <= radius {
                canvas.set(x, y, colour);
            }
        }
    }
}

/// A text whose last row stands on the line of its place.
fn write(canvas: &mut Canvas, at: Point, anchor: Anchor, text: &str, dot: usize, colour: [u8; 3]) {
    let width = |dot: usize| text.chars().count() * ADVANCE * dot;
    // A heading that is too long is written in small letters.
    let room = canvas.width.saturating_sub(pixel(at.0));
    let dot = if width(dot) > room {
        LETTER.min(dot)
    } else {
        dot
    };
    let left = match anchor {
        Anchor::Start => pixel(at.0),
        Anchor::Middle => pixel(at.0).saturating_sub(width(dot) / 2),
        Anchor::End => pixel(at.0).saturating_sub(width(dot)),
    };
    let top = pixel(at.1).saturating_sub(ROWS * dot);
    dots(text, |x, y| {
        canvas.fill(left + x * dot, top + y * dot, dot, dot, colour);
    });
}

/// A note turned by a quarter to the left, its middle at `at`.
fn write_upwards(canvas: &mut Canvas, at: Point, text: &str) {
    let length = text.chars().count() * ADVANCE * LETTER;
    let bottom = pixel(at.1) + length / 2;
    let left = pixel(at.0).saturating_sub(ROWS * LETTER);
    dots(text, |x, y| {
        let up = bottom.saturating_sub((x + 1) * LETTER);
        canvas.fill(left + y * LETTER, up, LETTER, LETTER, GREY);
    });
}

/// Tells the column and row of every dot of a text.
fn dots(text: &str, mut draw: impl FnMut(usize, usize)) {
    for (at, c) in text.chars().enumerate() {
        let (rows, below) = glyph(c);
        for (row, bits) in rows.into_iter().enumerate() {
            for column in 0..COLUMNS {
                if bits >> (COLUMNS - 1 - column) & 1 == 1 {
                    draw(at * ADVANCE + column, row + below);
                }
            }
        }
    }
}
