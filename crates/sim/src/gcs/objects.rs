//! Single objects in Google's language.

use http::{Method, Response, StatusCode};
use s3s::dto::{
    CopyObjectResult, ETag, ETagCondition, Range, StreamingBlob, Timestamp, TimestampFormat,
};
use s3s::{S3Result, s3_error};

use super::{Ask, COPY_SOURCE, GENERATION, METADATA_PREFIX, set, xml};
use crate::objects::{Entry, ObjectHeaders, PayloadStream, Refused};
use crate::operation::split_path;
use crate::s3::{Store, check_read, read_all, receive, refuse, resolve_range, store_bytes};

pub(super) fn get(store: &Store, ask: &Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    let etag = |name| {
        ask.header(name)
            .and_then(|value| ETagCondition::parse_http_header(value.as_bytes()).ok())
    };
    let date = |name| {
        ask.header(name)
            .and_then(|value| Timestamp::parse(TimestampFormat::HttpDate, value).ok())
    };
    let range = ask
        .header("range")
        .and_then(|value| Range::parse(value).ok());
    // A replaced object on disk may lose its file between the look-up and the opening.
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        let entry = bucket.get(&ask.key).map_err(refuse)?;
        // Old generations are not kept, so any other number names nothing.
        let wanted = ask.query("generation");
        if wanted.is_some_and(|wanted| wanted != entry.generation.to_string()) {
            return Err(refuse(Refused::NoSuchKey));
        }
        check_read(
            &entry,
            etag("if-match").as_ref(),
            etag("if-none-match").as_ref(),
            date("if-modified-since").as_ref(),
            date("if-unmodified-since").as_ref(),
        )?;
        let (bytes, content_range) = resolve_range(range.as_ref(), entry.size)?;
        let length = bytes.end - bytes.start;
        let body = if ask.method == Method::HEAD {
            s3s::Body::empty()
        } else {
            let Ok(stream) = PayloadStream::open(&entry, bytes) else {
                continue;
            };
            s3s::Body::from(StreamingBlob::new(stream))
        };
        let mut response = Response::new(body);
        describe(&mut response, &entry);
        set(response.headers_mut(), "content-length", length.to_string());
        if let Some(content_range) = content_range {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(response.headers_mut(), "content-range", content_range);
        }
        return Ok(response);
    }
    Err(s3_error!(InternalError, "The object could not be opened"))
}

pub(super) async fn put(store: &Store, ask: Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    let condition = ask.condition()?;
    let headers = ask.object_headers();
    let length = ask.content_length();
    let body = StreamingBlob::from(s3s::Body::http_body(ask.body));
    let received = receive(Some(body), length, &ask.headers, None).await?;
    let entry = store_bytes(
        &bucket,
        ask.key,
        received.bytes,
        received.etag,
        headers,
        condition,
    )
    .await?;
    Ok(stored(&entry.etag, entry.generation))
}

pub(super) async fn copy(store: &Store, ask: &Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    let condition = ask.condition()?;
    let (from_bucket, from_key) = split_path(ask.header(COPY_SOURCE).unwrap_or_default());
    let source = store.bucket(&from_bucket)?.get(&from_key).map_err(refuse)?;
    let bytes = read_all(&source, 0..source.size).await?;
    let headers = ObjectHeaders::clone(&source.headers);
    let (key, etag) = (ask.key.clone(), source.etag.clone());
    let entry = store_bytes(&bucket, key, bytes, etag, headers, condition).await?;
    let mut response = xml(&CopyObjectResult {
        e_tag: Some(ETag::Strong(entry.etag.clone())),
        last_modified: Some(entry.modified.into()),
        ..Default::default()
    })?;
    set(
        response.headers_mut(),
        GENERATION,
        entry.generation.to_string(),
    );
    Ok(response)
}

/// Unlike S3, Google says so when there is nothing to delete.
pub(super) fn delete(store: &Store, ask: &Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    if !bucket.delete(&ask.key, &ask.condition()?).map_err(refuse)? {
        return Err(refuse(Refused::NoSuchKey));
    }
    let mut response = Response::new(s3s::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// The answer to a write.
pub(super) fn stored(etag: &str, generation: u64) -> Response<s3s::Body> {
    let mut response = Response::new(s3s::Body::empty());
    set(response.headers_mut(), "etag", format!("\"{etag}\""));
    set(response.headers_mut(), GENERATION, generation.to_string());
    response
}

fn describe(response: &mut Response<s3s::Body>, entry: &Entry) {
    let headers = response.headers_mut();
    set(headers, "accept-ranges", "bytes");
    set(headers, "etag", format!("\"{}\"", entry.etag));
    set(headers, GENERATION, entry.generation.to_string());
    let mut date = Vec::new();
    if Timestamp::from(entry.modified)
        .format(TimestampFormat::HttpDate, &mut date)
        .is_ok()
    {
        set(headers, "last-modified", String::from_utf8_lossy(&date));
    }
    let stored = &entry.headers;
    for (name, value) in [
        ("content-type", &stored.content_type),
        ("content-encoding", &stored.content_encoding),
        ("content-language", &stored.content_language),
        ("content-disposition", &stored.content_disposition),
        ("cache-control", &stored.cache_control),
    ] {
        if let Some(value) = value {
            set(headers, name, value);
        }
    }
    for (name, value) in &stored.metadata {
        set(headers, &format!("{METADATA_PREFIX}{name}"), value);
    }
}
