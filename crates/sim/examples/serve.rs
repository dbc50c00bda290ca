//! Serves a simulated cloud until its standard input ends, for clients in other languages.
//!
//! `cargo run -p hyperslab-sim --example serve [preset] [bucket]` prints the environment that
//! sends S3 clients there, one variable a line.

use std::io::Read as _;

use hyperslab_index::Result;
use hyperslab_sim::{Network, Sim, SimConfig};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let preset = arguments.next().unwrap_or_else(|| "unshaped".into());
    let sim = Sim::start_in_thread(SimConfig {
        network: Network::preset(&preset)?,
        buckets: vec![arguments.next().unwrap_or_else(|| "bucket".into())],
        gcs_port: Some(0),
        ..SimConfig::default()
    })?;
    for (name, value) in sim.env() {
        println!("{name}={value}");
    }
    println!("GCS_ENDPOINT={}", sim.gcs_endpoint().unwrap_or_default());
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    Ok(())
}
