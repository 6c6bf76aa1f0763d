//! What a database has seen of the published tables that it reads: sealed with everything else, and bound to its counter, so that
//! no server can go back behind it.
//!
//! ```text
//! record of space SETTING: "seen/" owner (32) name     01, string memory, string definition     (proof::bytes; SPEC.md)
//! ```
//! A question that sees something newer writes it before it gives its rows. Where it cannot (its own statement has the writer,
//! or another process has it, or the database is only read) it is kept in the memory of the process, and written later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use counterfoil_log::{View, Writer, record_space};
use counterfoil_proof::bytes::{Reader, Writer as Encoder};
use counterfoil_proof::{Definition, Malformed, Owner};
use counterfoil_reader::Memory;
use parking_lot::Mutex;

use crate::database::Database;
use crate::error::{Error, Kind, Result};

/// Bytes of a published table's name at most: it has to fit into the name of a record.
pub(super) const NAME_BYTES_MAX: usize = 200;

/// How long a question waits for the writer, at most: its rows are verified and wait too.
const PATIENCE: Duration = Duration::from_millis(200);
/// After a refusal it is not tried again for so long.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What is kept of a published table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    /// What was seen: nothing older counts any more.
    pub memory: Memory,
    /// What the table is, so that questions are planned without a server.
    pub definition: Definition,
}

impl Kept {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.byte(1).string(&self.memory.to_bytes()).string(&self.definition.to_bytes());
        encoder.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).map_err(|what| Error::new(Kind::Corrupt, format!("{what} is damaged")))
    }

    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "what is kept of a published table");
        if reader.byte()? != 1 {
            return Err(reader.malformed());
        }
        let (memory, definition) = (Memory::from_bytes(reader.string()?)?, Definition::from_bytes(reader.string()?)?);
        reader.end()?;
        Ok(Self { memory, definition })
    }

    fn is_as_new_as(&self, other: &Self) -> bool {
        self.memory.is_as_new_as(&other.memory)
    }
}

/// The name of the record of a table.
pub(super) fn record_name(owner: &Owner, table: &str) -> Vec<u8> {
    [b"seen/", &owner.bytes()[..], table.as_bytes()].concat()
}

/// What is written of a table.
pub(super) fn written(view: &dyn View, name: &[u8]) -> Result<Option<Kept>> {
    view.record(record_space::SETTING, name).map(|bytes| Kept::from_bytes(&bytes)).transpose()
}

/// Writes it, unless something newer is there.
pub(super) fn write(writer: &mut Writer, name: &[u8], kept: &Kept) -> Result<()> {
    if written(writer, name)?.is_some_and(|there| there == *kept || !kept.is_as_new_as(&there)) {
        return Ok(());
    }
    Ok(writer.put_record(record_space::SETTING, name, &kept.to_bytes())?)
}

/// What this process has seen.
#[derive(Default)]
pub(super) struct Seen(Mutex<BTreeMap<Vec<u8>, Noted>>);

struct Noted {
    kept: Kept,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Written, or about to be as part of a transaction.
    Written,
    /// The statement that saw it had the writer itself.
    Waiting,
    /// It could not be written then.
    Refused(Instant),
}

impl Seen {
    /// The newest that is known of a table.
    pub fn newest(&self, database: &Database, name: &[u8]) -> Result<Option<Kept>> {
        let written = written(&database.snapshot()?, name)?;
        let ours = self.0.lock().get(name).map(|noted| noted.kept.clone());
        Ok(match (written, ours) {
            (Some(written), Some(ours)) if !ours.is_as_new_as(&written) => Some(written),
            (written, ours) => ours.or(written),
        })
    }

    /// It was seen by a statement that keeps it in its own transaction.
    pub fn note(&self, name: &[u8], kept: Kept) {
        self.0.lock().insert(name.to_vec(), Noted { kept, state: State::Written });
    }

    pub fn forget(&self, name: &[u8]) {
        self.0.lock().remove(name);
    }

    /// It was seen by a question: written at once if it `may_write`, otherwise when somebody calls [`Seen::write_waiting`]. Says
    /// what speaks against it.
    pub fn keep(&self, database: &Database, name: &[u8], kept: &Kept, may_write: bool) -> Option<String> {
        let is_written = database.snapshot().and_then(|snapshot| written(&snapshot, name));
        {
            let mut seen = self.0.lock();
            let before = seen.get(name);
            // Of two questions asked at once, the one to a slow server may have seen less.
            if before.is_some_and(|before| !kept.is_as_new_as(&before.kept)) {
                return None;
            }
            let is_soon = |at: Instant| at.elapsed() < RETRY_AFTER;
            let state = match before.map(|before| before.state) {
                _ if matches!(&is_written, Ok(Some(there)) if there == kept) => State::Written,
                Some(State::Refused(at)) if is_soon(at) => State::Refused(at),
                _ => State::Waiting,
            };
            seen.insert(name.to_vec(), Noted { kept: kept.clone(), state });
        }
        if may_write { self.write_waiting(database) } else { None }
    }

    /// Whether something waits to be written.
    pub fn waits(&self) -> bool {
        self.0.lock().values().any(|noted| noted.state == State::Waiting)
    }

    /// Writes what waits; says what speaks against it.
    pub fn write_waiting(&self, database: &Database) -> Option<String> {
        let waiting: Vec<(Vec<u8>, Kept)> = {
            let seen = self.0.lock();
            let waiting = seen.iter().filter(|(_, noted)| noted.state == State::Waiting);
            waiting.map(|(name, noted)| (name.clone(), noted.kept.clone())).collect()
        };
        if waiting.is_empty() {
            return None;
        }
        let done = database
            .change_within(PATIENCE, |writer| waiting.iter().try_for_each(|(name, kept)| write(writer, name, kept)));
        let state = if done.is_ok() { State::Written } else { State::Refused(Instant::now()) };
        let mut seen = self.0.lock();
        for (name, kept) in &waiting {
            if let Some(noted) = seen.get_mut(name).filter(|noted| noted.kept == *kept) {
                noted.state = state;
            }
        }
        let told = |error: Error| {
            format!(
                "what was seen of published tables is remembered by this process alone, until it can be written: {error}"
            )
        };
        done.err().map(told)
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_mirror::site::{Folder, write as write_site};
    use counterfoil_proof::{Column, Scheme, Type};
    use counterfoil_publish::{MemoryLedger, Plan, Publication, Secrets};
    use counterfoil_reader::{Opened, Terms};

    use super::*;

    /// What is kept of a table in a folder of its own.
    fn kept() -> Kept {
        let columns = vec![Column { name: "n".into(), kind: Type::Integer }];
        let (orders, nodes, filters) = (vec![vec![0]], Vec::new(), Vec::new());
        let scheme = Scheme::PerRecord;
        let definition = Definition { table: [9; 16], name: "t".into(), columns, orders, scheme, nodes, filters };
        let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
        let mut publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        publication.close_period(2000).expect("a summary");
        let (summaries, folder) = (publication.summaries().expect("summaries"), tempfile::tempdir().expect("a folder"));
        write_site(publication.shelf(), publication.manifest(), &summaries, folder.path()).expect("a site");
        let owner = publication.owner();
        let terms = Terms { owner, now: 3000, clock_error: 0, max_age: u64::MAX, hints: true };
        let mut memory = None;
        let opened = Opened::at(Folder(folder.path().into()), "t", &terms, &mut memory).expect("a table");
        Kept { memory: memory.expect("seen"), definition: opened.definition().clone() }
    }

    /// SPEC.md, "Published tables of others".
    #[test]
    fn what_is_kept_is_laid_out_as_the_specification_says() {
        let kept = kept();
        let bytes = kept.to_bytes();
        let mut reader = Reader::new(&bytes, "test");
        assert_eq!(reader.byte(), Ok(1));
        let mut seen = Reader::new(reader.string().expect("what was seen"), "test");
        assert_eq!(seen.raw(17).map(<[u8]>::to_vec), Ok([&[2][..], &[9; 16]].concat()));
        let (issued, serial) = (seen.number(), seen.number());
        assert!(issued == Ok(1000) && serial.is_ok());
        seen.raw(32).expect("the manifest's digest");
        seen.number().expect("the last period");
        seen.raw(32 + 96).expect("its summary's digest, and the key");
        seen.raw(8).expect("the sum of all that");
        assert_eq!(seen.end(), Ok(()));
        assert_eq!(reader.string().map(<[u8]>::to_vec), Ok(kept.definition.to_bytes()));
        assert_eq!(reader.end(), Ok(()));
        assert_eq!(Kept::from_bytes(&bytes).ok(), Some(kept));
        for length in 0..bytes.len() {
            assert!(Kept::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Kept::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        let name = record_name(&Owner::from_bytes([3; 32]), "t");
        assert_eq!(name, [b"seen/", &[3; 32][..], b"t"].concat());
    }
}
