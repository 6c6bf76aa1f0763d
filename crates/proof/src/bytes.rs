//! The one way in which numbers and byte strings are written down.
//!
//! A number is little groups of seven bits, lowest first, the top bit of each byte saying that more follow, and in as few
//! bytes as it takes. A byte string is its length and its bytes. There is one encoding of everything, so that what parses
//! re-encodes to the same bytes; and nothing is allocated because of what a length claims. What is there in truth may take many
//! times its bytes, as a NULL of one byte does: whoever reads an answer says what it takes, and there is a bound.

use alloc::vec::Vec;

use crate::error::Malformed;

/// Writes; cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// A byte.
    pub fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    /// A number, in as few bytes as it takes.
    pub fn number(&mut self, mut number: u64) -> &mut Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    /// Bytes whose number the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Bytes behind their number.
    pub fn string(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64).raw(bytes)
    }
}

/// Bytes of memory that one answer may take while it is checked, by the count of [`Reader::hold`]. Tests measure what that comes to.
pub const HELD_BYTES_MAX: usize = 2 << 30;

/// Reads what [`Writer`] wrote, and nothing else.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
    room: usize,
}

impl<'a> Reader<'a> {
    /// `what` is told when the bytes end early or make no sense.
    #[must_use]
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what, room: HELD_BYTES_MAX }
    }

    /// What is told of these bytes when they make no sense.
    #[must_use]
    pub fn malformed(&self) -> Malformed {
        Malformed(self.what)
    }

    /// Takes room for what is made of the bytes.
    ///
    /// # Errors
    /// [`Malformed`]: all of it together would take more than [`HELD_BYTES_MAX`].
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Malformed> {
        let too_much = Malformed("an answer that takes more than two gigabytes of memory to check: ask for less");
        self.room = self.room.checked_sub(bytes).ok_or(too_much)?;
        Ok(())
    }

    /// Bytes not read yet: a bound of whatever a count may claim.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// So many bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn raw(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(head)
    }

    /// So many bytes, as an array.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.raw(N)?.try_into().map_err(|_| Malformed(self.what))
    }

    /// A byte.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// A number, and only in as few bytes as it takes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(Malformed(self.what));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed(self.what))
    }

    /// A number of things that take at least a byte each, so that no more are claimed than can be there.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed(self.what))?;
        if count > self.left() { Err(Malformed(self.what)) } else { Ok(count) }
    }

    /// Bytes behind their number.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.raw(length)
    }

    /// A text behind the number of its bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let what = self.what;
        core::str::from_utf8(self.string()?).map_err(|_| Malformed(what))
    }

    /// Refuses bytes after the end.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed(self.what)) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{HELD_BYTES_MAX, Reader, Writer};

    #[test]
    fn what_an_answer_takes_has_a_bound() {
        let mut reader = Reader::new(&[], "test");
        assert_eq!(reader.hold(HELD_BYTES_MAX - 1), Ok(()));
        assert_eq!(reader.hold(1), Ok(()));
        assert!(reader.hold(1).is_err());
    }

    proptest! {
        #[test]
        fn numbers_and_strings_come_back(number: u64, bytes: Vec<u8>) {
            let mut writer = Writer::default();
            writer.number(number).string(&bytes);
            let mut reader = Reader::new(&writer.0, "test");
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.string(), Ok(&bytes[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes, "test");
            if let Ok(number) = reader.number() {
                let mut writer = Writer::default();
                writer.number(number);
                prop_assert_eq!(&bytes[..writer.0.len()], &writer.0[..]);
            }
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_refused_before_anything_is_taken() {
        let mut writer = Writer::default();
        writer.number(u64::MAX);
        assert!(Reader::new(&writer.0, "test").string().is_err());
        assert!(Reader::new(&[0x80, 0x00], "test").number().is_err(), "a number in more bytes than it takes");
    }
}
