//! The store crate from outside: back ends that need no server, wrappers, and the remote path
//! against a scripted server on loopback.

// `cfg(test)` tells clippy that the helpers, too, are test code.
#[cfg(test)]
mod contract;
#[cfg(test)]
mod local;
#[cfg(test)]
mod open;
#[cfg(test)]
mod races;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod server;
#[cfg(test)]
mod wrappers;
