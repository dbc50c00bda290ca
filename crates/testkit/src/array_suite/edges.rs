//! Shapes and values at the edge of what there is: scalars, empty sides, NaN, nothing but fill.

use hyperslab::{
    ArraySpec, Compression, DataType, ErrorKind, FillValue, Options, Selection, Session, Shape,
    numpy,
};
use serde_json::json;

use super::{check_all, fresh};
use crate::servers::Place;
use crate::{Model, Outcome, Wanted, ensure, fails, same, within};

pub(super) async fn check(place: &Place) -> Outcome {
    let (session, url) = fresh(place, "edges.zarr", Options::default())?;
    within("scalar", check_scalar(&session, &format!("{url}/scalar"))).await?;
    within("empty sides", check_empty_sides(&session, &url)).await?;
    within("NaN", check_nan(&session, &format!("{url}/nan"))).await?;
    within("fill", check_fill_is_not_stored(&session, &url)).await?;
    within("wrong calls", check_wrong_calls(&session, &url)).await
}

fn spec(sides: &[u64], chunks: &[u64], dtype: &str) -> Outcome<ArraySpec> {
    let mut spec = ArraySpec::new(
        Shape::new(sides.iter().copied())?,
        numpy::parse_dtype(dtype)?.dtype,
    );
    spec.chunks = Some(chunks.to_vec());
    Ok(spec)
}

async fn check_scalar(session: &Session, url: &str) -> Outcome {
    let array = session
        .create_array(url, spec(&[], &[], "f8")?, false)
        .await?;
    let mut model = Model::new(&[], &[0; 8]);
    check_all(&array, &model).await?;
    let cell = 2.5f64.to_le_bytes();
    array.write(&Selection::All, cell.to_vec()).await?;
    model.write(&Wanted::All, &cell);
    check_all(&session.open_array(url).await?, &model).await?;
    same("stored objects", array.stored().await?.objects, 1)
}

async fn check_empty_sides(session: &Session, url: &str) -> Outcome {
    for (name, sides) in [("rows", [0, 5]), ("columns", [3, 0]), ("both", [0, 0])] {
        let url = format!("{url}/empty-{name}");
        let array = session
            .create_array(&url, spec(&sides, &[2, 2], "i4")?, false)
            .await?;
        array.write(&Selection::All, Vec::new()).await?;
        let mut model = Model::new(&sides, &[0; 4]);
        check_all(&array, &model).await?;
        array.resize(&[3, 5]).await?;
        model = model.resized(&[3, 5]);
        let cells: Vec<u8> = (0..60).collect();
        array.write(&Selection::All, cells.clone()).await?;
        model.write(&Wanted::All, &cells);
        check_all(&session.open_array(&url).await?, &model).await?;
        array.resize(&sides).await?;
        same(
            "objects of an empty array",
            array.stored().await?.objects,
            0,
        )?;
        array.resize(&[3, 5]).await?;
        check_all(&array, &Model::new(&[3, 5], &[0; 4])).await?;
    }
    Ok(())
}

async fn check_nan(session: &Session, url: &str) -> Outcome {
    for (name, bits) in [
        ("plain", 0x7fc0_0000u32),
        ("payload", 0xffc0_1234),
        ("signalling", 0x7f80_0001),
    ] {
        let url = format!("{url}-{name}");
        let mut spec = spec(&[5, 5], &[2, 5], "f4")?;
        spec.fill = Some(FillValue::from_bytes(
            &DataType::Float(4),
            &bits.to_le_bytes(),
        )?);
        let array = session.create_array(&url, spec, false).await?;
        let mut model = Model::new(&[5, 5], &bits.to_le_bytes());
        let row = Wanted::region(&[1, 1], &[1, 2]);
        array.write(&row.selection(2)?, vec![1; 8]).await?;
        model.write(&row, &[1; 8]);
        check_all(&session.open_array(&url).await?, &model).await?;
        // A chunk of NaN is a chunk of fill values, although NaN is not equal to itself.
        array
            .write(&row.selection(2)?, bits.to_le_bytes().repeat(2))
            .await?;
        check_all(
            &session.open_array(&url).await?,
            &Model::new(&[5, 5], &bits.to_le_bytes()),
        )
        .await?;
    }
    Ok(())
}

async fn check_fill_is_not_stored(session: &Session, url: &str) -> Outcome {
    for (name, shards) in [("plain", vec![]), ("sharded", vec![4, 4])] {
        let url = format!("{url}/fill-{name}");
        let mut spec = spec(&[8, 8], &[2, 2], "u2")?;
        spec.shards = Some(shards);
        spec.compression = Compression::None;
        spec.fill = Some(FillValue::from_json(&DataType::UInt(2), &json!(513))?);
        let array = session.create_array(&url, spec, false).await?;
        let fill = Model::new(&[8, 8], &513u16.to_le_bytes());
        let corner = Wanted::region(&[0, 0], &[4, 4]);
        array.write(&corner.selection(2)?, vec![9; 32]).await?;
        ensure(array.stored().await?.objects > 0, || {
            "written chunks are not stored".into()
        })?;
        array.write(&Selection::All, fill.cells().to_vec()).await?;
        same(
            "objects that hold nothing but fill values",
            array.stored().await?.objects,
            0,
        )?;
        check_all(&session.open_array(&url).await?, &fill).await?;
    }
    Ok(())
}

/// Wrong calls say so, and change nothing.
async fn check_wrong_calls(session: &Session, url: &str) -> Outcome {
    let url = format!("{url}/wrong");
    let array = session
        .create_array(&url, spec(&[4, 4], &[2, 2], "u1")?, false)
        .await?;
    array.write(&Selection::All, (0..16).collect()).await?;
    let mut model = Model::new(&[4, 4], &[0]);
    model.write(&Wanted::All, &(0..16).collect::<Vec<u8>>());
    let outside = Wanted::region(&[3, 3], &[2, 1]).selection(2)?;
    let rank = Wanted::region(&[0], &[1]).selection(1)?;
    fails(
        "a read beyond the bounds",
        array.read(&outside).await,
        ErrorKind::Invalid,
    )?;
    fails(
        "a read of another rank",
        array.read(&rank).await,
        ErrorKind::Invalid,
    )?;
    fails(
        "a write beyond the bounds",
        array.write(&outside, vec![0; 2]).await,
        ErrorKind::Invalid,
    )?;
    fails(
        "too few cells",
        array.write(&Selection::All, vec![0; 15]).await,
        ErrorKind::Invalid,
    )?;
    fails(
        "strings of a number",
        array.read_strings(&Selection::All).await,
        ErrorKind::Invalid,
    )?;
    fails("another rank", array.resize(&[4]).await, ErrorKind::Invalid)?;
    fails(
        "a broken slice",
        array.append(0, vec![0; 3]).await,
        ErrorKind::Invalid,
    )?;
    fails(
        "no such axis",
        array.append(2, vec![0; 4]).await,
        ErrorKind::Invalid,
    )?;
    let below = session
        .create_array(&format!("{url}/below"), spec(&[1], &[1], "u1")?, false)
        .await;
    fails("an array below an array", below, ErrorKind::Invalid)?;
    fails(
        "an array as a group",
        session.open_group(&url).await,
        ErrorKind::Invalid,
    )?;
    let absent = session.open(&format!("{url}-absent")).await;
    let error = fails("an absent array", absent, ErrorKind::NotFound)?;
    ensure(error.hint().is_some(), || format!("no hint: {error}"))?;
    check_all(&session.open_array(&url).await?, &model).await
}
