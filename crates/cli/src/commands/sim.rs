//! `sim`: the simulated cloud in the foreground.

use std::sync::Arc;

use hyperslab::Result;
use hyperslab_sim::{MeterSnapshot, Sim};
use serde_json::json;

pub(crate) use super::sim_options::Arguments;
use super::sim_options::PROCEDURAL_BUCKET;
use crate::context::Context;
use crate::interrupt::stop_signal;
use crate::size;

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let computed = arguments.computed()?;
    let config = arguments.config()?;
    let (buckets, book) = (config.buckets.clone(), config.prices.clone());
    let sim = Sim::start(config).await?;
    if let Some(array) = computed {
        sim.mount(PROCEDURAL_BUCKET, "array", Arc::new(array))?;
    }
    let exports: String = sim
        .env()
        .iter()
        .map(|(name, value)| format!("export {name}={value}\n"))
        .collect();
    let text = format!(
        "# A simulated cloud listens at {}; buckets: {}.\n# Stop it with Ctrl-C.\n{exports}",
        sim.endpoint(),
        buckets.join(", ")
    );
    let env: serde_json::Map<String, serde_json::Value> = sim
        .env()
        .into_iter()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    context.result(&text, || {
        json!({
            "endpoint": sim.endpoint(),
            "access_key": sim.access_key(),
            "secret_key": sim.secret_key(),
            "region": sim.region(),
            "buckets": buckets,
            "env": env,
        })
    })?;
    stop_signal().await;
    let meter = sim.meter();
    sim.stop().await;
    context.result(&bill(&meter, &book.name, &book.date), || {
        json!({
            "requests": {
                "get": meter.get, "head": meter.head, "list": meter.list,
                "put": meter.put, "delete": meter.delete,
            },
            "bytes_out": meter.bytes_out,
            "bytes_in": meter.bytes_in,
            "dollars": meter.dollars,
            "prices": {"name": book.name, "date": book.date},
        })
    })?;
    Ok(true)
}

/// The bill for people.
fn bill(meter: &MeterSnapshot, name: &str, date: &str) -> String {
    format!(
        "# {} requests ({} get, {} head, {} list, {} put, {} delete), {} sent, {} received\n# ${:.6} by the price book {name:?} of {date}",
        size::count(meter.requests()),
        size::count(meter.get),
        size::count(meter.head),
        size::count(meter.list),
        size::count(meter.put),
        size::count(meter.delete),
        size::show(meter.bytes_out),
        size::show(meter.bytes_in),
        meter.dollars,
    )
}
