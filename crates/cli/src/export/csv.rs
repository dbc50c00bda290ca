//! Comma-separated values: a column for one dimension, a grid for two, and for more a line per
//! cell with its coordinates before the value.

use std::io::Write;

use hyperslab::{DataType, Result};

use super::{Head, Sink, failed};
use crate::cell;
use crate::target::Cells;

pub(crate) struct CsvSink {
    dtype: DataType,
    width: usize,
    shape: Vec<u64>,
    /// The coordinates of the next cell.
    at: Vec<u64>,
}

impl CsvSink {
    /// Writes the line of names that files with coordinates begin with.
    pub(crate) fn begin(head: &Head, out: &mut dyn Write) -> Result<Self> {
        if head.shape.len() > 2 {
            let mut line = String::new();
            for (dim, name) in head.names.iter().enumerate() {
                match name {
                    Some(name) => line.push_str(&quoted(name)),
                    None => line.push_str(&format!("i{dim}")),
                }
                line.push(',');
            }
            line.push_str("value\n");
            out.write_all(line.as_bytes()).map_err(|e| failed(&e))?;
        }
        let rank = head.shape.len();
        let width = head.width();
        Ok(CsvSink {
            dtype: head.dtype.clone(),
            width,
            shape: head.shape.clone(),
            at: vec![0; rank],
        })
    }

    /// Goes to the next cell; true at the end of a row.
    fn advance(&mut self) -> bool {
        for dim in (0..self.at.len()).rev() {
            self.at[dim] += 1;
            if self.at[dim] < self.shape[dim] {
                return dim + 1 < self.at.len();
            }
            self.at[dim] = 0;
        }
        true
    }
}

impl Sink for CsvSink {
    fn cells(&mut self, cells: &Cells, out: &mut dyn Write) -> Result<()> {
        let mut text = String::new();
        for index in 0..cells.len(self.width) {
            if self.shape.len() > 2 {
                for place in &self.at {
                    text.push_str(&place.to_string());
                    text.push(',');
                }
            }
            text.push_str(&quoted(&cell::text(
                &self.dtype,
                cells.get(index, self.width),
            )));
            let row_ends = self.advance();
            text.push(if self.shape.len() == 2 && !row_ends {
                ','
            } else {
                '\n'
            });
            if text.len() > 1 << 16 {
                out.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
                text.clear();
            }
        }
        out.write_all(text.as_bytes()).map_err(|e| failed(&e))
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

/// Quotes a field that would otherwise be read as something else (RFC 4180).
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn csv(dtype: DataType, shape: &[u64], blocks: &[Cells]) -> String {
        let head = Head {
            dtype,
            shape: shape.to_vec(),
            names: vec![Some("a,b".into()), None, None][..shape.len()].to_vec(),
            longest: None,
            limits: (None, None),
        };
        let mut out = Vec::new();
        let mut sink = CsvSink::begin(&head, &mut out).unwrap();
        for cells in blocks {
            sink.cells(cells, &mut out).unwrap();
        }
        sink.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_rank_has_its_form() {
        let u1 = DataType::UInt(1);
        let two = [Cells::Fixed(vec![1, 2, 3, 4]), Cells::Fixed(vec![5, 6])];
        assert_eq!(csv(u1.clone(), &[2, 3], &two), "1,2,3\n4,5,6\n");
        assert_eq!(
            csv(u1.clone(), &[3], &[Cells::Fixed(vec![1, 2, 3])]),
            "1\n2\n3\n"
        );
        assert_eq!(csv(u1.clone(), &[], &[Cells::Fixed(vec![9])]), "9\n");
        assert_eq!(
            csv(u1, &[1, 2, 1], &[Cells::Fixed(vec![7, 8])]),
            "\"a,b\",i1,i2,value\n0,0,0,7\n0,1,0,8\n"
        );
        let strings = Cells::Strings(vec![Bytes::from("a\"b"), Bytes::from("")]);
        assert_eq!(csv(DataType::String, &[2], &[strings]), "\"a\"\"b\"\n\n");
    }
}
