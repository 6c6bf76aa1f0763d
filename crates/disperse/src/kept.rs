//! What is kept of a dispersed table in the sealed database, as records.
//!
//! ```text
//! i                                 06 | incidents u64
//! h layout u32                      the secret [32] | declaration, epochs, clouds that have dropped it (postcard)
//! l layout u32 | chunk u32          live rows of a chunk of 2^20 row numbers (Roaring bitmap of their lower 32 bits, portable format)
//! a layout u32 | cloud u16 | chunk u32    rows that a cloud may lack
//! k layout u32 | cloud u16 | chunk u32    rows that are gone and that a cloud may still have
//! o layout u32 | cloud u16 | chunk u32    live rows that a cloud may lack, as another client told them
//! c name of a cloud                 what the cloud was told of the catalogue (postcard)
//! v                                 the last version of the catalogue that may have been told, u64
//! w                                 for each client the last version that it told: client [16] | version u64, ascending
//! d                                 the digest [16] of what was learned of other clients last
//! ```
//! Numbers in names are big-endian. A chunk that is empty has no record. A change writes the records that differ, in the commit of
//! the rows that it is about; none of them is longer than 128 KiB and a head, however many rows come and go.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::catalogue::{Told, digest};
use crate::claims::Client;
use crate::coder::Epochs;
use crate::declaration::{Column, Declaration};
use crate::keys::{Epoch, Secret};
use crate::layout::Layout;
use crate::state::{Rows, State, Untold};

/// Row numbers of a chunk.
const CHUNK_BITS: u32 = 20;
const VERSION: u8 = 6;
/// Those before, which are read: without what clouds are owed, and the first of them without who has told clouds.
const VERSIONS_BEFORE: std::ops::Range<u8> = 4..VERSION;

/// Records by name.
pub type Records = BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>;

/// A dispersed table as it is kept.
#[derive(Clone)]
pub struct Kept {
    /// Its layouts, by their numbers: rows come to the last one; others have rows that have not moved there yet.
    layouts: Vec<Layout>,
    /// How many incidents of the database clouds were asked about: after others it may be an earlier one than clouds know.
    pub incidents: u64,
    /// What each cloud was told of the catalogue, by what people call it.
    pub told: BTreeMap<String, Told>,
    /// The last version of the catalogue that any cloud may have seen.
    pub version: u64,
    /// For each client the last version that it told, as far as this one is made of those.
    pub writers: BTreeMap<Client, u64>,
    /// What [`Kept::summary`] was when it was learned from other clients.
    learned: Option<[u8; 16]>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    declaration: Declaration,
    epochs: Vec<(u64, [u8; 16])>,
    dropped: BTreeSet<u16>,
}

/// Records that are not those of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

impl Damaged {
    /// They are not damaged, but of another version.
    pub const OTHER_VERSION: Self = Self("records of another version of this program");
}

impl Kept {
    /// A table without rows.
    #[must_use]
    pub fn new(secret: Secret, declaration: Declaration, incidents: u64) -> Self {
        let state = State::new(declaration.clouds.len());
        let layout = Layout { number: 0, secret, declaration, state, dropped: BTreeSet::new() };
        Self {
            layouts: vec![layout],
            incidents,
            told: BTreeMap::new(),
            version: 0,
            writers: BTreeMap::new(),
            learned: None,
        }
    }

    /// The layout to which rows come.
    #[must_use]
    pub fn current(&self) -> &Layout {
        self.layouts.last().expect("a table has a layout")
    }

    /// The same, to be changed.
    pub fn current_mut(&mut self) -> &mut Layout {
        self.layouts.last_mut().expect("a table has a layout")
    }

    /// All layouts, the current one last.
    #[must_use]
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// The same, to be changed.
    pub fn layouts_mut(&mut self) -> &mut [Layout] {
        &mut self.layouts
    }

    /// A layout by its number; none: it is gone.
    pub fn layout_mut(&mut self, number: u32) -> Option<&mut Layout> {
        self.layouts.iter_mut().find(|layout| layout.number == number)
    }

    /// What was declared last.
    #[must_use]
    pub fn declaration(&self) -> &Declaration {
        &self.current().declaration
    }

    /// The rows that lie at clouds, in whichever layout.
    #[must_use]
    pub fn live(&self) -> Rows {
        self.layouts.iter().fold(Rows::new(), |all, layout| all | &layout.state.live)
    }

    /// A number behind those of all rows that any cloud may have.
    #[must_use]
    pub fn after_all(&self) -> u64 {
        self.layouts.iter().map(|layout| layout.state.after_all()).max().unwrap_or(0)
    }

    /// Rows are not to be there any more, wherever they lie.
    pub fn gone(&mut self, rows: &Rows) {
        self.layouts.iter_mut().for_each(|layout| layout.state.gone(rows));
    }

    /// Rows come to another layout from here on. `epoch`: fresh, of all rows that there are now.
    pub fn begin(&mut self, secret: Secret, declaration: Declaration, epoch: Epoch) {
        let last = self.current_mut();
        // What is on its way is still here, or live in a layout before: it goes to the new one instead.
        let back = last.on_their_way();
        last.state.gone(&back);
        let mut state = State::new(declaration.clouds.len());
        state.epochs.begin(0, epoch);
        let number = last.number + 1;
        self.layouts.push(Layout { number, secret, declaration, state, dropped: BTreeSet::new() });
    }

    /// The layout from which rows are to move next, and rows of it, at most so many; none: all have moved.
    #[must_use]
    pub fn to_move(&self, most: usize) -> Option<(u32, Rows)> {
        let (_, before) = self.layouts.split_last()?;
        let from = before.iter().find(|layout| !layout.state.live.is_empty())?;
        Some((from.number, from.state.live.iter().take(most).collect()))
    }

    /// Rows are about to be put at the current layout's clouds: to be durable before they are. Those of them that are still to move.
    pub fn moving(&mut self, from: u32, rows: &Rows) -> Rows {
        let Some(before) = self.layouts.iter().find(|layout| layout.number == from) else { return Rows::new() };
        let moving = &before.state.live & rows;
        // Of those that were on their way before a cut some clouds have been told already.
        let new = &moving - &self.current().on_their_way();
        self.current_mut().state.leaving(new.iter());
        moving
    }

    /// Those of some rows that the current layout's clouds all have lie there from now on, and nowhere else.
    pub fn moved(&mut self, from: u32, rows: &Rows) {
        let Some(before) = self.layouts.iter().find(|layout| layout.number == from) else { return };
        let there = &before.state.live & rows;
        let settled = self.current_mut().state.settle(&there);
        // Its clouds keep them until it is dropped as a whole: whoever reads an older snapshot finds them there meanwhile.
        self.layouts.iter_mut().filter(|layout| layout.number == from).for_each(|layout| layout.state.leave(&settled));
    }

    /// Some rows are found to lie in the current layout already: this was not known here, for the database was put back.
    pub fn have_moved(&mut self, from: u32, rows: &Rows) {
        let current = self.current().number;
        let Some(before) = self.layout_mut(from).filter(|layout| layout.number != current) else { return };
        let moved = &before.state.live & rows;
        before.state.leave(&moved);
        let state = &mut self.current_mut().state;
        state.untold.iter_mut().for_each(|untold| untold.lacks -= &moved);
        state.live |= moved;
    }

    /// A cloud has let go of all of a layout that has no rows any more; forgotten is the layout when all of its clouds have.
    pub fn dropped(&mut self, number: u32, cloud: usize) {
        let current = self.current().number;
        let Some(layout) = self.layout_mut(number).filter(|own| own.number != current && own.state.live.is_empty())
        else {
            return;
        };
        layout.dropped.insert(cloud as u16);
        self.layouts.retain(|layout| layout.number == current || !layout.is_over());
        let layouts = &self.layouts;
        self.told.retain(|name, _| layouts.iter().any(|layout| layout.declaration.clouds.contains(name)));
    }

    /// Whether all that clients have told who made another one is in this one, too; but for one of them, if that is said.
    #[must_use]
    pub fn has_all_of(&self, other: &Self, but: Option<&Client>) -> bool {
        let mut told = other.writers.iter().filter(|(client, _)| Some(*client) != but);
        told.all(|(client, version)| self.writers.get(client).is_some_and(|own| own >= version))
    }

    /// What these clients have told is known here.
    pub fn note_writers(&mut self, writers: &BTreeMap<Client, u64>) {
        for (client, version) in writers {
            let own = self.writers.entry(*client).or_default();
            *own = (*own).max(*version);
        }
    }

    /// Notes that this is what others have told, and nothing of its own.
    pub fn note_learned(&mut self) {
        self.learned = Some(self.summary());
    }

    /// Whether there is nothing here that no cloud was told of.
    #[must_use]
    pub fn is_told(&self) -> bool {
        let parts = self.to_parts();
        self.learned == Some(self.summary())
            || self.told.values().any(|told| told.has(&parts, |name| self.counts(name)))
    }

    /// Whether a part of a catalogue is one of these records, and nobody may lose it. How clouds let go of a layout without rows is none: whoever
    /// has not heard of it lets go of it once more, which does nothing. (That rows of it are gone is told by their own records.)
    fn counts(&self, name: &[u8]) -> bool {
        let is_left = |number: &[u8]| {
            let of = |layout: &&Layout| layout.number.to_be_bytes() == *number;
            let layout = self.layouts.iter().find(of);
            layout.is_none_or(|layout| layout.number != self.current().number && layout.state.live.is_empty())
        };
        Self::is_of_rows(name) && !name.strip_prefix(b"h").is_some_and(is_left)
    }

    /// Whether a part of a catalogue is one of these records, and not about whose database it is of.
    fn is_of_rows(name: &[u8]) -> bool {
        matches!(name.first(), Some(b'w' | b'h' | b'l' | b'a' | b'k' | b'o'))
    }

    /// Whether a record is one of which clouds hear as soon as it changes. That they have let go of something they hear with the next
    /// change: to let go of it again does nothing.
    pub(crate) fn is_worth_telling(name: &[u8]) -> bool {
        name.first() != Some(&b'k')
    }

    /// Whether rows lie as they do there.
    #[must_use]
    pub fn lies_as(&self, other: &Self) -> bool {
        self.current().is(other.current())
    }

    /// Whether rows are on their way that more clouds lack than may fail: nobody else can be sure of them yet.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        let current = self.current();
        let lacking = |row: u64| current.state.untold.iter().filter(|untold| untold.lacks.contains(row)).count();
        current.on_their_way().iter().any(|row| lacking(row) > current.declaration.may_fail)
    }

    fn summary(&self) -> [u8; 16] {
        let parts = self.to_parts();
        let told = parts.iter().filter(|(name, _)| self.counts(name) && Self::is_worth_telling(name));
        let all: Vec<u8> = told.flat_map(|(name, bytes)| [&digest(name)[..], &digest(bytes)].concat()).collect();
        digest(&all)
    }

    /// The records of a table.
    #[must_use]
    pub fn to_records(&self) -> Records {
        let mut records = self.to_parts();
        for (cloud, told) in self.told.iter().filter(|(_, told)| **told != Told::default()) {
            let bytes = postcard::to_allocvec(told).expect("memory takes what it is given");
            records.insert([b"c", cloud.as_bytes()].concat(), Zeroizing::new(bytes));
        }
        if self.version > 0 {
            records.insert(b"v".to_vec(), Zeroizing::new(self.version.to_be_bytes().to_vec()));
        }
        if let Some(learned) = self.learned {
            records.insert(b"d".to_vec(), Zeroizing::new(learned.to_vec()));
        }
        records
    }

    /// The records that bring the table back.
    #[must_use]
    pub fn to_parts(&self) -> Records {
        let mut records = Records::new();
        records.insert(b"i".to_vec(), Zeroizing::new([&[VERSION][..], &self.incidents.to_be_bytes()].concat()));
        if !self.writers.is_empty() {
            let one = |(client, version): (&Client, &u64)| [&client[..], &version.to_be_bytes()].concat();
            records.insert(b"w".to_vec(), Zeroizing::new(self.writers.iter().flat_map(one).collect()));
        }
        for layout in &self.layouts {
            let number = layout.number.to_be_bytes();
            records.insert([b"h", &number[..]].concat(), head(layout));
            put_chunks(&mut records, &[b"l", &number[..]].concat(), &layout.state.live);
            for (cloud, untold) in (0_u16..).zip(&layout.state.untold) {
                let cloud = cloud.to_be_bytes();
                put_chunks(&mut records, &[b"a", &number[..], &cloud].concat(), &untold.lacks);
                put_chunks(&mut records, &[b"k", &number[..], &cloud].concat(), &untold.keeps);
                put_chunks(&mut records, &[b"o", &number[..], &cloud].concat(), &untold.owed);
            }
        }
        records
    }

    /// The table of some records; none if there are none.
    ///
    /// # Errors
    /// [`Damaged`]: they are not those of a table, or of another version's.
    pub fn from_records<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Option<Self>, Damaged> {
        let records: Vec<(&[u8], &[u8])> = records.into_iter().collect();
        // First whether they are of this version: of another one nothing else makes sense.
        for (name, bytes) in &records {
            match *name {
                b"i" => _ = read_incidents(bytes)?,
                // The head of the first version, which knew one layout alone.
                b"h" => return Err(Damaged::OTHER_VERSION),
                _ => {}
            }
        }
        let mut read = Read::default();
        for (name, bytes) in records {
            read.add(name, bytes)?;
        }
        read.kept()
    }
}

fn head(layout: &Layout) -> Zeroizing<Vec<u8>> {
    let epochs = layout.state.epochs.iter().map(|(row, epoch)| (row, epoch.0)).collect();
    let head = Head { declaration: layout.declaration.clone(), epochs, dropped: layout.dropped.clone() };
    let told = postcard::to_allocvec(&head).expect("memory takes what it is given");
    // As long as it becomes: a vector that grows leaves copies of secrets behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(32 + told.len()));
    bytes.extend_from_slice(layout.secret.expose());
    bytes.extend_from_slice(&told);
    bytes
}

/// What was read of a table.
#[derive(Default)]
struct Read {
    layouts: BTreeMap<u32, ReadLayout>,
    incidents: Option<u64>,
    told: BTreeMap<String, Told>,
    version: u64,
    writers: BTreeMap<Client, u64>,
    learned: Option<[u8; 16]>,
}

#[derive(Default)]
struct ReadLayout {
    head: Option<(Secret, Head, Epochs)>,
    live: Rows,
    untold: BTreeMap<u16, Untold>,
}

impl Read {
    fn add(&mut self, name: &[u8], bytes: &[u8]) -> Result<(), Damaged> {
        let damaged = Damaged("a name of a record");
        let (kind, rest) = name.split_first().ok_or(damaged)?;
        match (kind, rest.len()) {
            (b'i', 0) => self.incidents = Some(read_incidents(bytes)?),
            (b'v', 0) => self.version = u64::from_be_bytes(bytes.try_into().map_err(|_| Damaged("a version"))?),
            (b'w', 0) => self.writers = read_writers(bytes)?,
            (b'd', 0) => self.learned = Some(bytes.try_into().map_err(|_| Damaged("what was learned"))?),
            (b'c', 1..) => {
                let cloud = String::from_utf8(rest.to_vec()).map_err(|_| damaged)?;
                let told = postcard::from_bytes(bytes).map_err(|_| Damaged("what a cloud was told"))?;
                self.told.insert(cloud, told);
            }
            (b'h' | b'l' | b'a' | b'k' | b'o', 4..) => {
                let (number, rest) = rest.split_first_chunk::<4>().ok_or(damaged)?;
                self.layouts.entry(u32::from_be_bytes(*number)).or_default().add(*kind, rest, bytes)?;
            }
            _ => return Err(damaged),
        }
        Ok(())
    }

    fn kept(mut self) -> Result<Option<Kept>, Damaged> {
        let Some(incidents) = self.incidents else {
            return if self.layouts.is_empty() { Ok(None) } else { Err(Damaged("rows without a head")) };
        };
        let layouts = std::mem::take(&mut self.layouts).into_iter();
        let layouts = layouts.map(|(number, read)| read.layout(number)).collect::<Result<Vec<_>, _>>()?;
        match layouts.is_empty() {
            true => Err(Damaged("a table without a layout")),
            false => {
                let Read { told, version, writers, learned, .. } = self;
                Ok(Some(Kept { layouts, incidents, told, version, writers, learned }))
            }
        }
    }
}

impl ReadLayout {
    fn add(&mut self, kind: u8, name: &[u8], bytes: &[u8]) -> Result<(), Damaged> {
        match (kind, name.len()) {
            (b'h', 0) => self.head = Some(read_head(bytes)?),
            (b'l', 4) => add_chunk(&mut self.live, name, bytes)?,
            (b'a' | b'k' | b'o', 6) => {
                let (cloud, chunk) = name.split_at(2);
                let own = self.untold.entry(u16::from_be_bytes([cloud[0], cloud[1]])).or_default();
                let rows = match kind {
                    b'a' => &mut own.lacks,
                    b'k' => &mut own.keeps,
                    _ => &mut own.owed,
                };
                add_chunk(rows, chunk, bytes)?;
            }
            _ => return Err(Damaged("a name of a record")),
        }
        Ok(())
    }

    fn layout(mut self, number: u32) -> Result<Layout, Damaged> {
        let (secret, Head { declaration, dropped, .. }, epochs) = self.head.ok_or(Damaged("rows without a head"))?;
        let clouds = declaration.clouds.len();
        if self.untold.keys().any(|cloud| usize::from(*cloud) >= clouds) {
            return Err(Damaged("a cloud that was not declared"));
        }
        let untold: Vec<Untold> =
            (0..clouds).map(|cloud| self.untold.remove(&(cloud as u16)).unwrap_or_default()).collect();
        if !untold.iter().all(|untold| untold.owed.is_subset(&self.live)) {
            return Err(Damaged("rows that are owed and not there"));
        }
        Ok(Layout { number, secret, declaration, state: State { epochs, live: self.live, untold, others: 0 }, dropped })
    }
}

fn read_incidents(bytes: &[u8]) -> Result<u64, Damaged> {
    let (version, rest) = bytes.split_first().ok_or(Damaged("a version"))?;
    if !VERSIONS_BEFORE.contains(version) && *version != VERSION {
        return Err(Damaged::OTHER_VERSION);
    }
    Ok(u64::from_be_bytes(rest.try_into().map_err(|_| Damaged("a number of incidents"))?))
}

fn read_writers(bytes: &[u8]) -> Result<BTreeMap<Client, u64>, Damaged> {
    let damaged = Damaged("who has told clouds");
    let writers = bytes.chunks(24).map(|one| {
        let (client, version) = one.split_first_chunk::<16>().ok_or(damaged)?;
        Ok((*client, u64::from_be_bytes(version.try_into().map_err(|_| damaged)?)))
    });
    let writers: Vec<(Client, u64)> = writers.collect::<Result<_, Damaged>>()?;
    match writers.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        true => Ok(writers.into_iter().collect()),
        false => Err(damaged),
    }
}

fn read_head(bytes: &[u8]) -> Result<(Secret, Head, Epochs), Damaged> {
    let damaged = Damaged("the head");
    let (secret, told) = bytes.split_first_chunk::<32>().ok_or(damaged)?;
    let (head, rest): (Head, &[u8]) = postcard::take_from_bytes(told).map_err(|_| damaged)?;
    let is_rising = head.epochs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let clouds = head.declaration.clouds.len();
    let lies = |column: &Column| column.clouds.iter().all(|cloud| usize::from(*cloud) < clouds);
    if !rest.is_empty() || !is_rising || clouds > usize::from(u16::MAX) || !head.declaration.columns.iter().all(lies) {
        return Err(damaged);
    }
    let mut epochs = Epochs::default();
    head.epochs.iter().for_each(|(row, epoch)| epochs.begin(*row, Epoch(*epoch)));
    Ok((Secret::new(*secret), head, epochs))
}

fn put_chunks(records: &mut Records, kind: &[u8], rows: &Rows) {
    for (high, bitmap) in rows.bitmaps() {
        let chunks =
            bitmap.min().zip(bitmap.max()).map_or(0..=0, |(least, most)| least >> CHUNK_BITS..=most >> CHUNK_BITS);
        for chunk in chunks {
            let mut own = RoaringBitmap::new();
            own.insert_range(chunk << CHUNK_BITS..=chunk << CHUNK_BITS | ((1 << CHUNK_BITS) - 1));
            own &= bitmap;
            if own.is_empty() {
                continue;
            }
            own.optimize();
            let mut bytes = Zeroizing::new(Vec::with_capacity(own.serialized_size()));
            own.serialize_into(&mut *bytes).expect("memory takes what it is given");
            // Numbers of rows have 48 bits at most.
            let chunk = high << (u32::BITS - CHUNK_BITS) | chunk;
            records.insert([kind, &chunk.to_be_bytes()].concat(), bytes);
        }
    }
}

fn add_chunk(rows: &mut Rows, chunk: &[u8], bytes: &[u8]) -> Result<(), Damaged> {
    let damaged = Damaged("a chunk of row numbers");
    let chunk = u32::from_be_bytes(chunk.try_into().map_err(|_| damaged)?);
    let (high, low) = (chunk >> (u32::BITS - CHUNK_BITS), chunk & ((1 << (u32::BITS - CHUNK_BITS)) - 1));
    let bitmap = RoaringBitmap::deserialize_from(bytes).map_err(|_| damaged)?;
    if bitmap
        .min()
        .zip(bitmap.max())
        .is_some_and(|(least, most)| least >> CHUNK_BITS != low || most >> CHUNK_BITS != low)
    {
        return Err(damaged);
    }
    // Whole containers at once: a million rows are sixteen of them.
    *rows |= Rows::from_bitmaps([(high, bitmap)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Damaged, Kept, Records, Told};
    use crate::fragments::Name;
    use crate::keys::{Epoch, Secret};
    use crate::placement::tests::people;
    use crate::state::Rows;

    fn read(records: &Records) -> Option<Kept> {
        let all = records.iter().map(|(name, bytes)| (&name[..], &bytes[..]));
        Kept::from_records(all).expect("records of a table")
    }

    fn kept(live: &[u64], gone: &[u64]) -> Kept {
        let mut kept = Kept::new(Secret::new([8; 32]), people(3, 1, 1), 300);
        let state = &mut kept.current_mut().state;
        state.epochs.begin(0, Epoch([1; 16]));
        state.epochs.begin(1000, Epoch([2; 16]));
        state.live = live.iter().copied().collect();
        state.untold[1].lacks = live.iter().copied().take(3).collect();
        state.untold[2].keeps = gone.iter().copied().collect();
        kept.told.insert("a".into(), Told::anew(&Name::of_table([3; 8]), 7, &[1, 300].into()));
        kept.version = 9;
        kept
    }

    fn rows(rows: &[u64]) -> Rows {
        rows.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back(
            live in prop::collection::vec(0_u64..1 << 23, 0..200),
            gone in prop::collection::vec(0_u64..1 << 40, 0..20),
            moves in any::<bool>(),
        ) {
            let mut kept = kept(&live, &gone);
            if moves {
                kept.begin(Secret::new([9; 32]), people(5, 2, 2), Epoch([3; 16]));
            }
            let records = kept.to_records();
            let read = read(&records).expect("a table");
            prop_assert_eq!(read.layouts().len(), kept.layouts().len());
            for (own, other) in read.layouts().iter().zip(kept.layouts()) {
                prop_assert_eq!(own.number, other.number);
                prop_assert_eq!(&own.declaration, &other.declaration);
                prop_assert_eq!(&own.state, &other.state);
                prop_assert_eq!(own.secret.expose(), other.secret.expose());
            }
            prop_assert_eq!(read.incidents, kept.incidents);
            prop_assert_eq!((&read.told, read.version), (&kept.told, kept.version));
            prop_assert_eq!(read.to_records(), records);
        }

        #[test]
        fn damaged_records_are_told_or_read_as_something_whole(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let mut records = kept(&[1, 2, 3, 70_000, 1 << 21], &[5]).to_records();
            let count = records.len();
            let bytes = records.values_mut().nth(at.index(count)).expect("a record");
            let byte = at.index(bytes.len());
            bytes[byte] ^= 1 << bit;
            let all = records.iter().map(|(name, bytes)| (&name[..], &bytes[..]));
            // Whatever is read is told again as it was read.
            if let Ok(Some(kept)) = Kept::from_records(all) {
                prop_assert!(Kept::from_records(kept.to_records().iter().map(|(name, bytes)| (&name[..], &bytes[..]))).is_ok());
            }
        }
    }

    #[test]
    fn what_no_cloud_was_told_of_is_known_to_be_so() {
        let mut kept = kept(&[1, 2, 3], &[]);
        assert!(!kept.is_told());
        kept.note_learned();
        assert!(kept.is_told());
        // What clouds have let go of since they need not hear of.
        kept.current_mut().state.untold[2].keeps = rows(&[9]);
        assert!(kept.is_told());
        kept.gone(&rows(&[2]));
        assert!(!kept.is_told());
        // A cloud that was told all of it is enough.
        let catalogue = crate::catalogue::Catalogue::new(Secret::new([5; 32]));
        let mut salts = 0..;
        let draw = || salts.next().map(|salt| [salt; 16]).ok_or(());
        let (_, told) = catalogue.code([7; 16], 10, &kept.to_parts(), &Told::default(), draw).expect("salts");
        kept.told.insert("b".into(), told);
        assert!(kept.is_told());
        kept.writers.insert([1; 16], 11);
        assert!(!kept.is_told());
    }

    #[test]
    fn that_clouds_let_go_of_a_layout_is_nothing_that_others_must_have_heard() {
        let catalogue = crate::catalogue::Catalogue::new(Secret::new([5; 32]));
        let tell = |kept: &mut Kept| {
            let mut salts = 0..;
            let draw = || salts.next().map(|salt| [salt; 16]).ok_or(());
            let told = catalogue.code([7; 16], 10, &kept.to_parts(), &Told::default(), draw).expect("salts").1;
            kept.told.insert("b".into(), told);
        };
        let mut kept = kept(&[1, 2], &[]);
        kept.current_mut().state.untold[1].lacks = Rows::new();
        tell(&mut kept);
        kept.begin(Secret::new([9; 32]), kept.declaration().clone(), Epoch([8; 16]));
        assert!(!kept.is_told(), "rows come to another layout");
        tell(&mut kept);
        // The last row of the one before is deleted.
        let mut other = kept.clone();
        other.gone(&rows(&[1, 2]));
        assert!(!other.is_told());
        let (from, moving) = kept.to_move(10).expect("rows to move");
        kept.moving(from, &moving);
        let clouds = kept.declaration().clouds.len();
        (0..clouds).for_each(|cloud| kept.current_mut().state.arrived(cloud, &moving));
        kept.moved(from, &moving);
        assert!(!kept.is_told(), "rows have moved");
        tell(&mut kept);
        let mut learned = kept.clone();
        (learned.told, learned.version) = (Default::default(), 11);
        learned.note_learned();
        for cloud in 0..clouds {
            kept.dropped(from, cloud);
            learned.dropped(from, cloud);
            assert!(kept.is_told() && learned.is_told(), "cloud {cloud}");
        }
        assert_eq!(kept.layouts().len(), 1);
    }

    #[test]
    fn clients_that_have_gone_apart_do_not_have_all_of_one_another() {
        let [mut one, mut other] = [kept(&[1], &[]), kept(&[1], &[])];
        one.writers = [([1; 16], 5)].into();
        other.writers = [([1; 16], 5), ([2; 16], 6)].into();
        assert!(other.has_all_of(&one, None) && !one.has_all_of(&other, None));
        assert!(one.has_all_of(&other, Some(&[2; 16])), "who it was before");
        one.writers.insert([1; 16], 7);
        assert!(!other.has_all_of(&one, None) && !one.has_all_of(&other, None));
        one.note_writers(&other.writers);
        assert!(one.has_all_of(&other, None));
        assert_eq!(read(&one.to_records()).expect("a table").writers, one.writers);
    }

    #[test]
    fn records_of_another_version_are_told_from_damaged_ones() {
        let own = kept(&[1, 2, 3], &[5]).to_records();
        let read =
            |records: &Records| Kept::from_records(records.iter().map(|(name, bytes)| (&name[..], &bytes[..]))).err();
        // Those of before, those to come, and none; whatever else such a version has, which sorts before it and behind.
        for version in
            (0..=u8::MAX).filter(|version| !(super::VERSIONS_BEFORE.start..=super::VERSION).contains(version))
        {
            let mut records = own.clone();
            records.get_mut(&b"i"[..]).expect("the version")[0] = version;
            assert_eq!(read(&records), Some(Damaged::OTHER_VERSION), "{version}");
            for name in [&b"a new record"[..], b"h\0\0\0\0", b"z"] {
                records.insert(name.to_vec(), b"in another form".to_vec().into());
                assert_eq!(read(&records), Some(Damaged::OTHER_VERSION), "{version}");
            }
        }
        // The first one had a head of another name, and records of rows without a layout.
        let mut first = Records::new();
        [&b"a\0\0\0\0\0\0"[..], b"h", b"l\0\0\0\0"]
            .iter()
            .for_each(|name| _ = first.insert(name.to_vec(), vec![3].into()));
        assert_eq!(read(&first), Some(Damaged::OTHER_VERSION));
        assert!(Damaged::OTHER_VERSION.0.contains("another version"));
        // What is cut is damaged, and of no version.
        for cut in [vec![], vec![super::VERSION], vec![super::VERSION, 0]] {
            let mut records = own.clone();
            records.insert(b"i".to_vec(), cut.into());
            assert!(read(&records).is_some_and(|damaged| damaged != Damaged::OTHER_VERSION));
        }
    }

    #[test]
    fn a_table_of_a_version_before_is_read_and_told_in_this_one() {
        let own = kept(&[1, 2, 3], &[5]);
        for version in super::VERSIONS_BEFORE {
            let mut records = own.to_records();
            records.get_mut(&b"i"[..]).expect("the version")[0] = version;
            let before = read(&records).expect("a table");
            assert!(before.writers.is_empty() && own.has_all_of(&before, None));
            assert_eq!(before.to_records(), own.to_records());
        }
    }

    #[test]
    fn what_is_owed_is_kept_and_told_and_no_row_is_owed_that_is_not_there() {
        let mut own = kept(&[1, 2, 3], &[]);
        own.current_mut().state.owe(&rows(&[1, 2, 3]));
        let before = own.to_records();
        assert_eq!(read(&before).expect("a table").current().state.untold[1].owed, rows(&[1, 2, 3]));
        own.current_mut().state.arrived(1, &rows(&[2]));
        assert_ne!(own.to_records(), before);
        own.current_mut().state.live -= rows(&[3]);
        let records = own.to_records();
        let told = records.iter().map(|(name, bytes)| (&name[..], &bytes[..]));
        assert_eq!(Kept::from_records(told).err(), Some(Damaged("rows that are owed and not there")));
    }

    #[test]
    fn records_are_few_and_short_however_many_rows_there_are() {
        let mut kept = kept(&[], &[]);
        kept.current_mut().state.live = (0..3 << 20).collect();
        let records = kept.to_records();
        assert_eq!(records.len(), 2 + 3 + 2);
        assert!(records.values().map(|bytes| bytes.len()).sum::<usize>() < 1000);
        assert!(read(&Records::new()).is_none());
    }

    #[test]
    fn a_row_lies_in_one_layout_wherever_a_move_is_cut() {
        let mut kept = kept(&[10, 11, 12, 13], &[]);
        kept.current_mut().state.untold[1].lacks = rows(&[20]);
        kept.begin(Secret::new([9; 32]), people(3, 1, 1), Epoch([3; 16]));
        // What was on its way is still here, and clouds may have it.
        assert!(kept.layouts()[0].on_their_way().is_empty());
        assert_eq!(kept.layouts()[0].state.untold[0].keeps, rows(&[20]));
        let (from, some) = kept.to_move(3).expect("rows to move");
        assert_eq!((from, &some), (0, &rows(&[10, 11, 12])));
        assert_eq!(kept.moving(from, &some), some);
        // Deleted while it moves: whoever may have it lets go of it.
        kept.gone(&rows(&[11]));
        (0..2).for_each(|cloud| kept.current_mut().state.arrived(cloud, &some));
        kept.current_mut().state.arrived(2, &rows(&[10]));
        kept.moved(from, &some);
        assert_eq!((&kept.layouts()[0].state.live, &kept.current().state.live), (&rows(&[12, 13]), &rows(&[10])));
        assert_eq!(kept.layouts()[0].state.untold[0].keeps, rows(&[11, 20]));
        assert_eq!(kept.current().state.untold[2].keeps, rows(&[11]));
        assert_eq!(kept.live(), rows(&[10, 12, 13]));
        let again = kept.to_move(9).expect("the rest").1;
        assert_eq!(kept.moving(0, &again), rows(&[12, 13]));
        // One cloud has been told of 12 before.
        assert_eq!(kept.current().state.untold[0].lacks, rows(&[13]));
        // It is not dropped while it has rows, nor is the current one.
        kept.dropped(0, 0);
        assert!(kept.layouts()[0].dropped.is_empty());
        (0..3).for_each(|cloud| kept.current_mut().state.arrived(cloud, &again));
        kept.moved(0, &again);
        assert_eq!(kept.to_move(9), None);
        (0..2).for_each(|cloud| kept.dropped(0, cloud));
        assert_eq!(kept.layouts().len(), 2);
        kept.dropped(0, 2);
        (0..3).for_each(|cloud| kept.dropped(1, cloud));
        assert_eq!(kept.layouts().iter().map(|layout| layout.number).collect::<Vec<_>>(), [1]);
    }
}
