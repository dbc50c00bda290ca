//! Chooses the cheapest requests for the bytes of a query.
//!
//! Sits between the resolvers, which say where bytes are, and the executor, which fetches them.
//! Everything here is a pure function of (query, profile, prices, φ): no I/O, no clock, no
//! randomness. It depends on `index` for errors only.
//!
//! Invariant: every wanted byte of a query is covered by exactly one request of its plan, and no
//! plan breaks a limit of the function.
//!
//! ```
//! use hyperslab_plan::{Mode, Model, Object, PriceBook, Place, Profile, Query, Run, plan};
//!
//! let profile = Profile::built_in("aws")?;
//! let model = Model::new(&profile, &PriceBook::built_in("aws")?, Place::Internet, 0.0)?;
//! // 21 short runs, 8 KiB apart, in a raw chunk of 16 MiB.
//! let runs = (0..21).map(|i| Run::plain(i * 8192..i * 8192 + 84)).collect();
//! let query = Query::new(vec![Object::raw(16 << 20, runs)])?;
//! let plan = plan(&query, &model, Mode::Global);
//! assert!(plan.estimate.bytes < 1 << 20);
//! # Ok::<(), hyperslab_plan::Error>(())
//! ```

mod division;
mod forced;
mod global;
mod load;
mod locate;
mod mode;
mod model;
pub mod oracle;
mod outcome;
mod packing;
mod paper;
mod price;
mod profile;
mod query;

pub use hyperslab_index::{Error, ErrorKind, Result};
pub use load::Load;
pub use locate::{Unlocated, locate};
pub use mode::{Mode, plan};
pub use model::{Fees, Model};
pub use outcome::{Call, Estimate, Method, Plan};
pub use price::{
    EgressPrices, Fact, FunctionPrices, Place, PriceBook, RequestPrices, StoragePrices, Sureness,
};
pub use profile::{BandwidthPoint, FunctionProfile, NetworkProfile, Profile};
pub use query::{Object, Query, Run};
