//! `explain`: what a read would do, and why.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use hyperslab::planning::{Estimate, Method};
use hyperslab::{Bounds, Explanation, Result, parse_slices};
use serde_json::{Value, json};

use crate::address::Address;
use crate::context::Context;
use crate::page;
use crate::size;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab explain 's3://bucket/sky.zarr/images[0:10, :, 5]'
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --phi 1000 --place internet --html plan.html
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --function https://f.example --frozen
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --planner paper --analyze";

/// Show what a read would do, and what it would take
///
/// Plans the read without doing it: how each chunk would be fetched, how many requests and bytes
/// that is, how long it takes and what it costs, and the same for the forced plans. Only the indexes
/// of shards are read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Array, with slices in brackets: URL[0:10, :, 5]
    #[arg(value_name = "URL[SLICES]")]
    array: String,
    /// Read as well, and set what was measured beside the estimate
    #[arg(long)]
    analyze: bool,
    /// Write a page with the chunk grid, coloured by method, and all plans by time and cost
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What a read took.
struct Measured {
    seconds: f64,
    requests: u64,
    bytes: u64,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let address = Address::parse(&arguments.array)?;
    let array = context.session.open_array(&address.url).await?;
    let shape = array.shape();
    let slices = address.slices.as_deref().unwrap_or("");
    let selection = parse_slices(slices, &shape, Bounds::Strict)?.selection;
    let explained = array.explain(&selection).await?;
    let measured = if arguments.analyze {
        let before = totals(context);
        let begun = Instant::now();
        array.read(&selection).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = totals(context);
        Some(Measured {
            seconds,
            requests: after.0 - before.0,
            bytes: after.1 - before.1,
        })
    } else {
        None
    };
    if let Some(path) = &arguments.html {
        let title = format!("{}[{slices}]", array.url());
        let grid = array.meta().grid()?.grid_shape().to_vec();
        page::write(path, &title, &grid, &explained)?;
    }
    let text = render(&explained, measured.as_ref());
    context.result(&text, || as_json(&explained, measured.as_ref()))?;
    Ok(true)
}

/// Requests and bytes of all stores so far.
fn totals(context: &Context) -> (u64, u64) {
    let meters = context.session.meters();
    meters.iter().fold((0, 0), |(requests, bytes), (_, meter)| {
        (requests + meter.total(), bytes + meter.bytes_in)
    })
}

fn counts(explained: &Explanation) -> [(&'static str, usize); 5] {
    let count = |which: fn(&Method) -> bool| {
        let methods = explained.chunks.iter().map(|chunk| &chunk.method);
        methods.filter(|method| which(method)).count()
    };
    // Chunks of which nothing is fetched.
    let idle = |cached: bool| {
        let none = |method: &Method| matches!(method, Method::Ranges(r) if r.is_empty());
        let chunks = explained.chunks.iter();
        chunks
            .filter(|chunk| none(&chunk.method) && (chunk.cached > 0) == cached)
            .count()
    };
    [
        ("get", count(|m| matches!(m, Method::Get))),
        (
            "range",
            count(|m| matches!(m, Method::Ranges(r) if !r.is_empty())),
        ),
        ("function", count(|m| matches!(m, Method::Function(_)))),
        ("cache", idle(true)),
        ("nothing stored", idle(false)),
    ]
}

fn render(explained: &Explanation, measured: Option<&Measured>) -> String {
    let by_method: Vec<String> = counts(explained)
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{n} by {name}"))
        .collect();
    let network = explained.model.network();
    let mut text = format!(
        "chunks     {}: {}\nwanted     {}\ncached     {}\nnetwork    {:.1} ms, {}/s a connection, {}/s in all, window {}\nφ          {} s per dollar\n\n",
        explained.chunks.len(),
        by_method.join(", "),
        size::show(explained.useful),
        size::show(explained.cached),
        network.latency_seconds * 1e3,
        size::show(network.connection_bandwidth as u64),
        size::show(network.peak() as u64),
        explained.model.window(),
        explained.model.phi(),
    );
    let header = ["plan", "requests", "calls", "bytes", "seconds", "dollars"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.push(row(
        &format!("{} (chosen)", explained.mode),
        &explained.estimate,
    ));
    if let Some(measured) = measured {
        rows.push(vec![
            "  measured".into(),
            measured.requests.to_string(),
            String::new(),
            size::show(measured.bytes),
            format!("{:.4}", measured.seconds),
            String::new(),
        ]);
    }
    for (mode, estimate) in &explained.alternatives {
        rows.push(row(&mode.to_string(), estimate));
    }
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ];
    text.push_str(&lay_out(&sides, &rows));
    text
}

fn row(name: &str, estimate: &Estimate) -> Vec<String> {
    vec![
        name.to_owned(),
        estimate.requests.to_string(),
        estimate.calls.to_string(),
        size::show(estimate.bytes),
        format!("{:.4}", estimate.seconds),
        format!("{:.3e}", estimate.dollars),
    ]
}

fn as_json(explained: &Explanation, measured: Option<&Measured>) -> Value {
    let chunks: Vec<Value> = explained
        .chunks
        .iter()
        .map(|chunk| {
            json!({
                "chunk": chunk.chunk,
                "key": chunk.key,
                "method": chunk.method,
                "useful": chunk.useful,
                "bytes": chunk.bytes,
                "cached": chunk.cached,
            })
        })
        .collect();
    let alternatives: Vec<Value> = explained
        .alternatives
        .iter()
        .map(|(mode, estimate)| json!({"planner": mode.to_string(), "estimate": estimate}))
        .collect();
    json!({
        "planner": explained.mode.to_string(),
        "useful": explained.useful,
        "cached": explained.cached,
        "estimate": explained.estimate,
        "measured": measured.map(|m| json!({
            "seconds": m.seconds, "requests": m.requests, "bytes": m.bytes,
        })),
        "alternatives": alternatives,
        "chunks": chunks,
    })
}
