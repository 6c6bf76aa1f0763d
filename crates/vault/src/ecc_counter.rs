//! A one-way counter in two banks of flash whose words have error correction and are programmed once between two erases.
//!
//! ```text
//! bank:  | upper half | lower half | lower half | ... one word for each step, blank words behind
//! word:  | half of a value u32 | the same, turned and marked for which half it is | zeros |
//! ```
//! 1. A lower half stands for a value together with the nearest upper half before it. A word counts if number and mark fit.
//!    The last one of a bank is the bank's: one before it may be what a cut left and was overruled. The higher value of the
//!    two banks is the counter's.
//! 2. When a bank is full, but for a quarter in reserve, the *other* one is erased and gets both halves of the new value, each
//!    read back; the full one stays as it is until its own turn to be erased.
//! 3. A word that a cut ended reads as an error, as anything, one way now and another way later, or as blank; so does a bank
//!    whose erase it ended. So a handle that is new writes three words before it answers: one into the first that looks
//!    blank, to which a write may have been tried, and then both halves of the value into the next, to which none was.
//! 4. No bank is erased before that was done, because the value found may be one that is gone at the next look. If cuts
//!    spoil the whole reserve one after another before it was done once, the counter answers that it is damaged.
//! 5. The value has 64 bits, and steps by one to a number that the caller names: it cannot come round.
//!
//! There is no room for tags: [`CounterValue::tag`] is `None` (what that costs: [`crate::NorCounter`]).

use counterfoil_flash::{BankShape, Banks, Error};

use crate::bank_io::{self, BLANK, Word, failed, number, other};
use crate::counter::may_step;
use crate::{Counter, CounterError, CounterKind, CounterValue, Tag};

/// Words of the smallest bank.
const WORDS_MIN: u32 = 12;
/// Words that a bank holds in reserve at least: a handle that is new takes three, and four after a cut without a trace.
const RESERVE_MIN: u32 = 8;

/// What a word is, as a mark upon its second half.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Role {
    Upper = 0x4346_7570,
    Lower = 0x4346_6C6F,
}

/// A one-way counter in words of flash with error correction, of 8 to 32 bytes.
///
/// Each new handle takes three words before its first answer, and each step one.
pub struct EccCounter<B> {
    banks: B,
    /// Where the counter stands, once that is known to last.
    place: Option<Place>,
    /// The highest value answered.
    seen: u64,
}

/// Where a counter stands.
#[derive(Clone, Copy)]
struct Place {
    bank: u8,
    value: u64,
    /// The first word behind all that were begun, as far as one can see.
    next: u32,
}

/// What is in a word.
enum Content {
    Blank,
    Number(u32, Role),
    /// An error, or nothing that anybody wrote here.
    Spoiled,
}

/// What is in a bank.
enum Found {
    Blank,
    Damaged,
    Whole(Place),
}

impl<B: Banks> EccCounter<B> {
    /// The counter in these banks, which is absent until it is adopted.
    ///
    /// # Errors
    /// [`CounterError::Device`] for words of less than 8 bytes, or less than 12 of them in a bank.
    pub fn new(banks: B) -> Result<Self, CounterError> {
        let shape = banks.shape();
        if !bank_io::is_shape(&shape, 8, shape.word_bytes.saturating_mul(WORDS_MIN)) {
            return Err(CounterError::Device { operation: "used in banks of this shape", code: -1 });
        }
        Ok(Self { banks, place: None, seen: 0 })
    }

    /// Steps for each erase of a bank, where every handle steps for ever.
    pub fn steps_per_erase(shape: &BankShape) -> u32 {
        let words = shape.bank_bytes / shape.word_bytes.max(1);
        words.saturating_sub(1 + reserve(words))
    }

    fn words(&self) -> u32 {
        let shape = self.banks.shape();
        shape.bank_bytes / shape.word_bytes
    }

    fn find(&self) -> Result<Place, CounterError> {
        match (self.find_in(0)?, self.find_in(1)?) {
            // A bank that was begun with the value of the other has more room.
            (Found::Whole(first), Found::Whole(second)) => {
                let is_second = (second.value, first.next) > (first.value, second.next);
                Ok(if is_second { second } else { first })
            }
            (Found::Whole(place), _) | (_, Found::Whole(place)) => Ok(place),
            (Found::Blank, Found::Blank) => Err(CounterError::Absent),
            _ => Err(CounterError::Damaged),
        }
    }

    fn find_in(&self, bank: u8) -> Result<Found, CounterError> {
        let (mut upper_half, mut value, mut next) = (None, None, 0);
        for index in 0..self.words() {
            match self.content(bank, index)? {
                Content::Blank => continue,
                Content::Number(upper, Role::Upper) => upper_half = Some(u64::from(upper) << 32),
                Content::Number(lower, Role::Lower) => {
                    value = upper_half.map(|upper| upper | u64::from(lower)).or(value)
                }
                Content::Spoiled => {}
            }
            next = index + 1;
        }
        Ok(match value {
            Some(value) => Found::Whole(Place { bank, value, next }),
            None if next == 0 => Found::Blank,
            None => Found::Damaged,
        })
    }

    fn content(&self, bank: u8, index: u32) -> Result<Content, CounterError> {
        let word_bytes = self.banks.shape().word_bytes;
        let mut word: Word = [0; size_of::<Word>()];
        let word = word.get_mut(..word_bytes as usize).unwrap_or_default();
        match self.banks.read(number(bank), index * word_bytes, word) {
            Ok(()) => {}
            // Error correction gave up. Whatever else fails, drivers call something else.
            Err(Error::Device { .. }) => return Ok(Content::Spoiled),
            Err(error) => return Err(failed("read", error)),
        }
        if word.iter().all(|byte| *byte == BLANK) {
            return Ok(Content::Blank);
        }
        let lower = word.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let roles = [Role::Upper, Role::Lower];
        let role = roles.into_iter().find(|role| encode(lower, *role).starts_with(word));
        Ok(role.map_or(Content::Spoiled, |role| Content::Number(lower, role)))
    }

    /// Where the counter stands, after making sure that it stays there.
    fn settled(&mut self) -> Result<Place, CounterError> {
        let mut place = self.find()?;
        if place.value < self.seen {
            return Err(CounterError::WentBack { seen: self.seen, found: place.value });
        }
        if self.place.is_some_and(|known| known.value == place.value) {
            return Ok(place);
        }
        self.place = None;
        while place.next < self.words() {
            // Whatever it held, from now on one can see that it was begun. An upper half says nothing of the words before it,
            // and the next one, of those behind it.
            let outcome = self.program(place.bank, place.next, (place.value >> 32) as u32, Role::Upper);
            place.next += 1;
            if outcome.is_ok() {
                break;
            }
        }
        if self.words() - place.next < 2 {
            return Err(CounterError::Damaged);
        }
        let place = self.append_both(place, place.value)?;
        match self.words() - place.next < self.reserve() / 2 {
            true => self.begin(other(place.bank), place.value),
            false => Ok(place),
        }
    }

    /// Words at the end of a bank that steps leave alone.
    fn reserve(&self) -> u32 {
        reserve(self.words())
    }

    /// Writes a value behind the others.
    fn append(&mut self, place: Place, value: u64) -> Result<Place, CounterError> {
        self.place = None;
        self.program(place.bank, place.next, value as u32, Role::Lower)?;
        let place = Place { value, next: place.next + 1, ..place };
        (self.place, self.seen) = (Some(place), value);
        Ok(place)
    }

    /// The same with its upper half before it.
    fn append_both(&mut self, place: Place, value: u64) -> Result<Place, CounterError> {
        self.place = None;
        self.program(place.bank, place.next, (value >> 32) as u32, Role::Upper)?;
        self.append(Place { next: place.next + 1, ..place }, value)
    }

    fn advance(&mut self, place: Place) -> Result<Place, CounterError> {
        let to = place.value + 1;
        match self.words() - place.next <= self.reserve() {
            true => self.begin(other(place.bank), to),
            false if to as u32 == 0 => self.append_both(place, to),
            false => self.append(place, to),
        }
    }

    fn program(&mut self, bank: u8, index: u32, lower: u32, role: Role) -> Result<(), CounterError> {
        let word_bytes = self.banks.shape().word_bytes;
        let word = encode(lower, role);
        let word = word.get(..word_bytes as usize).unwrap_or_default();
        match bank_io::program(&mut self.banks, bank, index * word_bytes, word, true)? {
            true => Ok(()),
            false => Err(CounterError::Device { operation: "programmed", code: -1 }),
        }
    }

    /// Begins a bank anew with this value.
    fn begin(&mut self, bank: u8, value: u64) -> Result<Place, CounterError> {
        self.place = None;
        bank_io::erase(&mut self.banks, bank)?;
        self.append_both(Place { bank, value, next: 0 }, value)
    }
}

fn reserve(words: u32) -> u32 {
    (words / 4).max(RESERVE_MIN)
}

fn encode(lower: u32, role: Role) -> Word {
    let mut word = [0; size_of::<Word>()];
    let halves = [lower, !lower ^ role as u32];
    for (place, half) in word.chunks_mut(4).zip(halves) {
        place.copy_from_slice(&half.to_le_bytes());
    }
    word
}

impl<B: Banks + Send> Counter for EccCounter<B> {
    fn kind(&self) -> CounterKind {
        CounterKind::Ecc
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.settled().map(|place| CounterValue { value: place.value, tag: None })
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let place = match self.place {
            Some(place) => place,
            None => self.settled()?,
        };
        match may_step(&CounterValue { value: place.value, tag: None }, to, tag)? {
            true => self.advance(place).map(drop),
            false => Ok(()),
        }
    }

    fn adopt(&mut self, value: u64, _tag: &Tag) -> Result<(), CounterError> {
        match self.settled() {
            Ok(place) if place.value > value => Err(CounterError::Lower { present: place.value, asked: value }),
            Ok(place) if place.value == value => Ok(()),
            Ok(place) => self.begin(other(place.bank), value).map(drop),
            Err(CounterError::Absent | CounterError::Damaged) => {
                // Nothing of what is left there may ever read as a bank again.
                bank_io::erase(&mut self.banks, 1)?;
                self.begin(0, value).map(drop)
            }
            Err(error) => Err(error),
        }
    }
}
