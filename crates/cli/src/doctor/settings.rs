//! Which settings a store would be opened with: names only, never values.

use hyperslab::store::{Environment, StoreKind};

use super::Step;

const NAME: &str = "configuration";

/// Variables that clients of each cloud read.
const AWS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];
const AZURE: &[&str] = &[
    "AZURE_STORAGE_ACCOUNT",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
    "AZURE_SKIP_SIGNATURE",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
];
const GOOGLE: &[&str] = &[
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_SKIP_SIGNATURE",
];
const PROXIES: &[&str] = &[
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Says which variables, files and URL options are there.
pub(crate) fn check(kind: StoreKind, url: &str, environment: &Environment) -> Step {
    let clouds = match kind {
        StoreKind::S3 => AWS,
        StoreKind::Azure => AZURE,
        StoreKind::Google => GOOGLE,
        _ => &[],
    };
    let proxies = if kind.is_remote() { PROXIES } else { &[] };
    let mut seen: Vec<String> = clouds
        .iter()
        .chain(proxies)
        .chain(&["HYPERSLAB_CONFIG"])
        .filter(|name| environment.get(name).is_some())
        .map(|name| (*name).to_owned())
        .collect();
    let home = |below: &str| {
        let path = std::path::Path::new(environment.get("HOME")?).join(below);
        path.is_file().then(|| format!("~/{below}"))
    };
    seen.extend(home(".config/hyperslab/config.toml"));
    if kind == StoreKind::S3 {
        seen.extend(
            [".aws/config", ".aws/credentials"]
                .iter()
                .filter_map(|file| home(file)),
        );
    }
    seen.extend(
        option_names(url)
            .into_iter()
            .map(|name| format!("?{name}= in the URL")),
    );
    match seen.is_empty() {
        true if kind.is_remote() => {
            Step::skipped(NAME, "no variable, profile or file of this store is set")
        }
        true => Step::passed(NAME, format!("a {kind} store needs none")),
        false => Step::passed(
            NAME,
            format!("seen (values are not shown): {}", seen.join(", ")),
        ),
    }
}

/// The names of the options behind the question mark.
fn option_names(url: &str) -> Vec<String> {
    let Some((_, query)) = url.split_once('?').filter(|_| url.contains("://")) else {
        return Vec::new();
    };
    url::form_urlencoded::parse(query.as_bytes())
        .map(|(name, _)| name.into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_shown() {
        let environment: Environment = [
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("AWS_PROFILE", "hunter2"),
            ("AZURE_CLIENT_ID", "x"),
        ]
        .into_iter()
        .collect();
        let step = check(StoreKind::S3, "s3://b/a?region=hunter2", &environment);
        assert!(
            step.detail.contains("AWS_SECRET_ACCESS_KEY") && step.detail.contains("AWS_PROFILE")
        );
        assert!(step.detail.contains("?region="));
        assert!(!step.detail.contains("hunter2") && !step.detail.contains("AZURE"));
        let none = check(StoreKind::File, "a", &Environment::default());
        assert_eq!(none.status, super::super::Status::Passed);
    }
}
