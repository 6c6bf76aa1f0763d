//! A one-way counter in two banks of NOR flash whose bits can be cleared one at a time.
//!
//! ```text
//! bank:  | magic | base u64 | base, all bits turned | spare | one bit for each step, cleared from the first to the last |
//!        0       8          16                      24      32                                          end of the bank
//! value = base + bits cleared; the bank with the higher value counts
//! ```
//! 1. A step clears one bit. When all are cleared, the *other* bank is erased and its head written with the new value, and
//!    read back; the full one stays as it is until its own turn to be erased. So there is a whole bank at every moment.
//! 2. A head that a cut ends has some bit and its turned copy both set, so it is no head; an erase that a cut ends leaves a
//!    bank that is no bank, or one whose value is not above what the other one holds.
//! 3. A bit, or a head, that a cut left in between reads one way now and another way later. Before a value is answered that
//!    may rest on such a bit, the bit is cleared once more and read back. That changes nothing about a bit that is whole.
//! 4. The value has 64 bits, and steps by one to a number that the caller names: it cannot come round.
//!
//! There is no room for tags: [`CounterValue::tag`] is `None`. What that costs is told at [`NorCounter`].

use counterfoil_flash::{BankShape, Banks};

use crate::bank_io::{self, BLANK, Word, failed, number, other};
use crate::counter::may_step;
use crate::{Counter, CounterError, CounterKind, CounterValue, Tag};

const MAGIC: [u8; 8] = *b"CFcount1";
const HEAD_BYTES: u32 = 32;
/// Bits that may stand where cleared ones should, because they lost what they held, before a bank is called damaged.
const HOLES_MAX: u32 = 8;

/// A one-way counter in NOR flash.
///
/// It keeps no tags. A store steps twice when it takes up writing, so that no two of its commits share a number, whatever
/// image is put back between them; a tag adds nothing to that. What goes unnoticed without one are two copies of a store
/// that step one counter by turns, from the same number: on a chip with flash of its own there is one of each.
///
/// Whoever can program or erase the banks can advance the counter, or destroy it; setting it back takes an erase.
pub struct NorCounter<B> {
    banks: B,
    /// Where the counter stands, once that is known to last.
    place: Option<Place>,
    /// The highest value answered.
    seen: u64,
}

/// Where a counter stands: bits cleared in a bank.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    bank: u8,
    base: u64,
    cleared: u32,
}

impl Place {
    fn value(&self) -> u64 {
        self.base.saturating_add(u64::from(self.cleared))
    }
}

/// What is in a bank.
enum Found {
    Blank,
    Damaged,
    Whole(Place),
}

impl<B: Banks> NorCounter<B> {
    /// The counter in these banks, which is absent until it is adopted.
    ///
    /// # Errors
    /// [`CounterError::Device`] for banks whose words cannot be cleared bit by bit, or that have no room behind the head.
    pub fn new(banks: B) -> Result<Self, CounterError> {
        let shape = banks.shape();
        if !shape.clears_again || !bank_io::is_shape(&shape, 1, HEAD_BYTES + 1) {
            return Err(CounterError::Device { operation: "used in banks of this shape", code: -1 });
        }
        Ok(Self { banks, place: None, seen: 0 })
    }

    /// Steps for each erase of a bank: the bits behind the head, and the head.
    pub fn steps_per_erase(shape: &BankShape) -> u32 {
        shape.bank_bytes.saturating_sub(HEAD_BYTES) * 8 + 1
    }

    fn find(&self) -> Result<Place, CounterError> {
        match (self.find_in(0)?, self.find_in(1)?) {
            (Found::Whole(first), Found::Whole(second)) if first.value() < second.value() => Ok(second),
            (Found::Whole(place), _) | (_, Found::Whole(place)) => Ok(place),
            (Found::Blank, Found::Blank) => Err(CounterError::Absent),
            _ => Err(CounterError::Damaged),
        }
    }

    fn find_in(&self, bank: u8) -> Result<Found, CounterError> {
        let mut bytes = [0; HEAD_BYTES as usize];
        self.banks.read(number(bank), 0, &mut bytes).map_err(|error| failed("read", error))?;
        if bytes.iter().all(|byte| *byte == BLANK) {
            return Ok(Found::Blank);
        }
        let Some(base) = base_of(&bytes).filter(|base| bytes == head(*base)) else { return Ok(Found::Damaged) };
        let (cleared, bits) = self.count(bank)?;
        if cleared - bits > HOLES_MAX || base.checked_add(u64::from(cleared)).is_none() {
            return Ok(Found::Damaged);
        }
        Ok(Found::Whole(Place { bank, base, cleared }))
    }

    /// Bits up to the last one that is cleared, and how many of these are.
    fn count(&self, bank: u8) -> Result<(u32, u32), CounterError> {
        let (mut last, mut bits) = (0, 0);
        let mut chunk: Word = [0; HEAD_BYTES as usize];
        let bank_bytes = self.banks.shape().bank_bytes;
        for offset in (HEAD_BYTES..bank_bytes).step_by(chunk.len()) {
            let chunk = chunk.get_mut(..(bank_bytes - offset).min(HEAD_BYTES) as usize).unwrap_or_default();
            self.banks.read(number(bank), offset, chunk).map_err(|error| failed("read", error))?;
            for (index, byte) in (0..).zip(chunk.iter()) {
                if *byte != BLANK {
                    last = (offset - HEAD_BYTES + index) * 8 + 8 - byte.leading_ones();
                    bits += byte.count_zeros();
                }
            }
        }
        Ok((last, bits))
    }

    /// Where the counter stands, after making sure that it stays there.
    fn settled(&mut self) -> Result<Place, CounterError> {
        let place = self.find()?;
        if place.value() < self.seen {
            return Err(CounterError::WentBack { seen: self.seen, found: place.value() });
        }
        if self.place != Some(place) {
            self.place = None;
            match place.cleared {
                0 => self.write_head(place)?,
                _ => self.clear_to(place)?,
            }
        }
        (self.place, self.seen) = (Some(place), place.value());
        Ok(place)
    }

    /// Clears the last bit that this place counts. The word of it is programmed with all bits before it cleared.
    fn clear_to(&mut self, place: Place) -> Result<(), CounterError> {
        let word_bytes = self.banks.shape().word_bytes;
        let word_bits = word_bytes * 8;
        let index = (place.cleared - 1) / word_bits;
        let mut word: Word = [BLANK; HEAD_BYTES as usize];
        let word = word.get_mut(..word_bytes as usize).unwrap_or_default();
        for (number, byte) in (0..).zip(word.iter_mut()) {
            let cleared = (place.cleared - index * word_bits).saturating_sub(number * 8).min(8);
            *byte = BLANK.checked_shl(cleared).unwrap_or(0);
        }
        // The bit behind it may be one that a cut left in between: it counts when it is stepped to.
        match bank_io::program(&mut self.banks, place.bank, HEAD_BYTES + index * word_bytes, word, false)? {
            true => Ok(()),
            false => Err(CounterError::Stuck { asked: place.value(), found: place.value() - 1 }),
        }
    }

    fn write_head(&mut self, place: Place) -> Result<(), CounterError> {
        let word_bytes = self.banks.shape().word_bytes;
        let bytes = head(place.base);
        for (index, word) in (0..).zip(bytes.chunks(word_bytes as usize)) {
            let is_there = bank_io::program(&mut self.banks, place.bank, index * word_bytes, word, true)?;
            if !is_there {
                return Err(CounterError::Stuck { asked: place.base, found: place.base.saturating_sub(1) });
            }
        }
        Ok(())
    }

    /// Begins a bank anew with this value. Its old head is cleared before the erase: of that, a cut may leave the head and
    /// clear every bit behind it.
    fn begin(&mut self, bank: u8, value: u64) -> Result<(), CounterError> {
        self.place = None;
        let word_bytes = self.banks.shape().word_bytes;
        let zeros: Word = [0; HEAD_BYTES as usize];
        for (index, word) in (0..).zip(zeros.chunks(word_bytes as usize)) {
            bank_io::program(&mut self.banks, bank, index * word_bytes, word, false)?;
        }
        bank_io::erase(&mut self.banks, bank)?;
        let place = Place { bank, base: value, cleared: 0 };
        self.write_head(place)?;
        (self.place, self.seen) = (Some(place), value);
        Ok(())
    }

    fn advance(&mut self, place: Place) -> Result<(), CounterError> {
        let bits = (self.banks.shape().bank_bytes - HEAD_BYTES) * 8;
        let to = place.value() + 1;
        if place.cleared >= bits {
            return self.begin(other(place.bank), to);
        }
        let next = Place { cleared: place.cleared + 1, ..place };
        self.place = None;
        self.clear_to(next)?;
        (self.place, self.seen) = (Some(next), to);
        Ok(())
    }
}

fn head(base: u64) -> [u8; HEAD_BYTES as usize] {
    let mut bytes = [BLANK; HEAD_BYTES as usize];
    let fields = [MAGIC, base.to_le_bytes(), (!base).to_le_bytes()];
    for (place, field) in bytes.chunks_mut(8).zip(fields) {
        place.copy_from_slice(&field);
    }
    bytes
}

fn base_of(bytes: &[u8]) -> Option<u64> {
    bytes.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
}

impl<B: Banks + Send> Counter for NorCounter<B> {
    fn kind(&self) -> CounterKind {
        CounterKind::Nor
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.settled().map(|place| CounterValue { value: place.value(), tag: None })
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let place = match self.place {
            Some(place) => place,
            None => self.settled()?,
        };
        match may_step(&CounterValue { value: place.value(), tag: None }, to, tag)? {
            true => self.advance(place),
            false => Ok(()),
        }
    }

    fn adopt(&mut self, value: u64, _tag: &Tag) -> Result<(), CounterError> {
        match self.settled() {
            Ok(place) if place.value() > value => Err(CounterError::Lower { present: place.value(), asked: value }),
            Ok(place) if place.value() == value => Ok(()),
            Ok(place) => self.begin(other(place.bank), value),
            Err(CounterError::Absent | CounterError::Damaged) => {
                // Nothing of what is left there may ever read as a bank again.
                bank_io::erase(&mut self.banks, 1)?;
                self.begin(0, value)
            }
            Err(error) => Err(error),
        }
    }
}
