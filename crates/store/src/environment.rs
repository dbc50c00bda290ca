//! The environment variables that configure a store.
//!
//! A value rather than the process's own table, so that a test or an embedding program can open a
//! store under another environment without changing its own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A snapshot of environment variables.
#[derive(Clone, Default)]
pub struct Environment(Arc<BTreeMap<String, String>>);

impl Environment {
    /// The variables of this process, as they are now.
    pub fn process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The first of several variables that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// True if the variable says yes (`1`, `true`, `yes`, `on`, in any case).
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            ["1", "true", "yes", "on"]
                .iter()
                .any(|yes| value.eq_ignore_ascii_case(yes))
        })
    }

    /// A path below the home directory, if there is one.
    pub(crate) fn home(&self, below: &str) -> Option<PathBuf> {
        self.get("HOME").map(|home| PathBuf::from(home).join(below))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Environment(Arc::new(
            pairs
                .into_iter()
                .map(|(n, v)| (n.into(), v.into()))
                .collect(),
        ))
    }
}

/// Shows how many variables there are; values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}
