//! The options of `sim`, turned into a configuration.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyperslab::{Error, Result, settings};
use hyperslab_sim::{
    CellType, FaultKind, FaultPlan, FaultRule, KeyPair, Latency, Network, PriceBook, RateLimit,
    RateScope, SimConfig, Trigger, ZarrArray,
};
use serde_json::json;

use crate::sides::parse_sides;

/// Where computed arrays appear.
pub(crate) const PROCEDURAL_BUCKET: &str = "procedural";

const EXAMPLES: &str = "Examples:
  hyperslab sim --preset aws --bucket data
  hyperslab sim --port 9000 --latency 20ms --connection-bandwidth 90MB --total-bandwidth 125MB
  hyperslab sim --procedural '65536x65536,512x512,int32' --json
  hyperslab sim --fault slow-down=0.01 --fault truncated-body=0.001 --seed 7";

/// Run a simulated cloud on this machine until it is interrupted
///
/// Speaks S3's language on the loopback, with the latency and bandwidth of a network, faults if
/// asked, and a bill at the end. Prints the environment variables that send clients to it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Network: aws, azure, gcp, bench, fast, local or unshaped
    #[arg(long, default_value = "unshaped")]
    preset: String,
    /// Time to the first byte, such as 20ms
    #[arg(long, value_parser = humantime::parse_duration)]
    latency: Option<Duration>,
    /// Bytes per second on one connection, such as 90MB
    #[arg(long, value_name = "SIZE", value_parser = settings::positive_bytes)]
    connection_bandwidth: Option<u64>,
    /// Bytes per second in all, such as 125MB
    #[arg(long, value_name = "SIZE", value_parser = settings::positive_bytes)]
    total_bandwidth: Option<u64>,
    /// Requests per second before the store answers SlowDown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate_limit: Option<u32>,
    /// Seed of latencies and faults
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Keep objects in this folder, so that they survive a restart
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Bucket to make (repeatable; default: data)
    #[arg(long = "bucket", value_name = "NAME")]
    buckets: Vec<String>,
    /// Serve a computed array at s3://procedural/array: shape, chunks and type (uint8, int32, float32)
    #[arg(long, value_name = "SHAPE,CHUNKS,TYPE")]
    procedural: Option<String>,
    /// Fault to inject with a probability (repeatable): reset-before-headers, reset-after-headers,
    /// truncated-body, hang, internal-error, slow-down, lost-response
    #[arg(long = "fault", value_name = "KIND=PROBABILITY")]
    faults: Vec<String>,
    /// Access key that clients must use
    #[arg(long, value_name = "KEY")]
    access_key: Option<String>,
    /// Secret of the access key
    #[arg(
        long,
        value_name = "SECRET",
        env = "HYPERSLAB_SIM_SECRET_KEY",
        hide_env_values = true
    )]
    secret_key: Option<String>,
}

impl Arguments {
    /// The configuration that the options describe.
    pub(crate) fn config(&self) -> Result<SimConfig> {
        let default = SimConfig::default();
        let mut keys = default.keys.clone();
        if self.access_key.is_some() || self.secret_key.is_some() {
            let first = keys
                .first()
                .cloned()
                .unwrap_or_else(|| KeyPair::new("", ""));
            let access = self.access_key.clone().unwrap_or(first.access_key);
            let secret = self.secret_key.clone().unwrap_or(first.secret_key);
            keys = vec![KeyPair::new(access, secret)];
        }
        let mut buckets = self.buckets.clone();
        if buckets.is_empty() {
            buckets.push("data".into());
        }
        if self.procedural.is_some() && !buckets.iter().any(|b| b == PROCEDURAL_BUCKET) {
            buckets.push(PROCEDURAL_BUCKET.into());
        }
        let book = match self.preset.as_str() {
            cloud @ ("azure" | "gcp") => cloud,
            _ => "aws",
        };
        Ok(SimConfig {
            port: self.port,
            keys,
            buckets,
            folder: self.dir.clone(),
            network: self.network()?,
            faults: self.fault_plan()?,
            prices: PriceBook::built_in(book)?,
            ..default
        })
    }

    fn network(&self) -> Result<Network> {
        let mut network = Network::preset(&self.preset)?;
        network.seed = self.seed;
        if let Some(latency) = self.latency {
            network.latency = Latency::Constant {
                millis: latency.as_secs_f64() * 1e3,
            };
        }
        if let Some(bandwidth) = self.connection_bandwidth {
            network.connection_bandwidth = Some(bandwidth as f64);
        }
        if let Some(bandwidth) = self.total_bandwidth {
            network.total_bandwidth = Some(bandwidth as f64);
        }
        if let Some(rate) = self.rate_limit {
            let rate = f64::from(rate);
            network.rate_limit = Some(RateLimit {
                reads_per_second: Some(rate),
                writes_per_second: Some(rate),
                burst: rate.max(1.0),
                scope: RateScope::Bucket,
                retry_after_seconds: None,
            });
        }
        network.validate()?;
        Ok(network)
    }

    fn fault_plan(&self) -> Result<FaultPlan> {
        let rules: Vec<FaultRule> = self
            .faults
            .iter()
            .map(|text| parse_fault(text))
            .collect::<Result<_>>()?;
        let plan = FaultPlan {
            seed: self.seed,
            ..FaultPlan::of(rules)
        };
        plan.validate()?;
        Ok(plan)
    }

    /// The computed array, if one was asked for.
    pub(crate) fn computed(&self) -> Result<Option<ZarrArray>> {
        self.procedural.as_deref().map(parse_procedural).transpose()
    }
}

fn parse_fault(text: &str) -> Result<FaultRule> {
    let wrong = || {
        Error::invalid(format!("the fault {text:?} is not kind=probability"))
            .with_hint("write --fault slow-down=0.01; hyperslab sim --help has the kinds")
    };
    let (kind, probability) = text.split_once('=').ok_or_else(wrong)?;
    let kind: FaultKind = serde_json::from_value(json!(kind.trim())).map_err(|e| {
        // The parser lists the kinds it knows.
        let known = e.to_string();
        let known = known
            .split_once("expected one of ")
            .map_or("", |(_, list)| list);
        Error::invalid(format!("there is no fault {kind:?}"))
            .with_hint(format!("the faults are {known}"))
    })?;
    let probability: f64 = probability.trim().parse().map_err(|_| wrong())?;
    if !(0.0..=1.0).contains(&probability) {
        return Err(wrong());
    }
    Ok(FaultRule::new(kind, Trigger::Probability(probability)))
}

/// `65536x65536,512x512,int32`: sides joined by `x`.
fn parse_procedural(text: &str) -> Result<ZarrArray> {
    let wrong = || {
        Error::invalid(format!("{text:?} does not describe a computed array"))
            .with_hint("write shape, chunks and type, such as 65536x65536,512x512,int32")
    };
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [shape, chunks, dtype] = parts[..] else {
        return Err(wrong());
    };
    let sides = |text: &str| parse_sides(&text.replace('x', ",")).map_err(|_| wrong());
    let cell = match dtype {
        "uint8" | "u1" => CellType::UInt8,
        "int32" | "i4" => CellType::Int32,
        "float32" | "f4" => CellType::Float32,
        _ => return Err(wrong()),
    };
    ZarrArray::new(cell, &sides(shape)?, &sides(chunks)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read() {
        let array = parse_procedural("100x200, 10x20, int32").unwrap();
        assert_eq!(array.shape(), [100, 200]);
        for bad in ["", "1x2,3", "1x2,3x4,f8", "axb,1x1,u1"] {
            assert!(parse_procedural(bad).is_err(), "{bad}");
        }
        assert!(
            matches!(parse_fault("slow-down=0.5").unwrap().trigger, Trigger::Probability(p) if p == 0.5)
        );
        let unknown = parse_fault("moo=0.5").unwrap_err();
        assert!(unknown.hint().unwrap().contains("slow-down"), "{unknown}");
        for bad in ["slow-down", "slow-down=2", "slow-down=x"] {
            assert!(parse_fault(bad).is_err(), "{bad}");
        }
    }
}
