//! A signed filter: which values the first column of an order has in a part of its domain, some false positives aside
//! (Scalable Verification, section 3.5).
//!
//! ```text
//! domain   01 ....... low ............ high ....... 02      encodings of values; NULL (02) is in no filter
//! message  H(definition, 5, rid, version, period, order, low, high, salt, bits)
//! ```
//! 1. A filter tells of the values from `low` on and before `high`. An owner's filters of an order tile its domain: each
//!    begins where the one before ends, the first at `01`, the last ends at `02`.
//! 2. It changes when the first row with a value comes or the last one goes, in the transaction in which that happens.
//! 3. What it denies is not there. What it does not deny proves nothing.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::filter::{FilterBits, Salt};
use crate::position::{KEY_BYTES_MAX, Position};
use crate::record::Stamp;
use crate::signature::Message;

/// The first number of filters. Records never come as far.
pub const FIRST_FILTER: u64 = 1 << 63;

/// What is signed is of this kind.
const KIND: u8 = 5;

/// Where the domain of each column begins: before the encodings of all values.
const DOMAIN_LOW: &[u8] = &[1];

/// Where it ends: behind the encodings of all values, at NULL.
const DOMAIN_HIGH: &[u8] = &[2];

/// Which values of an order's first column are there from one bound on and before another.
///
/// Invariant: `01` <= low < high <= `02`, neither longer than a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Filter {
    order: u8,
    low: Vec<u8>,
    high: Vec<u8>,
    bits: FilterBits,
}

/// Bounds are values of rows and reach no log.
impl core::fmt::Debug for Filter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Filter(..)")
    }
}

impl Filter {
    /// The filter of the values of `order` from `low` on and before `high`, which `bits` were built of.
    ///
    /// # Errors
    /// [`Malformed`]: bounds that are none, or nothing lies between.
    pub fn new(order: u8, low: Vec<u8>, high: Vec<u8>, bits: FilterBits) -> Result<Self, Malformed> {
        let fits = low.len() <= KEY_BYTES_MAX && high.len() <= KEY_BYTES_MAX;
        if fits && DOMAIN_LOW <= &low[..] && low < high && &high[..] <= DOMAIN_HIGH {
            Ok(Self { order, low, high, bits })
        } else {
            Err(Malformed("the bounds of a filter"))
        }
    }

    /// The bounds of a filter of all values.
    #[must_use]
    pub fn whole_domain() -> (Vec<u8>, Vec<u8>) {
        (DOMAIN_LOW.to_vec(), DOMAIN_HIGH.to_vec())
    }

    /// Of which order's first column.
    #[must_use]
    pub fn order(&self) -> u8 {
        self.order
    }

    /// Where it begins: an encoding of a value, or `01`.
    #[must_use]
    pub fn low(&self) -> &[u8] {
        &self.low
    }

    /// Where it ends, itself not included: an encoding of a value, or `02`.
    #[must_use]
    pub fn high(&self) -> &[u8] {
        &self.high
    }

    /// The values.
    #[must_use]
    pub fn bits(&self) -> &FilterBits {
        &self.bits
    }

    /// Whether it tells of an encoded value.
    #[must_use]
    pub fn covers(&self, value: &[u8]) -> bool {
        &self.low[..] <= value && value < &self.high[..]
    }

    /// Whether it says that an encoded value is not there.
    #[must_use]
    pub fn denies(&self, value: &[u8]) -> bool {
        self.covers(value) && !self.bits.may_contain(value)
    }

    /// Where it stands among the filters of its order: positions sort as the lower bounds do.
    #[must_use]
    pub fn place(&self) -> Position {
        Self::place_of(&self.low).unwrap_or_else(|_| unreachable!("a bound is no longer than a key"))
    }

    /// Where a filter with this lower bound stands: the filter of a value is the last that stands there or before.
    ///
    /// # Errors
    /// [`Malformed`]: longer than a key.
    pub fn place_of(value: &[u8]) -> Result<Position, Malformed> {
        // No encoding begins another, but `01` all of them: with zeros behind each it stays the first.
        Position::of(value, 0)
    }

    /// What is signed.
    #[must_use]
    pub fn message(&self, definition: &Digest, stamp: &Stamp) -> Message {
        let [rid, version, period] = [stamp.rid, stamp.version, stamp.period].map(u64::to_be_bytes);
        let length = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes();
        let (low, high) = (length(&self.low), length(&self.high));
        let bits = self.bits.to_bytes();
        Message(digest(
            "counterfoil/filter/1",
            &[
                definition,
                &[KIND],
                &rid,
                &version,
                &period,
                &[self.order],
                &low,
                &self.low,
                &high,
                &self.high,
                self.bits.salt(),
                &bits,
            ],
        ))
    }

    /// Appends all but the order: in an answer that is the question's. A lower bound that is `before`, the upper one of
    /// the filter before, is not written again.
    pub fn write(&self, writer: &mut Writer, before: &[u8]) {
        writer.string(if self.low == before { &[] } else { &self.low }).string(&self.high);
        writer.raw(self.bits.salt()).string(&self.bits.to_bytes());
    }

    /// Reads what [`Filter::write`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(reader: &mut Reader<'_>, order: u8, before: &[u8]) -> Result<Self, Malformed> {
        let low = match reader.string()? {
            [] => before,
            low if low == before => return Err(reader.malformed()),
            low => low,
        };
        let high = reader.string()?;
        let salt: Salt = reader.array()?;
        Self::new(order, low.to_vec(), high.to_vec(), FilterBits::parse(salt, reader.string()?)?)
    }
}
