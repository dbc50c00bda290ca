//! Uploads in parts in Google's language.

use std::sync::Arc;

use http::{Response, StatusCode};
use s3s::dto::{
    CompleteMultipartUploadOutput, CompletedMultipartUpload, CreateMultipartUploadOutput, ETag,
    StreamingBlob,
};
use s3s::xml::{Deserialize as _, Deserializer};
use s3s::{S3Error, S3Result, s3_error};

use super::objects::stored;
use super::{Ask, GENERATION, set, xml};
use crate::s3::{Store, receive, refuse};

pub(super) fn start(store: &Store, ask: &Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    let id = bucket.start_upload(&ask.key, ask.object_headers());
    xml(&CreateMultipartUploadOutput {
        bucket: Some(ask.bucket.clone()),
        key: Some(ask.key.clone()),
        upload_id: Some(id),
        ..Default::default()
    })
}

pub(super) async fn part(store: &Store, ask: Ask) -> S3Result<Response<s3s::Body>> {
    let bucket = store.bucket(&ask.bucket)?;
    let number = ask
        .query("partNumber")
        .and_then(|text| text.parse().ok())
        .filter(|number| (1..=10_000).contains(number))
        .ok_or_else(|| s3_error!(InvalidArgument, "partNumber is not 1 to 10000"))?;
    let id = ask.query("uploadId").unwrap_or_default().to_string();
    let length = ask.content_length();
    let body = StreamingBlob::from(s3s::Body::http_body(ask.body));
    let received = receive(Some(body), length, &ask.headers, None).await?;
    let etag = received.etag.clone();
    bucket
        .put_part(&ask.key, &id, number, received.bytes, received.etag)
        .map_err(refuse)?;
    let mut response = stored(&etag, 0);
    response.headers_mut().remove(GENERATION);
    Ok(response)
}

pub(super) async fn complete(store: &Store, ask: Ask) -> S3Result<Response<s3s::Body>> {
    /// Ten thousand parts need about 1 MB.
    const MOST_XML: usize = 4 << 20;
    let bucket = store.bucket(&ask.bucket)?;
    let condition = ask.condition()?;
    let id = ask.query("uploadId").unwrap_or_default().to_string();
    let text = s3s::Body::http_body(ask.body)
        .store_all_limited(MOST_XML)
        .await
        .map_err(|_| s3_error!(MalformedXML, "The list of parts could not be received"))?;
    let list = CompletedMultipartUpload::deserialize(&mut Deserializer::new(&text))
        .map_err(|_| s3_error!(MalformedXML, "The list of parts is not well-formed"))?;
    let named: Vec<(i32, String)> = list
        .parts
        .unwrap_or_default()
        .into_iter()
        .map(|part| {
            let etag = part.e_tag.map(ETag::into_value).unwrap_or_default();
            (part.part_number.unwrap_or_default(), etag)
        })
        .collect();
    let (key, target) = (ask.key.clone(), Arc::clone(&bucket));
    let join = move || target.complete_upload(&key, &id, &named, &condition);
    let done = tokio::task::spawn_blocking(join)
        .await
        .map_err(S3Error::internal_error)?
        .map_err(refuse)?;
    let mut response = xml(&CompleteMultipartUploadOutput {
        location: Some(format!("/{}/{}", ask.bucket, ask.key)),
        bucket: Some(ask.bucket),
        key: Some(ask.key),
        e_tag: Some(ETag::Strong(done.etag)),
        ..Default::default()
    })?;
    set(
        response.headers_mut(),
        GENERATION,
        done.generation.to_string(),
    );
    Ok(response)
}

pub(super) fn abort(store: &Store, ask: &Ask) -> S3Result<Response<s3s::Body>> {
    let id = ask.query("uploadId").unwrap_or_default();
    store
        .bucket(&ask.bucket)?
        .abort_upload(&ask.key, id)
        .map_err(refuse)?;
    let mut response = Response::new(s3s::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
