//! Values of the options by which reads are planned.

use std::path::Path;
use std::sync::Arc;

use hyperslab::store::Environment;
use hyperslab::{Error, FunctionClient, PriceBook, Profile, Secret};

/// φ: a number of seconds, `inf` for money only.
pub(crate) fn phi(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(phi) if phi >= 0.0 => Ok(phi),
        _ => Err("it has to be 0 or more, or inf".into()),
    }
}

/// A profile by its file or its name.
pub(crate) fn profile(text: &str) -> Result<Arc<Profile>, String> {
    load(text, Profile::built_in, Profile::parse)
}

/// A price book by its file or its name.
pub(crate) fn prices(text: &str) -> Result<Arc<PriceBook>, String> {
    load(text, PriceBook::built_in, PriceBook::parse)
}

/// The secret that calls of the function are signed with, where no file is named.
const SECRET: &str = "HYPERSLAB_FUNCTION_SECRET";
/// A token for the cloud that stands before the function.
const TOKEN: &str = "HYPERSLAB_FUNCTION_TOKEN";

/// The function next to the data, if one is named. Its secret is in the file, or else in the
/// environment; without one, calls are not signed.
pub(crate) fn function(
    url: Option<&str>,
    secret_file: Option<&Path>,
    environment: &Environment,
) -> hyperslab::Result<Option<Arc<FunctionClient>>> {
    // An empty variable is one that is not set.
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let secret = match secret_file.filter(|file| !file.as_os_str().is_empty()) {
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|e| {
                let shown = file.display();
                Error::invalid(format!("the secret in {shown} cannot be read: {e}"))
                    .with_hint("check --function-secret-file")
            })?;
            Some(Secret::new(text.trim())?)
        }
        None => environment.get(SECRET).map(Secret::new).transpose()?,
    };
    let mut client = FunctionClient::new(url, secret)?;
    if let Some(token) = environment.get(TOKEN) {
        client = client.with_token(token)?;
    }
    Ok(Some(Arc::new(client)))
}

fn load<T>(
    text: &str,
    built_in: fn(&str) -> hyperslab::Result<T>,
    parse: fn(&str) -> hyperslab::Result<T>,
) -> Result<Arc<T>, String> {
    if let Ok(found) = built_in(text) {
        return Ok(Arc::new(found));
    }
    let content = std::fs::read_to_string(Path::new(text))
        .map_err(|e| format!("there is no such name built in, and no such file: {e}"))?;
    parse(&content)
        .map(Arc::new)
        .map_err(|e| e.message().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(phi("inf").unwrap(), f64::INFINITY);
        assert_eq!(phi("0").unwrap(), 0.0);
        for wrong in ["-1", "nan", "much", ""] {
            assert!(phi(wrong).is_err(), "{wrong}");
        }
        assert_eq!(profile("gcp").unwrap().name, "gcp");
        assert!(
            profile("no/such/file")
                .unwrap_err()
                .contains("no such file")
        );
        assert_eq!(prices("none").unwrap().name, "none");
    }

    #[test]
    fn a_function_has_a_url_and_perhaps_a_secret() {
        let bare = Environment::default();
        assert!(function(None, None, &bare).unwrap().is_none());
        assert!(function(Some(""), None, &bare).unwrap().is_none());
        let shown = |client: Option<Arc<FunctionClient>>| format!("{:?}", client.unwrap());
        let url = Some("https://f.example/?code=s3cret");
        let unsigned = shown(function(url, None, &bare).unwrap());
        assert!(unsigned.contains("signed: false"), "{unsigned}");
        assert!(!unsigned.contains("s3cret"));

        let secret = "0123456789abcdef-secret";
        let set: Environment = [(SECRET, secret)].into_iter().collect();
        let signed = shown(function(url, None, &set).unwrap());
        assert!(signed.contains("signed: true") && !signed.contains(secret));

        let token: Environment = [(TOKEN, "no\ntoken")].into_iter().collect();
        assert!(function(url, None, &token).is_err());

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, format!("{secret}\n")).unwrap();
        let signed = shown(function(url, Some(&file), &bare).unwrap());
        assert!(signed.contains("signed: true"), "{signed}");

        std::fs::write(&file, "short").unwrap();
        let absent = dir.path().join("absent");
        for (url, file) in [
            (url, Some(&file)),
            (url, Some(&absent)),
            (Some("mars"), None),
        ] {
            let error = function(url, file.map(|f| f.as_path()), &bare).unwrap_err();
            assert!(error.hint().is_some(), "{error}");
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
