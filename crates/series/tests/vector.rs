//! The bytes of SPEC, "series", by example.

use counterfoil_series::{Kind, Leaf, Points, Value, pack};

#[test]
fn a_leaf_is_what_the_specification_says() {
    let mut points = Points::new(&[Kind::Double]);
    for (time, value) in [(1000, Some(1.5)), (2000, Some(2.5)), (3000, None)] {
        points.push(time, [value.map(Value::Double)]);
    }
    let packed = pack(7, &points, 0..3, 3, 64).expect("fits");
    let hex: String = packed.payload[..packed.bytes].iter().map(|byte| format!("{byte:02X}")).collect();
    assert!(packed.payload[packed.bytes..].iter().all(|byte| *byte == 0));
    let spec = include_str!("../../../SPEC.md");
    assert!(spec.contains(&format!("`{hex}`")), "the vector of SPEC, series, is `{hex}`");
    let mut found = Points::new(&[Kind::Double]);
    Leaf::new(&packed.payload).expect("a leaf").read(&mut found).expect("points");
    assert_eq!(found, points);
}
