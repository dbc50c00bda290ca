//! The simulator, seen by clients.

// `cfg(test)` tells clippy that the helpers, too, are test code.
#[cfg(test)]
mod access;
#[cfg(test)]
mod admin;
#[cfg(test)]
mod client;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod function;
#[cfg(test)]
mod gcs;
#[cfg(test)]
mod meter;
#[cfg(test)]
mod multipart;
#[cfg(test)]
mod network;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod procedural;
