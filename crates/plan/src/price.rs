//! Price books: what requests, traffic and functions cost, as dated data.
//!
//! The books of the three clouds live in `prices/` at the root of the repository and are built
//! in; any other can be parsed. Every number in a book carries its source and how sure it is.

use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};

/// Where the client sits, which decides what traffic costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the region of the store.
    SameRegion,
    /// In another region of the same cloud.
    OtherRegion,
    /// Anywhere else.
    #[default]
    Internet,
}

impl std::str::FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "same-region" => Ok(Place::SameRegion),
            "other-region" => Ok(Place::OtherRegion),
            "internet" => Ok(Place::Internet),
            _ => Err(
                Error::invalid(format!("{text:?} is no place that a price book knows"))
                    .with_hint("the places are same-region, other-region and internet"),
            ),
        }
    }
}

/// How far a number can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sureness {
    /// The provider's own text.
    H,
    /// Third parties that agree.
    M,
    /// One weak source, or general knowledge.
    L,
}

/// One number of a price book.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The number, in the unit that the field's name says.
    pub value: f64,
    /// How far it can be trusted.
    pub sureness: Sureness,
    /// Where it comes from.
    pub source: String,
}

/// Prices of one provider, first tier, without free allowances unless a field says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceBook {
    /// The provider.
    pub name: String,
    /// When the prices were read, as year-month or year-month-day.
    pub date: String,
    /// The currency of all prices.
    pub currency: String,
    /// Request fees.
    pub requests: RequestPrices,
    /// Traffic out of the store.
    pub egress: EgressPrices,
    /// Functions next to the store.
    pub function: FunctionPrices,
    /// Classes of storage, the usual one first; none where storage costs nothing.
    #[serde(default)]
    pub storage: Vec<StoragePrices>,
}

/// What keeping and reading data in a class of storage costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoragePrices {
    /// The provider's name of the class.
    pub name: String,
    /// For a gigabyte and a month.
    pub month_per_gb: Fact,
    /// For a gigabyte that is read, besides traffic.
    pub read_per_gb: Fact,
    /// For a thousand GETs.
    pub reads_per_1000: Fact,
    /// Objects count as no smaller than so many bytes.
    pub least_bytes: Fact,
}

/// Fees per 1,000 requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPrices {
    /// PUT, POST, COPY and LIST.
    pub write_per_1000: Fact,
    /// GET and HEAD.
    pub read_per_1000: Fact,
    /// DELETE.
    pub delete_per_1000: Fact,
}

/// Fees per gigabyte sent to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressPrices {
    /// What the provider calls a gigabyte, in bytes.
    pub bytes_per_gb: Fact,
    /// To a client in the same region.
    pub same_region_per_gb: Fact,
    /// To a client in another region of the cloud.
    pub other_region_per_gb: Fact,
    /// To anywhere else.
    pub internet_per_gb: Fact,
    /// What is free to the internet each month.
    pub internet_free_gb_per_month: Fact,
}

/// Fees of functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionPrices {
    /// Per million calls.
    pub per_million_requests: Fact,
    /// Per second and gigabyte of memory.
    pub per_gb_second: Fact,
    /// Per second and virtual processor, where that is billed apart from memory.
    pub per_vcpu_second: Fact,
}

const BUILT_IN: [(&str, &str); 4] = [
    ("aws", include_str!("../../../prices/aws.toml")),
    ("azure", include_str!("../../../prices/azure.toml")),
    ("gcp", include_str!("../../../prices/gcp.toml")),
    ("none", include_str!("../../../prices/none.toml")),
];

impl PriceBook {
    /// Reads a price book and checks that it is complete and no price is negative.
    pub fn parse(text: &str) -> Result<Self> {
        let book: PriceBook = toml::from_str(text).map_err(|error| {
            let reason = error.message().trim_end_matches('.').to_string();
            Error::invalid(format!("the price book cannot be used: {reason}"))
                .with_hint("prices/aws.toml shows every field that a price book has")
                .with_source(error)
        })?;
        for (name, fact) in book.facts() {
            if !(fact.value.is_finite() && fact.value >= 0.0) {
                return Err(Error::invalid(format!(
                    "the price book {:?} says that {name} is {}, which is no price",
                    book.name, fact.value
                )));
            }
        }
        if book.egress.bytes_per_gb.value < 1.0 {
            return Err(Error::invalid(format!(
                "the price book {:?} says that a gigabyte has less than one byte",
                book.name
            ))
            .with_hint("bytes_per_gb is 1000000000 or 1073741824"));
        }
        Ok(book)
    }

    /// The built-in book of this name: `aws`, `azure`, `gcp` or `none`.
    pub fn built_in(name: &str) -> Result<Self> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(text),
            None => Err(
                Error::invalid(format!("there is no built-in price book named {name:?}"))
                    .with_hint("the built-in books are aws, azure, gcp and none"),
            ),
        }
    }

    /// A book in which nothing costs anything.
    pub fn free() -> Self {
        let fact = |value| Fact {
            value,
            sureness: Sureness::H,
            source: "by definition".to_string(),
        };
        PriceBook {
            name: "none".into(),
            date: "2026-09".into(),
            currency: "USD".into(),
            requests: RequestPrices {
                write_per_1000: fact(0.0),
                read_per_1000: fact(0.0),
                delete_per_1000: fact(0.0),
            },
            egress: EgressPrices {
                bytes_per_gb: fact((1_u64 << 30) as f64),
                same_region_per_gb: fact(0.0),
                other_region_per_gb: fact(0.0),
                internet_per_gb: fact(0.0),
                internet_free_gb_per_month: fact(0.0),
            },
            function: FunctionPrices {
                per_million_requests: fact(0.0),
                per_gb_second: fact(0.0),
                per_vcpu_second: fact(0.0),
            },
            storage: Vec::new(),
        }
    }

    /// What sending `bytes` to a client at `place` costs.
    pub fn egress_dollars(&self, place: Place, bytes: u64) -> f64 {
        let per_gb = match place {
            Place::SameRegion => &self.egress.same_region_per_gb,
            Place::OtherRegion => &self.egress.other_region_per_gb,
            Place::Internet => &self.egress.internet_per_gb,
        };
        bytes as f64 / self.egress.bytes_per_gb.value * per_gb.value
    }

    /// What this many requests cost.
    pub fn request_dollars(&self, writes: u64, reads: u64, deletes: u64) -> f64 {
        (writes as f64 * self.requests.write_per_1000.value
            + reads as f64 * self.requests.read_per_1000.value
            + deletes as f64 * self.requests.delete_per_1000.value)
            / 1000.0
    }

    /// Every number with its name, for checks and for printing.
    pub fn facts(&self) -> Vec<(&'static str, &Fact)> {
        let storage = self.storage.iter().flat_map(|class| {
            [
                ("storage.month_per_gb", &class.month_per_gb),
                ("storage.read_per_gb", &class.read_per_gb),
                ("storage.reads_per_1000", &class.reads_per_1000),
                ("storage.least_bytes", &class.least_bytes),
            ]
        });
        let mut facts = vec![
            ("requests.write_per_1000", &self.requests.write_per_1000),
            ("requests.read_per_1000", &self.requests.read_per_1000),
            ("requests.delete_per_1000", &self.requests.delete_per_1000),
            ("egress.bytes_per_gb", &self.egress.bytes_per_gb),
            ("egress.same_region_per_gb", &self.egress.same_region_per_gb),
            (
                "egress.other_region_per_gb",
                &self.egress.other_region_per_gb,
            ),
            ("egress.internet_per_gb", &self.egress.internet_per_gb),
            (
                "egress.internet_free_gb_per_month",
                &self.egress.internet_free_gb_per_month,
            ),
            (
                "function.per_million_requests",
                &self.function.per_million_requests,
            ),
            ("function.per_gb_second", &self.function.per_gb_second),
            ("function.per_vcpu_second", &self.function.per_vcpu_second),
        ];
        facts.extend(storage);
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_books_are_complete_and_dated() {
        for (name, _) in BUILT_IN {
            let book = PriceBook::built_in(name).unwrap();
            assert_eq!(book.name, name);
            assert!(book.date.starts_with("20"), "{}", book.date);
            assert!(book.facts().iter().all(|(_, fact)| !fact.source.is_empty()));
        }
        assert!(
            PriceBook::built_in("moon")
                .unwrap_err()
                .hint()
                .unwrap()
                .contains("azure")
        );
    }

    #[test]
    fn sums_follow_the_book() {
        let book = PriceBook::built_in("aws").unwrap();
        let requests = book.request_dollars(2_000, 10_000, 500);
        assert!(
            (requests - (2.0 * 0.005 + 10.0 * 0.0004)).abs() < 1e-12,
            "{requests}"
        );
        let gb = book.egress.bytes_per_gb.value as u64;
        assert!((book.egress_dollars(Place::Internet, 10 * gb) - 0.9).abs() < 1e-9);
        assert!((book.egress_dollars(Place::OtherRegion, 10 * gb) - 0.2).abs() < 1e-9);
        assert_eq!(book.egress_dollars(Place::SameRegion, 10 * gb), 0.0);
        assert_eq!(PriceBook::built_in("none").unwrap(), PriceBook::free());
        assert_eq!(PriceBook::free().request_dollars(9, 9, 9), 0.0);
    }

    #[test]
    fn a_missing_field_is_named() {
        let text = BUILT_IN[0]
            .1
            .replace("[requests.read_per_1000]", "[requests.read_per_thousand]");
        let error = PriceBook::parse(&text).unwrap_err();
        assert_eq!(error.kind(), hyperslab_index::ErrorKind::Invalid);
        assert!(error.message().contains("read_per_thousand"), "{error}");
        let start = BUILT_IN[0].1.find("[function.per_gb_second]").unwrap();
        let error = PriceBook::parse(&BUILT_IN[0].1[..start]).unwrap_err();
        assert!(error.message().contains("per_gb_second"), "{error}");
        let negative = BUILT_IN[0].1.replace("value = 0.005", "value = -0.005");
        assert!(
            PriceBook::parse(&negative)
                .unwrap_err()
                .message()
                .contains("write_per_1000")
        );
    }
}
