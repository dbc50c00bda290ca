//! Opens a store by its URL.
//!
//! The top of this crate: takes the URL apart, resolves the options, builds the back end and puts
//! the wrappers around it (see the crate's documentation for their order). Opening does no network
//! request; a store that cannot be reached says so at its first use.

use std::sync::Arc;
use std::time::Duration;

use crate::location::{self, Location, StoreKind};
use crate::options::{Options, Settings};
use crate::remote::{self, Bucket, Spec};
use crate::{
    Limit, LimitHandle, Local, Memory, Meter, MeterHandle, Prefixed, ReadOnly, Result, Retry,
    RetryPolicy, StoreRef, aws, azure, google, web,
};

/// An opened store, and the handles of its wrappers.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The store, wrapped.
    pub store: StoreRef,
    /// Counts this store's requests.
    pub meter: MeterHandle,
    /// Limits the requests in flight of all stores of the endpoint; local stores have none.
    pub limit: Option<LimitHandle>,
    /// What is behind the store.
    pub kind: StoreKind,
}

/// Opens the store at `url`: a path, or a URL of scheme `file`, `memory`, `s3`, `az`, `abfs`,
/// `abfss`, `gs`, `http` or `https`. Options may follow in the query; see [`Options`].
pub fn open(url: &str) -> Result<StoreRef> {
    Ok(open_with(url, &Options::new())?.store)
}

/// Opens the store at `url` with `options`, which its query overrides.
pub fn open_with(url: &str, options: &Options) -> Result<Opened> {
    let location = location::parse(url)?;
    let settings = Settings::resolve(&location, options)?;
    let meter = MeterHandle::new();
    let metered = |base: StoreRef| Arc::new(Meter::new(base, meter.clone())) as StoreRef;
    let (store, limit) = match location.kind {
        StoreKind::File => {
            let fsync = settings.flag("fsync")?;
            let local = Local::with_url(location.url.clone(), &location.path, fsync)?;
            (metered(Arc::new(local)), None)
        }
        StoreKind::Memory => (metered(Memory::shared(&location.bucket)), None),
        _ => {
            let (store, limit) = remote_stack(&location, &settings, &meter)?;
            (store, Some(limit))
        }
    };
    let store = match location.prefix.is_empty() {
        true => store,
        false => Arc::new(Prefixed::new(store, &*location.prefix)?.with_url(location.url)),
    };
    Ok(Opened {
        store,
        meter,
        limit,
        kind: location.kind,
    })
}

/// The endpoint and bucket behind a URL, such as `https://s3.eu-west-1.amazonaws.com/climate`: what
/// is known of them is kept under this name. Makes no request; no credential is part of it.
///
/// Web servers have no buckets; all local disks and all memories are one endpoint each.
pub fn endpoint(url: &str, options: &Options) -> Result<String> {
    let location = location::parse(url)?;
    match location.kind {
        StoreKind::File => return Ok("local disk".to_owned()),
        StoreKind::Memory => return Ok("memory".to_owned()),
        _ => {}
    }
    let spec = remote_spec(&location, &Settings::resolve(&location, options)?)?;
    Ok(match location.kind {
        StoreKind::Http => spec.origin,
        _ => format!("{}/{}", spec.origin, location.bucket),
    })
}

/// How to reach the bucket of `location`.
fn remote_spec(location: &Location, settings: &Settings) -> Result<Spec> {
    match location.kind {
        StoreKind::S3 => aws::spec(location, settings),
        StoreKind::Azure => azure::spec(location, settings),
        StoreKind::Google => google::spec(location, settings),
        _ => web::spec(location, settings),
    }
}

fn remote_stack(
    location: &Location,
    settings: &Settings,
    meter: &MeterHandle,
) -> Result<(StoreRef, LimitHandle)> {
    let policy = RetryPolicy {
        retries: u32::try_from(settings.number("retries", 3)?).unwrap_or(u32::MAX),
        deadline: settings.duration("deadline", Duration::from_secs(180))?,
        ..RetryPolicy::default()
    };
    let spec = remote_spec(location, settings)?;
    let limit = remote::limit(&spec.origin, remote::concurrency(settings)?);
    let mut store: StoreRef = Arc::new(Bucket::open(spec)?);
    if location.kind == StoreKind::Http {
        store = Arc::new(ReadOnly::new(store));
    }
    store = Arc::new(Meter::new(store, meter.clone()));
    store = Arc::new(Limit::new(store, limit.clone()));
    store = Arc::new(Retry::new(store, policy).with_meter(meter.clone()));
    Ok((store, limit))
}
