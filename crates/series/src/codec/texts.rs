//! Texts: what differs is written once, and each value is the number of its text.
//!
//! ```text
//! texts: how many, less one (numbers.rs; nothing at all where the column has no value)
//! their lengths, as integers | their bytes | the number of each value, as integers
//! ```
//! Texts are numbered as they appear, so a column of all different ones costs next to nothing more than their bytes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Nonsense, integers, numbers};
use crate::column::Text;

/// Appends the values of a column.
pub fn encode(values: &[Text], out: &mut Vec<u8>) {
    let (mut numbers_of, mut distinct) = (BTreeMap::<&[u8], i64>::new(), Vec::new());
    let mut number = |text| {
        *numbers_of.entry(text).or_insert_with(|| {
            distinct.push(text);
            distinct.len() as i64 - 1
        })
    };
    let each: Vec<i64> = values.iter().map(|text| number(text)).collect();
    let Some(more) = distinct.len().checked_sub(1) else { return };
    numbers::put(more as u64, out);
    integers::encode(&distinct.iter().map(|text| text.len() as i64).collect::<Vec<_>>(), out);
    distinct.iter().for_each(|text| out.extend_from_slice(text));
    integers::encode(&each, out);
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`].
pub fn decode(bytes: &mut &[u8], count: usize, values: &mut Vec<Text>) -> Result<(), Nonsense> {
    let mut texts: Vec<Text> = Vec::new();
    if count == 0 {
        return Ok(());
    }
    take_distinct(bytes, count, |text| texts.push(text.into()))?;
    let mut each = Vec::new();
    integers::decode(bytes, count, &mut each)?;
    values.reserve(count);
    for number in each {
        let text = usize::try_from(number).ok().and_then(|number| texts.get(number)).ok_or(Nonsense)?;
        values.push(text.clone());
    }
    Ok(())
}

/// Takes the texts that differ off the front.
fn take_distinct(bytes: &mut &[u8], count: usize, mut text: impl FnMut(&[u8])) -> Result<(), Nonsense> {
    let distinct = usize::try_from(numbers::take(bytes)?).map_err(|_| Nonsense)?.checked_add(1).ok_or(Nonsense)?;
    if distinct > count {
        return Err(Nonsense);
    }
    let mut lengths = Vec::new();
    integers::decode(bytes, distinct, &mut lengths)?;
    for length in lengths {
        let (one, rest) =
            usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length)).ok_or(Nonsense)?;
        *bytes = rest;
        text(one);
    }
    Ok(())
}

/// Takes the bytes of so many values off the front and makes no text of them.
///
/// # Errors
/// [`Nonsense`].
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
    if count == 0 {
        return Ok(());
    }
    take_distinct(bytes, count, |_| ())?;
    integers::skip(bytes, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_texts_cost_next_to_nothing() {
        let values: Vec<Text> = (0..1000).map(|at| (&b"okbadstale"[at % 3 * 2..at % 3 * 2 + 2]).into()).collect();
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        assert!(bytes.len() < 300, "{}", bytes.len());
    }

    proptest! {
        #[test]
        fn texts_come_back(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..60)) {
            let values: Vec<Text> = texts.iter().map(|text| text.as_slice().into()).collect();
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            bytes.push(7);
            let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
            decode(&mut rest, values.len(), &mut found).expect("what was written");
            prop_assert_eq!((&found, rest), (&values, &[7][..]));
            let mut skipped = bytes.as_slice();
            skip(&mut skipped, values.len()).expect("what was written");
            prop_assert_eq!(skipped, [7]);
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..70) {
            let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
            if decode(&mut rest, count, &mut found).is_ok() {
                prop_assert_eq!(found.len(), count);
            }
        }
    }
}
