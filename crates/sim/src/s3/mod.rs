//! S3's language: the `s3s` library parses requests and checks signatures, this module answers.
//!
//! One file per group of operations; here they are tied together and refusals of the store become
//! S3's errors.

mod access;
mod buckets;
mod bulk;
mod conditions;
mod list;
mod multipart;
mod objects;
mod receive;

use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response, StatusCode};
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use crate::body::RequestBody;
use crate::cloud::Cloud;
use crate::config::SimConfig;
use crate::front::Door;
use crate::objects::{Bucket, ObjectMap, Refused};

use access::{Keys, Rules};

// Google's language differs in headers only, so its door shares these.
pub(crate) use conditions::{check_read, resolve_range};
pub(crate) use list::v2 as list_v2;
pub(crate) use objects::{read_all, store_bytes};
pub(crate) use receive::receive;

/// The S3 front door.
pub(crate) struct S3Door {
    service: S3Service,
}

impl S3Door {
    pub(crate) fn new(cloud: &Cloud, config: &SimConfig) -> Self {
        let store = Store {
            map: Arc::clone(&cloud.objects),
            region: config.region.clone(),
        };
        let mut builder = S3ServiceBuilder::new(store);
        builder.set_auth(Keys::new(config));
        builder.set_access(Rules::new(config));
        S3Door {
            service: builder.build(),
        }
    }
}

#[async_trait]
impl Door for S3Door {
    async fn answer(&self, request: Request<RequestBody>) -> Response<s3s::Body> {
        match self.service.call(request.map(s3s::Body::http_body)).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(?error, "a request could not be answered");
                self.refusal(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "InternalError",
                    "internal error",
                )
            }
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
        error.to_http_response().unwrap_or_else(|_| {
            let mut response = Response::new(s3s::Body::empty());
            *response.status_mut() = status;
            response
        })
    }
}

/// The store as `s3s` sees it.
pub(crate) struct Store {
    pub(crate) map: Arc<ObjectMap>,
    pub(crate) region: String,
}

impl Store {
    pub(crate) fn bucket(&self, name: &str) -> S3Result<Arc<Bucket>> {
        self.map.bucket(name).map_err(refuse)
    }
}

/// S3's error for a refusal of the store.
pub(crate) fn refuse(refused: Refused) -> S3Error {
    match refused {
        Refused::NoSuchBucket => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
        Refused::NoSuchKey => s3_error!(NoSuchKey, "The specified key does not exist."),
        Refused::BucketExists => s3_error!(BucketAlreadyOwnedByYou),
        Refused::BucketNotEmpty => {
            s3_error!(
                BucketNotEmpty,
                "The bucket you tried to delete is not empty"
            )
        }
        Refused::BadBucketName => s3_error!(InvalidBucketName),
        Refused::PreconditionFailed => s3_error!(
            PreconditionFailed,
            "At least one of the pre-conditions you specified did not hold"
        ),
        Refused::ReadOnly => s3_error!(AccessDenied, "A computed object cannot be deleted"),
        Refused::NoSuchUpload => s3_error!(NoSuchUpload, "The specified upload does not exist."),
        Refused::InvalidPart => s3_error!(InvalidPart, "One or more of the parts were not found."),
        Refused::InvalidPartOrder => s3_error!(InvalidPartOrder),
        Refused::PartTooSmall => {
            s3_error!(
                EntityTooSmall,
                "A part other than the last is smaller than 5 MiB"
            )
        }
        Refused::Broken(error) => {
            tracing::warn!(%error, "the simulated store failed");
            s3_error!(InternalError, "{}", error.message().to_string())
        }
    }
}

pub(crate) type Answer<T> = S3Result<S3Response<T>>;

#[async_trait]
impl S3 for Store {
    async fn create_bucket(&self, r: S3Request<CreateBucketInput>) -> Answer<CreateBucketOutput> {
        buckets::create(self, r.input)
    }

    async fn head_bucket(&self, r: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        buckets::head(self, &r.input)
    }

    async fn delete_bucket(&self, r: S3Request<DeleteBucketInput>) -> Answer<DeleteBucketOutput> {
        buckets::delete(self, &r.input)
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        buckets::list(self)
    }

    async fn get_bucket_location(
        &self,
        r: S3Request<GetBucketLocationInput>,
    ) -> Answer<GetBucketLocationOutput> {
        buckets::location(self, &r.input)
    }

    async fn get_object(&self, r: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        objects::get(self, &r)
    }

    async fn head_object(&self, r: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        objects::head(self, &r)
    }

    async fn put_object(&self, r: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        objects::put(self, r).await
    }

    async fn copy_object(&self, r: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        objects::copy(self, r).await
    }

    async fn delete_object(&self, r: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        objects::delete(self, &r.input)
    }

    async fn delete_objects(
        &self,
        r: S3Request<DeleteObjectsInput>,
    ) -> Answer<DeleteObjectsOutput> {
        bulk::delete(self, r.input)
    }

    async fn list_objects(&self, r: S3Request<ListObjectsInput>) -> Answer<ListObjectsOutput> {
        list::v1(self, r.input)
    }

    async fn list_objects_v2(
        &self,
        r: S3Request<ListObjectsV2Input>,
    ) -> Answer<ListObjectsV2Output> {
        list::v2(self, r.input)
    }

    async fn create_multipart_upload(
        &self,
        r: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        multipart::create(self, r.input)
    }

    async fn upload_part(&self, r: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        multipart::upload(self, r).await
    }

    async fn upload_part_copy(
        &self,
        r: S3Request<UploadPartCopyInput>,
    ) -> Answer<UploadPartCopyOutput> {
        multipart::upload_copy(self, r.input).await
    }

    async fn complete_multipart_upload(
        &self,
        r: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        multipart::complete(self, r.input).await
    }

    async fn abort_multipart_upload(
        &self,
        r: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        multipart::abort(self, &r.input)
    }

    async fn list_parts(&self, r: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        multipart::list_parts(self, r.input)
    }

    async fn list_multipart_uploads(
        &self,
        r: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        multipart::list_uploads(self, r.input)
    }
}
