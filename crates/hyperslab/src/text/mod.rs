//! Numbers and tables as people read them, for all that print results.

pub mod size;
pub mod table;
