//! An answer from two tables that is kept, with all that it takes to check it again.
//!
//! ```text
//! "counterfoil joined answer 1\n"   string the SQL   32 bytes the owner   number when it was asked
//! for each table: string manifest, number of summaries, each a string, 0, or 1 (2: with hints) and a string: the answer
//! ```

use counterfoil_ask::{AskedJoin, TEXT_BYTES_MAX, Table};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Chain, Malformed, Owner, TrustedManifest};

use crate::error::Error;
use crate::joining::{first_rows, second_rows};
use crate::reading::Proof;
use crate::terms::Terms;
use crate::verdict::Verdict;

/// The digit is the version of this layout and of the way from SQL to questions, as for kept answers of one table.
const MARK: &[u8] = b"counterfoil joined answer 1\n";

/// An answer from two tables that is kept, with all that it takes to check it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptJoin {
    pub(crate) owner: Owner,
    pub(crate) at: u64,
    pub(crate) hints: bool,
    pub(crate) sql: String,
    pub(crate) proofs: [Proof; 2],
}

impl KeptJoin {
    /// Whether kept bytes say that they are of two tables.
    #[must_use]
    pub fn are(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK[..MARK.len() - 2])
    }

    /// As it is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.raw(MARK).string(self.sql.as_bytes()).raw(self.owner.bytes()).number(self.at);
        self.proofs.iter().for_each(|proof| proof.write(self.hints, &mut writer));
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
        if reader.raw(MARK.len())? != MARK {
            return Err(if Self::are(bytes) { Malformed("it is of a later version") } else { reader.malformed() });
        }
        let sql = str::from_utf8(reader.string()?).map_err(|_| reader.malformed())?.to_owned();
        if sql.len() > TEXT_BYTES_MAX {
            return Err(reader.malformed());
        }
        let (owner, at) = (Owner::from_bytes(reader.array()?), reader.number()?);
        let [(first, has_hints), (second, also_has_hints)] = [Proof::read(&mut reader)?, Proof::read(&mut reader)?];
        reader.end()?;
        // The second table is asked on the same terms, if at all.
        if second.answer.is_some() && has_hints != also_has_hints {
            return Err(Malformed("answers on two terms"));
        }
        Ok(Self { owner, at, hints: has_hints, sql, proofs: [first, second] })
    }

    /// Whose tables it says to be of, as [`crate::Kept::owner`].
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What was asked.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// When it was asked, as the file says: milliseconds since 1970.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Checks it again as of when it was asked, as [`crate::Kept::check`].
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Sql`].
    pub fn check(&self, owner: &Owner, clock_error: u64) -> Result<(Table, Verdict), Error> {
        let terms = Terms { owner: *owner, now: self.at, clock_error, max_age: u64::MAX, hints: self.hints };
        let held = |proof: &Proof| -> Result<_, Error> {
            let manifest = TrustedManifest::check(&proof.manifest, owner, 0)?;
            let chain = Chain::check(&manifest, proof.summaries.iter().map(Vec::as_slice))?;
            Ok((manifest, chain))
        };
        let [first, second] = [held(&self.proofs[0])?, held(&self.proofs[1])?];
        let definition = |manifest: &TrustedManifest| manifest.manifest().definition.clone();
        let asked = AskedJoin::parse(&self.sql, &definition(&first.0), &definition(&second.0))?;
        let [answer, other] = [&self.proofs[0].answer, &self.proofs[1].answer].map(Option::as_deref);
        let (rows, first_verdict) = first_rows(&asked, (&first.0, &first.1), answer, &terms)?;
        let (table, second_verdict) = second_rows(&asked, (&second.0, &second.1), rows, other, &terms)?;
        Ok((table, Verdict::of_both(&first_verdict, &second_verdict)))
    }
}

impl Proof {
    fn write(&self, hints: bool, writer: &mut Writer) {
        writer.string(&self.manifest).number(self.summaries.len() as u64);
        for summary in &self.summaries {
            writer.string(summary);
        }
        writer.byte(self.answer.as_ref().map_or(0, |_| 1 + u8::from(hints)));
        self.answer.iter().for_each(|answer| {
            writer.string(answer);
        });
    }

    /// With whether the answer has hints.
    fn read(reader: &mut Reader<'_>) -> Result<(Self, bool), Malformed> {
        let manifest = reader.string()?.to_vec();
        let mut summaries = Vec::new();
        for _ in 0..reader.count()? {
            summaries.push(reader.string()?.to_vec());
        }
        let (answer, has_hints) = match reader.byte()? {
            0 => (None, false),
            with @ (1 | 2) => (Some(reader.string()?.to_vec()), with == 2),
            _ => return Err(reader.malformed()),
        };
        Ok((Self { manifest, summaries, answer }, has_hints))
    }
}
