//! Google Cloud Storage's XML language, in front of the same objects as S3's.
//!
//! It speaks what object_store's Google client uses: objects with generations, listings, copies
//! and uploads in parts. `x-goog-if-generation-match` is checked under the lock of the key map,
//! as S3's conditions are. Credentials are not checked: the client has its OAuth switched off.

mod objects;
mod uploads;

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use s3s::dto::ListObjectsV2Input;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::body::RequestBody;
use crate::front::Door;
use crate::objects::{Condition, ObjectHeaders, ObjectMap};
use crate::operation::split_path;
use crate::s3::{Store, list_v2};

const GENERATION: &str = "x-goog-generation";
const IF_GENERATION: &str = "x-goog-if-generation-match";
const COPY_SOURCE: &str = "x-goog-copy-source";
const METADATA_PREFIX: &str = "x-goog-meta-";

/// The Google front door.
pub(crate) struct GcsDoor {
    store: Store,
}

/// A request, taken apart.
struct Ask {
    method: Method,
    bucket: String,
    key: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: RequestBody,
}

impl Ask {
    fn parse(request: Request<RequestBody>) -> Self {
        let (parts, body) = request.into_parts();
        let (bucket, key) = split_path(parts.uri.path());
        let query = parts.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        Ask {
            method: parts.method,
            bucket,
            key,
            query,
            headers: parts.headers,
            body,
        }
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn content_length(&self) -> Option<i64> {
        self.header("content-length")
            .and_then(|value| value.parse().ok())
    }

    /// The condition of a write: generation 0 means that there must be no object.
    fn condition(&self) -> S3Result<Condition> {
        match self.header(IF_GENERATION) {
            None => Ok(Condition::Always),
            Some("0") => Ok(Condition::Absent),
            Some(text) => text
                .parse()
                .map(Condition::Generation)
                .map_err(|_| s3_error!(InvalidArgument, "{IF_GENERATION} is not a number")),
        }
    }

    /// The headers that are stored with an object.
    fn object_headers(&self) -> ObjectHeaders {
        let text = |name: &str| self.header(name).map(str::to_string);
        let metadata = self
            .headers
            .iter()
            .filter_map(|(name, value)| {
                let name = name.as_str().strip_prefix(METADATA_PREFIX)?;
                Some((name.to_string(), value.to_str().ok()?.to_string()))
            })
            .collect();
        ObjectHeaders {
            content_type: text("content-type"),
            content_encoding: text("content-encoding"),
            content_language: text("content-language"),
            content_disposition: text("content-disposition"),
            cache_control: text("cache-control"),
            metadata,
        }
    }
}

impl GcsDoor {
    pub(crate) fn new(map: Arc<ObjectMap>) -> Self {
        GcsDoor {
            store: Store {
                map,
                region: "us-east1".into(),
            },
        }
    }

    async fn handle(&self, ask: Ask) -> S3Result<Response<s3s::Body>> {
        let whole_bucket = ask.key.is_empty();
        match (ask.method.as_str(), whole_bucket) {
            ("GET", true) => self.list(&ask),
            ("HEAD", true) => {
                self.store.bucket(&ask.bucket)?;
                Ok(Response::new(s3s::Body::empty()))
            }
            ("GET" | "HEAD", false) => objects::get(&self.store, &ask),
            ("PUT", false) if ask.query("uploadId").is_some() => {
                uploads::part(&self.store, ask).await
            }
            ("PUT", false) if ask.header(COPY_SOURCE).is_some() => {
                objects::copy(&self.store, &ask).await
            }
            ("PUT", false) => objects::put(&self.store, ask).await,
            ("POST", false) if ask.query("uploads").is_some() => uploads::start(&self.store, &ask),
            ("POST", false) if ask.query("uploadId").is_some() => {
                uploads::complete(&self.store, ask).await
            }
            ("DELETE", false) if ask.query("uploadId").is_some() => {
                uploads::abort(&self.store, &ask)
            }
            ("DELETE", false) => objects::delete(&self.store, &ask),
            _ => Err(s3_error!(NotImplemented, "This request is not simulated")),
        }
    }

    fn list(&self, ask: &Ask) -> S3Result<Response<s3s::Body>> {
        let text = |name: &str| ask.query(name).map(str::to_string);
        let max_keys = ask
            .query("max-keys")
            .map(str::parse)
            .transpose()
            .map_err(|_| s3_error!(InvalidArgument, "max-keys is not a number"))?;
        let input = ListObjectsV2Input {
            bucket: ask.bucket.clone(),
            prefix: text("prefix"),
            delimiter: text("delimiter"),
            continuation_token: text("continuation-token"),
            start_after: text("start-after"),
            max_keys,
            ..Default::default()
        };
        xml(&list_v2(&self.store, input)?.output)
    }
}

#[async_trait]
impl Door for GcsDoor {
    async fn answer(&self, request: Request<RequestBody>) -> Response<s3s::Body> {
        match self.handle(Ask::parse(request)).await {
            Ok(response) => response,
            Err(error) => error_response(error),
        }
    }

    fn refusal(
        &self,
        status: StatusCode,
        code: &'static str,
        message: &str,
    ) -> Response<s3s::Body> {
        let code = S3ErrorCode::from_bytes(code.as_bytes()).unwrap_or(S3ErrorCode::InternalError);
        let mut error = S3Error::with_message(code, message.to_string());
        error.set_status_code(status);
        error_response(error)
    }
}

/// Errors have the same XML in both languages.
fn error_response(error: S3Error) -> Response<s3s::Body> {
    let status = error
        .status_code()
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    error.to_http_response().unwrap_or_else(|_| {
        let mut response = Response::new(s3s::Body::empty());
        *response.status_mut() = status;
        response
    })
}

fn xml(value: &impl s3s::xml::Serialize) -> S3Result<Response<s3s::Body>> {
    let mut text = Vec::new();
    let mut serializer = s3s::xml::Serializer::new(&mut text);
    serializer
        .decl()
        .and_then(|()| value.serialize(&mut serializer))
        .map_err(S3Error::internal_error)?;
    let mut response = Response::new(s3s::Body::from(text));
    let content_type = HeaderValue::from_static("application/xml");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}

/// Sets a header, leaving out what no header can hold.
fn set(headers: &mut HeaderMap, name: &str, value: impl AsRef<str>) {
    let name = header::HeaderName::from_bytes(name.as_bytes());
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.as_ref())) {
        headers.insert(name, value);
    }
}
