//! `profile`: measures an endpoint for the planner.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hyperslab::profile::{self, FunctionProfile, MeasureOptions, Measured, Profile};
use hyperslab::store::{self, Opened, StoreKind};
use hyperslab::{Error, Result, settings};
use serde_json::json;

use crate::address::{Address, without_query};
use crate::context::Context;
use crate::curves::{self, Format};
use crate::interrupt::stop_signal;
use crate::size;
use crate::table::{Side, lay_out};

/// The exit code of an interrupted run, as shells have it for SIGINT.
const INTERRUPTED: i32 = 130;
/// The most requests that are tried at a time.
const MOST_REQUESTS: usize = 256;

const EXAMPLES: &str = "Examples:
  hyperslab profile s3://bucket/scratch
  hyperslab profile s3://bucket --bytes 64MiB --seconds 20 -o office.toml --plot office.png
  hyperslab profile s3://bucket --function https://abc.lambda-url.eu-west-1.on.aws";

/// Measure an endpoint: request time, bandwidth by number of requests, time of the function
///
/// Writes test data below the URL and removes it again. The profile is kept in the configuration
/// folder under the name of its endpoint, unless -o names another file, and every later read from
/// that endpoint is planned with it. The function that --function names is measured as well, and
/// asked for its limits.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of a place that may be written to
    url: String,
    /// Bytes of test data, at most
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = settings::positive_bytes)]
    bytes: u64,
    /// About how long to measure
    #[arg(long, value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the measured curves into this file; its ending tells the format: .svg .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "profile")?;
    let opened = store::open_with(&url, &store::Options::new())?;
    let place = Place::new(arguments, &url, &opened)?;
    let function = context.session.options().function.as_deref();
    let limits = match function {
        Some(function) => Some(profile::function_limits(function).await?),
        None => None,
    };
    let options = MeasureOptions {
        bytes: arguments.bytes,
        time: Duration::from_secs(arguments.seconds.into()),
        most_requests: most_requests(&opened, context),
    };
    if (options.most_requests as usize) < context.session.options().concurrency.min(MOST_REQUESTS) {
        context.note(&format!(
            "no more than {} requests at a time are tried: that is where the endpoint's limit stands",
            options.most_requests
        ));
    }
    let bar = context.bar("measuring");
    let measured = profile::measure(opened.store, &options, function, &bar, stop_signal()).await?;
    drop(bar);
    let Some(measured) = measured else {
        context.note("interrupted; the test data was removed and no profile was written");
        // Signals are this command's own business, so that it can remove its data.
        std::process::exit(INTERRUPTED);
    };
    let date = chrono::Utc::now().format("%Y-%m-%d").to_string();
    let found = measured.profile(&place.name, &date, limits.as_ref())?;
    profile::save(&found, &place.file)?;
    if let Some((plot, format)) = &place.plot {
        write(plot, &curves::draw(&measured, &place.name, &date, *format)?)?;
    }
    report(&found, &measured, &place, context)?;
    Ok(true)
}

/// What the profile is of, and where it goes.
struct Place {
    name: String,
    file: PathBuf,
    plot: Option<(PathBuf, Format)>,
}

impl Place {
    /// Refuses before anything is written what could not be kept afterwards.
    fn new(arguments: &Arguments, url: &str, opened: &Opened) -> Result<Self> {
        if opened.kind == StoreKind::Http {
            return Err(Error::invalid(format!(
                "{} is a web server, which cannot be written to",
                without_query(url)
            ))
            .with_hint("name a place in a bucket or on a disk"));
        }
        let plot = match &arguments.plot {
            Some(path) => Some((path.clone(), Format::of(path)?)),
            None => None,
        };
        Ok(Place {
            name: profile::endpoint(url, &store::Options::new())?,
            file: match &arguments.output {
                Some(file) => file.clone(),
                None => profile::file_for(url, &store::Options::new())?,
            },
            plot,
        })
    }

    fn plot(&self) -> Option<String> {
        let (path, _) = self.plot.as_ref()?;
        Some(path.display().to_string())
    }
}

/// What the options and the endpoint's own limit allow: above it, requests only queue, and a
/// bandwidth of more of them would be that of the limit.
fn most_requests(opened: &Opened, context: &Context) -> u32 {
    let allowed = opened.limit.as_ref().map_or(MOST_REQUESTS, |l| l.current());
    let asked = context.session.options().concurrency;
    MOST_REQUESTS.min(allowed).min(asked).max(1) as u32
}

/// Writes a file, complete or not at all.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = std::fs::write(&part, content).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|e| {
        // Nothing more can be done about a part that cannot be removed.
        let _ = std::fs::remove_file(&part);
        Error::unavailable(format!("{} cannot be written: {e}", path.display())).with_source(e)
    })
}

fn report(found: &Profile, measured: &Measured, place: &Place, context: &Context) -> Result<()> {
    let (low, high) = found.network.useful_requests();
    context.result(&text(found, measured, place), || {
        json!({
            "profile": found,
            "n_min": low,
            "n_max": high,
            "file": place.file.display().to_string(),
            "plot": place.plot(),
            "test_bytes": measured.test_bytes,
            "seconds": measured.took.as_secs_f64(),
        })
    })
}

fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// The numbers for people.
fn text(found: &Profile, measured: &Measured, place: &Place) -> String {
    let network = &found.network;
    let mega = |speed: f64| format!("{:.1} MB/s", speed / 1e6);
    let (low, high) = network.useful_requests();
    let mut facts = vec![
        ("endpoint", found.name.clone()),
        (
            "request time",
            format!(
                "{} ± {}, and {} of this machine's own work",
                millis(network.latency_seconds),
                millis(network.latency_spread),
                millis(network.request_seconds)
            ),
        ),
        ("one connection", mega(network.connection_bandwidth)),
        ("useful requests", format!("{low} to {high} (N_min, N_max)")),
    ];
    if let Some(function) = &found.function {
        let (times, limits) = function_text(function);
        facts.push(("function", times));
        facts.push(("its limits", limits));
    }
    let took = measured.took.as_secs_f64();
    let effort = format!("{} in {took:.1} s", size::show(measured.test_bytes));
    facts.push(("test data", effort));
    facts.push(("written to", place.file.display().to_string()));
    if let Some(plot) = place.plot() {
        facts.push(("drawn in", plot));
    }
    let facts: Vec<Vec<String>> = facts
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    let mut rows = vec![vec!["requests".to_owned(), "bandwidth".to_owned()]];
    rows.extend(
        network
            .bandwidth
            .iter()
            .map(|point| vec![point.requests.to_string(), mega(point.bytes_per_second)]),
    );
    format!(
        "{}\n{}",
        lay_out(&[Side::Left, Side::Left], &facts),
        lay_out(&[Side::Right, Side::Right], &rows)
    )
}

/// A function's times and limits for people.
fn function_text(function: &FunctionProfile) -> (String, String) {
    let per_mib = function.seconds_per_byte * f64::from(1 << 20);
    let times = format!(
        "{} per MiB + {} ({} cold)",
        millis(per_mib),
        millis(function.warm_seconds),
        millis(function.cold_seconds)
    );
    let limits = format!(
        "answers of {}, {} s, {} calls at a time, {} of memory",
        size::show(function.max_answer_bytes),
        function.max_seconds,
        function.concurrency,
        size::show(function.memory_bytes)
    );
    (times, limits)
}
