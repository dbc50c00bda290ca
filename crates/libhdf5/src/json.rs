//! Attributes from JSON: numbers, booleans and texts, alone or in regular lists, become attributes of
//! such types; everything else is kept as JSON in a text.

use std::ffi::{CString, c_char, c_void};

use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_NULL, H5Screate};
use hdf5_metno_sys::h5t::{H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I64LE, H5T_STD_U64LE};
use hyperslab_index::{Error, Result};
use serde_json::Value;

use crate::handle::{Id, c_name, check, space};
use crate::types;

/// Every integer up to this one is a float.
const EXACT: f64 = (1u64 << 53) as f64;

/// Elements of one type.
#[derive(Debug, PartialEq)]
enum Elements {
    Booleans(Vec<u8>),
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Floats(Vec<f64>),
    Texts(Vec<CString>),
}

/// Gives an object an attribute.
pub(crate) fn write_attribute(object: &Id, name: &str, value: &Value) -> Result<()> {
    let written = match value {
        Value::Null => {
            let datatype = types::predefined(*H5T_IEEE_F32LE)?;
            // SAFETY: a dataspace without elements.
            let space = Id::new(unsafe { H5Screate(H5S_NULL) }, "make a dataspace")?;
            create(object, name, &datatype, &space).map(drop)
        }
        value => {
            let (dims, elements) = match regular(value) {
                Some(found) => found,
                None => (Vec::new(), Elements::Texts(vec![as_text(value)?])),
            };
            write_elements(object, name, &dims, &elements)
        }
    };
    written.map_err(|e| e.context(format!("the attribute {name:?}")))
}

fn as_text(value: &Value) -> Result<CString> {
    let text = value.to_string();
    CString::new(text).map_err(|_| Error::internal("JSON has a zero byte"))
}

/// The shape of regular lists (none for a single value) and their elements, if all have one type.
fn regular(value: &Value) -> Option<(Vec<u64>, Elements)> {
    let mut dims = Vec::new();
    let mut at = value;
    while let Value::Array(list) = at {
        dims.push(list.len() as u64);
        match list.first() {
            Some(first) => at = first,
            None => break,
        }
    }
    let mut leaves = Vec::new();
    gather(value, &dims, &mut leaves)?;
    let elements = elements(&leaves)?;
    Some((dims, elements))
}

/// Collects the leaves of lists of these lengths.
fn gather<'a>(value: &'a Value, dims: &[u64], leaves: &mut Vec<&'a Value>) -> Option<()> {
    match (dims, value) {
        ([], Value::Array(_)) => None,
        ([], leaf) => {
            leaves.push(leaf);
            Some(())
        }
        ([length, inner @ ..], Value::Array(list)) if list.len() as u64 == *length => {
            list.iter().try_for_each(|each| gather(each, inner, leaves))
        }
        _ => None,
    }
}

fn elements(leaves: &[&Value]) -> Option<Elements> {
    fn all<T>(leaves: &[&Value], of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        leaves.iter().map(|leaf| of(leaf)).collect()
    }
    if let Some(values) = all(leaves, Value::as_i64) {
        return Some(Elements::Signed(values));
    }
    if let Some(values) = all(leaves, Value::as_u64) {
        return Some(Elements::Unsigned(values));
    }
    // Integers that a float cannot tell apart are left as they are written.
    let float = |leaf: &Value| leaf.as_f64().filter(|n| leaf.is_f64() || n.abs() <= EXACT);
    if let Some(values) = all(leaves, float) {
        return Some(Elements::Floats(values));
    }
    if let Some(values) = all(leaves, |leaf| leaf.as_bool().map(u8::from)) {
        return Some(Elements::Booleans(values));
    }
    // A text with a zero byte would end there; JSON writes it in another way.
    let text = |leaf: &Value| CString::new(leaf.as_str()?).ok();
    all(leaves, text).map(Elements::Texts)
}

fn create(object: &Id, name: &str, datatype: &Id, space: &Id) -> Result<Id> {
    let name = c_name(name)?;
    // SAFETY: all identifiers are open.
    let made = unsafe {
        H5Acreate2(
            object.get(),
            name.as_ptr(),
            datatype.get(),
            space.get(),
            H5P_DEFAULT,
            H5P_DEFAULT,
        )
    };
    Id::new(made, "make it")
}

fn write_elements(object: &Id, name: &str, dims: &[u64], elements: &Elements) -> Result<()> {
    let datatype = match elements {
        Elements::Booleans(_) => types::boolean()?,
        Elements::Signed(_) => types::predefined(*H5T_STD_I64LE)?,
        Elements::Unsigned(_) => types::predefined(*H5T_STD_U64LE)?,
        Elements::Floats(_) => types::predefined(*H5T_IEEE_F64LE)?,
        Elements::Texts(_) => types::text()?,
    };
    let space = space(dims)?;
    let made = create(object, name, &datatype, &space)?;
    if dims.contains(&0) {
        return Ok(());
    }
    let pointers: Vec<*const c_char> = match elements {
        Elements::Texts(texts) => texts.iter().map(|text| text.as_ptr()).collect(),
        _ => Vec::new(),
    };
    let cells: *const c_void = match elements {
        Elements::Booleans(values) => values.as_ptr().cast(),
        Elements::Signed(values) => values.as_ptr().cast(),
        Elements::Unsigned(values) => values.as_ptr().cast(),
        Elements::Floats(values) => values.as_ptr().cast(),
        Elements::Texts(_) => pointers.as_ptr().cast(),
    };
    // SAFETY: as many elements of that type as the dataspace has, which the pointer leads to.
    check(
        unsafe { H5Awrite(made.get(), datatype.get(), cells) },
        "write it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_one_type_are_told_from_others() {
        assert_eq!(
            regular(&json!(7)),
            Some((vec![], Elements::Signed(vec![7])))
        );
        assert_eq!(
            regular(&json!([[1, 2], [3, 4]])),
            Some((vec![2, 2], Elements::Signed(vec![1, 2, 3, 4])))
        );
        assert_eq!(
            regular(&json!([1, 2.5])),
            Some((vec![2], Elements::Floats(vec![1.0, 2.5])))
        );
        assert_eq!(
            regular(&json!([u64::MAX, 1])),
            Some((vec![2], Elements::Unsigned(vec![u64::MAX, 1])))
        );
        assert_eq!(
            regular(&json!([true, false])),
            Some((vec![2], Elements::Booleans(vec![1, 0])))
        );
        assert_eq!(
            regular(&json!([])),
            Some((vec![0], Elements::Signed(vec![])))
        );
        assert_eq!(regular(&json!([[1, 2], [3]])), None);
        assert_eq!(regular(&json!([1, [2]])), None);
        assert_eq!(regular(&json!([1, "a"])), None);
        assert_eq!(regular(&json!([-1, u64::MAX])), None);
        assert_eq!(regular(&json!({"a": 1})), None);
        assert_eq!(regular(&json!("a\0b")), None);
    }
}
