//! Random cells that are canonical for their data type, so that they come back bit for bit.

use hyperslab::DataType;
use rand::rngs::StdRng;
use rand::{Rng, RngCore};

/// The bytes of one cell.
pub(super) fn random_cell(rng: &mut StdRng, dtype: &DataType) -> Vec<u8> {
    let size = dtype.cell_bytes().unwrap_or(0) as usize;
    match dtype {
        DataType::Bool => vec![rng.random_range(0..2)],
        DataType::FixedUtf32(n) => {
            let len = rng.random_range(0..=*n);
            let mut bytes: Vec<u8> = (0..len)
                .flat_map(|_| u32::from(rng.random_range('!'..'\u{d7ff}')).to_le_bytes())
                .collect();
            bytes.resize(size, 0);
            bytes
        }
        DataType::FixedBytes(n) => {
            let len = rng.random_range(0..=*n);
            let mut bytes: Vec<u8> = (0..len).map(|_| rng.random_range(1..=255)).collect();
            bytes.resize(size, 0);
            bytes
        }
        DataType::Struct(fields) => fields
            .iter()
            .flat_map(|field| random_cell(rng, &field.dtype))
            .collect(),
        // Any bits are a number: NaN payloads and negative zeros included.
        _ => {
            let mut bytes = vec![0; size];
            rng.fill_bytes(&mut bytes);
            bytes
        }
    }
}

/// So many cells; now and then all are the fill value, which is stored in another way.
pub(super) fn random_cells(
    rng: &mut StdRng,
    dtype: &DataType,
    fill: &[u8],
    count: usize,
) -> Vec<u8> {
    if rng.random_bool(0.1) {
        return fill.repeat(count);
    }
    // Repeats are what compressors look for.
    let few: Vec<Vec<u8>> = (0..5).map(|_| random_cell(rng, dtype)).collect();
    let repeats = rng.random_bool(0.5);
    (0..count)
        .flat_map(|_| match repeats {
            true => few[rng.random_range(0..few.len())].clone(),
            false => random_cell(rng, dtype),
        })
        .collect()
}
