//! Deleting many objects with one request.

use s3s::dto::*;
use s3s::{S3Response, s3_error};

use super::{Answer, Store, refuse};
use crate::objects::Condition;

/// The most keys that S3 takes at once.
const MOST_KEYS: usize = 1000;

pub(super) fn delete(store: &Store, input: DeleteObjectsInput) -> Answer<DeleteObjectsOutput> {
    let bucket = store.bucket(&input.bucket)?;
    if input.delete.objects.len() > MOST_KEYS {
        return Err(s3_error!(
            MalformedXML,
            "At most 1000 keys can be deleted at once"
        ));
    }
    let quiet = input.delete.quiet.unwrap_or(false);
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    for object in input.delete.objects {
        match bucket.delete(&object.key, &Condition::Always) {
            Ok(_) if quiet => {}
            Ok(_) => deleted.push(DeletedObject {
                key: Some(object.key),
                ..Default::default()
            }),
            Err(refused) => {
                let error = refuse(refused);
                errors.push(Error {
                    code: Some(error.code().as_str().to_string()),
                    key: Some(object.key),
                    message: error.message().map(str::to_string),
                    version_id: None,
                });
            }
        }
    }
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: Some(deleted),
        errors: Some(errors),
        ..Default::default()
    }))
}
