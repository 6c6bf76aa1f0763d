//! The catalogue: what brings a dispersed table back when the database is lost, sealed, at every cloud.
//!
//! ```text
//! at a cloud   a table of fragments of its own: place u64 | one column of entries
//! entry        salt [16] | cell (coding/cells.rs) of the postcard form of Entry, under the key of the salt, as row `place`
//! place        the first 8 bytes of the salt
//! version      a root, which names the places of its parts | the parts
//! claim        of a client that is to tell the next version (claims.rs)
//! ```
//! 1. A root counts if all the parts that it names are there: of two versions, whichever a cut has left, one is whole.
//! 2. Of a table the highest version counts. What a newer one replaces is let go of when the newer one has arrived.
//! 3. Each entry has a salt of the system's generator, and so a key of its own: no key seals two.
//! 4. What a cloud shows was sealed by the owner, or is passed over; that it is the newest, only other clouds can say.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

use crate::claims::Claim;
use crate::coding::cells::Cells;
use crate::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use crate::kept::{Kept, Records};
use crate::keys::{Epoch, Purpose, Scope, Secret};
use crate::provider::{Failure, Provider};
use crate::watch::Watch;

const SALT_BYTES: usize = 16;
/// Bytes of an entry beside its names and contents at most.
const ENTRY_SPARE: usize = 64;
/// Entries, and parts of answers, that a cloud may show: some thousand tables of a thousand million rows.
const ENTRIES_MAX: usize = 1 << 20;
/// Of all tables: an entry names its own.
const NO_TABLE: [u8; 16] = [0; 16];

/// A table's number.
pub type TableNumber = [u8; 16];

/// What seals and opens the catalogue of a database.
#[derive(Clone)]
pub struct Catalogue {
    secret: Secret,
}

/// What was told to one cloud of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Counts what has changed; 0: nothing was told yet.
    pub version: u64,
    /// What the catalogue was called then; under another key it is another one.
    pub called: String,
    root: Option<u64>,
    parts: BTreeMap<Vec<u8>, (u64, [u8; 16])>,
}

/// A version of a table, as a cloud shows it.
pub struct Shown {
    /// Which table.
    pub table: TableNumber,
    /// Which version.
    pub version: u64,
    /// What is in it.
    pub parts: Records,
}

/// All that a cloud shows of the catalogue.
#[derive(Default)]
pub struct Contents {
    /// Of each table the newest version that is whole, and the places of all its entries but claims.
    pub tables: Vec<(Shown, BTreeSet<u64>)>,
    /// Claims by their places, and of which tables they are.
    pub claims: BTreeMap<u64, (TableNumber, Claim)>,
    /// Tables that are shown under another key since, and what that catalogue is called. They are not among the others.
    pub gone: BTreeMap<TableNumber, Name>,
    /// Of which table each entry is that opens, but for those that say that one is gone.
    pub owners: BTreeMap<u64, TableNumber>,
    /// The places of everything, whoever's it is.
    pub places: BTreeSet<u64>,
}

impl Contents {
    /// The claims of a table.
    #[must_use]
    pub fn claims_of(&self, table: &TableNumber) -> BTreeMap<u64, Claim> {
        let own = self.claims.iter().filter(|(_, (of, _))| of == table);
        own.map(|(place, (_, claim))| (*place, *claim)).collect()
    }

    /// The places of all that is shown of a table, whoever told it and whether it is whole.
    #[must_use]
    pub fn places_of(&self, table: &TableNumber) -> BTreeSet<u64> {
        self.owners.iter().filter(|(_, of)| *of == table).map(|(place, _)| *place).collect()
    }
}

#[derive(Serialize, Deserialize)]
enum Entry {
    Part { table: TableNumber, name: Vec<u8>, bytes: Vec<u8> },
    Root { table: TableNumber, version: u64, parts: Vec<(Vec<u8>, u64)> },
    Claim { table: TableNumber, claim: Claim },
    Gone { table: TableNumber, next: Name },
}

impl Entry {
    /// Bytes of its names and contents.
    fn bytes(&self) -> usize {
        match self {
            Self::Part { name, bytes, .. } => name.len() + bytes.len(),
            Self::Root { parts, .. } => parts.iter().map(|(name, _)| name.len() + ENTRY_SPARE).sum(),
            Self::Claim { .. } => size_of::<Claim>(),
            Self::Gone { next, .. } => next.as_str().len(),
        }
    }

    /// The table that it says is gone, and what it is shown in since.
    fn gone(&self) -> Option<(TableNumber, Name)> {
        match self {
            Self::Gone { table, next } => Some((*table, next.clone())),
            _ => None,
        }
    }

    fn table(&self) -> &TableNumber {
        match self {
            Self::Part { table, .. }
            | Self::Root { table, .. }
            | Self::Claim { table, .. }
            | Self::Gone { table, .. } => table,
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Self::Part { bytes, .. } = self {
            // Keys of tables are among them.
            bytes.zeroize();
        }
    }
}

impl Told {
    /// What a cloud was told that shows entries at these places in the catalogue of this name: to be told anew, above this version.
    #[must_use]
    pub fn anew(called: &Name, version: u64, places: &BTreeSet<u64>) -> Self {
        // No part is called so.
        let unknown = |place: &u64| (place.to_be_bytes().to_vec(), (*place, [0; 16]));
        let called = called.as_str().to_owned();
        Self { version, called, root: None, parts: places.iter().map(unknown).collect() }
    }

    /// Whether a cloud shows just this: this version, and all its entries.
    #[must_use]
    pub fn is_shown(&self, shown: &Shown, places: &BTreeSet<u64>) -> bool {
        self.root.is_some() && self.version == shown.version && self.places().is_subset(places)
    }

    /// Whether this is what a cloud was told last, but for what clouds have let go of since.
    #[must_use]
    pub fn is(&self, parts: &Records) -> bool {
        self.has(parts, |_| true)
    }

    /// Whether, of the parts that are meant, these are what a cloud was told last, but for what clouds have let go of since.
    pub(crate) fn has(&self, parts: &Records, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let counts = |name: &[u8]| is_meant(name) && Kept::is_worth_telling(name);
        let is_told = |(name, bytes): (&Vec<u8>, &Zeroizing<Vec<u8>>)| {
            self.parts.get(name).is_some_and(|(_, own)| *own == digest(bytes))
        };
        self.root.is_some()
            && self.parts.keys().filter(|name| counts(name)).count() == parts.keys().filter(|name| counts(name)).count()
            && parts.iter().filter(|(name, _)| counts(name)).all(is_told)
    }

    /// Places, ascending, of what this has and a newer one has not.
    #[must_use]
    pub fn replaced_by(&self, newer: &Self) -> Vec<u64> {
        self.places().difference(&newer.places()).copied().collect()
    }

    /// Places of all its entries.
    #[must_use]
    pub fn places(&self) -> BTreeSet<u64> {
        let parts = self.parts.values().map(|(place, _)| *place);
        parts.chain(self.root).collect()
    }
}

pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let whole = Sha256::digest(bytes);
    std::array::from_fn(|at| whole[at])
}

impl Catalogue {
    /// The catalogue under a secret that whoever brings the database back can have.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self { secret }
    }

    /// What it is called at clouds.
    #[must_use]
    pub fn name(&self) -> Name {
        Name::of_table(self.hash(b"table"))
    }

    /// What tells its files from others.
    #[must_use]
    pub fn files_key(&self) -> Secret {
        self.secret.derive(Purpose::Files, &Scope::table())
    }

    fn column(&self) -> Name {
        Name::of_column(self.hash(b"column"))
    }

    fn hash(&self, of: &[u8]) -> [u8; 8] {
        use hmac::Mac as _;
        let mut mac = self.secret.derive(Purpose::Names, &Scope::table()).mac();
        mac.update(of);
        let whole = mac.finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }

    fn cells(&self, salt: [u8; SALT_BYTES]) -> Cells {
        let key = self.secret.derive(Purpose::Catalogue, &Scope { epoch: Epoch(salt), ..Scope::table() });
        Cells::new(&key, &NO_TABLE, u16::MAX)
    }

    /// The entries that a cloud lacks of a version, and what it was told when it has them. `draw` gives salts that nobody foresees.
    ///
    /// # Errors
    /// What `draw` says.
    pub fn code<E>(
        &self,
        table: TableNumber,
        version: u64,
        parts: &Records,
        told: &Told,
        mut draw: impl FnMut() -> Result<[u8; SALT_BYTES], E>,
    ) -> Result<(Fragments, Told), E> {
        let mut coded = Fragments::default();
        let mut entries = Strings::default();
        let mut newer = Told { version, called: self.name().as_str().to_owned(), ..Told::default() };
        let mut add = |entry: &Entry| -> Result<u64, E> {
            let place = self.seal(entry, draw()?, &mut entries);
            coded.places.push(place);
            Ok(place)
        };
        for (name, bytes) in parts {
            let own = digest(bytes);
            let there = told.parts.get(name).filter(|(_, known)| *known == own);
            let place = match there {
                Some((place, _)) => *place,
                None => add(&Entry::Part { table, name: name.clone(), bytes: bytes.to_vec() })?,
            };
            newer.parts.insert(name.clone(), (place, own));
        }
        let named = newer.parts.iter().map(|(name, (place, _))| (name.clone(), *place)).collect();
        newer.root = Some(add(&Entry::Root { table, version, parts: named })?);
        coded.columns.push((self.column(), Data::Strings(entries)));
        Ok((coded, newer))
    }

    /// A claim, as an entry of its own. `salt`: one that nobody foresees.
    #[must_use]
    pub fn code_claim(&self, table: TableNumber, claim: Claim, salt: [u8; SALT_BYTES]) -> Fragments {
        let mut entries = Strings::default();
        let place = self.seal(&Entry::Claim { table, claim }, salt, &mut entries);
        Fragments { places: vec![place], columns: vec![(self.column(), Data::Strings(entries))] }
    }

    /// That a table is shown in the catalogue of this name from now on, as an entry of its own: whoever knows this key alone is to see that it
    /// was changed, at whichever cloud. `salt`: one that nobody foresees.
    #[must_use]
    pub fn code_gone(&self, table: TableNumber, next: Name, salt: [u8; SALT_BYTES]) -> Fragments {
        let mut entries = Strings::default();
        let place = self.seal(&Entry::Gone { table, next }, salt, &mut entries);
        Fragments { places: vec![place], columns: vec![(self.column(), Data::Strings(entries))] }
    }

    /// Seals an entry behind others; its place.
    fn seal(&self, entry: &Entry, salt: [u8; SALT_BYTES], entries: &mut Strings) -> u64 {
        let place = place(&salt);
        // As long as it becomes: a vector that grows leaves copies of secrets behind.
        let room = Vec::with_capacity(entry.bytes() + ENTRY_SPARE);
        let plain = Zeroizing::new(postcard::to_extend(entry, room).expect("memory takes what it is given"));
        entries.push_with(|bytes| {
            bytes.extend_from_slice(&salt);
            self.cells(salt).seal(place, Some(&plain), bytes);
        });
        place
    }

    /// Of each table the newest version that is whole, as a cloud shows them, and the places of all the entries that it shows of it.
    ///
    /// # Errors
    /// [`Failure`]; a cloud that has no catalogue shows none.
    pub fn read(&self, cloud: &dyn Provider, watch: &dyn Watch) -> Result<Vec<(Shown, BTreeSet<u64>)>, Failure> {
        self.contents(cloud, watch).map(|contents| contents.tables)
    }

    /// The places of all entries that a cloud shows, which is little to ask for.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn places(&self, cloud: &dyn Provider, watch: &dyn Watch) -> Result<BTreeSet<u64>, Failure> {
        let mut places = BTreeSet::new();
        self.ask(cloud, &Question::default(), &mut |answer| {
            places.extend(answer.rows.places);
            watch.part(0)
        })?;
        Ok(places)
    }

    /// All that a cloud shows.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn contents(&self, cloud: &dyn Provider, watch: &dyn Watch) -> Result<Contents, Failure> {
        let (mut entries, mut places) = (BTreeMap::new(), BTreeSet::new());
        let question = Question { columns: vec![self.column()], ..Question::default() };
        self.ask(cloud, &question, &mut |answer| {
            let column = answer.rows.column(&self.column()).filter(|_| answer.rows.is_even());
            let Some(Data::Strings(sealed)) = column else {
                return Err(Failure::Malformed("no entries of a catalogue".into()));
            };
            for sealed in sealed.iter() {
                watch.part(sealed.len())?;
                entries.extend(self.open(sealed));
            }
            places.extend(&answer.rows.places);
            watch.part(0)
        })?;
        let claims = entries.iter().filter_map(|(place, entry)| match entry {
            Entry::Claim { table, claim } => Some((*place, (*table, *claim))),
            _ => None,
        });
        let claims = claims.collect();
        let gone: BTreeMap<TableNumber, Name> = entries.values().filter_map(Entry::gone).collect();
        let of = |(place, entry): (&u64, &Entry)| entry.gone().is_none().then_some((*place, *entry.table()));
        let owners = entries.iter().filter_map(of).collect();
        let mut tables = newest(&entries);
        tables.retain(|(shown, _)| !gone.contains_key(&shown.table));
        Ok(Contents { tables, claims, gone, owners, places })
    }

    /// Asks for the whole catalogue, which has an end.
    fn ask(
        &self,
        cloud: &dyn Provider,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut left = ENTRIES_MAX;
        let mut counted = |answer: Answer| {
            let shown = answer.rows.places.len() + 1;
            left = left.checked_sub(shown).ok_or_else(|| Failure::Malformed("a catalogue without an end".into()))?;
            take(answer)
        };
        match cloud.ask(&self.name(), question, &mut counted) {
            // What a cloud has nothing of is no table for it.
            Err(Failure::NoTable) => Ok(()),
            answered => answered,
        }
    }

    fn open(&self, sealed: &[u8]) -> Option<(u64, Entry)> {
        let (salt, cell) = sealed.split_first_chunk::<SALT_BYTES>()?;
        let (place, mut plain) = (place(salt), Zeroizing::new(Vec::with_capacity(cell.len())));
        // Whether it is whole is seen when it is read.
        self.cells(*salt).open(place, cell, &mut plain).ok()?;
        Some((place, postcard::from_bytes(&plain).ok()?))
    }
}

fn place(salt: &[u8; SALT_BYTES]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|at| salt[at]))
}

/// Of each table the whole version with the highest number.
fn newest(entries: &BTreeMap<u64, Entry>) -> Vec<(Shown, BTreeSet<u64>)> {
    let mut newest: BTreeMap<TableNumber, (Shown, BTreeSet<u64>)> = BTreeMap::new();
    for entry in entries.values() {
        let Entry::Root { table, version, parts } = entry else { continue };
        if newest.get(table).is_some_and(|(known, _)| known.version >= *version) {
            continue;
        }
        let part = |(name, place): &(Vec<u8>, u64)| match entries.get(place) {
            Some(Entry::Part { table: own, name: called, bytes }) if own == table && called == name => {
                Some((name.clone(), Zeroizing::new(bytes.clone())))
            }
            _ => None,
        };
        let Some(parts) = parts.iter().map(part).collect::<Option<Records>>() else { continue };
        let of = |entry: &Entry| match entry {
            Entry::Part { table, .. } | Entry::Root { table, .. } => Some(*table),
            Entry::Claim { .. } | Entry::Gone { .. } => None,
        };
        let all = entries.iter().filter(|(_, entry)| of(entry) == Some(*table)).map(|(place, _)| *place).collect();
        newest.insert(*table, (Shown { table: *table, version: *version, parts }, all));
    }
    newest.into_values().collect()
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::{Catalogue, Told};
    use crate::fragments::{Data, Strings};
    use crate::kept::Records;
    use crate::keys::Secret;
    use crate::provider::{MemoryProvider, Provider as _};
    use crate::watch::Patient;

    const TABLE: [u8; 16] = [7; 16];

    fn catalogue() -> Catalogue {
        Catalogue::new(Secret::new([5; 32]))
    }

    fn parts(of: &[(&str, &str)]) -> Records {
        of.iter().map(|(name, bytes)| (name.as_bytes().to_vec(), Zeroizing::new(bytes.as_bytes().to_vec()))).collect()
    }

    /// Salts that are told apart.
    fn salts(from: u8) -> impl FnMut() -> Result<[u8; 16], ()> {
        let mut next = from;
        move || {
            next += 1;
            Ok([next; 16])
        }
    }

    fn shown(cloud: &MemoryProvider) -> Vec<(u64, Records, usize)> {
        let read = catalogue().read(cloud, &Patient).expect("an answer");
        read.into_iter().map(|(shown, all)| (shown.version, shown.parts, all.len())).collect()
    }

    #[test]
    fn what_was_told_is_shown_and_a_cut_leaves_one_version() {
        let (catalogue, cloud) = (catalogue(), MemoryProvider::default());
        assert!(shown(&cloud).is_empty());
        let first = parts(&[("h", "head"), ("l", "rows")]);
        let (coded, told) = catalogue.code(TABLE, 1, &first, &Told::default(), salts(0)).expect("salts");
        assert_eq!(coded.places.len(), 3);
        cloud.put(&catalogue.name(), &coded).expect("put");
        assert_eq!(shown(&cloud), [(1, first.clone(), 3)]);
        assert!(told.is(&first) && !Told::default().is(&parts(&[])));

        // What has not changed is not told again, and a root without all of its parts does not count.
        let second = parts(&[("h", "head"), ("l", "more rows")]);
        let (coded, newer) = catalogue.code(TABLE, 2, &second, &told, salts(100)).expect("salts");
        assert_eq!(coded.places.len(), 2);
        cloud.put(&catalogue.name(), &coded.chosen(&[1])).expect("put");
        assert_eq!(shown(&cloud), [(1, first.clone(), 4)]);
        cloud.put(&catalogue.name(), &coded).expect("put");
        assert_eq!(shown(&cloud), [(2, second.clone(), 5)]);
        cloud.remove(&catalogue.name(), &told.replaced_by(&newer)).expect("removed");
        assert_eq!(shown(&cloud), [(2, second.clone(), 3)]);

        // Told anew, nothing is left of what was there.
        let (shown_now, all) = catalogue.read(&cloud, &Patient).expect("an answer").remove(0);
        assert!(newer.is_shown(&shown_now, &all) && !told.is_shown(&shown_now, &all));
        let unknown = Told::anew(&catalogue.name(), 2, &all);
        assert!(!unknown.is(&second) && !unknown.is_shown(&shown_now, &all));
        let (coded, newer) = catalogue.code(TABLE, 3, &second, &unknown, salts(200)).expect("salts");
        cloud.put(&catalogue.name(), &coded).expect("put");
        cloud.remove(&catalogue.name(), &unknown.replaced_by(&newer)).expect("removed");
        assert_eq!(shown(&cloud), [(3, second, 3)]);
    }

    #[test]
    fn what_somebody_else_put_there_is_passed_over() {
        let (catalogue, cloud) = (catalogue(), MemoryProvider::default());
        let own = parts(&[("h", "head")]);
        let (coded, _) = catalogue.code(TABLE, 1, &own, &Told::default(), salts(0)).expect("salts");
        let other = Catalogue::new(Secret::new([6; 32]));
        let (theirs, _) = other.code(TABLE, 9, &own, &Told::default(), salts(50)).expect("salts");
        let Data::Strings(theirs) = &theirs.columns[0].1 else { panic!("entries") };
        let Data::Strings(ours) = &coded.columns[0].1 else { panic!("entries") };
        for at in 0..ours.get(0).len() {
            let mut changed = ours.get(0).to_vec();
            changed[at] ^= 1;
            assert!(catalogue.open(&changed).is_none(), "byte {at}");
        }
        let mut all = Strings::default();
        ours.iter().chain(theirs.iter()).chain([&b""[..], b"short"]).for_each(|entry| all.push(entry));
        let mixed = crate::fragments::Fragments {
            places: (0..all.len() as u64).collect(),
            columns: vec![(catalogue.column(), Data::Strings(all))],
        };
        cloud.put(&catalogue.name(), &mixed).expect("put");
        assert_eq!(shown(&cloud), [(1, own, 2)]);
    }

    #[test]
    fn lengths_are_those_of_classes() {
        let catalogue = catalogue();
        let lengths = |text: &str| {
            let (coded, _) =
                catalogue.code(TABLE, 1, &parts(&[("h", text)]), &Told::default(), salts(0)).expect("salts");
            let Data::Strings(entries) = &coded.columns[0].1 else { panic!("entries") };
            entries.iter().map(<[u8]>::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths("four"), lengths("fives"));
        assert_ne!(lengths("four"), lengths(&"x".repeat(100)));
    }
}
