//! Listings, version 2 and the older one.

use s3s::dto::*;
use s3s::{S3Response, S3Result, s3_error};

use super::{Answer, Store};
use crate::objects::{Entry, ListRequest};
use crate::text::{hex, percent_encode, unhex};

/// The most keys on one page, as on S3.
const MOST_KEYS: i32 = 1000;

pub(crate) fn v2(store: &Store, input: ListObjectsV2Input) -> Answer<ListObjectsV2Output> {
    let bucket = store.bucket(&input.bucket)?;
    let max_keys = page_size(input.max_keys)?;
    let after = match &input.continuation_token {
        Some(token) => unhex(token)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| s3_error!(InvalidArgument, "The continuation token is not correct"))?,
        None => input.start_after.clone().unwrap_or_default(),
    };
    let page = bucket.list(&ListRequest {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().unwrap_or_default(),
        after,
        max_keys: max_keys as usize,
    });
    let encode = encoder(input.encoding_type.as_ref());
    let count = page.objects.len() + page.common_prefixes.len();
    Ok(S3Response::new(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(encode(&input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.as_deref().map(&encode),
        start_after: input.start_after.as_deref().map(&encode),
        max_keys: Some(max_keys),
        key_count: Some(count as i32),
        continuation_token: input.continuation_token,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|next| hex(next.as_bytes())),
        contents: Some(
            page.objects
                .iter()
                .map(|(key, e)| object(encode(key), e))
                .collect(),
        ),
        common_prefixes: Some(common(&page.common_prefixes, &encode)),
        encoding_type: input.encoding_type,
        ..Default::default()
    }))
}

pub(super) fn v1(store: &Store, input: ListObjectsInput) -> Answer<ListObjectsOutput> {
    let bucket = store.bucket(&input.bucket)?;
    let max_keys = page_size(input.max_keys)?;
    let page = bucket.list(&ListRequest {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().unwrap_or_default(),
        after: input.marker.clone().unwrap_or_default(),
        max_keys: max_keys as usize,
    });
    let encode = encoder(input.encoding_type.as_ref());
    Ok(S3Response::new(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(encode(&input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.as_deref().map(&encode),
        marker: Some(encode(&input.marker.unwrap_or_default())),
        max_keys: Some(max_keys),
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.as_deref().map(&encode),
        contents: Some(
            page.objects
                .iter()
                .map(|(key, e)| object(encode(key), e))
                .collect(),
        ),
        common_prefixes: Some(common(&page.common_prefixes, &encode)),
        encoding_type: input.encoding_type,
        ..Default::default()
    }))
}

fn page_size(max_keys: Option<i32>) -> S3Result<i32> {
    let max_keys = max_keys.unwrap_or(MOST_KEYS);
    if max_keys < 0 {
        return Err(s3_error!(InvalidArgument, "max-keys is negative"));
    }
    Ok(max_keys.min(MOST_KEYS))
}

fn encoder(encoding: Option<&EncodingType>) -> impl Fn(&str) -> String + use<> {
    let url = encoding.is_some_and(|encoding| encoding.as_str() == EncodingType::URL);
    move |text| {
        if url {
            percent_encode(text)
        } else {
            text.to_string()
        }
    }
}

fn object(key: String, entry: &Entry) -> Object {
    Object {
        key: Some(key),
        size: Some(i64::try_from(entry.size).unwrap_or(i64::MAX)),
        e_tag: Some(ETag::Strong(entry.etag.clone())),
        last_modified: Some(entry.modified.into()),
        storage_class: Some(ObjectStorageClass::from_static(
            ObjectStorageClass::STANDARD,
        )),
        ..Default::default()
    }
}

fn common(prefixes: &[String], encode: &impl Fn(&str) -> String) -> Vec<CommonPrefix> {
    prefixes
        .iter()
        .map(|prefix| CommonPrefix {
            prefix: Some(encode(prefix)),
        })
        .collect()
}
