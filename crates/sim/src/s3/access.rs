//! Who may do what: keys, session tokens, public buckets, and keys that may not list.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};

use crate::config::{KeyPair, SimConfig};

/// Looks up secrets for the signature check.
pub(super) struct Keys {
    secrets: HashMap<String, SecretKey>,
}

impl Keys {
    pub(super) fn new(config: &SimConfig) -> Self {
        let secrets = config
            .keys
            .iter()
            .map(|pair| {
                (
                    pair.access_key.clone(),
                    SecretKey::from(pair.secret_key.clone()),
                )
            })
            .collect();
        Keys { secrets }
    }
}

#[async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        self.secrets.get(access_key).cloned().ok_or_else(|| {
            s3_error!(
                InvalidAccessKeyId,
                "The AWS Access Key Id you provided does not exist in our records."
            )
        })
    }
}

/// Decides after the signature has been found right, or absent.
pub(super) struct Rules {
    keys: HashMap<String, KeyPair>,
    expired_tokens: HashSet<String>,
    public_buckets: HashSet<String>,
}

/// What the caller may learn, handed to the operations with the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    /// False: absent keys look forbidden.
    pub(super) may_list: bool,
}

impl Rules {
    pub(super) fn new(config: &SimConfig) -> Self {
        let keys = config
            .keys
            .iter()
            .map(|pair| (pair.access_key.clone(), pair.clone()))
            .collect();
        Rules {
            keys,
            expired_tokens: config.expired_tokens.iter().cloned().collect(),
            public_buckets: config.public_buckets.iter().cloned().collect(),
        }
    }

    fn check_token(&self, pair: &KeyPair, token: Option<&str>) -> S3Result<()> {
        if token.is_some_and(|token| self.expired_tokens.contains(token)) {
            return Err(s3_error!(ExpiredToken, "The provided token has expired."));
        }
        if token != pair.session_token.as_deref() {
            return Err(s3_error!(
                InvalidToken,
                "The provided token is malformed or otherwise invalid."
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl S3Access for Rules {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let name = cx.s3_op().name();
        let lists = matches!(name, "ListObjects" | "ListObjectsV2" | "ListBuckets");
        let reads = matches!(
            name,
            "GetObject" | "HeadObject" | "HeadBucket" | "GetBucketLocation"
        ) || lists
            || matches!(name, "ListParts" | "ListMultipartUploads");
        let denied = || s3_error!(AccessDenied, "Access Denied");
        let may_list = match cx.credentials() {
            Some(credentials) => {
                let pair = self.keys.get(&credentials.access_key).ok_or_else(denied)?;
                self.check_token(pair, session_token(cx).as_deref())?;
                if (lists && !pair.may_list) || (!reads && !pair.may_write) {
                    return Err(denied());
                }
                pair.may_list
            }
            None => {
                let bucket = cx.s3_path().get_bucket_name().ok_or_else(denied)?;
                if !reads || !self.public_buckets.contains(bucket) {
                    return Err(denied());
                }
                true
            }
        };
        cx.extensions_mut().insert(Rights { may_list });
        Ok(())
    }
}

/// The session token of a request, in a header or, in a signed URL, in the query.
fn session_token(cx: &S3AccessContext<'_>) -> Option<String> {
    let header = cx
        .headers()
        .get("x-amz-security-token")
        .and_then(|value| value.to_str().ok());
    header.map(str::to_string).or_else(|| {
        let query = cx.uri().query().unwrap_or_default();
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == "X-Amz-Security-Token")
            .map(|(_, value)| value.into_owned())
    })
}
