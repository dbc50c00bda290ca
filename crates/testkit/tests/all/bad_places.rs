//! Places that cannot be used: one clear sentence, the right kind, a hint, and no secrets.

use std::sync::Arc;

use hyperslab::{
    ArraySpec, DataType, Error, ErrorKind, Options, Result, Selection, Session, Shape,
};
use hyperslab_sim::{KeyPair, SimConfig};
use hyperslab_testkit::servers::{Place, SimPlace, required};
use hyperslab_testkit::{Outcome, ensure, fails, run, same};

use crate::sim;

const SECRET: &str = "hunter2-hunter2-hunter2";

fn spec() -> ArraySpec {
    let mut spec = ArraySpec::new(Shape::new([4, 4]).unwrap(), DataType::UInt(1));
    spec.chunks = Some(vec![2, 2]);
    spec
}

/// The kind is right, there is a hint, and nothing secret is shown.
fn check<T>(what: &str, result: Result<T>, kind: ErrorKind) -> Outcome<Error> {
    let error = fails(what, result, kind)?;
    ensure(error.hint().is_some(), || {
        format!("{what}: no hint: {error}")
    })?;
    ensure(!format!("{error:?}").contains(SECRET), || {
        format!("{what}: a secret is shown")
    })?;
    Ok(error)
}

/// Opens an array of a place that refuses.
async fn refused(place: &Place, what: &str, kind: ErrorKind) -> Outcome<Error> {
    let session = Session::default();
    let root = place.mount(&session, "x.zarr")?;
    check(
        what,
        session.open_array(&format!("{root}/array")).await,
        kind,
    )?;
    let made = session
        .create_array(&format!("{root}/array"), spec(), false)
        .await;
    check(what, made, kind)
}

/// Puts an array where [`refused`] looks for one.
async fn fill(place: &Place) -> Outcome {
    let session = Session::default();
    let root = place.mount(&session, "x.zarr")?;
    let array = session
        .create_array(&format!("{root}/array"), spec(), false)
        .await?;
    Ok(array.write(&Selection::All, (0..16).collect()).await?)
}

#[test]
fn urls_that_name_nothing() {
    run(async {
        let session = Session::default();
        for url in ["ftp://host/x.zarr", "s3x://bucket/x.zarr", "", "  "] {
            check(url, session.open(url).await, ErrorKind::Invalid)?;
        }
        for url in ["s3://", "az:///x", "gs://", "memory://"] {
            fails(url, session.open(url).await, ErrorKind::Invalid)?;
        }
        let url = format!("s3://b/x.zarr?secret_access_key={SECRET}");
        check(
            "a secret in a URL",
            session.open(&url).await,
            ErrorKind::Invalid,
        )?;
        let url = format!("s3://key:{SECRET}@b/x.zarr");
        check(
            "credentials in a URL",
            session.open(&url).await,
            ErrorKind::Invalid,
        )?;
        check(
            "an unknown option",
            session.open("s3://b/x.zarr?regoin=x").await,
            ErrorKind::Invalid,
        )?;
        let dir = tempfile::tempdir()?;
        let absent = dir.path().join("absent.zarr");
        check(
            "an absent folder",
            session.open(&absent.to_string_lossy()).await,
            ErrorKind::NotFound,
        )?;
        let file = dir.path().join("file.zarr");
        std::fs::write(&file, "text")?;
        let result = session.open(&file.to_string_lossy()).await;
        ensure(result.is_err(), || "a file is opened as a hierarchy".into())
    })
    .unwrap();
}

#[test]
fn a_bucket_that_does_not_exist() {
    let sim = sim();
    run(async {
        let error = refused(&sim.s3().at("s3://absent"), "S3", ErrorKind::Invalid).await?;
        ensure(error.message().contains("absent"), || {
            format!("not named: {error}")
        })?;
        let google = sim.google()?.at("gs://absent");
        refused(&google, "Google", ErrorKind::Invalid)
            .await
            .map(drop)
    })
    .unwrap();
}

#[test]
fn a_container_that_does_not_exist() {
    let Some(place) = required("Azurite", Place::azurite()).unwrap() else {
        return;
    };
    run(refused(
        &place.at("az://absent"),
        "Azure",
        ErrorKind::Invalid,
    ))
    .unwrap();
}

#[test]
fn a_bucket_of_moto_that_does_not_exist() {
    let Some(place) = required("moto", Place::moto()).unwrap() else {
        return;
    };
    run(refused(
        &place.at("s3://absent"),
        "moto",
        ErrorKind::Invalid,
    ))
    .unwrap();
}

#[test]
fn wrong_keys_are_denied() {
    let sim = sim();
    let (known, region) = (sim.sim().access_key().to_owned(), sim.s3_bare());
    run(async {
        fill(&sim.s3()).await?;
        for (what, key) in [
            ("a wrong secret", known.as_str()),
            ("an unknown key", "NOBODY"),
        ] {
            let place = region
                .with("access_key_id", key)
                .with("secret_access_key", SECRET);
            refused(&place, what, ErrorKind::Denied).await?;
        }
        refused(
            &region.with("anonymous", "true"),
            "no key",
            ErrorKind::Denied,
        )
        .await
        .map(drop)
    })
    .unwrap();
}

#[test]
fn a_wrong_key_of_azure_is_denied() {
    let Some(place) = required("Azurite", Place::azurite()).unwrap() else {
        return;
    };
    let key = "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=";
    run(async {
        let error = refused(&place.with("account_key", key), "Azure", ErrorKind::Denied).await?;
        ensure(!format!("{error:?}").contains(key), || {
            "the key is shown".into()
        })
    })
    .unwrap();
}

#[test]
fn an_expired_token_is_denied() {
    let mut pair = KeyPair::new("TEMPORARY", SECRET);
    pair.session_token = Some("new-token".into());
    let config = SimConfig {
        keys: vec![KeyPair::new("OWNER", "owner-secret"), pair],
        expired_tokens: vec!["old-token".into()],
        ..SimConfig::default()
    };
    let sim = SimPlace::start(config).unwrap();
    run(async {
        let place = sim
            .s3_bare()
            .with("access_key_id", "TEMPORARY")
            .with("secret_access_key", SECRET);
        fill(&place.with("session_token", "new-token")).await?;
        let old = place.with("session_token", "old-token");
        let error = refused(&old, "an expired token", ErrorKind::Denied).await?;
        let said = error.to_string().to_lowercase();
        ensure(said.contains("expired") || said.contains("token"), || {
            format!("not said: {error}")
        })?;
        ensure(!said.contains("old-token"), || {
            format!("the token is shown: {error}")
        })
    })
    .unwrap();
}

#[test]
fn a_key_that_may_not_list_sees_absent_keys_as_denied() {
    let mut pair = KeyPair::new("READER", SECRET);
    pair.may_list = false;
    pair.may_write = false;
    let config = SimConfig {
        keys: vec![KeyPair::new("OWNER", "owner-secret"), pair],
        ..SimConfig::default()
    };
    let sim = SimPlace::start(config).unwrap();
    run(async {
        fill(&sim.s3()).await?;
        let reader = sim
            .s3_bare()
            .with("access_key_id", "READER")
            .with("secret_access_key", SECRET);
        let session = Session::default();
        let root = reader.mount(&session, "x.zarr")?;
        let array = session.open_array(&format!("{root}/array")).await?;
        same(
            "cells",
            array.read(&Selection::All).await?,
            (0..16).collect(),
        )?;
        // Chunk (1, 1) goes: where absent and forbidden look alike, it must not read as fill.
        sim.sim()
            .objects(sim.bucket())?
            .delete("x.zarr/array/c/1/1")?;
        let error = check(
            "an absent chunk",
            array.read(&Selection::All).await,
            ErrorKind::Denied,
        )?;
        let hint = error.hint().unwrap_or_default().to_lowercase();
        ensure(hint.contains("list"), || {
            format!("the hint does not speak of listing: {error}")
        })?;
        let writes = array.write(&Selection::All, vec![0; 16]).await;
        check("a write", writes, ErrorKind::Denied).map(drop)
    })
    .unwrap();
}

/// A store that says what a cloud says to a client whose clock is wrong.
#[test]
fn a_skewed_clock_is_denied() {
    let body = "<?xml version=\"1.0\"?><Error><Code>RequestTimeTooSkewed</Code><Message>The difference \
                between the request time and the current time is too large.</Message></Error>";
    let server = crate::bad_places::answers(403, body);
    let options = hyperslab_store::Options::new()
        .with_environment(Default::default())
        .with("endpoint", format!("http://127.0.0.1:{server}"))
        .with("access_key_id", "A")
        .with("secret_access_key", SECRET);
    run(async {
        let session = Session::new(Options::default());
        let store = hyperslab_store::open_with("s3://b/x.zarr", &options)?.store;
        session.mount("s3://b/x.zarr", Arc::clone(&store))?;
        let error = check(
            "a skewed clock",
            session.open("s3://b/x.zarr/a").await,
            ErrorKind::Denied,
        )?;
        let said = error.to_string().to_lowercase();
        ensure(said.contains("clock"), || {
            format!("the clock is not named: {error}")
        })
    })
    .unwrap();
}

/// A server that gives every request the same answer, for as long as the test runs; its port.
fn answers(status: u16, body: &'static str) -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 {status} No\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}
