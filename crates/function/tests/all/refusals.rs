//! A thousand and more requests that must be refused, and two sockets that must stay silent.

use hyperslab_function::{
    AllowList, Host, LONGEST_VALIDITY, Limits, Secret, Service, ServiceConfig, SlabRequest,
    StridedRun, Unit, sign,
};
use hyperslab_store::Options;

use crate::servers::Trap;

const NOW: u64 = 1_800_000_000;

fn secret() -> Secret {
    Secret::new("the secret of the function").unwrap()
}

fn request(object: &str) -> SlabRequest {
    SlabRequest::new(object, vec![Unit::raw(vec![StridedRun::plain(0..4)])]).unwrap()
}

/// A request, its signature, and why it is refused.
type Bad = (Vec<u8>, Option<String>, &'static [u16]);

fn signed(request: &SlabRequest, statuses: &'static [u16]) -> Bad {
    let body = request.to_bytes().unwrap();
    let signature = sign(&secret(), &body, NOW + 60);
    (body, Some(signature), statuses)
}

fn forged(i: u64, good: &str) -> Vec<Bad> {
    let body = request(&format!("{good}/c{i}")).to_bytes().unwrap();
    let other = Secret::new(format!("guess number {i} of many")).unwrap();
    let right = sign(&secret(), &body, NOW + 60);
    let mut flipped = right.clone().into_bytes();
    let at = flipped.len() - 1 - (i as usize % 64);
    flipped[at] = if flipped[at] == b'0' { b'1' } else { b'0' };
    let mut changed = body.clone();
    changed.push(b' ');
    let all = [
        (body.clone(), None),
        (body.clone(), Some(sign(&other, &body, NOW + 60))),
        (body.clone(), Some(String::from_utf8(flipped).unwrap())),
        (changed, Some(right)),
        (body.clone(), Some(sign(&secret(), &body, NOW - i))),
        (
            body.clone(),
            Some(sign(
                &secret(),
                &body,
                NOW + LONGEST_VALIDITY + 1 + i * i * i,
            )),
        ),
    ];
    all.into_iter()
        .map(|(body, signature)| (body, signature, &[401][..]))
        .collect()
}

fn foreign(i: u64, good: &str, trap: &str) -> Vec<Bad> {
    let bucket = good.trim_end_matches("/runs");
    [
        format!("{bucket}/c{i}"),
        format!("{good}{i}/c"),
        format!("{good}/../c{i}"),
        format!("{good}/a/../../c{i}"),
        format!("{good}/./c{i}"),
        format!("{good}//c{i}"),
        format!("{good}/%2e%2e/c{i}"),
        format!("{good}/%2E./c{i}"),
        format!("{good}/..%2fc{i}"),
        format!("{good}%2Fc{i}"),
        format!("{good}/c{i}?endpoint=http://{trap}"),
        format!("{good}/c{i}#{trap}"),
        format!("{bucket}{i}/runs/c"),
        format!("s3://key:secret@allowed/runs/c{i}"),
        format!("s3://{trap}/runs/c{i}"),
        format!("http://{trap}/runs/c{i}"),
        format!("https://{trap}/runs/c{i}"),
        format!("http://allowed@{trap}/c{i}"),
        format!("gs://allowed/runs/c{i}"),
        format!("az://allowed/runs/c{i}"),
        format!("abfss://c@{trap}/runs/c{i}"),
        format!("file:///etc/passwd{i}"),
        format!("/etc/passwd{i}"),
        format!("memory://allowed/runs/c{i}"),
        format!("ftp://{trap}/c{i}"),
        format!("{good}/c\\..\\{i}"),
        format!("{good}/c\r\nhost: {trap}{i}"),
    ]
    .iter()
    .map(|object| signed(&request(object), &[403]))
    .collect()
}

fn oversized(i: u64, good: &str) -> Vec<Bad> {
    let object = format!("{good}/c{i}");
    let run = |start, len, step, count| {
        let run = StridedRun {
            start,
            len,
            step,
            count,
        };
        SlabRequest::new(&object, vec![Unit::raw(vec![run])]).unwrap()
    };
    let mut padded = request(&object).to_bytes().unwrap();
    padded.resize((4 << 20) + 1 + i as usize, b' ');
    let signature = sign(&secret(), &padded, NOW + 60);
    let many = StridedRun::plain(0..1);
    let units = vec![Unit::raw(vec![many; 10]); 1001];
    vec![
        (padded, Some(signature), &[413]),
        signed(&run(i, 1 << 40, 1 << 40, 1), &[413]),
        signed(&run(i, 1, 1 << 40, 2), &[413]),
        signed(&run(i, 1 << 20, 1 << 20, 1 << 20), &[413]),
        signed(&run(i, 4, 1, 2), &[400]),
        signed(&run(u64::MAX - i % 8, 8, 8, 1), &[400]),
        signed(&SlabRequest::new(&object, units).unwrap(), &[413]),
        signed(
            &SlabRequest {
                size_limit: 3,
                ..request(&object)
            },
            &[413],
        ),
        signed(
            &SlabRequest {
                version: 2 + i as u32,
                ..request(&object)
            },
            &[400],
        ),
    ]
}

#[tokio::test]
async fn a_thousand_bad_requests_are_refused_and_connect_to_nobody() {
    let (endpoint, elsewhere) = (Trap::set(), Trap::set());
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", endpoint.address())),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let good = "s3://allowed/runs";
    let service = Service::new(ServiceConfig {
        allow: AllowList::parse(good).unwrap(),
        secret: Some(secret()),
        limits: Limits {
            max_units: 1000,
            ..Limits::of(Host::Local)
        },
        options: Options::new().with_environment(environment.into_iter().collect()),
    })
    .unwrap();
    let mut count = 0;
    for i in 0..30 {
        let mut all = forged(i, good);
        all.extend(foreign(i, good, &elsewhere.address()));
        all.extend(oversized(i, good));
        for (body, signature, statuses) in all {
            let response = service.handle(&body, signature.as_deref(), NOW).await;
            let said = String::from_utf8_lossy(&response.body).into_owned();
            let asked = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            assert!(
                statuses.contains(&response.status),
                "{} {said} for {asked}",
                response.status
            );
            assert!(!said.contains("the secret"), "{said}");
            count += 1;
        }
    }
    assert!(count >= 1000, "{count}");
    endpoint.assert_empty();
    elsewhere.assert_empty();
}

#[tokio::test]
async fn too_many_calls_at_once_are_told_to_come_back() {
    let mut config = ServiceConfig::unsigned(AllowList::parse("memory://busy").unwrap());
    config.limits.max_concurrent = 0;
    let service = Service::new(config).unwrap();
    let body = request("memory://busy/k").to_bytes().unwrap();
    assert_eq!(service.handle(&body, None, NOW).await.status, 503);
}
