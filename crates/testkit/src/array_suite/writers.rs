//! Writers at the same time: none loses another's cells, or another's rows.

use futures::future::try_join_all;
use hyperslab::{ArraySpec, Compression, DataType, Options, Shape};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{check_all, fresh};
use crate::servers::Place;
use crate::{Model, Outcome, Wanted, ensure, same, within};

pub(super) async fn check(place: &Place, writers: u64, writes: u64) -> Outcome {
    within(
        "one plain chunk",
        check_chunk(place, vec![], writers, writes),
    )
    .await?;
    within(
        "one shard",
        check_chunk(place, vec![writers, 10], writers, writes),
    )
    .await?;
    within("appends", check_appends(place)).await
}

/// Every task writes cells of its own row of one object, again and again.
async fn check_chunk(place: &Place, shards: Vec<u64>, writers: u64, writes: u64) -> Outcome {
    let (session, url) = fresh(place, "writers.zarr", Options::default())?;
    let url = format!("{url}/chunk");
    let sharded = !shards.is_empty();
    let mut spec = ArraySpec::new(Shape::new([writers, 10])?, DataType::Int(4));
    spec.chunks = Some(if sharded {
        vec![1, 5]
    } else {
        vec![writers, 10]
    });
    spec.shards = Some(shards);
    session.create_array(&url, spec, true).await?;
    let tasks = (0..writers).map(|row| {
        let (place, url) = (place.clone(), url.clone());
        tokio::spawn(async move {
            let (session, _) = fresh(&place, "writers.zarr", Options::default())?;
            let array = session.open_array(&url).await?;
            let mut rng = StdRng::seed_from_u64(row);
            let mut mine = Vec::new();
            for number in 0..writes {
                let start = rng.random_range(0..10);
                let width = rng.random_range(1..=10 - start);
                let wanted = Wanted::region(&[row, start], &[1, width]);
                let cells = (row as i32 * 1000 + number as i32 + 1)
                    .to_le_bytes()
                    .repeat(width as usize);
                array.write(&wanted.selection(2)?, cells.clone()).await?;
                mine.push((wanted, cells));
            }
            Outcome::Ok(mine)
        })
    });
    let mut model = Model::new(&[writers, 10], &[0; 4]);
    for mine in try_join_all(tasks).await? {
        for (wanted, cells) in mine? {
            model.write(&wanted, &cells);
        }
    }
    check_all(&session.open_array(&url).await?, &model).await
}

/// Tasks that append get ranges of their own.
async fn check_appends(place: &Place) -> Outcome {
    const TASKS: u8 = 4;
    const TIMES: u8 = 5;
    let (session, url) = fresh(place, "writers.zarr", Options::default())?;
    let url = format!("{url}/log");
    let mut spec = ArraySpec::new(Shape::new([0, 3])?, DataType::UInt(1));
    spec.chunks = Some(vec![4, 3]);
    spec.compression = Compression::None;
    session.create_array(&url, spec, true).await?;
    let tasks = (0..TASKS).map(|task| {
        let (place, url) = (place.clone(), url.clone());
        tokio::spawn(async move {
            let (session, _) = fresh(&place, "writers.zarr", Options::default())?;
            let array = session.open_array(&url).await?;
            for number in 0..TIMES {
                array.append(0, vec![task * TIMES + number + 1; 6]).await?;
            }
            Outcome::Ok(())
        })
    });
    for done in try_join_all(tasks).await? {
        done?;
    }
    let array = session.open_array(&url).await?;
    let pieces = u64::from(TASKS * TIMES);
    same("shape", array.shape().to_vec(), vec![2 * pieces, 3])?;
    let cells = array.read(&hyperslab::Selection::All).await?;
    let mut found: Vec<u8> = Vec::new();
    for piece in cells.chunks(6) {
        ensure(piece.iter().all(|cell| *cell == piece[0]), || {
            format!("two appends overlap: {cells:?}")
        })?;
        found.push(piece[0]);
    }
    found.sort_unstable();
    same("appended pieces", found, (1..=TASKS * TIMES).collect())
}
