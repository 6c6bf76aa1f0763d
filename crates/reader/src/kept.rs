//! An answer that is kept, with all that it takes to check it again.
//!
//! ```text
//! "counterfoil answer 1\n"   then, as `proof::bytes` writes them:
//! string  the SQL                          32 bytes  the owner
//! number  when it was asked, milliseconds since 1970 by the reader's clock
//! string  manifest         number of summaries, each a string         0, or 1 (2: with hints) and a string: the answer
//! ```

use counterfoil_ask::{Asked, TEXT_BYTES_MAX, Table};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Chain, Malformed, Owner, TrustedManifest};

use crate::error::Error;
use crate::reading::checked;
use crate::terms::Terms;
use crate::verdict::Verdict;

/// Bytes of a kept answer at most.
pub const KEPT_BYTES_MAX: usize = 1 << 30;

/// The last digit is the version of this layout and of the way from SQL to a question: a proof is of a question, and the
/// reader makes that from the text again.
const MARK: &[u8] = b"counterfoil answer 1\n";

/// An answer that is kept, with all that it takes to check it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub(crate) owner: Owner,
    pub(crate) at: u64,
    pub(crate) hints: bool,
    pub(crate) sql: String,
    pub(crate) manifest: Vec<u8>,
    pub(crate) summaries: Vec<Vec<u8>>,
    pub(crate) answer: Option<Vec<u8>>,
}

impl Kept {
    /// As it is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.raw(MARK).string(self.sql.as_bytes()).raw(self.owner.bytes()).number(self.at);
        writer.string(&self.manifest).number(self.summaries.len() as u64);
        for summary in &self.summaries {
            writer.string(summary);
        }
        writer.byte(self.answer.as_ref().map_or(0, |_| 1 + u8::from(self.hints)));
        self.answer.iter().for_each(|answer| {
            writer.string(answer);
        });
        writer.0
    }

    /// What was kept. Nothing of it is checked yet.
    ///
    /// # Errors
    /// [`Error::NotKept`]: something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).map_err(Error::NotKept)
    }

    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "the file is none, or ends early");
        if reader.raw(MARK.len()).is_ok_and(|mark| mark != MARK) {
            let known = bytes.starts_with(&MARK[..MARK.len() - 2]);
            return Err(if known { Malformed("it is of a later version") } else { reader.malformed() });
        }
        let sql = str::from_utf8(reader.string()?).map_err(|_| reader.malformed())?.to_owned();
        if sql.len() > TEXT_BYTES_MAX {
            return Err(reader.malformed());
        }
        let (owner, at) = (Owner::from_bytes(reader.array()?), reader.number()?);
        let manifest = reader.string()?.to_vec();
        let mut summaries = Vec::new();
        for _ in 0..reader.count()? {
            summaries.push(reader.string()?.to_vec());
        }
        let (hints, answer) = match reader.byte()? {
            0 => (false, None),
            with @ (1 | 2) => (with == 2, Some(reader.string()?.to_vec())),
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        Ok(Self { owner, at, hints, sql, manifest, summaries, answer })
    }

    /// Whose table it says to be of. Whether that is so, [`Kept::check`] finds out; whether it is the right one, only whoever
    /// knows the owner.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What was asked.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The owner's word on the table, as a mirror served it.
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// The summaries of changes from period 0 on, as a mirror served them.
    #[must_use]
    pub fn summaries(&self) -> &[Vec<u8>] {
        &self.summaries
    }

    /// The answer to the question that the text asks; none where nothing can match, so that nobody was asked.
    #[must_use]
    pub fn answer(&self) -> Option<&[u8]> {
        self.answer.as_deref()
    }

    /// When it was asked, as the file says: milliseconds since 1970.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Checks it again. Keys expire and clocks go on: it is checked as of when it was asked, and the verdict tells how old it
    /// was then. That it was asked at that time is what the file says, and nobody signed it; what the owner signed, and as of
    /// when, is proved.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Sql`].
    pub fn check(&self, owner: &Owner, clock_error: u64) -> Result<(Table, Verdict), Error> {
        let terms = Terms { owner: *owner, now: self.at, clock_error, max_age: u64::MAX, hints: self.hints };
        let manifest = TrustedManifest::check(&self.manifest, owner, 0)?;
        let chain = Chain::check(&manifest, self.summaries.iter().map(Vec::as_slice))?;
        let asked = Asked::parse(&self.sql, &manifest.manifest().definition)?;
        checked(&asked, &manifest, &chain, self.answer.as_deref(), &terms)
    }
}
