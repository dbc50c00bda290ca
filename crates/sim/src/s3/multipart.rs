//! Uploads in parts.

use std::sync::Arc;

use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, s3_error};

use super::conditions::{resolve_range, write_condition};
use super::objects::{copy_source, read_all, stored_encoding};
use super::receive::receive;
use super::{Answer, Store, refuse};
use crate::objects::ObjectHeaders;
use crate::text::hex;

/// Part numbers that S3 takes.
const PART_NUMBERS: std::ops::RangeInclusive<i32> = 1..=10_000;

pub(super) fn create(
    store: &Store,
    input: CreateMultipartUploadInput,
) -> Answer<CreateMultipartUploadOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let headers = ObjectHeaders {
        content_type: input.content_type,
        content_encoding: stored_encoding(input.content_encoding),
        content_language: input.content_language,
        content_disposition: input.content_disposition,
        cache_control: input.cache_control,
        metadata: input.metadata.unwrap_or_default().into_iter().collect(),
    };
    let upload_id = bucket.start_upload(&input.key, headers);
    Ok(S3Response::new(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload_id),
        ..Default::default()
    }))
}

pub(super) async fn upload(
    store: &Store,
    request: S3Request<UploadPartInput>,
) -> Answer<UploadPartOutput> {
    let S3Request {
        input,
        headers,
        trailing_headers,
        ..
    } = request;
    let bucket = store.bucket(&input.bucket)?;
    if !PART_NUMBERS.contains(&input.part_number) {
        return Err(s3_error!(
            InvalidArgument,
            "Part number must be between 1 and 10000"
        ));
    }
    let received = receive(
        input.body,
        input.content_length,
        &headers,
        trailing_headers.as_ref(),
    )
    .await?;
    let e_tag = Some(ETag::Strong(received.etag.clone()));
    bucket
        .put_part(
            &input.key,
            &input.upload_id,
            input.part_number,
            received.bytes,
            received.etag,
        )
        .map_err(refuse)?;
    Ok(S3Response::new(UploadPartOutput {
        e_tag,
        ..Default::default()
    }))
}

pub(super) async fn upload_copy(
    store: &Store,
    input: UploadPartCopyInput,
) -> Answer<UploadPartCopyOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let (from_bucket, from_key) = copy_source(&input.copy_source)?;
    let source = store.bucket(from_bucket)?.get(from_key).map_err(refuse)?;
    let range = input
        .copy_source_range
        .map(|range| Range::parse(&range))
        .transpose()
        .map_err(|_| s3_error!(InvalidArgument, "x-amz-copy-source-range is not a range"))?;
    let (range, _) = resolve_range(range.as_ref(), source.size)?;
    let bytes = read_all(&source, range).await?;
    let etag = hex(Md5::checksum(&bytes).as_ref());
    let e_tag = Some(ETag::Strong(etag.clone()));
    bucket
        .put_part(&input.key, &input.upload_id, input.part_number, bytes, etag)
        .map_err(refuse)?;
    Ok(S3Response::new(UploadPartCopyOutput {
        copy_part_result: Some(CopyPartResult {
            e_tag,
            last_modified: Some(std::time::SystemTime::now().into()),
            ..Default::default()
        }),
        ..Default::default()
    }))
}

pub(super) async fn complete(
    store: &Store,
    input: CompleteMultipartUploadInput,
) -> Answer<CompleteMultipartUploadOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let condition = write_condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let named: Vec<(i32, String)> = input
        .multipart_upload
        .and_then(|upload| upload.parts)
        .unwrap_or_default()
        .into_iter()
        .map(|part| {
            let etag = part.e_tag.map(ETag::into_value).unwrap_or_default();
            (part.part_number.unwrap_or_default(), etag)
        })
        .collect();
    let (key, id, target) = (input.key.clone(), input.upload_id, Arc::clone(&bucket));
    // Joining the parts copies all of them, and on disk writes a file: off the serving threads.
    let join = move || target.complete_upload(&key, &id, &named, &condition);
    let done = tokio::task::spawn_blocking(join)
        .await
        .map_err(S3Error::internal_error)?
        .map_err(refuse)?;
    Ok(S3Response::new(CompleteMultipartUploadOutput {
        location: Some(format!("/{}/{}", input.bucket, input.key)),
        bucket: Some(input.bucket),
        key: Some(input.key),
        e_tag: Some(ETag::Strong(done.etag)),
        ..Default::default()
    }))
}

pub(super) fn abort(
    store: &Store,
    input: &AbortMultipartUploadInput,
) -> Answer<AbortMultipartUploadOutput> {
    let bucket = store.bucket(&input.bucket)?;
    bucket
        .abort_upload(&input.key, &input.upload_id)
        .map_err(refuse)?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

pub(super) fn list_parts(store: &Store, input: ListPartsInput) -> Answer<ListPartsOutput> {
    const MOST_PARTS: i32 = 1000;
    let bucket = store.bucket(&input.bucket)?;
    let marker = input.part_number_marker.unwrap_or(0);
    let most = input.max_parts.unwrap_or(MOST_PARTS).clamp(0, MOST_PARTS);
    let mut parts = bucket.parts(&input.key, &input.upload_id).map_err(refuse)?;
    parts.retain(|(number, _)| *number > marker);
    let truncated = parts.len() > most as usize;
    parts.truncate(most as usize);
    let next = parts
        .last()
        .map(|(number, _)| *number)
        .filter(|_| truncated);
    let parts = parts
        .into_iter()
        .map(|(number, part)| Part {
            part_number: Some(number),
            size: Some(part.bytes.len() as i64),
            e_tag: Some(ETag::Strong(part.etag)),
            last_modified: Some(part.modified.into()),
            ..Default::default()
        })
        .collect();
    Ok(S3Response::new(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        part_number_marker: Some(marker),
        next_part_number_marker: next,
        max_parts: Some(most),
        is_truncated: Some(truncated),
        parts: Some(parts),
        ..Default::default()
    }))
}

pub(super) fn list_uploads(
    store: &Store,
    input: ListMultipartUploadsInput,
) -> Answer<ListMultipartUploadsOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let prefix = input.prefix.clone().unwrap_or_default();
    let uploads = bucket
        .uploads()
        .into_iter()
        .filter(|(key, _)| key.starts_with(&prefix))
        .map(|(key, id)| MultipartUpload {
            key: Some(key),
            upload_id: Some(id),
            ..Default::default()
        })
        .collect();
    Ok(S3Response::new(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: input.prefix,
        is_truncated: Some(false),
        uploads: Some(uploads),
        ..Default::default()
    }))
}
