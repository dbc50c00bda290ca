//! Runs the built program on temporary folders and on a simulated cloud in this process.

// `cfg(test)` tells clippy that the helpers, too, are test code.
#[cfg(test)]
mod advise;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod cloud;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod files;
#[cfg(test)]
mod hierarchy;
#[cfg(test)]
mod interrupt;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod output;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod rechunk;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod strings;
#[cfg(test)]
mod support;
