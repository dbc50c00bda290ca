//! The cloud function: reads a chunk next to the data, decodes it, and sends back only the cells
//! that a query wants.
//!
//! Stands after `plan`, which decides when a call pays, and before `hyperslab`, whose executor
//! makes the call. It may use `index`, `store` and `format`. The library part has no server in it,
//! because the engine links it as the client of the protocol and the simulated cloud as the
//! handler; the server for Lambda, Azure, Cloud Run and loopback, and the binary
//! `hyperslab-function`, are behind the feature `serve`, which is on by default. Crates that need
//! only the library depend on this one with `default-features = false`.
//!
//! Invariants:
//! - an answer holds exactly the bytes that were asked for, of one state of the object, or it is an
//!   error: [`Answer::parse`] checks length and checksum;
//! - the function opens stores only at the prefixes of its [`AllowList`]; a request contributes
//!   nothing but a key below one of them, so it cannot choose a host, an endpoint or an option;
//! - nothing is allocated before its size has been checked against [`Limits`].
//!
//! # The protocol, version 1
//!
//! `POST /slab` with a [`SlabRequest`] as JSON and the header [`SIGNATURE_HEADER`], see [`sign`].
//! Status 200 carries a preamble of [`PREAMBLE_BYTES`] bytes (`HSLB`, version, length and CRC-32C
//! of the payload, little-endian) and then the bytes of all runs of all units, in order. Every
//! other status carries JSON with the fields `error`, `kind` and perhaps `hint`. `GET /health`
//! tells the [`Limits`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use hyperslab_function::{AllowList, Answer, Service, ServiceConfig, SlabRequest, StridedRun, Unit};
//! use hyperslab_store::{Put, open};
//!
//! let store = open("memory://doc")?;
//! store.put("run/c0", vec!["abcdefgh".into()], Put::Create).await?;
//! let service = Service::new(ServiceConfig::unsigned(AllowList::parse("memory://doc/run")?))?;
//! // Two bytes at 1, and again three bytes further on.
//! let unit = Unit::raw(vec![StridedRun { start: 1, len: 2, step: 3, count: 2 }]);
//! let request = SlabRequest::new("memory://doc/run/c0", vec![unit])?;
//! let response = service.handle(&request.to_bytes()?, None, 0).await;
//! assert_eq!(Answer::parse(response.body, request.payload_len()?)?, "bcef");
//! # Ok::<_, hyperslab_function::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```

mod allow;
mod answer;
mod client;
mod failure;
mod job;
mod limits;
mod request;
mod service;
mod signature;
mod source;

#[cfg(feature = "serve")]
pub mod serve;

pub use allow::AllowList;
pub use answer::{Answer, PREAMBLE_BYTES};
pub use client::{FunctionClient, Health};
pub use hyperslab_index::{Error, ErrorKind, Result};
pub use limits::{Host, Limits};
pub use request::{Part, SlabRequest, StridedRun, Unit, UnitCodecs, VERSION};
pub use service::{Response, Service, ServiceConfig, Work};
pub use signature::{LONGEST_VALIDITY, SIGNATURE_HEADER, Secret, sign, verify};
