//! JSON: `{"dtype": …, "shape": […], "data": nested lists}`.

use std::io::Write;

use hyperslab::{DataType, Result};
use serde_json::json;

use super::{Head, Sink, failed};
use crate::cell;
use crate::target::Cells;

pub(crate) struct JsonSink {
    dtype: DataType,
    width: usize,
    shape: Vec<u64>,
    done: u64,
}

impl JsonSink {
    /// Writes everything before the first cell.
    pub(crate) fn begin(head: &Head, out: &mut dyn Write) -> Result<Self> {
        let dtype = json!(head.dtype.to_string());
        let shape = json!(head.shape);
        write!(out, "{{\"dtype\": {dtype}, \"shape\": {shape}, \"data\": ")
            .map_err(|e| failed(&e))?;
        Ok(JsonSink {
            dtype: head.dtype.clone(),
            width: head.width(),
            shape: head.shape.clone(),
            done: 0,
        })
    }

    /// How many lists begin (or end) at a row-major position.
    fn borders(&self, position: u64) -> usize {
        let mut size = 1u64;
        let inside = self.shape.iter().rev().take_while(|side| {
            size = size.saturating_mul(**side);
            position.is_multiple_of(size)
        });
        inside.count()
    }
}

impl Sink for JsonSink {
    fn cells(&mut self, cells: &Cells, out: &mut dyn Write) -> Result<()> {
        let mut text = String::new();
        for index in 0..cells.len(self.width) {
            if self.done > 0 {
                text.push_str(", ");
            }
            text.push_str(&"[".repeat(self.borders(self.done)));
            text.push_str(&cell::json(&self.dtype, cells.get(index, self.width)).to_string());
            self.done += 1;
            text.push_str(&"]".repeat(self.borders(self.done)));
            if text.len() > 1 << 16 {
                out.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
                text.clear();
            }
        }
        out.write_all(text.as_bytes()).map_err(|e| failed(&e))
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let empty = match self.shape.iter().product::<u64>() {
            0 => empty(&self.shape),
            _ => String::new(),
        };
        writeln!(out, "{empty}}}").map_err(|e| failed(&e))
    }
}

/// The nested lists of a result without cells, as deep as its first side of 0.
fn empty(shape: &[u64]) -> String {
    match shape.split_first() {
        Some((side, rest)) if *side > 0 => {
            let inner = empty(rest);
            // A huge side before an empty one would only repeat empty lists.
            let many = (*side).min(1000) as usize;
            format!("[{}]", vec![inner; many].join(", "))
        }
        _ => "[]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn data(shape: &[u64], cells: Vec<u8>, cut: usize) -> Value {
        let dtype = DataType::UInt(1);
        let names = vec![None; shape.len()];
        let head = Head {
            dtype,
            shape: shape.to_vec(),
            names,
            longest: None,
            limits: (None, None),
        };
        let mut out = Vec::new();
        let mut sink = JsonSink::begin(&head, &mut out).unwrap();
        let (first, second) = cells.split_at(cut);
        sink.cells(&Cells::Fixed(first.to_vec()), &mut out).unwrap();
        sink.cells(&Cells::Fixed(second.to_vec()), &mut out)
            .unwrap();
        sink.finish(&mut out).unwrap();
        serde_json::from_slice::<Value>(&out).unwrap()["data"].take()
    }

    #[test]
    fn lists_nest_as_the_shape_does() {
        assert_eq!(data(&[], vec![7], 0), json!(7));
        assert_eq!(data(&[3], vec![1, 2, 3], 1), json!([1, 2, 3]));
        assert_eq!(
            data(&[2, 1, 2], vec![1, 2, 3, 4], 3),
            json!([[[1, 2]], [[3, 4]]])
        );
        assert_eq!(data(&[2, 0], vec![], 0), json!([[], []]));
        assert_eq!(data(&[0, 2], vec![], 0), json!([]));
    }
}
