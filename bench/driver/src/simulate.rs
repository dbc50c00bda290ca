//! The simulated cloud as a process of its own, so that it takes no time from inside a client.

use std::io::{Read, Write};

use hyperslab::{Error, Result};
use hyperslab_sim::{Network, Sim, SimConfig};
use serde_json::{Map, Value, json};

/// Starts a simulator with one bucket, prints one line of JSON that says how to reach it, and
/// serves until the input ends.
pub(crate) fn run(preset: &str, bucket: &str) -> Result<()> {
    let network = Network::preset(preset)?;
    let sim = Sim::start_in_thread(SimConfig {
        buckets: vec![bucket.to_owned()],
        network: network.clone(),
        ..SimConfig::default()
    })?;
    let env: Map<String, Value> = sim.env().into_iter().map(|(k, v)| (k, json!(v))).collect();
    let line = json!({
        "endpoint": sim.endpoint(),
        "env": env,
        "network": format!("{network:?}"),
    });
    let mut out = std::io::stdout();
    let lost = |e| Error::unavailable(format!("the harness is gone: {e}"));
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(lost)?;
    let mut ignored = Vec::new();
    std::io::stdin().read_to_end(&mut ignored).map_err(lost)?;
    Ok(())
}
