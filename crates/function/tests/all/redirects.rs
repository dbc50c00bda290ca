//! Buckets whose endpoint sends the function to another server, which it must not talk to.

use hyperslab_function::{
    AllowList, Host, Limits, Service, ServiceConfig, SlabRequest, StridedRun, Unit,
};
use hyperslab_store::Options;

use crate::servers::{Asked, Trap, start, told};

#[tokio::test]
async fn an_endpoint_cannot_lead_the_function_elsewhere() {
    let trap = Trap::set();
    let elsewhere = trap.address();
    let address = start(move |request: Asked| {
        let elsewhere = elsewhere.clone();
        async move {
            // The name of the object; what is before it may be escaped.
            let path = request.uri().path();
            let status = &path[path.len() - 3..];
            let mut answer = told(status.parse().unwrap(), "");
            let value = format!("http://{elsewhere}/bucket/k").parse().unwrap();
            answer.headers_mut().insert("location", value);
            answer
        }
    })
    .await;
    let endpoint = format!("http://{address}");
    let environment = [
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("STORAGE_EMULATOR_HOST", endpoint.as_str()),
        ("AZURE_STORAGE_ACCOUNT", "account"),
        ("AZURE_STORAGE_KEY", "aHVudGVyMg=="),
        ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
    ];
    let prefixes = ["s3://bucket/run", "gs://bucket/run", "az://bucket/run"];
    let service = Service::new(ServiceConfig {
        allow: AllowList::new(prefixes).unwrap(),
        secret: None,
        limits: Limits::of(Host::Local),
        options: Options::new().with_environment(environment.into_iter().collect()),
    })
    .unwrap();
    for prefix in prefixes {
        for status in [301, 302, 303, 307, 308] {
            let units = vec![Unit::raw(vec![StridedRun::plain(2..5)])];
            let request = SlabRequest::new(format!("{prefix}/{status}"), units).unwrap();
            let body = request.to_bytes().unwrap();
            let response = service.handle(&body, None, 0).await;
            let text = String::from_utf8_lossy(&response.body).into_owned();
            assert!(response.status >= 400, "{prefix}, {status}: {text}");
            assert!(text.contains("not followed"), "{prefix}, {status}: {text}");
        }
    }
    trap.assert_empty();
}
