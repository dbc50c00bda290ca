//! The settings of a session, as the harness names them: those of the command line's options.

use std::sync::Arc;

use hyperslab::{Error, FunctionClient, Options, PriceBook, Profile, Result, Secret};
use serde::Deserialize;

/// What `configure` takes; what is left out has the product's own default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// `global`, `paper`, a forced mode, or `splits=K`.
    planner: Option<String>,
    /// Seconds that a dollar is worth, as text: JSON has no infinity.
    phi: Option<String>,
    /// `same-region`, `other-region` or `internet`.
    place: Option<String>,
    /// A file that `hyperslab profile` wrote, or the name of a built-in profile.
    profile: Option<String>,
    /// The name of a built-in price book.
    prices: Option<String>,
    /// Where the function is.
    function: Option<String>,
    /// What calls are signed with.
    secret: Option<String>,
    /// Requests in flight at a time.
    concurrency: Option<usize>,
    /// Reads do not refine the profile.
    frozen: Option<bool>,
}

impl Settings {
    /// The options of a session with these settings, without a chunk cache.
    pub(crate) fn options(&self) -> Result<Options> {
        let mut options = Options::default();
        if let Some(planner) = &self.planner {
            options.planner = planner.parse()?;
        }
        if let Some(phi) = &self.phi {
            options.phi = phi
                .parse()
                .map_err(|_| Error::invalid(format!("phi is {phi:?}, which is no number")))?;
        }
        if let Some(place) = &self.place {
            options.place = place.parse()?;
        }
        if let Some(profile) = &self.profile {
            options.profile = Some(Arc::new(load_profile(profile)?));
        }
        if let Some(prices) = &self.prices {
            options.prices = Some(Arc::new(PriceBook::built_in(prices)?));
        }
        if let Some(url) = &self.function {
            let secret = match &self.secret {
                Some(secret) => Some(Secret::new(secret)?),
                None => None,
            };
            options.function = Some(Arc::new(FunctionClient::new(url, secret)?));
        }
        if let Some(concurrency) = self.concurrency {
            options.concurrency = concurrency;
        }
        if let Some(frozen) = self.frozen {
            options.frozen = frozen;
        }
        Ok(options)
    }
}

fn load_profile(name: &str) -> Result<Profile> {
    if let Ok(known) = Profile::built_in(name) {
        return Ok(known);
    }
    let text = std::fs::read_to_string(name).map_err(crate::cells::file_error("read", name))?;
    Profile::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: &str) -> Result<Options> {
        serde_json::from_str::<Settings>(json).unwrap().options()
    }

    #[test]
    fn what_is_named_is_set_and_the_rest_is_the_default() {
        let set = options(
            r#"{"planner": "splits=3", "phi": "inf", "place": "same-region", "prices": "aws",
                "profile": "gcp", "function": "http://127.0.0.1:9", "secret": "0123456789abcdef"}"#,
        )
        .unwrap();
        assert_eq!(set.planner.to_string(), "splits=3");
        assert!(set.phi.is_infinite());
        assert_eq!(set.profile.unwrap().name, "gcp");
        assert!(set.function.is_some());
        assert_eq!(options("{}").unwrap().cache_bytes, 0);
    }

    #[test]
    fn unknown_names_are_refused() {
        for wrong in [
            r#"{"planner": "best"}"#,
            r#"{"phi": "much"}"#,
            r#"{"place": "moon"}"#,
            r#"{"profile": "no/such/file"}"#,
            r#"{"prices": "bazaar"}"#,
        ] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<Settings>(r#"{"planer": "get"}"#).is_err());
    }
}
