//! Storage classes: what is read rarely costs less where storing is cheap and reading is not.
//!
//! The paper moves what is rarely wanted to media that are slow to mount; a cloud has classes of
//! storage instead. Which one is cheapest for an object follows from how many bytes of it are read in
//! a month.

/// A class of storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Dollars for keeping a gigabyte for a month.
    pub month_per_gb: f64,
    /// Dollars for reading a gigabyte.
    pub read_per_gb: f64,
    /// Dollars for a thousand reads.
    pub reads_per_1000: f64,
    /// Objects count as no smaller than this many bytes.
    pub least_bytes: u64,
}

impl StorageClass {
    /// Dollars a month for an object of `bytes`, of which `read` bytes are read by `reads` requests.
    /// `gb` is how many bytes the book calls a gigabyte.
    pub fn monthly(&self, bytes: u64, read: f64, reads: f64, gb: f64) -> f64 {
        bytes.max(self.least_bytes) as f64 / gb * self.month_per_gb
            + read / gb * self.read_per_gb
            + reads / 1000.0 * self.reads_per_1000
    }
}

/// An object, and how it is read in a month.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// Its bytes.
    pub bytes: u64,
    /// Bytes that are read of it.
    pub read: f64,
    /// Requests for that.
    pub reads: f64,
}

/// For each object the cheapest class, and the dollars a month of all objects there.
pub fn classes(objects: &[Use], classes: &[StorageClass], gb: f64) -> (Vec<usize>, f64) {
    let mut total = 0.0;
    let chosen = objects.iter().map(|object| {
        let monthly =
            |class: &usize| classes[*class].monthly(object.bytes, object.read, object.reads, gb);
        let each = 0..classes.len();
        let best = each.min_by(|a, b| monthly(a).total_cmp(&monthly(b)));
        total += best.as_ref().map_or(0.0, monthly);
        best.unwrap_or(0)
    });
    (chosen.collect(), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_rarely_goes_where_storing_is_cheap() {
        let class = |name: &str, month, read, reads, least_bytes| StorageClass {
            name: name.into(),
            month_per_gb: month,
            read_per_gb: read,
            reads_per_1000: reads,
            least_bytes,
        };
        let known = [
            class("warm", 0.023, 0.0, 0.0004, 0),
            class("cool", 0.0125, 0.01, 0.001, 128 << 10),
        ];
        let gb = 1e9;
        let large = |read| Use {
            bytes: 1_000_000_000,
            read,
            reads: 1.0,
        };
        let small = Use {
            bytes: 1000,
            read: 0.0,
            reads: 0.0,
        };
        // Reading it once a month costs 0.01, keeping it cool saves 0.0105.
        let objects = [large(0.0), large(1e9), large(2e9), small];
        let (chosen, total) = classes(&objects, &known, gb);
        assert_eq!(chosen, [1, 1, 0, 0]);
        let naive: f64 = objects
            .iter()
            .map(|o| {
                let each = known
                    .iter()
                    .map(|c| c.monthly(o.bytes, o.read, o.reads, gb));
                each.fold(f64::INFINITY, f64::min)
            })
            .sum();
        assert!((total - naive).abs() < 1e-12);
    }
}
