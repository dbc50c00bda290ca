//! Operations on single objects.

use std::ops::Range as Bytes;
use std::sync::Arc;

use http::header;
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use super::access::Rights;
use super::conditions::{check_read, not_modified_to_failed, resolve_range, write_condition};
use super::receive::receive;
use super::{Answer, Store, refuse};
use crate::objects::{Bucket, Condition, Entry, ObjectHeaders, PayloadStream, Refused};

pub(super) fn get(store: &Store, request: &S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
    let input = &request.input;
    let bucket = store.bucket(&input.bucket)?;
    // A replaced object on disk may lose its file between the look-up and the opening.
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        let entry = find(&bucket, &input.key, &request.extensions)?;
        check_read(
            &entry,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
            input.if_modified_since.as_ref(),
            input.if_unmodified_since.as_ref(),
        )?;
        let (range, content_range) = resolve_range(input.range.as_ref(), entry.size)?;
        let length = range.end - range.start;
        let Ok(stream) = PayloadStream::open(&entry, range) else {
            continue;
        };
        let headers = entry.headers.as_ref().clone();
        return Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".into()),
            body: Some(StreamingBlob::new(stream)),
            content_length: Some(length as i64),
            content_range,
            content_type: Some(content_type(&headers)),
            content_encoding: headers.content_encoding,
            content_language: headers.content_language,
            content_disposition: headers.content_disposition,
            cache_control: headers.cache_control,
            metadata: Some(headers.metadata.into_iter().collect()),
            e_tag: Some(ETag::Strong(entry.etag.clone())),
            last_modified: Some(entry.modified.into()),
            ..Default::default()
        }));
    }
    Err(s3_error!(InternalError, "The object could not be opened"))
}

pub(super) fn head(
    store: &Store,
    request: &S3Request<HeadObjectInput>,
) -> Answer<HeadObjectOutput> {
    let input = &request.input;
    let bucket = store.bucket(&input.bucket)?;
    let entry = find(&bucket, &input.key, &request.extensions)?;
    check_read(
        &entry,
        input.if_match.as_ref(),
        input.if_none_match.as_ref(),
        input.if_modified_since.as_ref(),
        input.if_unmodified_since.as_ref(),
    )?;
    let (range, content_range) = resolve_range(input.range.as_ref(), entry.size)?;
    let headers = entry.headers.as_ref().clone();
    Ok(S3Response::new(HeadObjectOutput {
        accept_ranges: Some("bytes".into()),
        content_length: Some((range.end - range.start) as i64),
        content_range,
        content_type: Some(content_type(&headers)),
        content_encoding: headers.content_encoding,
        content_language: headers.content_language,
        content_disposition: headers.content_disposition,
        cache_control: headers.cache_control,
        metadata: Some(headers.metadata.into_iter().collect()),
        e_tag: Some(ETag::Strong(entry.etag.clone())),
        last_modified: Some(entry.modified.into()),
        ..Default::default()
    }))
}

pub(super) async fn put(
    store: &Store,
    request: S3Request<PutObjectInput>,
) -> Answer<PutObjectOutput> {
    let S3Request {
        input,
        headers,
        trailing_headers,
        ..
    } = request;
    let bucket = store.bucket(&input.bucket)?;
    let condition = write_condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let received = receive(
        input.body,
        input.content_length,
        &headers,
        trailing_headers.as_ref(),
    )
    .await?;
    let stored = ObjectHeaders {
        content_type: input.content_type,
        content_encoding: stored_encoding(input.content_encoding),
        content_language: input.content_language,
        content_disposition: input.content_disposition,
        cache_control: input.cache_control,
        metadata: input.metadata.unwrap_or_default().into_iter().collect(),
    };
    let entry = store_bytes(
        &bucket,
        input.key,
        received.bytes,
        received.etag,
        stored,
        condition,
    );
    let e_tag = Some(ETag::Strong(entry.await?.etag.clone()));
    Ok(S3Response::new(PutObjectOutput {
        e_tag,
        ..Default::default()
    }))
}

pub(super) async fn copy(
    store: &Store,
    request: S3Request<CopyObjectInput>,
) -> Answer<CopyObjectOutput> {
    let S3Request {
        input,
        headers,
        extensions,
        ..
    } = request;
    let (from_bucket, from_key) = copy_source(&input.copy_source)?;
    let source = find(&*store.bucket(from_bucket)?, from_key, &extensions)?;
    check_read(
        &source,
        input.copy_source_if_match.as_ref(),
        input.copy_source_if_none_match.as_ref(),
        None,
        None,
    )
    .map_err(not_modified_to_failed)?;
    let bucket = store.bucket(&input.bucket)?;
    // The library does not parse the conditions on the target of a copy.
    let header = |name: header::HeaderName| {
        headers
            .get(name)
            .and_then(|v| ETagCondition::parse_http_header(v.as_bytes()).ok())
    };
    let condition = write_condition(
        header(header::IF_MATCH).as_ref(),
        header(header::IF_NONE_MATCH).as_ref(),
    )?;
    let replaces = input
        .metadata_directive
        .is_some_and(|directive| directive.as_str() == MetadataDirective::REPLACE);
    let stored = if replaces {
        ObjectHeaders {
            content_type: input.content_type,
            content_encoding: input.content_encoding,
            content_language: input.content_language,
            content_disposition: input.content_disposition,
            cache_control: input.cache_control,
            metadata: input.metadata.unwrap_or_default().into_iter().collect(),
        }
    } else {
        ObjectHeaders::clone(&source.headers)
    };
    let bytes = read_all(&source, 0..source.size).await?;
    let etag = source.etag.clone();
    let entry = store_bytes(&bucket, input.key, bytes, etag, stored, condition).await?;
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(CopyObjectResult {
            e_tag: Some(ETag::Strong(entry.etag.clone())),
            last_modified: Some(entry.modified.into()),
            ..Default::default()
        }),
        ..Default::default()
    }))
}

pub(super) fn delete(store: &Store, input: &DeleteObjectInput) -> Answer<DeleteObjectOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let condition = write_condition(input.if_match.as_ref(), None)?;
    bucket.delete(&input.key, &condition).map_err(refuse)?;
    Ok(S3Response::new(DeleteObjectOutput::default()))
}

/// The object, or S3's answer for an absent one: 403 for a caller who may not list.
pub(super) fn find(
    bucket: &Bucket,
    key: &str,
    extensions: &http::Extensions,
) -> S3Result<Arc<Entry>> {
    bucket.get(key).map_err(|refused| {
        let hidden = extensions
            .get::<Rights>()
            .is_some_and(|rights| !rights.may_list);
        match refused {
            Refused::NoSuchKey if hidden => s3_error!(AccessDenied, "Access Denied"),
            refused => refuse(refused),
        }
    })
}

/// Stores bytes; on disk off the threads that serve connections.
pub(crate) async fn store_bytes(
    bucket: &Arc<Bucket>,
    key: String,
    bytes: bytes::Bytes,
    etag: String,
    headers: ObjectHeaders,
    condition: Condition,
) -> S3Result<Arc<Entry>> {
    if !bucket.on_disk() {
        return bucket
            .put(&key, bytes, etag, headers, &condition)
            .map_err(refuse);
    }
    let bucket = Arc::clone(bucket);
    let put = move || bucket.put(&key, bytes, etag, headers, &condition);
    tokio::task::spawn_blocking(put)
        .await
        .map_err(S3Error::internal_error)?
        .map_err(refuse)
}

/// A range of an object in one piece.
pub(crate) async fn read_all(entry: &Entry, range: Bytes<u64>) -> S3Result<bytes::Bytes> {
    /// The most that S3 copies with one request.
    const MOST_BYTES: usize = 5 << 30;
    let stream = PayloadStream::open(entry, range).map_err(S3Error::internal_error)?;
    let mut body = s3s::Body::from(StreamingBlob::new(stream));
    body.store_all_limited(MOST_BYTES).await.map_err(|_| {
        s3_error!(
            InvalidRequest,
            "The source cannot be copied with one request"
        )
    })
}

/// Bucket and key that a copy reads.
pub(super) fn copy_source(source: &CopySource) -> S3Result<(&str, &str)> {
    match source {
        CopySource::Bucket { bucket, key, .. } => Ok((bucket, key)),
        _ => Err(s3_error!(
            NotImplemented,
            "Copies from access points are not simulated"
        )),
    }
}

fn content_type(headers: &ObjectHeaders) -> String {
    headers
        .content_type
        .clone()
        .unwrap_or_else(|| "binary/octet-stream".into())
}

/// `aws-chunked` describes the transfer and is not stored.
pub(super) fn stored_encoding(encoding: Option<String>) -> Option<String> {
    let encoding = encoding?;
    let kept: Vec<&str> = encoding
        .split(',')
        .map(str::trim)
        .filter(|part| *part != "aws-chunked")
        .collect();
    (!kept.is_empty()).then(|| kept.join(","))
}
