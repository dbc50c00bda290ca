//! Which operation a request asks for, as the bill, the faults and the limits see it.
//!
//! Derived from method, path and query alone, before any check, so that refused requests are
//! counted too. S3 and Google's XML interface agree in all of it but the name of one header.

use http::{HeaderMap, Method};

use crate::text::percent_decode;

/// How a request is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Get,
    Head,
    List,
    Put,
    Delete,
}

/// A request, named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The name that S3 has for it, such as `GetObject`.
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    pub(crate) bucket: String,
    /// Empty if the request is about a bucket.
    pub(crate) key: String,
}

impl Operation {
    /// Names the request.
    pub(crate) fn classify(method: &Method, path: &str, query: &str, headers: &HeaderMap) -> Self {
        let (bucket, key) = split_path(path);
        let has =
            |name: &str| url::form_urlencoded::parse(query.as_bytes()).any(|(k, _)| k == name);
        let copies =
            headers.contains_key("x-amz-copy-source") || headers.contains_key("x-goog-copy-source");
        let level = match (bucket.is_empty(), key.is_empty()) {
            (true, _) => Level::Service,
            (false, true) => Level::Bucket,
            (false, false) => Level::Object,
        };
        let (name, class) = match (method.as_str(), level) {
            ("GET", Level::Service) => ("ListBuckets", Class::List),
            ("GET", Level::Bucket) if has("location") => ("GetBucketLocation", Class::Get),
            ("GET", Level::Bucket) if has("uploads") => ("ListMultipartUploads", Class::List),
            ("GET", Level::Bucket) if has("list-type") => ("ListObjectsV2", Class::List),
            ("GET", Level::Bucket) => ("ListObjects", Class::List),
            ("GET", Level::Object) if has("uploadId") => ("ListParts", Class::List),
            ("GET", Level::Object) => ("GetObject", Class::Get),
            ("HEAD", Level::Object) => ("HeadObject", Class::Head),
            ("HEAD", _) => ("HeadBucket", Class::Head),
            ("PUT", Level::Bucket) => ("CreateBucket", Class::Put),
            ("PUT", Level::Object) if has("uploadId") && copies => ("UploadPartCopy", Class::Put),
            ("PUT", Level::Object) if has("uploadId") => ("UploadPart", Class::Put),
            ("PUT", Level::Object) if copies => ("CopyObject", Class::Put),
            ("PUT", Level::Object) => ("PutObject", Class::Put),
            ("POST", Level::Bucket) if has("delete") => ("DeleteObjects", Class::Delete),
            ("POST", Level::Object) if has("uploads") => ("CreateMultipartUpload", Class::Put),
            ("POST", Level::Object) if has("uploadId") => ("CompleteMultipartUpload", Class::Put),
            ("DELETE", Level::Bucket) => ("DeleteBucket", Class::Delete),
            ("DELETE", Level::Object) if has("uploadId") => ("AbortMultipartUpload", Class::Delete),
            ("DELETE", Level::Object) => ("DeleteObject", Class::Delete),
            _ => ("Other", Class::Put),
        };
        Operation {
            name,
            class,
            bucket,
            key,
        }
    }

    /// True if it may change what is stored.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.class, Class::Put | Class::Delete)
    }
}

enum Level {
    Service,
    Bucket,
    Object,
}

/// Bucket and key of a path-style URL path. What cannot be decoded is kept as it is: the request
/// will be refused, but it is counted all the same.
pub(crate) fn split_path(path: &str) -> (String, String) {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let decode = |text: &str| percent_decode(text).unwrap_or_else(|| text.to_string());
    (decode(bucket), decode(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str, query: &str) -> &'static str {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        Operation::classify(&method, path, query, &HeaderMap::new()).name
    }

    #[test]
    fn names_follow_s3() {
        assert_eq!(name("GET", "/", ""), "ListBuckets");
        assert_eq!(name("GET", "/b", "list-type=2&prefix=a"), "ListObjectsV2");
        assert_eq!(name("GET", "/b/", "prefix=a"), "ListObjects");
        assert_eq!(name("GET", "/b", "location"), "GetBucketLocation");
        assert_eq!(name("GET", "/b/k", ""), "GetObject");
        assert_eq!(name("GET", "/b/k", "uploadId=7"), "ListParts");
        assert_eq!(name("HEAD", "/b", ""), "HeadBucket");
        assert_eq!(name("HEAD", "/b/k", ""), "HeadObject");
        assert_eq!(name("PUT", "/b/k", "partNumber=1&uploadId=7"), "UploadPart");
        assert_eq!(name("POST", "/b", "delete"), "DeleteObjects");
        assert_eq!(name("POST", "/b/k", "uploads"), "CreateMultipartUpload");
        assert_eq!(name("DELETE", "/b/k", "uploadId=7"), "AbortMultipartUpload");
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-copy-source", http::HeaderValue::from_static("b/a"));
        assert_eq!(
            Operation::classify(&Method::PUT, "/b/k", "", &headers).name,
            "CopyObject"
        );
    }

    #[test]
    fn paths_are_decoded() {
        assert_eq!(
            split_path("/my%2Dbucket/a%2Fb%20c"),
            ("my-bucket".into(), "a/b c".into())
        );
        assert_eq!(split_path("/b"), ("b".into(), String::new()));
        assert_eq!(split_path("/b/%zz"), ("b".into(), "%zz".into()));
    }
}
