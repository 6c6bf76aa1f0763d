//! What is kept of a dispersed table in the sealed database, as records.
//!
//! ```text
//! h                          01 | the secret [32] | declaration, epochs, incidents (postcard)
//! l chunk u32                live rows of a chunk of 2^20 row numbers (Roaring bitmap of their lower 32 bits, portable format)
//! a cloud u16 | chunk u32    rows that a cloud may lack
//! k cloud u16 | chunk u32    rows that are gone and that a cloud may still have
//! c cloud u16                what the cloud was told of the catalogue (postcard)
//! v                          the last version of the catalogue that may have been told, u64
//! ```
//! Numbers in names are big-endian. A chunk that is empty has no record. A change writes the records that differ, in the commit of
//! the rows that it is about; none of them is longer than 128 KiB and a head, however many rows come and go.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::catalogue::Told;
use crate::coder::Epochs;
use crate::declaration::Declaration;
use crate::keys::{Epoch, Secret};
use crate::state::{Rows, State, Untold};

/// Row numbers of a chunk.
const CHUNK_BITS: u32 = 20;
const VERSION: u8 = 1;

/// Records by name.
pub type Records = BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>;

/// A dispersed table as it is kept.
#[derive(Clone)]
pub struct Kept {
    /// All keys come from it.
    pub secret: Secret,
    /// What was declared.
    pub declaration: Declaration,
    /// Which rows there are, and what clouds have not been told.
    pub state: State,
    /// How many incidents of the database clouds were asked about: after others it may be an earlier one than clouds know.
    pub incidents: u64,
    /// What each cloud was told of the catalogue, in the order of the clouds.
    pub told: Vec<Told>,
    /// The last version of the catalogue that any cloud may have seen.
    pub version: u64,
}

#[derive(Serialize, Deserialize)]
struct Head {
    declaration: Declaration,
    epochs: Vec<(u64, [u8; 16])>,
    incidents: u64,
}

/// Records that are not those of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

impl Kept {
    /// The records of a table.
    #[must_use]
    pub fn to_records(&self) -> Records {
        let mut records = self.to_parts();
        for (cloud, told) in (0_u16..).zip(&self.told).filter(|(_, told)| **told != Told::default()) {
            let bytes = postcard::to_allocvec(told).expect("memory takes what it is given");
            records.insert([&b"c"[..], &cloud.to_be_bytes()].concat(), Zeroizing::new(bytes));
        }
        if self.version > 0 {
            records.insert(b"v".to_vec(), Zeroizing::new(self.version.to_be_bytes().to_vec()));
        }
        records
    }

    /// The records that bring the table back.
    #[must_use]
    pub fn to_parts(&self) -> Records {
        let mut records = Records::new();
        records.insert(b"h".to_vec(), self.head());
        put_chunks(&mut records, b"l", &self.state.live);
        for (cloud, untold) in (0_u16..).zip(&self.state.untold) {
            put_chunks(&mut records, &[&b"a"[..], &cloud.to_be_bytes()].concat(), &untold.lacks);
            put_chunks(&mut records, &[&b"k"[..], &cloud.to_be_bytes()].concat(), &untold.keeps);
        }
        records
    }

    fn head(&self) -> Zeroizing<Vec<u8>> {
        let epochs = self.state.epochs.iter().map(|(row, epoch)| (row, epoch.0)).collect();
        let head = Head { declaration: self.declaration.clone(), epochs, incidents: self.incidents };
        let told = postcard::to_allocvec(&head).expect("memory takes what it is given");
        // As long as it becomes: a vector that grows leaves copies of secrets behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(33 + told.len()));
        bytes.push(VERSION);
        bytes.extend_from_slice(self.secret.expose());
        bytes.extend_from_slice(&told);
        bytes
    }

    /// The table of some records; none if there are none.
    ///
    /// # Errors
    /// [`Damaged`]: they are not those of a table, or of a later version's.
    pub fn from_records<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Option<Self>, Damaged> {
        let (mut head, mut live, mut untold) = (None, Rows::new(), BTreeMap::<u16, Untold>::new());
        let (mut told, mut version) = (BTreeMap::<u16, Told>::new(), 0);
        for (name, bytes) in records {
            let damaged = Damaged("a name of a record");
            let (kind, rest) = name.split_first().ok_or(damaged)?;
            match (kind, rest.len()) {
                (b'h', 0) => head = Some(read_head(bytes)?),
                (b'l', 4) => add_chunk(&mut live, rest, bytes)?,
                (b'a' | b'k', 6) => {
                    let (cloud, chunk) = rest.split_at(2);
                    let own = untold.entry(u16::from_be_bytes([cloud[0], cloud[1]])).or_default();
                    add_chunk(if *kind == b'a' { &mut own.lacks } else { &mut own.keeps }, chunk, bytes)?;
                }
                (b'v', 0) => version = u64::from_be_bytes(bytes.try_into().map_err(|_| Damaged("a version"))?),
                (b'c', 2) => {
                    let read = postcard::from_bytes(bytes).map_err(|_| Damaged("what a cloud was told"))?;
                    told.insert(u16::from_be_bytes([rest[0], rest[1]]), read);
                }
                _ => return Err(damaged),
            }
        }
        let Some((secret, Head { declaration, incidents, .. }, epochs)) = head else {
            return if live.is_empty() && untold.is_empty() { Ok(None) } else { Err(Damaged("rows without a head")) };
        };
        let clouds = declaration.clouds.len();
        if untold.keys().chain(told.keys()).any(|cloud| usize::from(*cloud) >= clouds) {
            return Err(Damaged("a cloud that was not declared"));
        }
        let untold = (0..clouds).map(|cloud| untold.remove(&(cloud as u16)).unwrap_or_default()).collect();
        let told = (0..clouds).map(|cloud| told.remove(&(cloud as u16)).unwrap_or_default()).collect();
        Ok(Some(Self { secret, declaration, state: State { epochs, live, untold }, incidents, told, version }))
    }
}

fn read_head(bytes: &[u8]) -> Result<(Secret, Head, Epochs), Damaged> {
    let damaged = Damaged("the head");
    let (version, rest) = bytes.split_first().ok_or(damaged)?;
    if *version != VERSION {
        return Err(Damaged("a head of a later version"));
    }
    let (secret, told) = rest.split_first_chunk::<32>().ok_or(damaged)?;
    let (head, rest): (Head, &[u8]) = postcard::take_from_bytes(told).map_err(|_| damaged)?;
    let is_rising = head.epochs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !rest.is_empty() || !is_rising || head.declaration.clouds.len() > usize::from(u16::MAX) {
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

    use super::{Kept, Records, Told};
    use crate::keys::{Epoch, Secret};
    use crate::placement::tests::people;
    use crate::state::State;

    fn read(records: &Records) -> Option<Kept> {
        let all = records.iter().map(|(name, bytes)| (&name[..], &bytes[..]));
        Kept::from_records(all).expect("records of a table")
    }

    fn kept(live: &[u64], gone: &[u64]) -> Kept {
        let mut state = State::new(3);
        state.epochs.begin(0, Epoch([1; 16]));
        state.epochs.begin(1000, Epoch([2; 16]));
        state.live = live.iter().copied().collect();
        state.untold[1].lacks = live.iter().copied().take(3).collect();
        state.untold[2].keeps = gone.iter().copied().collect();
        let told = Told::anew(7, &[1, 300].into());
        Kept {
            secret: Secret::new([8; 32]),
            declaration: people(3, 1, 1),
            state,
            incidents: 300,
            told: vec![told, Told::default(), Told::default()],
            version: 9,
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back(
            live in prop::collection::vec(0_u64..1 << 23, 0..200),
            gone in prop::collection::vec(0_u64..1 << 40, 0..20),
        ) {
            let kept = kept(&live, &gone);
            let records = kept.to_records();
            let read = read(&records).expect("a table");
            prop_assert_eq!(&read.declaration, &kept.declaration);
            prop_assert_eq!(&read.state, &kept.state);
            prop_assert_eq!(read.incidents, kept.incidents);
            prop_assert_eq!((&read.told, read.version), (&kept.told, kept.version));
            prop_assert_eq!(read.secret.expose(), kept.secret.expose());
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
    fn records_are_few_and_short_however_many_rows_there_are() {
        let all: Vec<u64> = (0..3 << 20).collect();
        let kept = Kept { state: State { live: all.into_iter().collect(), ..State::new(3) }, ..kept(&[], &[]) };
        let records = kept.to_records();
        assert_eq!(records.len(), 1 + 3 + 2);
        assert!(records.values().map(|bytes| bytes.len()).sum::<usize>() < 1000);
        assert!(read(&Records::new()).is_none());
    }
}
