//! As much of a summary as a mirror reads, to see that none is missing. Its signature is the readers' affair.

use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Digest, Malformed, SUMMARY_BYTES_MAX};

use super::digest;

/// How a summary begins, and its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryHead {
    /// The digest of the table's definition.
    pub definition: Digest,
    /// Which period.
    pub period: u64,
    /// The digest of the summary of the period before.
    pub before: Digest,
    /// Its own digest.
    pub digest: Digest,
}

impl SummaryHead {
    /// Reads it from a summary as it is served.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn of(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > SUMMARY_BYTES_MAX {
            return Err(Malformed("a summary of changes of more than 32 megabytes"));
        }
        let mut reader = Reader::new(bytes, "a summary of changes");
        let body = reader.string()?;
        reader.raw(48)?;
        reader.end()?;
        let mut reader = Reader::new(body, "a summary of changes");
        if !matches!(reader.byte()?, 1 | 2) {
            return Err(reader.malformed());
        }
        let (definition, period, before) = (reader.array()?, reader.number()?, reader.array()?);
        Ok(Self { definition, period, before, digest: digest("counterfoil/summary/1", body) })
    }
}
