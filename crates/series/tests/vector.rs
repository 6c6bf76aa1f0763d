//! The bytes of SPEC, "series", by example.

use counterfoil_series::codec::integers;
use counterfoil_series::{Kind, Leaf, Points, Value, pack};

const SPEC: &str = include_str!("../../../SPEC.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[test]
fn a_leaf_is_what_the_specification_says() {
    let mut points = Points::new(&[Kind::Double]);
    for (time, value) in [(1000, Some(1.5)), (2000, Some(2.5)), (3000, None)] {
        points.push(time, [value.map(Value::Double)]);
    }
    let packed = pack(7, &points, 0..3, 3, 64).expect("fits");
    let hex = hex(&packed.payload[..packed.bytes]);
    assert!(packed.payload[packed.bytes..].iter().all(|byte| *byte == 0));
    assert!(SPEC.contains(&format!("`{hex}`")), "the vector of SPEC, series, is `{hex}`");
    let mut found = Points::new(&[Kind::Double]);
    Leaf::new(&packed.payload).expect("a leaf").read(&mut found).expect("points");
    assert_eq!(found, points);
}

#[test]
fn factors_and_lists_are_what_the_specification_says() {
    let factor: &[u8] = &[4, 10, 3, 0, 1, 3, 0, 0b10];
    let list: &[u8] = &[5, 1, 1, 0, 14, 0xBA, 7, 0, 0, 1, 0, 0, 0b101];
    for (column, values) in [(factor, &[-17, -7][..]), (list, &[484, 7, 484])] {
        assert!(SPEC.contains(&format!("`{}`", hex(column))), "the column of SPEC, series, is `{}`", hex(column));
        let (mut rest, mut found) = (column, Vec::new());
        integers::decode(&mut rest, values.len(), &mut found).expect("a column");
        assert_eq!((&found[..], rest), (values, &[][..]));
    }
}
