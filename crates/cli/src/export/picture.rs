//! A two-dimensional result as a heat map; see [`crate::image`].
//!
//! Cells are gathered into pixels as they arrive, so a large result needs no more memory than its
//! picture.

use std::io::Write;

use hyperslab::{DataType, Error, Result};

use super::{Head, Sink, failed};
use crate::cell;
use crate::image::{self, Field};
use crate::target::Cells;

/// Results with longer sides are averaged down to this many pixels.
const MAX_PIXELS: u64 = 2048;

pub(crate) struct PictureSink {
    dtype: DataType,
    width: usize,
    columns: u64,
    /// Cells per pixel along each side.
    step: u64,
    /// Sum and number of the cells of each pixel that are numbers.
    pixels: Vec<(f64, u32)>,
    pixel_columns: u64,
    pixel_rows: u64,
    done: u64,
    limits: (Option<f64>, Option<f64>),
}

/// Refuses what cannot be drawn.
pub(crate) fn check(head: &Head) -> Result<()> {
    if head.shape.len() != 2 {
        return Err(Error::invalid(format!(
            "a heat map needs two dimensions, but the result has {}",
            head.shape.len()
        ))
        .with_hint("index the other dimensions, such as [5, :, :]"));
    }
    if head.shape.contains(&0) {
        return Err(Error::invalid("the result has no cells to draw"));
    }
    if !cell::is_number(&head.dtype) {
        return Err(
            Error::invalid(format!("cells of type {} have no colours", head.dtype))
                .with_hint("write .csv or .json instead"),
        );
    }
    if let (Some(low), Some(high)) = head.limits
        && low.partial_cmp(&high) != Some(std::cmp::Ordering::Less)
    {
        return Err(Error::invalid(format!(
            "--vmin {low} is not below --vmax {high}"
        )));
    }
    Ok(())
}

impl PictureSink {
    pub(crate) fn begin(head: &Head) -> Result<Self> {
        let (rows, columns) = (head.shape[0], head.shape[1]);
        let step = rows.max(columns).div_ceil(MAX_PIXELS).max(1);
        let (pixel_rows, pixel_columns) = (rows.div_ceil(step), columns.div_ceil(step));
        Ok(PictureSink {
            dtype: head.dtype.clone(),
            width: head.width(),
            columns,
            step,
            pixels: vec![(0.0, 0); (pixel_rows * pixel_columns) as usize],
            pixel_columns,
            pixel_rows,
            done: 0,
            limits: head.limits,
        })
    }
}

impl Sink for PictureSink {
    fn cells(&mut self, cells: &Cells, _: &mut dyn Write) -> Result<()> {
        for index in 0..cells.len(self.width) {
            let (row, column) = (self.done / self.columns, self.done % self.columns);
            self.done += 1;
            let value = cell::number(&self.dtype, cells.get(index, self.width)).unwrap_or(f64::NAN);
            if !value.is_nan() {
                let at = row / self.step * self.pixel_columns + column / self.step;
                let pixel = &mut self.pixels[at as usize];
                pixel.0 += value;
                pixel.1 += 1;
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let values = self
            .pixels
            .iter()
            .map(|(sum, many)| {
                if *many == 0 {
                    f64::NAN
                } else {
                    sum / f64::from(*many)
                }
            })
            .collect();
        let field = Field {
            values,
            columns: self.pixel_columns as usize,
            rows: self.pixel_rows as usize,
        };
        let png = image::heat_map(&field, self.limits)?;
        out.write_all(&png).map_err(|e| failed(&e))
    }
}
