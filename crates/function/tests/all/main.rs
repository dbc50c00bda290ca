//! The function, seen by its callers.

// `cfg(test)` tells clippy that the helpers, too, are test code.
#[cfg(test)]
mod binary;
#[cfg(test)]
mod lambda;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod web;
