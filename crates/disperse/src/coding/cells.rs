//! Values as sealed cells: whoever holds one learns the class of its length, and nothing else.
//!
//! ```text
//! cell       = AES-256-GCM-SIV(key of column and epoch, nonce, associated, padded value)              16 bytes longer than that
//! nonce      = 00 00 00 00 | row u64
//! associated = table [16] | column u16 | row u64
//! padded     = 00: NULL, 01: a value | the value | 80 | 00 ..., up to the next class; NULL among values of one width up to theirs
//! classes    = 16 | 32 | 48 | 64 | then four steps for each doubling: 80, 96, 112, 128, 160, 192, 224, 256, 320 ...
//! ```
//! 1. A row's number belongs to one value for ever, and the key to one epoch of the column: no nonce comes twice, and should one
//!    all the same, this suite shows that two values are equal and nothing else.
//! 2. A cell names its table, column and row: one that was put in another's place does not open.
//! 3. NULL is a cell like others. In a column whose values all have as many bytes it is as long as they are; in one of short texts it is not
//!    told from them.

use aead::{AeadInOut as _, KeyInit as _};
use aes_gcm_siv::{Aes256GcmSiv, Nonce, Tag};

use crate::keys::Secret;

/// Bytes that a cell is longer than what it seals.
const TAG_BYTES: usize = 16;
/// Bytes beside a value: whether there is one, and where it ends.
const MARK_BYTES: usize = 2;

/// What opens and seals the cells of a column in one epoch.
pub struct Cells {
    cipher: Aes256GcmSiv,
    associated: [u8; 26],
    /// Bytes that are padded to at least.
    least: usize,
}

impl Cells {
    /// Cells of a column of a table, under the key of an epoch.
    #[must_use]
    pub fn new(key: &Secret, table: &[u8; 16], column: u16) -> Self {
        let mut associated = [0; 26];
        associated[..16].copy_from_slice(table);
        associated[16..18].copy_from_slice(&column.to_be_bytes());
        Self { cipher: Aes256GcmSiv::new(key.expose().into()), associated, least: 0 }
    }

    /// Of a column whose values all have so many bytes, if they have: NULL is as long as they are.
    #[must_use]
    pub fn of_width(self, width: Option<usize>) -> Self {
        Self { least: width.map_or(0, |width| width + MARK_BYTES), ..self }
    }

    fn associated(&self, row: u64) -> [u8; 26] {
        let mut associated = self.associated;
        associated[18..].copy_from_slice(&row.to_be_bytes());
        associated
    }

    /// Appends the cell of a row's value, or of NULL.
    pub fn seal(&self, row: u64, value: Option<&[u8]>, cell: &mut Vec<u8>) {
        let start = cell.len();
        cell.push(u8::from(value.is_some()));
        cell.extend_from_slice(value.unwrap_or_default());
        cell.push(0x80);
        let padded = class((cell.len() - start).max(self.least));
        cell.resize(start + padded, 0);
        let sealed =
            self.cipher.encrypt_inout_detached(&nonce(row), &self.associated(row), (&mut cell[start..]).into());
        let Ok(tag) = sealed else { unreachable!("a value is shorter than what a cipher takes") };
        cell.extend_from_slice(&tag);
    }

    /// The value of a row's cell, in `plain`, which is emptied before; whether it is one and not NULL.
    ///
    /// # Errors
    /// [`NotSealedHere`]: this is no cell of this row.
    pub fn open(&self, row: u64, cell: &[u8], plain: &mut Vec<u8>) -> Result<bool, NotSealedHere> {
        plain.clear();
        let (sealed, tag) = cell.split_last_chunk::<TAG_BYTES>().ok_or(NotSealedHere)?;
        plain.extend_from_slice(sealed);
        let tag = Tag::from(*tag);
        let opened =
            self.cipher.decrypt_inout_detached(&nonce(row), &self.associated(row), plain.as_mut_slice().into(), &tag);
        opened.map_err(|_| NotSealedHere)?;
        let end = plain.iter().rposition(|byte| *byte != 0).filter(|end| *end > 0 && plain[*end] == 0x80);
        plain.truncate(end.ok_or(NotSealedHere)?);
        let is_value = plain.remove(0) == 1;
        Ok(is_value)
    }
}

/// A cell that was not sealed for where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSealedHere;

fn nonce(row: u64) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[4..].copy_from_slice(&row.to_be_bytes());
    nonce
}

/// The class of a length: what it is padded to.
#[must_use]
pub fn class(length: usize) -> usize {
    // Four classes for each doubling: at most a quarter more, and few enough that they say little.
    let step = (length.max(1).next_power_of_two() / 8).max(16);
    length.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Cells, NotSealedHere, class};
    use crate::keys::Secret;

    fn cells(column: u16) -> Cells {
        Cells::new(&Secret::new([9; 32]), &[4; 16], column)
    }

    proptest! {
        #[test]
        fn a_cell_opens_where_it_was_sealed_and_nowhere_else(
            value in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
            row in any::<u64>(),
            bit in any::<prop::sample::Index>(),
        ) {
            let (mut cell, mut plain) = (Vec::new(), Vec::new());
            cells(3).seal(row, value.as_deref(), &mut cell);
            prop_assert_eq!(cells(3).open(row, &cell, &mut plain), Ok(value.is_some()));
            prop_assert_eq!(&plain, value.as_deref().unwrap_or_default());
            prop_assert_eq!(cells(3).open(row ^ 1, &cell, &mut plain), Err(NotSealedHere));
            prop_assert_eq!(cells(4).open(row, &cell, &mut plain), Err(NotSealedHere));
            let bit = bit.index(cell.len() * 8);
            cell[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(cells(3).open(row, &cell, &mut plain), Err(NotSealedHere));
            cell.truncate(15);
            prop_assert_eq!(cells(3).open(row, &cell, &mut plain), Err(NotSealedHere));
        }

        #[test]
        fn a_class_is_at_most_a_quarter_longer(length in 64_usize..1 << 20) {
            prop_assert!(class(length) >= length && class(length) <= length + length / 4);
            prop_assert_eq!(class(class(length)), class(length));
        }
    }

    #[test]
    fn values_of_one_class_have_cells_of_one_length() {
        let lengths: Vec<usize> = (0..300)
            .map(|length| {
                let mut cell = Vec::new();
                cells(1).seal(1, Some(&vec![b'x'; length]), &mut cell);
                cell.len() - 16
            })
            .collect();
        let mut classes = lengths.clone();
        classes.dedup();
        assert_eq!(classes, [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]);
        let mut null = Vec::new();
        cells(1).seal(1, None, &mut null);
        assert_eq!(null.len() - 16, lengths[0]);
    }

    #[test]
    fn null_is_as_long_as_values_of_one_width() {
        for width in [8, 16, 33] {
            let (mut null, mut value, mut plain) = (Vec::new(), Vec::new(), Vec::new());
            let cells = cells(1).of_width(Some(width));
            cells.seal(1, None, &mut null);
            cells.seal(1, Some(&vec![0xFF; width]), &mut value);
            assert_eq!(null.len(), value.len());
            assert_eq!(cells.open(1, &null, &mut plain), Ok(false));
            // Whoever opens does not know of it.
            assert_eq!(super::tests::cells(1).open(1, &null, &mut plain), Ok(false));
            assert_eq!(cells.open(1, &value, &mut plain), Ok(true));
        }
    }

    #[test]
    fn equal_values_have_different_cells() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        cells(1).seal(1, Some(b"the same"), &mut one);
        cells(1).seal(2, Some(b"the same"), &mut other);
        assert_ne!(one, other);
    }
}
