//! A signed filter as it is kept.

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Definition, FIRST_FILTER, Filter, Hint, Malformed, Signature};

/// A signed filter. Its bytes stand where those of records, heads and tails do: its number tells which it is.
#[derive(Clone, PartialEq)]
pub struct SignedFilter {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// What it says.
    pub filter: Filter,
    /// The owner's signature.
    pub signature: Signature,
    /// What makes checking fast.
    pub hint: Hint,
}

impl SignedFilter {
    /// Whether what is kept under this number is a filter.
    #[must_use]
    pub fn is_number(rid: u64) -> bool {
        rid >= FIRST_FILTER
    }

    /// Whether bytes of something kept are those of a filter.
    #[must_use]
    pub fn are(bytes: &[u8]) -> bool {
        Reader::new(bytes, "").number().is_ok_and(Self::is_number)
    }

    /// As bytes, to be kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.stamp.write(&mut writer);
        self.filter.write(writer.byte(self.filter.order()), &[]);
        writer.raw(&self.signature.to_uncompressed()).raw(&self.hint.0);
        writer.0
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// [`Malformed`]: no filter, or one of an order that has none.
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a signed filter");
        let stamp = Stamp::read(&mut reader)?;
        let order = reader.byte()?;
        if !Self::is_number(stamp.rid) || !definition.filters.contains(&order) {
            return Err(Malformed("a filter of an order that has none"));
        }
        let filter = Filter::read(&mut reader, order, &[])?;
        let signature = Signature::from_bytes(reader.raw(96)?).map_err(|_| Malformed("the signature of a filter"))?;
        let hint = Hint(reader.array()?);
        reader.end()?;
        Ok(Self { stamp, filter, signature, hint })
    }
}

/// Where a store that keeps orders keeps the filters of one: beside them, as an order of its own.
#[must_use]
pub fn filters_of(order: u8) -> u8 {
    order | 0x40
}
