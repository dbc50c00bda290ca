//! Asks AWS which region a bucket is in.
//!
//! Any answer to a `HEAD` of the bucket names the region, a refusal and a redirect too, so the
//! question needs no credentials and the redirect is not followed.

use object_store::ClientOptions;

use crate::remote::http_client;
use crate::{Error, Result};

/// The region of the bucket whose own address at AWS is `address`.
pub(super) async fn discover(
    bucket_url: &str,
    address: &str,
    options: &ClientOptions,
) -> Result<String> {
    let unknown = || {
        Error::unavailable(format!("the region of {bucket_url} cannot be found"))
            .with_hint("set AWS_REGION, or AWS_ENDPOINT_URL if the bucket is not at AWS")
    };
    let client = http_client(options).map_err(|_| unknown())?;
    let answer = client
        .head(address)
        .send()
        .await
        .map_err(|e| unknown().with_source(e.without_url()))?;
    if answer.status() == http::StatusCode::NOT_FOUND {
        return Err(
            Error::invalid(format!("the bucket {bucket_url} does not exist"))
                .with_hint("check the bucket's name, or set AWS_ENDPOINT_URL if it is not at AWS"),
        );
    }
    let named = answer.headers().get("x-amz-bucket-region");
    let region = named.and_then(|value| value.to_str().ok());
    // It becomes part of a host name.
    let sound = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    region.filter(sound).map(str::to_owned).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::ErrorKind;

    /// What is found where a server answers a `HEAD` with `head`.
    async fn found(head: &'static str) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            assert!(request[..length].starts_with(b"HEAD / "));
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let options = ClientOptions::new().with_allow_http(true);
        let region = discover("s3://b", &address, &options).await;
        server.await.unwrap();
        region
    }

    #[tokio::test]
    async fn every_answer_names_the_region() {
        for head in [
            "200 OK\r\nx-amz-bucket-region: eu-west-1",
            "403 Forbidden\r\nx-amz-bucket-region: eu-west-1",
            "301 Moved\r\nx-amz-bucket-region: eu-west-1",
            // Port 9 is nobody's, so following this would fail.
            "307 Moved\r\nx-amz-bucket-region: eu-west-1\r\nlocation: http://127.0.0.1:9/",
        ] {
            assert_eq!(found(head).await.unwrap(), "eu-west-1", "{head}");
        }
    }

    #[tokio::test]
    async fn no_bucket_and_no_region_are_told_apart() {
        assert_eq!(
            found("404 Not Found").await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
        for head in ["200 OK", "200 OK\r\nx-amz-bucket-region: evil.example/"] {
            let error = found(head).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.hint().unwrap().contains("AWS_REGION"));
        }
    }
}
