//! Credentials from a helper program (`credential_process` of an AWS profile).
//!
//! The command is split into words as a shell would and run without one. Its answer is kept until
//! five minutes before it expires; requests that come meanwhile share one run.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::AwsCredential;
use object_store::client::CredentialProvider;
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::{Error, Result};

/// Helpers may ask a person for a second factor.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A credential is renewed so long before it expires, or at half of a shorter life.
const MARGIN: TimeDelta = TimeDelta::minutes(5);

pub(super) struct ProcessCredentials {
    command: Vec<String>,
    held: Mutex<Option<Held>>,
}

struct Held {
    credential: Arc<AwsCredential>,
    renew_at: Option<DateTime<Utc>>,
}

/// The command's arguments may be secrets.
impl fmt::Debug for ProcessCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessCredentials")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<DateTime<Utc>>,
}

impl ProcessCredentials {
    pub(super) fn new(command: Vec<String>) -> Self {
        ProcessCredentials {
            command,
            held: Mutex::new(None),
        }
    }

    async fn run(&self) -> Result<Held> {
        let failed = |why: String| {
            Error::denied(format!("the profile's credential_process {why}"))
                .with_hint("run the command by hand to see what it says")
        };
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(failed("is empty".to_owned()));
        };
        let running = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = match tokio::time::timeout(TIMEOUT, running).await {
            Err(_) => return Err(failed(format!("did not finish in {TIMEOUT:?}"))),
            Ok(Err(e)) => return Err(failed(format!("cannot be started: {e}"))),
            Ok(Ok(output)) if !output.status.success() => {
                return Err(failed(format!("failed ({})", output.status)));
            }
            Ok(Ok(output)) => output.stdout,
        };
        // The parser's message could quote the secret.
        let answer: Answer = serde_json::from_slice(&output)
            .map_err(|_| failed("did not print the JSON that AWS defines for it".to_owned()))?;
        if answer.version != 1 {
            return Err(failed(format!("speaks version {}, not 1", answer.version)));
        }
        let now = Utc::now();
        let renew_at = match answer.expiration {
            Some(end) if end <= now => return Err(failed("gave an expired credential".to_owned())),
            Some(end) => Some(end - MARGIN.min((end - now) / 2)),
            None => None,
        };
        let credential = Arc::new(AwsCredential {
            key_id: answer.access_key_id,
            secret_key: answer.secret_access_key,
            token: answer.session_token,
        });
        Ok(Held {
            credential,
            renew_at,
        })
    }
}

#[async_trait]
impl CredentialProvider for ProcessCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut held = self.held.lock().await;
        if let Some(held) = &*held
            && held.renew_at.is_none_or(|renew_at| Utc::now() < renew_at)
        {
            return Ok(Arc::clone(&held.credential));
        }
        match self.run().await {
            Ok(fresh) => Ok(Arc::clone(&held.insert(fresh).credential)),
            Err(e) => Err(object_store::Error::Generic {
                store: "S3",
                source: Box::new(e),
            }),
        }
    }
}

/// Splits a command into words as a POSIX shell does, without expanding anything; `None` if a
/// quote is left open.
pub(super) fn split_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn words_split_as_in_a_shell() {
        for (command, words) in [
            ("a  b\tc", Some(vec!["a", "b", "c"])),
            ("'a b' \"c d\"e", Some(vec!["a b", "c de"])),
            (r#"a\ b "\"\\\n" '\'"#, Some(vec!["a b", r#""\\n"#, r"\"])),
            ("a '' \"\"", Some(vec!["a", "", ""])),
            (
                "$HOME `x` | y > z",
                Some(vec!["$HOME", "`x`", "|", "y", ">", "z"]),
            ),
            ("'a", None),
            ("\"a", None),
            ("a\\", None),
            ("", Some(vec![])),
        ] {
            let words = words.map(|w| w.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(split_words(command), words, "{command}");
        }
    }

    /// A helper that counts its runs in a file and prints a key named after the count.
    fn helper(dir: &Path, expiration: &str) -> ProcessCredentials {
        let counter = dir.join("runs");
        let script = format!(
            "echo x >> {0}; n=$(wc -l < {0}); printf '{{\"Version\":1,\"AccessKeyId\":\"K%d\",\
             \"SecretAccessKey\":\"hunter2\"{expiration}}}' \"$n\"",
            counter.display()
        );
        ProcessCredentials::new(vec!["sh".to_owned(), "-c".to_owned(), script])
    }

    #[tokio::test]
    async fn a_credential_is_kept_until_it_nears_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let lasting = helper(dir.path(), "");
        for _ in 0..3 {
            assert_eq!(lasting.get_credential().await.unwrap().key_id, "K1");
        }
        let dir = tempfile::tempdir().unwrap();
        let soon = (Utc::now() + TimeDelta::hours(1)).to_rfc3339();
        let hourly = helper(dir.path(), &format!(",\"Expiration\":\"{soon}\""));
        assert_eq!(hourly.get_credential().await.unwrap().key_id, "K1");
        assert_eq!(hourly.get_credential().await.unwrap().key_id, "K1");
        hourly.held.lock().await.as_mut().unwrap().renew_at = Some(Utc::now());
        assert_eq!(hourly.get_credential().await.unwrap().key_id, "K2");
    }

    #[tokio::test]
    async fn failures_name_the_reason_and_no_secret() {
        let run = |words: &[&str]| {
            ProcessCredentials::new(words.iter().map(|w| (*w).to_owned()).collect())
        };
        for (process, word) in [
            (run(&["false"]), "failed"),
            (run(&["/no/such/helper", "hunter2"]), "cannot be started"),
            (run(&["echo", "hunter2"]), "did not print"),
            (
                run(&[
                    "echo",
                    r#"{"Version":2,"AccessKeyId":"a","SecretAccessKey":"hunter2"}"#,
                ]),
                "version 2",
            ),
            (
                run(&[
                    "echo",
                    r#"{"Version":1,"AccessKeyId":"a","SecretAccessKey":"hunter2","Expiration":"2001-01-01T00:00:00Z"}"#,
                ]),
                "expired",
            ),
        ] {
            let e = process.get_credential().await.unwrap_err();
            assert!(e.to_string().contains(word), "{e}");
            assert!(!format!("{e:?} {process:?}").contains("hunter2"), "{e:?}");
        }
    }
}
