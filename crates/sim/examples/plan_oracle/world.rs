//! A provider: its preset as the virtual cloud has it, and the profile that a client would measure.

use hyperslab_index::Result;
use hyperslab_plan::{BandwidthPoint, Model, PriceBook, Profile};
use hyperslab_sim::{FunctionModel, Latency, Network, Place, VirtualConfig};

/// One provider of the grid, with or without a function.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) provider: &'static str,
    pub(crate) network: Network,
    pub(crate) function: Option<FunctionModel>,
    pub(crate) prices: PriceBook,
    pub(crate) profile: Profile,
}

pub(crate) const PROVIDERS: [&str; 3] = ["aws", "azure", "gcp"];

impl World {
    /// The preset of this name. `request_seconds` is the client's own work for each request; the
    /// built-in profile says if it is `None`.
    pub(crate) fn new(
        provider: &'static str,
        with_function: bool,
        request_seconds: Option<f64>,
    ) -> Result<World> {
        let network = Network::preset(provider)?;
        let function = match with_function {
            true => Some(FunctionModel::preset(provider)?),
            false => None,
        };
        let mut profile = Profile::built_in(provider)?;
        profile.name = format!("the preset {provider}");
        if let Some(seconds) = request_seconds {
            profile.network.request_seconds = seconds;
        }
        describe_network(&network, &mut profile);
        describe_function(function.as_ref(), &mut profile);
        profile.check()?;
        Ok(World {
            provider,
            network,
            function,
            prices: PriceBook::built_in(provider)?,
            profile,
        })
    }

    /// The virtual cloud for one seed and the client of a model, with every instance of the function running, as it is for a
    /// client that asks one query after another.
    pub(crate) fn config(&self, seed: u64, model: &Model) -> VirtualConfig {
        let most = |calls: u64| usize::try_from(calls).unwrap_or(usize::MAX);
        VirtualConfig {
            network: Network {
                seed,
                ..self.network.clone()
            },
            warm: self.function.as_ref().map_or(0, |f| f.max_concurrent),
            function: self.function.clone(),
            prices: self.prices.clone(),
            place: Place::Internet,
            window: most(model.window()),
            call_window: most(model.call_window()),
            request_seconds: self.profile.network.request_seconds,
        }
    }
}

fn describe_network(network: &Network, profile: &mut Profile) {
    let (mean, spread) = match network.latency {
        Latency::None => (0.0, 0.0),
        Latency::Constant { millis } => (millis, 0.0),
        Latency::LogNormal {
            floor_millis,
            median_millis,
            p99_millis,
        } => {
            let median = median_millis - floor_millis;
            let sigma = ((p99_millis - floor_millis) / median).ln() / 2.326_347_874;
            let mean = median * (sigma * sigma / 2.0).exp();
            let spread = mean * ((sigma * sigma).exp() - 1.0).sqrt();
            (floor_millis + mean, spread)
        }
    };
    let total = network.total_bandwidth.unwrap_or(1e12);
    let connection = network.connection_bandwidth.unwrap_or(total).min(total);
    let out = &mut profile.network;
    out.latency_seconds = mean / 1e3;
    out.latency_spread = spread / 1e3;
    out.connection_bandwidth = connection;
    out.bandwidth = (0..=8)
        .map(|power| BandwidthPoint {
            requests: 1 << power,
            bytes_per_second: total.min(connection * f64::from(1 << power)),
        })
        .collect();
    let limit = network.rate_limit.as_ref();
    out.requests_per_second = limit.and_then(|limit| limit.reads_per_second);
}

fn describe_function(function: Option<&FunctionModel>, profile: &mut Profile) {
    let (Some(model), Some(out)) = (function, &mut profile.function) else {
        profile.function = None;
        return;
    };
    out.seconds_per_byte = model.alpha_millis_per_mib / 1e3 / f64::from(1 << 20);
    out.warm_seconds = model.beta_millis / 1e3;
    out.cold_seconds = (model.beta_millis + model.cold_millis) / 1e3;
    out.cold_share = 0.0;
    out.memory_bytes = model.memory_bytes;
    out.max_answer_bytes = model.max_answer_bytes;
    out.stream_after_bytes = model.stream_after_bytes;
    out.stream_bandwidth = model.stream_bandwidth;
    out.concurrency = model.max_concurrent;
}
