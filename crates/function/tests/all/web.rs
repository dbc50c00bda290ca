//! Objects on a plain web server, which may send the function elsewhere but is not followed.

use hyperslab_function::{
    AllowList, Answer, Service, ServiceConfig, SlabRequest, StridedRun, Unit,
};

use crate::servers::{Asked, Trap, start, told};

async fn ask(service: &Service, object: String) -> hyperslab_function::Response {
    let units = vec![Unit::raw(vec![StridedRun::plain(2..5)])];
    let request = SlabRequest::new(object, units).unwrap();
    service.handle(&request.to_bytes().unwrap(), None, 0).await
}

#[tokio::test]
async fn web_objects_are_read_and_redirects_are_not_followed() {
    let trap = Trap::set();
    let elsewhere = trap.address();
    let address = start(move |request: Asked| {
        let elsewhere = elsewhere.clone();
        async move {
            let ranged = request
                .headers()
                .get("range")
                .map(|v| v.to_str().unwrap().to_owned());
            assert_eq!(ranged.as_deref(), Some("bytes=2-4"));
            match request.uri().path() {
                "/pub/plain" => told(200, "0123456789"),
                "/pub/ranged" => {
                    let mut answer = told(206, "234");
                    let value = "bytes 2-4/10".parse().unwrap();
                    answer.headers_mut().insert("content-range", value);
                    answer
                }
                "/pub/other" => {
                    let mut answer = told(206, "456");
                    let value = "bytes 4-6/10".parse().unwrap();
                    answer.headers_mut().insert("content-range", value);
                    answer
                }
                "/pub/short" => told(200, "0123"),
                "/pub/gone" => told(404, "<html>"),
                "/pub/closed" => told(403, "<html>"),
                "/pub/down" => told(503, "<html>"),
                path => {
                    let status = path.rsplit('/').next().unwrap().parse().unwrap();
                    let mut answer = told(status, "");
                    let value = format!("http://{elsewhere}/pub/k").parse().unwrap();
                    answer.headers_mut().insert("location", value);
                    answer
                }
            }
        }
    })
    .await;
    let prefix = format!("http://{address}/pub");
    let allow = AllowList::parse(&prefix).unwrap();
    let service = Service::new(ServiceConfig::unsigned(allow)).unwrap();
    for (name, status) in [
        ("plain", 200),
        ("ranged", 200),
        ("other", 500),
        ("short", 500),
        ("gone", 404),
        ("closed", 403),
        ("down", 503),
        ("301", 403),
        ("302", 403),
        ("303", 403),
        ("307", 403),
        ("308", 403),
    ] {
        let response = ask(&service, format!("{prefix}/{name}")).await;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, status, "{name}: {text}");
        if status == 200 {
            assert_eq!(Answer::parse(response.body, 3).unwrap(), "234");
        }
    }
    trap.assert_empty();
}

#[tokio::test]
async fn links_out_of_a_prefix_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("allowed");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(dir.path().join("secret"), "0123456789").unwrap();
    std::fs::write(root.join("k"), "0123456789").unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret"), root.join("out")).unwrap();
    std::os::unix::fs::symlink(root.join("k"), root.join("in")).unwrap();
    let prefix = format!("file://{}", root.display());
    let allow = AllowList::parse(&prefix).unwrap();
    let service = Service::new(ServiceConfig::unsigned(allow)).unwrap();
    for (name, status) in [("k", 200), ("in", 200), ("out", 403), ("absent", 404)] {
        let response = ask(&service, format!("{prefix}/{name}")).await;
        assert_eq!(response.status, status, "{name}");
    }
}
