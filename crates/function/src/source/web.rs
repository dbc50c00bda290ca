//! Reads of plain web servers.
//!
//! A function that followed redirects, as a browser does, could be led to any host by a server on its
//! list. The store crate's client stays on its server; this one follows none at all.

use std::time::Duration;

use bytes::BytesMut;
use hyperslab_index::{Error, Result};
use hyperslab_store::Body;
use reqwest::header::{CONTENT_RANGE, ETAG, IF_MATCH, RANGE};
use reqwest::{Client, Response, StatusCode};

use super::{Piece, too_large};
use crate::job::Wanted;

/// A web server below one address.
pub(crate) struct Web {
    client: Client,
    prefix: String,
}

impl Web {
    pub(super) fn open(prefix: &str) -> Result<Self> {
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(|e| Error::internal("the web client cannot be built").with_source(e))?;
        Ok(Web {
            client,
            prefix: prefix.to_owned(),
        })
    }

    pub(super) async fn read(
        &self,
        key: &str,
        wanted: &Wanted,
        pin: Option<&str>,
    ) -> Result<Piece> {
        let name = format!("{}/{key}", self.prefix);
        let mut request = self.client.get(&name);
        if let Wanted::Range(range) = wanted {
            request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end - 1));
        }
        if let Some(pin) = pin {
            request = request.header(IF_MATCH, pin);
        }
        let broken = |e: reqwest::Error| {
            Error::unavailable(format!("{name}: the server cannot be reached"))
                .with_source(e.without_url())
        };
        let response = request.send().await.map_err(broken)?;
        check_status(&name, response.status())?;
        let etag = header(&response, ETAG.as_str());
        // A server may not know conditions; the state that it sent is what counts.
        if let (Some(pin), Some(etag)) = (pin, &etag)
            && pin != etag
        {
            return Err(Error::conflict(format!(
                "{name} has changed since it was read"
            )));
        }
        let partial = response.status() == StatusCode::PARTIAL_CONTENT;
        let (skip, take, more_is_wrong) = match (wanted, partial) {
            (Wanted::Whole { limit }, _) => (0, *limit, true),
            (Wanted::Range(range), true) => {
                let start = format!("bytes {}-", range.start);
                let sent = header(&response, CONTENT_RANGE.as_str());
                if !sent.is_some_and(|sent| sent.starts_with(&start)) {
                    return Err(Error::data(format!(
                        "{name}: the server sent another range"
                    )));
                }
                (0, range.end - range.start, true)
            }
            // The server ignores ranges and sends everything: what is before is skipped.
            (Wanted::Range(range), false) => (range.start, range.end - range.start, false),
        };
        let mut body = BytesMut::new();
        let mut skip = skip;
        let mut response = response;
        while let Some(mut part) = response.chunk().await.map_err(broken)? {
            let skipped = skip.min(part.len() as u64);
            skip -= skipped;
            bytes::Buf::advance(&mut part, skipped as usize);
            let room = take - body.len() as u64;
            if part.len() as u64 > room {
                if more_is_wrong {
                    return Err(too_large(take.saturating_add(1), take));
                }
                part.truncate(room as usize);
            }
            body.extend_from_slice(&part);
            if body.len() as u64 == take && !more_is_wrong {
                break;
            }
        }
        if matches!(wanted, Wanted::Range(_)) && body.len() as u64 != take {
            return Err(Error::data(format!(
                "{name} is shorter than the byte range that was expected"
            )));
        }
        Ok(Piece {
            etag,
            body: Body::from(body.freeze()),
        })
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

fn check_status(name: &str, status: StatusCode) -> Result<()> {
    let code = status.as_u16();
    Err(match code {
        200 | 206 => return Ok(()),
        300..=399 => Error::denied(format!(
            "{name}: the server redirects, and the function follows no redirect ({code})"
        )),
        401 | 403 => Error::denied(format!("{name}: the server refused access ({code})")),
        404 | 410 => Error::not_found(format!("{name} does not exist")),
        412 => Error::conflict(format!("{name} has changed since it was read")),
        416 => Error::data(format!(
            "{name} is shorter than the byte range that was expected"
        )),
        408 | 429 | 500.. => {
            Error::unavailable(format!("{name}: the server is not available ({code})"))
        }
        _ => Error::invalid(format!("{name}: the server rejected the request ({code})")),
    })
}
