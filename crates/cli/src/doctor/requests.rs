//! What the store allows: listing, reading, writing; and how quickly it answers.

use std::time::{Duration, Instant};

use hyperslab::ErrorKind;
use hyperslab::store::{Get, GetRange, Put, StoreRef};

use super::Step;
use crate::size;

/// Small requests whose median is shown.
const SAMPLES: usize = 10;
/// Objects that nodes keep their metadata in.
const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Tries to list and to ask for an object, and tells refused credentials from a refused listing.
/// The last part is an object that is there, if the listing showed one.
pub(crate) async fn access(store: &StoreRef, remote: bool) -> (Vec<Step>, Option<(String, u64)>) {
    const CREDENTIALS: &str = "credentials";
    const LIST: &str = "list";
    let accepted = if remote {
        "accepted"
    } else {
        "none are needed"
    };
    let listed = store.list_dir("").await;
    let asked = store.head(METADATA[0]).await;
    let known = asked.is_ok() || asked.as_ref().is_err_and(|e| e.is_not_found());
    let steps = match (&listed, &asked) {
        (Ok(listing), _) => {
            let many = listing.dirs.len() + listing.objects.len();
            vec![
                Step::passed(CREDENTIALS, accepted),
                Step::passed(
                    LIST,
                    format!("allowed, {} entries", size::count(many as u64)),
                ),
            ]
        }
        // A folder that does not exist yet, or a web server without listings.
        (Err(e), _) if e.is_not_found() => vec![
            Step::passed(CREDENTIALS, accepted),
            Step::skipped(LIST, "there is nothing below this URL yet"),
        ],
        (Err(e), _) if known && e.kind() == ErrorKind::Denied => {
            vec![Step::passed(CREDENTIALS, accepted), Step::error(LIST, e)]
        }
        (Err(e), _) if known => vec![
            Step::passed(CREDENTIALS, accepted),
            Step::skipped(LIST, e.message()),
        ],
        (Err(_), Err(e)) => {
            vec![
                Step::error(CREDENTIALS, e),
                Step::skipped(LIST, "not tried"),
            ]
        }
        (Err(e), Ok(_)) => vec![Step::passed(CREDENTIALS, accepted), Step::error(LIST, e)],
    };
    let first = listed.ok().and_then(|listing| {
        let smallest = listing
            .objects
            .into_iter()
            .min_by_key(|object| object.meta.size);
        smallest.map(|object| (object.key, object.meta.size))
    });
    (steps, first)
}

/// Reads the metadata, or else an object that the listing showed.
pub(crate) async fn read(store: &StoreRef, listed: Option<(String, u64)>) -> Step {
    const NAME: &str = "read";
    for key in METADATA {
        match store.get(key, Get::default()).await {
            Ok(got) => return Step::passed(NAME, format!("{key}, {}", size::show(got.meta.size))),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Step::error(NAME, &e),
        }
    }
    let Some((key, bytes)) = listed else {
        return Step::skipped(NAME, "there is nothing to read here yet");
    };
    let range = (bytes > 0).then(|| GetRange::Bounded(0..bytes.min(1024)));
    match store
        .get(
            &key,
            Get {
                range,
                ..Get::default()
            },
        )
        .await
    {
        Ok(got) => Step::passed(NAME, format!("{} of {key}", size::show(got.body.len()))),
        Err(e) => Step::error(NAME, &e),
    }
}

/// Writes a small object, checks that a second create is refused, reads it back and removes it.
pub(crate) async fn write(store: &StoreRef) -> Step {
    const NAME: &str = "write";
    let stamp = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos());
    let key = format!("hyperslab-doctor-{}-{stamp}", std::process::id());
    let outcome = try_write(store, &key).await;
    let removed = store.delete(&key).await;
    match (outcome, removed) {
        (Ok(()), Ok(())) => Step::passed(
            NAME,
            "an object was created, read back and removed; conditional writes hold",
        ),
        (Ok(()), Err(e)) => Step::error(
            NAME,
            &e.context(format!("the object {key} was left behind")),
        ),
        (Err(step), _) => *step,
    }
}

async fn try_write(store: &StoreRef, key: &str) -> Result<(), Box<Step>> {
    const NAME: &str = "write";
    let body = b"hyperslab doctor".as_slice();
    let failed = |e: &hyperslab::Error| Box::new(Step::error(NAME, e));
    store
        .put(key, vec![body.into()], Put::Create)
        .await
        .map_err(|e| failed(&e))?;
    match store.put(key, vec![body.into()], Put::Create).await {
        Err(e) if e.kind() == ErrorKind::Conflict => {}
        Err(e) => return Err(failed(&e)),
        Ok(_) => {
            return Err(Box::new(Step::failed(
                NAME,
                "the store ignores conditions on writes",
                "concurrent writers could overwrite each other's metadata; use one writer only",
            )));
        }
    }
    let got = store
        .get(key, Get::default())
        .await
        .map_err(|e| failed(&e))?;
    let back = got.body.into_bytes().map_err(|e| failed(&e))?;
    match back == body {
        true => Ok(()),
        false => Err(Box::new(Step::failed(
            NAME,
            "the object came back with other bytes",
            "report this store",
        ))),
    }
}

/// The median time of small requests.
pub(crate) async fn latency(store: &StoreRef) -> Step {
    const NAME: &str = "latency";
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        match store.head(METADATA[0]).await {
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Denied) => {}
            Err(e) => return Step::error(NAME, &e),
        }
        times.push(begun.elapsed());
    }
    times.sort();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let detail = format!(
        "{:.1} ms is the median of {SAMPLES} small requests (slowest {:.1} ms)",
        millis(times[SAMPLES / 2]),
        millis(times[SAMPLES - 1])
    );
    Step::passed(NAME, detail)
}
