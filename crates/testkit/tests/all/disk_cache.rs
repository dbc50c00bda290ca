//! Reads through the cache on local disk: the same cells, and only the requests that are needed.

mod processes;
mod trouble;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyperslab::{
    Array, ArraySpec, Compression, DataType, DiskCacheOptions, FunctionClient, Mode, Options,
    Profile, Session, Shape,
};
use hyperslab_sim::{FunctionConfig, FunctionModel, SimConfig};
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, run, same};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SIDES: [u64; 2] = [64, 64];
const HOUR: Duration = Duration::from_secs(3600);

/// A name, the sides of shards (none: plain chunks), and the compression.
type Layout = (&'static str, &'static [u64], Compression);

static LAYOUTS: [Layout; 4] = [
    ("raw", &[], Compression::None),
    ("packed", &[], Compression::Default),
    ("shards", &[32, 32], Compression::Default),
    ("raw-shards", &[32, 32], Compression::None),
];

/// The cells of every array; `salt` makes them others.
fn model(salt: u32) -> Model {
    let cells: Vec<u8> = (0..64 * 64u32)
        .flat_map(|i| (i.wrapping_mul(2_654_435_761) ^ salt).to_le_bytes())
        .collect();
    let mut model = Model::new(&SIDES, &[0; 4]);
    model.write(&Wanted::All, &cells);
    model
}

/// A simulator whose bucket anyone may read: sessions open it by a URL, as programs do.
struct Cloud {
    sim: SimPlace,
}

impl Cloud {
    fn start() -> Self {
        Cloud::with(None)
    }

    fn with(function: Option<FunctionConfig>) -> Self {
        let sim = SimPlace::start(SimConfig {
            public_buckets: vec!["suite".into()],
            function,
            ..SimConfig::default()
        });
        Cloud { sim: sim.unwrap() }
    }

    /// The URL of an array, for sessions that only read.
    fn url(&self, name: &str) -> String {
        let (endpoint, region) = (self.sim.sim().endpoint(), self.sim.sim().region());
        format!("s3://suite/cached.zarr/{name}?endpoint={endpoint}&region={region}&anonymous=true")
    }

    /// Makes an array and writes all its cells, over one that is there.
    async fn write(&self, layout: &Layout, salt: u32) -> Outcome<Model> {
        let (name, shards, compression) = layout;
        let session = Session::default();
        let root = self.sim.s3().mount(&session, "cached.zarr")?;
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::Int(4));
        spec.chunks = Some(vec![16, 16]);
        spec.shards = Some(shards.to_vec());
        spec.compression = compression.clone();
        let url = format!("{root}/{name}");
        let array = session.create_array(&url, spec, true).await?;
        let model = model(salt);
        let all = Wanted::All.selection(2)?;
        array.write(&all, model.cells().to_vec()).await?;
        Ok(model)
    }

    /// Opens an array in a new session, and counts from zero.
    async fn open(&self, layout: &Layout, options: Options) -> Outcome<Array> {
        let array = Session::new(options)
            .open_array(&self.url(layout.0))
            .await?;
        self.sim.sim().reset_meter();
        Ok(array)
    }

    /// GET and HEAD requests, and bytes, since the last look.
    fn asked(&self) -> (u64, u64, u64) {
        let meter = self.sim.sim().meter();
        self.sim.sim().reset_meter();
        (meter.get, meter.head, meter.bytes_out)
    }
}

fn cached(dir: &Path, fresh: Duration) -> Options {
    bounded(dir, 64 << 20, fresh)
}

fn bounded(dir: &Path, bytes: u64, fresh: Duration) -> Options {
    Options {
        disk_cache: Some(DiskCacheOptions {
            dir: dir.to_owned(),
            bytes,
        }),
        cache_fresh: fresh,
        ..Options::default()
    }
}

async fn check(array: &Array, model: &Model, wanted: &Wanted) -> Outcome {
    let found = array.read(&wanted.selection(2)?).await?;
    ensure(found == model.read(wanted), || {
        format!("{}: wrong cells of {wanted:?}", array.url())
    })
}

#[test]
fn what_was_read_before_is_not_fetched_again() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let model = cloud.write(layout, 1).await?;
            // Two rows of chunks, or one of shards.
            let wanted = Wanted::region(&[3, 5], &[20, 40]);
            let objects = if layout.1.is_empty() { 2 * 3 } else { 2 };
            let array = cloud.open(layout, cached(dir.path(), HOUR)).await?;
            check(&array, &model, &wanted).await?;
            let (gets, heads, bytes) = cloud.asked();
            ensure(gets >= objects && heads == 0 && bytes > 0, || {
                format!("{}: {gets} gets, {heads} heads at first", layout.0)
            })?;
            check(&array, &model, &wanted).await?;
            same("the same session again", cloud.asked(), (0, 0, 0))?;
            let again = cloud.open(layout, cached(dir.path(), HOUR)).await?;
            check(&again, &model, &wanted).await?;
            same(layout.0, cloud.asked(), (0, 0, 0))?;
            // Without a time for which it is fresh, each object is asked for its ETag.
            let careful = cloud
                .open(layout, cached(dir.path(), Duration::ZERO))
                .await?;
            check(&careful, &model, &wanted).await?;
            same(layout.0, cloud.asked(), (0, objects, 0))?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_memory_of_a_session_holds_bytes_in_the_same_way() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let model = cloud.write(layout, 1).await?;
            let options = Options {
                cache_bytes: 1 << 20,
                cache_fresh: HOUR,
                ..Options::default()
            };
            let array = cloud.open(layout, options).await?;
            check(&array, &model, &Wanted::region(&[3, 5], &[20, 40])).await?;
            cloud.asked();
            check(&array, &model, &Wanted::region(&[4, 9], &[10, 30])).await?;
            same(layout.0, cloud.asked(), (0, 0, 0))?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_overlapping_box_fetches_only_what_is_missing() {
    let cloud = Cloud::start();
    run(async {
        let dir = tempfile::tempdir()?;
        let layout = &LAYOUTS[0];
        let model = cloud.write(layout, 1).await?;
        let options = Options {
            planner: Mode::RangeFetch,
            ..cached(dir.path(), HOUR)
        };
        let array = cloud.open(layout, options).await?;
        let rows = |from, many| Wanted::region(&[from, 0], &[many, 64]);
        let row = 64 * 4;
        check(&array, &model, &rows(0, 8)).await?;
        same("8 rows", cloud.asked().2, 8 * row)?;
        let explained = array.explain(&rows(4, 8).selection(2)?).await?;
        same("cached", explained.cached, 4 * row)?;
        same("useful", explained.useful, 8 * row)?;
        same("planned", explained.estimate.bytes, 4 * row)?;
        check(&array, &model, &rows(4, 8)).await?;
        same("4 of 8 rows are there", cloud.asked().2, 4 * row)?;
        check(&array, &model, &rows(1, 10)).await?;
        same("all rows are there", cloud.asked(), (0, 0, 0))?;
        // Every other row of twelve is there; what lies between is not fetched with the rest.
        check(&array, &model, &Wanted::region(&[10, 0], &[4, 64])).await?;
        same("2 of 4 rows are there", cloud.asked().2, 2 * row)?;
        // Of a shard, one inner chunk is there with the index: the next one alone is fetched.
        let layout = &LAYOUTS[3];
        let model = cloud.write(layout, 1).await?;
        for (columns, asked) in [(16, 2), (32, 1), (32, 0)] {
            let options = Options {
                planner: Mode::RangeFetch,
                profile: Some(near()),
                frozen: true,
                ..cached(dir.path(), HOUR)
            };
            let array = cloud.open(layout, options).await?;
            check(&array, &model, &Wanted::region(&[0, 0], &[16, columns])).await?;
            let (gets, _, bytes) = cloud.asked();
            same("requests for the index and an inner chunk", gets, asked)?;
            ensure(bytes < 2 * 16 * 16 * 4, || {
                format!("{bytes} bytes for one inner chunk")
            })?;
        }
        Ok(())
    })
    .unwrap();
}

/// Requests take no time there, so that a shard's index is worth one.
fn near() -> Arc<Profile> {
    let mut profile = Profile::built_in("aws").unwrap();
    profile.network.latency_seconds = 1e-6;
    profile.network.request_seconds = 0.0;
    Arc::new(profile)
}

#[test]
fn a_replaced_object_is_read_anew() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let model = cloud.write(layout, 1).await?;
            let array = cloud
                .open(layout, cached(dir.path(), Duration::ZERO))
                .await?;
            let part = Wanted::region(&[3, 5], &[20, 40]);
            check(&array, &model, &part).await?;
            let model = cloud.write(layout, 2).await?;
            check(&array, &model, &part).await?;
            // Half of what is wanted is cached, of another state than the rest would be.
            let model = cloud.write(layout, 3).await?;
            check(&array, &model, &Wanted::region(&[10, 0], &[30, 64])).await?;
            let again = cloud.open(layout, cached(dir.path(), HOUR)).await?;
            check(&again, &model, &Wanted::region(&[10, 0], &[30, 64])).await?;
            same(layout.0, cloud.asked(), (0, 0, 0))?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_removed_object_is_the_fill_value() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let model = cloud.write(layout, 1).await?;
            let array = cloud
                .open(layout, cached(dir.path(), Duration::ZERO))
                .await?;
            check(&array, &model, &Wanted::All).await?;
            let objects = cloud.sim.sim().objects(cloud.sim.bucket())?;
            let prefix = format!("cached.zarr/{}/c/", layout.0);
            for key in objects.keys().iter().filter(|key| key.starts_with(&prefix)) {
                objects.delete(key)?;
            }
            check(&array, &Model::new(&SIDES, &[0; 4]), &Wanted::All).await?;
        }
        Ok(())
    })
    .unwrap();
}

/// Two servers may have a bucket of one name.
#[test]
fn servers_are_told_apart() {
    let clouds = [Cloud::start(), Cloud::start()];
    run(async {
        let dir = tempfile::tempdir()?;
        for (salt, cloud) in clouds.iter().enumerate() {
            let model = cloud.write(&LAYOUTS[0], salt as u32).await?;
            let array = cloud.open(&LAYOUTS[0], cached(dir.path(), HOUR)).await?;
            check(&array, &model, &Wanted::All).await?;
        }
        Ok(())
    })
    .unwrap();
}

/// Random selections by every planner, through caches of every size, while the array changes.
#[test]
fn random_selections_equal_the_model() {
    let cloud = Cloud::start();
    run(async {
        let mut rng = StdRng::seed_from_u64(3);
        for (number, layout) in LAYOUTS.iter().cycle().take(12).enumerate() {
            let dir = tempfile::tempdir()?;
            let options = Options {
                planner: Mode::ALL[number % 5],
                profile: rng.random_bool(0.5).then(near),
                cache_bytes: if rng.random_bool(0.5) { 10_000 } else { 0 },
                ..bounded(dir.path(), 4096 << rng.random_range(0..8), Duration::ZERO)
            };
            let mut model = cloud.write(layout, 0).await?;
            let mut array = cloud.open(layout, options.clone()).await?;
            for step in 0..25 {
                match rng.random_range(0..10) {
                    0 => model = cloud.write(layout, step).await?,
                    1 => array = cloud.open(layout, options.clone()).await?,
                    _ => {}
                }
                check(&array, &model, &Wanted::random(&mut rng, &SIDES)).await?;
            }
        }
        Ok(())
    })
    .unwrap();
}

/// The function answers for whole objects: what is cached of them goes before, or is left alone.
#[test]
fn the_function_beside_the_cache_gives_the_same_cells() {
    let model = FunctionModel {
        alpha_millis_per_mib: 1.0,
        beta_millis: 1.0,
        cold_millis: 1.0,
        ..FunctionModel::preset("aws").unwrap()
    };
    let cloud = Cloud::with(Some(FunctionConfig {
        model,
        ..FunctionConfig::default()
    }));
    run(async {
        let url = cloud.sim.sim().function_url().unwrap_or_default();
        let client = Arc::new(FunctionClient::new(&url, None)?);
        let mut rng = StdRng::seed_from_u64(4);
        let mut calls = 0;
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let model = cloud.write(layout, 1).await?;
            for _ in 0..12 {
                for planner in [Mode::RangeFetch, Mode::Function, Mode::Global] {
                    let options = Options {
                        planner,
                        function: Some(client.clone()),
                        ..cached(dir.path(), HOUR)
                    };
                    let array = cloud.open(layout, options).await?;
                    check(&array, &model, &Wanted::random(&mut rng, &SIDES)).await?;
                    calls += cloud.sim.sim().meter().function.calls;
                }
            }
        }
        ensure(calls > 0, || "the function was never called".to_owned())
    })
    .unwrap();
}

/// Strings are of no fixed size, so their chunks are cached whole.
#[test]
fn strings_are_cached_too() {
    let cloud = Cloud::start();
    run(async {
        let session = Session::default();
        let root = cloud.sim.s3().mount(&session, "cached.zarr")?;
        let mut spec = ArraySpec::new(Shape::new([10])?, DataType::String);
        spec.chunks = Some(vec![4]);
        spec.shards = Some(Vec::new());
        let array = session
            .create_array(&format!("{root}/names"), spec, true)
            .await?;
        let names: Vec<bytes::Bytes> = (0..10).map(|i| format!("name {i}").into()).collect();
        let all = hyperslab::Selection::All;
        array.write_strings(&all, names.clone()).await?;
        let dir = tempfile::tempdir()?;
        let layout = ("names", &[] as &[u64], Compression::Default);
        for expected in [3, 0] {
            let array = cloud.open(&layout, cached(dir.path(), HOUR)).await?;
            same("names", array.read_strings(&all).await?, names.clone())?;
            same("requests", cloud.asked().0, expected)?;
        }
        Ok(())
    })
    .unwrap();
}
