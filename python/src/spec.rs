//! New arrays as Python describes them: a JSON object.

use hyperslab::{ArraySpec, Compression, Error, FillValue, Result, Shape, numpy};
use serde_json::Value;

/// What is said of a new array; `fill` is one cell of it, unless its cells have no fixed size.
pub(crate) fn parse(text: &str, fill: Option<&[u8]>) -> Result<ArraySpec> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| Error::internal(format!("a description of an array is no JSON: {e}")))?;
    let shape = Shape::new(sides(&value, "shape")?.unwrap_or_default())?;
    let dtype = match value.get("dtype") {
        Some(Value::String(name)) => numpy::parse_dtype(name)?,
        Some(other) => numpy::parse_dtype(&other.to_string())?,
        None => return Err(Error::invalid("a new array needs a data type")),
    };
    let mut spec = ArraySpec::new(shape, dtype.dtype);
    spec.big_endian = !dtype.big_endian.is_empty();
    lay_out_as(&mut spec, &value)?;
    spec.fill = match (fill, value.get("fill_value")) {
        (Some(cell), _) => Some(FillValue::from_bytes(&spec.dtype, cell)?),
        (None, None | Some(Value::Null)) => None,
        (None, Some(value)) => Some(FillValue::from_json(&spec.dtype, value)?),
    };
    if let Some(Value::Object(attributes)) = value.get("attributes") {
        spec.attributes = attributes.clone();
    }
    if let Some(Value::Array(names)) = value.get("dimension_names") {
        let name = |name: &Value| name.as_str().map(str::to_owned);
        spec.dimension_names = Some(names.iter().map(name).collect());
    }
    Ok(spec)
}

/// Lays out a new array as a description says.
pub(crate) fn lay_out(spec: &mut ArraySpec, text: &str) -> Result<()> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| Error::internal(format!("a description of a layout is no JSON: {e}")))?;
    lay_out_as(spec, &value)
}

fn lay_out_as(spec: &mut ArraySpec, value: &Value) -> Result<()> {
    spec.chunks = sides(value, "chunks")?;
    spec.shards = sides(value, "shards")?;
    spec.order = sides(value, "order")?.map(|order| order.iter().map(|d| *d as usize).collect());
    spec.compression = codecs(value.get("compression"))?;
    Ok(())
}

/// Compression as Python spells it.
pub(crate) fn codecs(value: Option<&Value>) -> Result<Compression> {
    Ok(match value {
        None | Some(Value::Null) => Compression::Default,
        Some(Value::Array(codecs)) if codecs.is_empty() => Compression::None,
        Some(Value::Array(codecs)) => Compression::Codecs(codecs.clone()),
        Some(Value::Object(map)) => match map.get("chain").and_then(Value::as_array) {
            Some(chain) => Compression::Chain(chain.clone()),
            None => Compression::Codecs(vec![Value::Object(map.clone())]),
        },
        Some(other) => {
            return Err(Error::invalid(format!("{other} is no list of codecs")));
        }
    })
}

/// A list of whole numbers.
pub(crate) fn sides(value: &Value, name: &str) -> Result<Option<Vec<u64>>> {
    let wrong = || {
        Error::invalid(format!(
            "{name} has to be a list of whole numbers from 0 up"
        ))
    };
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => {
            let sides: Option<Vec<u64>> = list.iter().map(Value::as_u64).collect();
            sides.map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}
