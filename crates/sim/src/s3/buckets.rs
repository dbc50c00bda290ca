//! Operations on buckets.

use s3s::S3Response;
use s3s::dto::*;

use super::{Answer, Store, refuse};

pub(super) fn create(store: &Store, input: CreateBucketInput) -> Answer<CreateBucketOutput> {
    store.map.create_bucket(&input.bucket).map_err(refuse)?;
    let location = Some(format!("/{}", input.bucket));
    Ok(S3Response::new(CreateBucketOutput { location }))
}

pub(super) fn head(store: &Store, input: &HeadBucketInput) -> Answer<HeadBucketOutput> {
    store.bucket(&input.bucket)?;
    let bucket_region = Some(store.region.clone());
    Ok(S3Response::new(HeadBucketOutput {
        bucket_region,
        ..Default::default()
    }))
}

pub(super) fn delete(store: &Store, input: &DeleteBucketInput) -> Answer<DeleteBucketOutput> {
    store.map.delete_bucket(&input.bucket).map_err(refuse)?;
    Ok(S3Response::new(DeleteBucketOutput::default()))
}

pub(super) fn list(store: &Store) -> Answer<ListBucketsOutput> {
    let buckets = store
        .map
        .buckets()
        .iter()
        .map(|bucket| Bucket {
            name: Some(bucket.name().to_string()),
            creation_date: Some(bucket.created().into()),
            ..Default::default()
        })
        .collect();
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(buckets),
        ..Default::default()
    }))
}

pub(super) fn location(
    store: &Store,
    input: &GetBucketLocationInput,
) -> Answer<GetBucketLocationOutput> {
    store.bucket(&input.bucket)?;
    // The first region of all has an empty name here, for ever.
    let location_constraint =
        (store.region != "us-east-1").then(|| BucketLocationConstraint::from(store.region.clone()));
    Ok(S3Response::new(GetBucketLocationOutput {
        location_constraint,
    }))
}
