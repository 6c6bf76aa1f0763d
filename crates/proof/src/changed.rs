//! The numbers of what changed in a period, in classes: records, nodes and filters count from places far apart, and one set of
//! all would take eight bytes for each number where it takes a bit or two.
//!
//! ```text
//! count and classes, ascending: what numbers have in their top byte, string of the set of their other bytes
//! ```
//! Where all numbers are below 2^56 they are one set, as in tables without nodes and filters.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;
use crate::sparse_set::SparseSet;

const CLASS_BITS: u32 = 56;

fn class(number: u64) -> u8 {
    (number >> CLASS_BITS) as u8
}

/// Whether sorted numbers are more than one set.
pub(crate) fn has_classes(numbers: &[u64]) -> bool {
    numbers.last().is_some_and(|last| class(*last) > 0)
}

/// Appends sorted numbers by their classes.
pub(crate) fn write_classes(writer: &mut Writer, numbers: &[u64]) {
    let classes: Vec<&[u64]> = numbers.chunk_by(|a, b| class(*a) == class(*b)).collect();
    writer.number(classes.len() as u64);
    for numbers in classes {
        let base = u64::from(class(numbers[0])) << CLASS_BITS;
        let rest: Vec<u64> = numbers.iter().map(|number| number - base).collect();
        writer.byte(class(numbers[0])).string(&SparseSet::encode(&rest));
    }
}

/// Reads them, and only those that [`has_classes`].
pub(crate) fn read_classes(reader: &mut Reader<'_>) -> Result<Vec<u64>, Malformed> {
    let mut numbers: Vec<u64> = Vec::new();
    for _ in 0..reader.count()? {
        let own = reader.byte()?;
        let is_next = numbers.last().is_none_or(|last| class(*last) < own);
        let before = numbers.len();
        for rest in SparseSet::parse(reader.string()?)?.iter() {
            if class(rest) > 0 {
                return Err(reader.malformed());
            }
            numbers.push(u64::from(own) << CLASS_BITS | rest);
        }
        if !is_next || numbers.len() == before {
            return Err(reader.malformed());
        }
    }
    if has_classes(&numbers) { Ok(numbers) } else { Err(reader.malformed()) }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{has_classes, read_classes, write_classes};
    use crate::bytes::{Reader, Writer};
    use crate::sparse_set::SparseSet;

    fn read(bytes: &[u8]) -> Option<Vec<u64>> {
        let mut reader = Reader::new(bytes, "test");
        let numbers = read_classes(&mut reader).ok()?;
        reader.end().ok().map(|()| numbers)
    }

    proptest! {
        #[test]
        fn classes_come_back_and_have_one_encoding(
            numbers in prop::collection::btree_set((prop::sample::select(alloc::vec![0u64, 1, 128, 255]), 0u64..90), 1..40),
            at: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(class, rest)| class << 56 | rest).collect();
            let mut writer = Writer::default();
            write_classes(&mut writer, &numbers);
            prop_assert_eq!(read(&writer.0), has_classes(&numbers).then_some(numbers));
            let at = at.index(writer.0.len());
            writer.0[at] ^= 1 << bit;
            if let Some(numbers) = read(&writer.0) {
                let mut again = Writer::default();
                write_classes(&mut again, &numbers);
                prop_assert_eq!(again.0, writer.0);
            }
        }
    }

    #[test]
    fn a_number_far_off_costs_the_others_nothing() {
        let mut numbers: Vec<u64> = (0..1000).map(|at| 40 + 3 * at).collect();
        numbers.push(1 << 63);
        let mut writer = Writer::default();
        write_classes(&mut writer, &numbers);
        assert!(writer.0.len() < 450 && SparseSet::encode(&numbers).len() > 6000);
    }
}
