//! Pictures: a heat map with a colour bar, drawn without any help.
//!
//! [`colours`] maps numbers to colours, [`font`] draws labels, and this module puts them on a
//! canvas and encodes it as PNG.

mod colours;
mod font;

use hyperslab::{Error, Result};

use font::{GLYPH_HEIGHT, draw_text, text_width};

/// A grid of numbers, row by row; NaN is "no value".
pub(crate) struct Field {
    pub(crate) values: Vec<f64>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Space around everything.
const MARGIN: usize = 8;
/// Width of the colour bar.
const BAR: usize = 16;
/// The canvas is at least this high, so that the colour bar can be read.
const LEAST_HEIGHT: usize = 120;
/// Small grids are drawn about this large.
const COMFORTABLE: usize = 384;
/// A cell is drawn with at most this many pixels a side.
const LARGEST_CELL: usize = 32;

const WHITE: [u8; 3] = [255, 255, 255];
const BLACK: [u8; 3] = [0, 0, 0];
/// Cells without a value.
const GREY: [u8; 3] = [160, 160, 160];

/// Red, green and blue of every pixel.
pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Canvas {
            width,
            height,
            pixels: WHITE.repeat(width * height),
        }
    }

    /// Colours a pixel; one outside the canvas is left out.
    pub(crate) fn set(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        if x < self.width && y < self.height {
            let at = 3 * (y * self.width + x);
            self.pixels[at..at + 3].copy_from_slice(&colour);
        }
    }

    pub(crate) fn fill(
        &mut self,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        colour: [u8; 3],
    ) {
        for row in y..y + height {
            for column in x..x + width {
                self.set(column, row, colour);
            }
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let failed =
            |e: png::EncodingError| Error::internal(format!("the picture was not encoded: {e}"));
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&self.pixels).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(out)
    }
}

/// How many pixels a side one value is drawn with.
pub(crate) fn scale(field: &Field) -> usize {
    (COMFORTABLE / field.rows.max(field.columns).max(1)).clamp(1, LARGEST_CELL)
}

/// The limits of the colours: those given, else those of the values; always apart.
fn limits(field: &Field, given: (Option<f64>, Option<f64>)) -> (f64, f64) {
    let finite = || field.values.iter().copied().filter(|v| v.is_finite());
    let low = given
        .0
        .unwrap_or_else(|| finite().fold(f64::INFINITY, f64::min));
    let high = given
        .1
        .unwrap_or_else(|| finite().fold(f64::NEG_INFINITY, f64::max));
    match (low.is_finite(), high.is_finite()) {
        (true, true) if low <= high => (low, high),
        (true, true) => (low, low),
        (true, false) => (low, low),
        (false, true) => (high, high),
        (false, false) => (0.0, 0.0),
    }
}

/// Where a value lies between the limits, from 0 to 1.
fn place(value: f64, low: f64, high: f64) -> f64 {
    if high > low {
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        0.5
    }
}

/// Draws the field with a colour bar on its right, as a PNG file.
pub(crate) fn heat_map(field: &Field, given: (Option<f64>, Option<f64>)) -> Result<Vec<u8>> {
    let (low, high) = limits(field, given);
    let labels = [label(high), label(low)];
    let label_width = labels
        .iter()
        .map(|text| text_width(text))
        .max()
        .unwrap_or(0);
    let scale = scale(field);
    let (map_width, map_height) = (field.columns * scale, field.rows * scale);
    let inner = map_height.max(LEAST_HEIGHT);
    let bar_left = MARGIN + map_width + MARGIN;
    let mut canvas = Canvas::new(
        bar_left + BAR + MARGIN / 2 + label_width + MARGIN,
        inner + 2 * MARGIN,
    );

    for row in 0..field.rows {
        for column in 0..field.columns {
            let value = field.values[row * field.columns + column];
            let colour = match value.is_nan() {
                true => GREY,
                false => colours::viridis(place(value, low, high)),
            };
            canvas.fill(
                MARGIN + column * scale,
                MARGIN + row * scale,
                scale,
                scale,
                colour,
            );
        }
    }
    for y in 0..inner {
        let at = 1.0 - y as f64 / (inner - 1) as f64;
        canvas.fill(bar_left, MARGIN + y, BAR, 1, colours::viridis(at));
    }
    let label_left = bar_left + BAR + MARGIN / 2;
    draw_text(&mut canvas, label_left, MARGIN, &labels[0], BLACK);
    draw_text(
        &mut canvas,
        label_left,
        MARGIN + inner - GLYPH_HEIGHT,
        &labels[1],
        BLACK,
    );
    canvas.encode()
}

/// A number in at most nine characters.
fn label(value: f64) -> String {
    let plain = format!("{value}");
    if plain.len() <= 9 {
        return plain;
    }
    let size = value.abs();
    if (1e-3..1e6).contains(&size) {
        let short = format!("{value:.4}");
        return short.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.2e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(png: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width as usize, info.height as usize, pixels)
    }

    #[test]
    fn every_cell_has_its_colour() {
        let values = vec![0.0, 1.0, f64::NAN, 0.5, f64::INFINITY, -3.0];
        let field = Field {
            values,
            columns: 3,
            rows: 2,
        };
        let (width, height, pixels) = decode(&heat_map(&field, (Some(0.0), Some(1.0))).unwrap());
        let scale = scale(&field);
        assert_eq!(scale, 32);
        assert_eq!(height, LEAST_HEIGHT + 2 * MARGIN);
        let pixel = |row: usize, column: usize| {
            let (x, y) = (MARGIN + column * scale + 5, MARGIN + row * scale + 5);
            pixels[3 * (y * width + x)..][..3].to_vec()
        };
        assert_eq!(pixel(0, 0), colours::viridis(0.0));
        assert_eq!(pixel(0, 1), colours::viridis(1.0));
        assert_eq!(pixel(0, 2), GREY);
        assert_eq!(pixel(1, 0), colours::viridis(0.5));
        assert_eq!(pixel(1, 1), colours::viridis(1.0));
        assert_eq!(pixel(1, 2), colours::viridis(0.0));
        // The labels left some ink on the right.
        let ink = (0..height).any(|y| pixels[3 * (y * width + width - MARGIN - 3)..][..3] == BLACK);
        assert!(ink);
    }

    #[test]
    fn odd_fields_are_drawn_too() {
        for (values, columns) in [
            (vec![f64::NAN], 1),
            (vec![5.0; 4], 2),
            (vec![1.0; 3000], 3000),
        ] {
            let rows = values.len() / columns;
            let field = Field {
                values,
                columns,
                rows,
            };
            let (width, _, _) = decode(&heat_map(&field, (None, None)).unwrap());
            assert!(width > columns * scale(&field));
        }
    }

    #[test]
    fn labels_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (1.0 / 3.0, "0.3333"),
            (1e300, "1.00e300"),
            (1234567890.0, "1.23e9"),
        ] {
            assert_eq!(label(value), text);
        }
    }
}
