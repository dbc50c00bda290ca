//! Bodies on their way through the simulated network: metered, shaped, and cut short by faults.

mod request;
mod response;

pub(crate) use request::RequestBody;
pub(crate) use response::{Cut, ResponseBody};
