//! Which planner plans.

use std::fmt;
use std::str::FromStr;

use crate::division::Division;
use crate::{Error, Model, Plan, Query, Result, forced, global, paper};

/// A planner, or a method that is forced on every object for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The cheapest plan that our search finds.
    #[default]
    Global,
    /// The paper's algorithm 1, then Get against Range against Function for each chunk.
    Paper,
    /// Whole objects.
    Get,
    /// One range per object, from its first wanted byte to its last.
    RangeMerge,
    /// One range per run.
    RangeFetch,
    /// One call of the function per object.
    Function,
    /// One call of the function for the whole query.
    FunctionWhole,
    /// Algorithm 1 without its cost test, stopped after so many splits of each object.
    Splits(u32),
}

/// Plans a query.
pub fn plan(query: &Query, model: &Model, mode: Mode) -> Plan {
    let (methods, bundles) = match mode {
        Mode::Global => global::methods(query, model),
        Mode::Paper => (paper::methods(query, model), Vec::new()),
        Mode::Get => (forced::get(query), Vec::new()),
        Mode::RangeMerge => (forced::range_merge(query), Vec::new()),
        Mode::RangeFetch => (forced::range_fetch(query), Vec::new()),
        Mode::Function => {
            let division = Division::new(query, model);
            (forced::function(query, &division), Vec::new())
        }
        Mode::FunctionWhole => forced::function_whole(query, model, &Division::new(query, model)),
        Mode::Splits(k) => (paper::splits(query, k), Vec::new()),
    };
    let plan = Plan::of(query, model, methods, bundles);
    debug_assert_eq!(plan.check(query, model), Ok(()));
    plan
}

impl Mode {
    /// All modes that can be compared, without the endless family of [`Mode::Splits`].
    pub const ALL: [Mode; 7] = [
        Mode::Global,
        Mode::Paper,
        Mode::Get,
        Mode::RangeMerge,
        Mode::RangeFetch,
        Mode::Function,
        Mode::FunctionWhole,
    ];

    /// Modes that force one method.
    pub const FORCED: [Mode; 5] = [
        Mode::Get,
        Mode::RangeMerge,
        Mode::RangeFetch,
        Mode::Function,
        Mode::FunctionWhole,
    ];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Global => "global",
            Mode::Paper => "paper",
            Mode::Get => "get",
            Mode::RangeMerge => "range-merge",
            Mode::RangeFetch => "range-fetch",
            Mode::Function => "function",
            Mode::FunctionWhole => "function-whole",
            Mode::Splits(k) => return write!(f, "splits={k}"),
        })
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(mode) = Mode::ALL.iter().find(|mode| mode.to_string() == text) {
            return Ok(*mode);
        }
        text.strip_prefix("splits=")
            .and_then(|k| k.parse().ok())
            .map(Mode::Splits)
            .ok_or_else(|| {
                Error::invalid(format!("there is no planner named {text:?}")).with_hint(
                    "the planners are global, paper, get, range-merge, range-fetch, function, function-whole and splits=K",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names() {
        for mode in Mode::ALL.into_iter().chain([Mode::Splits(7)]) {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        for wrong in ["", "best", "splits", "splits=-1"] {
            assert!(wrong.parse::<Mode>().is_err());
        }
    }
}
