//! Strings and byte strings of any length.

use bytes::Bytes;
use hyperslab::{ArraySpec, Compression, DataType, ErrorKind, FillValue, Options, Shape};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::fresh;
use crate::model::coords;
use crate::servers::Place;
use crate::{Outcome, Wanted, fails, same, within};

pub(super) async fn check(place: &Place) -> Outcome {
    for dtype in [DataType::String, DataType::VarBytes] {
        for (shards, order) in [
            (vec![], None),
            (vec![6, 8], None),
            (vec![], Some(vec![1, 0])),
        ] {
            for compression in [Compression::None, Compression::Default] {
                let name = format!("{dtype}, shards {shards:?}, order {order:?}, {compression:?}");
                let mut spec = ArraySpec::new(Shape::new([7, 9])?, dtype.clone());
                spec.chunks = Some(vec![3, 4]);
                spec.shards = Some(shards.clone());
                spec.order = order.clone();
                spec.compression = compression;
                within(name, check_one(place, spec)).await?;
            }
        }
    }
    Ok(())
}

fn random_text(rng: &mut StdRng) -> Bytes {
    let len = [0, 1, 3, 40][rng.random_range(0..4)];
    let text: String = (0..len)
        .map(|_| ['a', '0', ' ', 'é', '日', '🦀', '\0'][rng.random_range(0..7)])
        .collect();
    Bytes::from(text)
}

async fn check_one(place: &Place, mut spec: ArraySpec) -> Outcome {
    let fill = Bytes::from("n/a");
    let text = spec.dtype == DataType::String;
    let json = if text { json!("n/a") } else { json!("bi9h") };
    spec.fill = Some(FillValue::from_json(&spec.dtype, &json)?);
    let (session, url) = fresh(place, "strings.zarr", Options::default())?;
    let url = format!("{url}/strings");
    let array = session.create_array(&url, spec, true).await?;
    let mut model: Vec<Bytes> = vec![fill.clone(); 63];
    let place_of = |cell: &[u64]| (cell[0] * 9 + cell[1]) as usize;
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..4 {
        let wanted = Wanted::random(&mut rng, &[7, 9]);
        let cells = wanted.cells(&[7, 9]);
        let texts: Vec<Bytes> = cells.iter().map(|_| random_text(&mut rng)).collect();
        array
            .write_strings(&wanted.selection(2)?, texts.clone())
            .await?;
        for (cell, text) in cells.iter().zip(texts) {
            model[place_of(cell)] = text;
        }
        let wanted = Wanted::random(&mut rng, &[7, 9]);
        let expected: Vec<Bytes> = wanted
            .cells(&[7, 9])
            .iter()
            .map(|cell| model[place_of(cell)].clone())
            .collect();
        let again = session.open_array(&url).await?;
        same(
            "strings",
            again.read_strings(&wanted.selection(2)?).await?,
            expected,
        )?;
    }
    array.resize(&[4, 5]).await?;
    array.resize(&[7, 9]).await?;
    for cell in coords(&[7, 9]).filter(|cell| cell[0] >= 4 || cell[1] >= 5) {
        model[place_of(&cell)] = fill.clone();
    }
    same(
        "strings after resizes",
        array.read_strings(&hyperslab::Selection::All).await?,
        model,
    )?;
    fails(
        "numbers of strings",
        array.read(&hyperslab::Selection::All).await,
        ErrorKind::Invalid,
    )?;
    if text {
        let broken = vec![Bytes::from_static(b"\xff"); 63];
        let result = array
            .write_strings(&hyperslab::Selection::All, broken)
            .await;
        fails("text that is not UTF-8", result, ErrorKind::Invalid)?;
    }
    Ok(())
}
