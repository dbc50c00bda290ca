//! `demo`: the engine against a simulated cloud, in about a minute and without any account.

use std::time::{Duration, Instant};

use clap::Args;
use hyperslab::{
    Array, ArraySpec, Compression, DataType, Error, Mode, Options, Region, Result, Selection,
    Session, Shape, store,
};
use hyperslab_sim::{Network, PriceBook, Sim, SimConfig, cell_value};
use serde_json::{Value, json};

use crate::context::Context;
use crate::size;
use crate::table::{Side, lay_out};

const SIDE: u64 = 8192;
const CHUNK: u64 = 512;
/// Rows that are written at a time: whole chunks, 32 MiB.
const SLAB: u64 = 1024;
const BUCKET: &str = "demo";
const URL: &str = "s3://demo/sky.zarr";

const EXAMPLES: &str = "Examples:
  hyperslab demo
  hyperslab demo --preset aws --seed 7
  hyperslab demo --json";

/// Show on a simulated cloud what reading only the needed bytes saves
///
/// Starts the simulated cloud in this process, writes 256 MiB, reads boxes of three shapes twice
/// (planned, and as whole chunks), checks every value, and prints time, requests, bytes and
/// dollars side by side. Nothing leaves this machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Network: bench, aws, azure, gcp, fast, local or unshaped
    #[arg(long, default_value = "bench")]
    preset: String,
    /// Seed of the places that are read
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Boxes of one shape.
struct Kind {
    name: &'static str,
    rows: u64,
    columns: u64,
    many: u64,
}

/// A hundredth of the array in rows, a hundredth in columns, and small boxes.
const KINDS: [Kind; 3] = [
    Kind {
        name: "horizontal",
        rows: 82,
        columns: SIDE,
        many: 10,
    },
    Kind {
        name: "vertical",
        rows: SIDE,
        columns: 82,
        many: 10,
    },
    Kind {
        name: "small",
        rows: 21,
        columns: 21,
        many: 100,
    },
];

/// What one way of reading took.
struct Cost {
    time: Duration,
    requests: u64,
    bytes: u64,
    dollars: f64,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let say = |text: &str| {
        if context.json {
            Ok(())
        } else {
            context.line(text)
        }
    };
    let book = match arguments.preset.as_str() {
        cloud @ ("azure" | "gcp") => PriceBook::built_in(cloud)?,
        _ => PriceBook::built_in("aws")?,
    };
    let prices = format!("{} of {}", book.name, book.date);
    let sim = Sim::start(SimConfig {
        buckets: vec![BUCKET.into()],
        network: Network::preset(&arguments.preset)?,
        prices: book,
        ..SimConfig::default()
    })
    .await?;
    say(&format!(
        "A simulated cloud listens at {} (network {:?}, prices {prices}).",
        sim.endpoint(),
        arguments.preset
    ))?;

    let planned = session(
        &sim,
        Options {
            memory: context.memory(),
            ..Options::default()
        },
    )?;
    let whole = session(
        &sim,
        Options {
            memory: context.memory(),
            planner: Mode::Get,
            ..Options::default()
        },
    )?;
    say(&format!(
        "Writing {SIDE} × {SIDE} int32 cells ({}) in {CHUNK} × {CHUNK} chunks …",
        size::show(SIDE * SIDE * 4)
    ))?;
    let begun = Instant::now();
    write(&planned).await?;
    say(&format!(
        "  {:.1} s, {} requests.",
        begun.elapsed().as_secs_f64(),
        size::count(sim.meter().requests())
    ))?;

    let mut rows = vec![header()];
    let mut results = Vec::new();
    for kind in &KINDS {
        say(&format!(
            "Reading {} {} boxes of {} × {}, planned and as whole chunks …",
            kind.many, kind.name, kind.rows, kind.columns
        ))?;
        let regions = regions(kind, arguments.seed)?;
        let lean = measure(&sim, &planned, &regions).await?;
        let full = measure(&sim, &whole, &regions).await?;
        rows.push(row(kind.name, "planned", &lean));
        rows.push(row("", "whole chunks", &full));
        rows.push(ratio(&lean, &full));
        results.push(json!({"kind": kind.name, "boxes": kind.many, "planned": cost_json(&lean), "whole_chunks": cost_json(&full)}));
    }
    sim.stop().await;
    let mut sides = vec![Side::Right; 6];
    sides[..2].fill(Side::Left);
    let text = format!(
        "\n{}\nEvery value was checked. Dollars are what {prices} asks for requests and traffic to the internet.",
        lay_out(&sides, &rows)
    );
    context.result(&text, || {
        json!({"preset": arguments.preset, "prices": prices, "seed": arguments.seed, "results": results, "checked": true})
    })?;
    Ok(true)
}

/// A session that reaches the simulated cloud, whatever this process' environment says.
fn session(sim: &Sim, options: Options) -> Result<Session> {
    let session = Session::new(options);
    let settings = store::Options::new()
        .with("endpoint", sim.endpoint())
        .with("region", sim.region())
        .with("access_key_id", sim.access_key())
        .with("secret_access_key", sim.secret_key())
        .with_environment(store::Environment::default());
    // The root, and the bucket above it in which a writer looks for a group to belong to.
    for url in [URL.to_owned(), format!("s3://{BUCKET}")] {
        let opened = store::open_with(&url, &settings)?;
        session.mount(&url, opened.store)?;
    }
    Ok(session)
}

async fn write(session: &Session) -> Result<()> {
    let mut spec = ArraySpec::new(Shape::new([SIDE, SIDE])?, DataType::Int(4));
    spec.chunks = Some(vec![CHUNK, CHUNK]);
    spec.shards = Some(Vec::new());
    spec.compression = Compression::None;
    let array = session.create_array(URL, spec, false).await?;
    for start in (0..SIDE).step_by(SLAB as usize) {
        let region = Region::new([start, 0], [SLAB, SIDE])?;
        let mut cells = Vec::with_capacity((SLAB * SIDE * 4) as usize);
        for index in start * SIDE..(start + SLAB) * SIDE {
            cells.extend_from_slice(&cell_value(index).to_le_bytes());
        }
        array.write(&Selection::region(&region), cells).await?;
    }
    Ok(())
}

/// Boxes at places that the seed decides.
fn regions(kind: &Kind, seed: u64) -> Result<Vec<Region>> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ kind.rows;
    // xorshift64*: any even spread will do.
    let mut below = |bound: u64| {
        state = state.max(1);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % (bound + 1)
    };
    (0..kind.many)
        .map(|_| {
            let start = [below(SIDE - kind.rows), below(SIDE - kind.columns)];
            Region::new(start, [kind.rows, kind.columns])
        })
        .collect()
}

/// Reads the boxes one after another through a freshly opened array, and checks every value.
async fn measure(sim: &Sim, session: &Session, regions: &[Region]) -> Result<Cost> {
    let array: Array = session.open_array(URL).await?;
    sim.reset_meter();
    let mut time = Duration::ZERO;
    for region in regions {
        let begun = Instant::now();
        let cells = array.read(&Selection::region(region)).await?;
        time += begun.elapsed();
        check(region, &cells)?;
    }
    let meter = sim.meter();
    Ok(Cost {
        time,
        requests: meter.requests(),
        bytes: meter.bytes_out,
        dollars: meter.dollars,
    })
}

fn check(region: &Region, cells: &[u8]) -> Result<()> {
    let (start, sides) = (region.start(), region.shape());
    let mut read = cells.chunks_exact(4);
    for row in start[0]..start[0] + sides[0] {
        for column in start[1]..start[1] + sides[1] {
            let expected = cell_value(row * SIDE + column).to_le_bytes();
            if read.next() != Some(&expected) {
                return Err(Error::internal(format!(
                    "the cell [{row}, {column}] came back wrong"
                )));
            }
        }
    }
    Ok(())
}

fn header() -> Vec<String> {
    ["boxes", "read as", "time", "requests", "bytes", "dollars"]
        .map(str::to_owned)
        .to_vec()
}

fn row(kind: &str, way: &str, cost: &Cost) -> Vec<String> {
    vec![
        kind.to_owned(),
        way.to_owned(),
        format!("{:.2} s", cost.time.as_secs_f64()),
        size::count(cost.requests),
        size::show(cost.bytes),
        format!("${:.6}", cost.dollars),
    ]
}

fn ratio(lean: &Cost, full: &Cost) -> Vec<String> {
    let times = |full: f64, lean: f64| match lean > 0.0 {
        true => format!("{:.1}×", full / lean),
        false => "–".to_owned(),
    };
    vec![
        String::new(),
        "ratio".to_owned(),
        times(full.time.as_secs_f64(), lean.time.as_secs_f64()),
        times(full.requests as f64, lean.requests as f64),
        times(full.bytes as f64, lean.bytes as f64),
        times(full.dollars, lean.dollars),
    ]
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "seconds": cost.time.as_secs_f64(),
        "requests": cost.requests,
        "bytes": cost.bytes,
        "dollars": cost.dollars,
    })
}
