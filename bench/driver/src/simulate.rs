//! The simulated cloud as a process of its own, so that it takes no time from inside a client.

use std::io::{Read, Write};
use std::sync::Arc;

use hyperslab::{Error, Place, PriceBook, Result, Secret};
use hyperslab_sim::{CellType, FunctionConfig, FunctionModel, Network, Sim, SimConfig, ZarrArray};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What the cloud has besides a network and a bucket.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Extras {
    /// The name of a built-in price book; without one nothing costs anything.
    prices: Option<String>,
    /// Where the client is said to be.
    place: Option<String>,
    /// The secret that calls of the function must be signed with; without one there is no function.
    function_secret: Option<String>,
    /// Arrays of int32 that are computed instead of stored.
    computed: Vec<Computed>,
    /// Threads that serve.
    threads: Option<usize>,
}

/// A computed array and where it appears in the bucket.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Computed {
    prefix: String,
    shape: Vec<u64>,
    chunks: Vec<u64>,
}

/// Starts a simulator with one bucket, prints one line of JSON that says how to reach it, and
/// serves until the input ends.
pub(crate) fn run(preset: &str, bucket: &str, extras: &Extras) -> Result<()> {
    let network = Network::preset(preset)?;
    let sim = Sim::start_in_thread(extras.config(preset, bucket, network.clone())?)?;
    for array in &extras.computed {
        let cells = ZarrArray::new(CellType::Int32, &array.shape, &array.chunks)?;
        sim.mount(bucket, &array.prefix, Arc::new(cells))?;
    }
    let env: Map<String, Value> = sim.env().into_iter().map(|(k, v)| (k, json!(v))).collect();
    let line = json!({
        "endpoint": sim.endpoint(),
        "env": env,
        "network": format!("{network:?}"),
        "function": sim.function_url(),
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

impl Extras {
    fn config(&self, preset: &str, bucket: &str, network: Network) -> Result<SimConfig> {
        let mut config = SimConfig {
            buckets: vec![bucket.to_owned()],
            network,
            ..SimConfig::default()
        };
        if let Some(prices) = &self.prices {
            config.prices = PriceBook::built_in(prices)?;
        }
        if let Some(place) = &self.place {
            config.place = place.parse::<Place>()?;
        }
        if let Some(secret) = &self.function_secret {
            config.function = Some(FunctionConfig {
                secret: Some(Secret::new(secret)?),
                model: FunctionModel::preset(preset)?,
                ..FunctionConfig::default()
            });
        }
        if let Some(threads) = self.threads {
            config.threads = threads;
        }
        Ok(config)
    }
}
