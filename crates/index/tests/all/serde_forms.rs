//! What is read back is checked like what is built.

use hyperslab_index::{Hyperslab, Region, Shape};

#[test]
fn shapes_are_plain_lists() {
    let shape = Shape::new([3, 4]).unwrap();
    assert_eq!(serde_json::to_string(&shape).unwrap(), "[3,4]");
    assert_eq!(serde_json::from_str::<Shape>("[3,4]").unwrap(), shape);
    assert_eq!(serde_json::from_str::<Shape>("[]").unwrap().num_cells(), 1);
    let error = serde_json::from_str::<Shape>("[4294967296,4294967296]").unwrap_err();
    assert!(error.to_string().contains("too many cells"), "{error}");
    assert!(serde_json::from_str::<Shape>("[-1]").is_err());
}

#[test]
fn regions_and_hyperslabs_come_back_as_they_were() {
    let region = Region::new([1, 2], [3, 4]).unwrap();
    let text = serde_json::to_string(&region).unwrap();
    assert_eq!(text, r#"{"start":[1,2],"shape":[3,4]}"#);
    assert_eq!(serde_json::from_str::<Region>(&text).unwrap(), region);
    assert!(serde_json::from_str::<Region>(r#"{"start":[1],"shape":[3,4]}"#).is_err());

    let slab = Hyperslab::new(&[1, 0], &[4, 2], &[3, 5], &[2, 1]).unwrap();
    let text = serde_json::to_string(&slab).unwrap();
    assert_eq!(serde_json::from_str::<Hyperslab>(&text).unwrap(), slab);
    let overlap = r#"[{"start":0,"stride":1,"count":2,"block":5}]"#;
    assert!(serde_json::from_str::<Hyperslab>(overlap).is_err());
}
