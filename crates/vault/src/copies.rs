//! The two copies of the header: reading them, unlocking them, and settling which one holds.
//!
//! ```text
//! read_headers -> HeaderCopies -- unlock --> Unlocked -- settle(what the root says) --> Settled
//! ```
//! 1. Of a copy nothing is believed but its check, which holds under the volume key alone.
//! 2. A slot opens the database only if it stands in a copy whose check holds.
//! 3. Last month's copy has a check that holds too; the digest in the counter-bound root tells it apart.

use alloc::vec::Vec;

use counterfoil_flash as flash;
use counterfoil_flash::PageNumber;

use crate::header::{Header, HeaderError};
use crate::made_header::HEADER_BYTES;
use crate::slot::{Slot, SlotKind};
use crate::{ArgonCost, DatabaseId, HeaderChange, RootDigests, Secret, SlotsDigest, VolumeKey, VolumeLayout};

/// One of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderCopy {
    /// At the start of extent 0.
    A,
    /// At the start of extent 1.
    B,
}

impl HeaderCopy {
    /// Both, in the order in which they are written.
    pub const BOTH: [HeaderCopy; 2] = [HeaderCopy::A, HeaderCopy::B];

    /// The first page of this copy.
    pub fn first_page(self, layout: &VolumeLayout) -> PageNumber {
        match self {
            HeaderCopy::A => PageNumber(0),
            HeaderCopy::B => PageNumber(u64::from(layout.extent_pages)),
        }
    }
}

impl core::fmt::Display for HeaderCopy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if *self == HeaderCopy::A { "copy A" } else { "copy B" })
    }
}

/// A copy as it was found: readable or not, and never believed.
struct Found {
    bytes: [u8; HEADER_BYTES],
    header: Header,
}

/// Both copies as they were found. Nothing in here is authenticated.
pub struct HeaderCopies {
    found: [Result<Found, HeaderError>; 2],
}

/// Reads both copies. The device may be opened with any geometry: the header is found by bytes.
///
/// # Errors
/// [`HeaderError::NotADatabase`] where neither copy is recognisable, [`HeaderError::Format`],
/// [`HeaderError::Corrupt`] where one is and makes no sense, [`HeaderError::Device`].
pub fn read_headers<R: flash::Read + ?Sized>(device: &R) -> Result<HeaderCopies, HeaderError> {
    let first = read_copy(device, 0);
    let second = match &first {
        Ok(first) => read_second(device, first.header.layout.extent_bytes()).or_else(|error| {
            // The first copy may lie about where the second one is.
            search_second(device).map_err(|_| error)
        }),
        Err(_) => search_second(device),
    };
    match (&first, &second) {
        (Err(first), Err(second)) => Err(worse_of(*first, *second)),
        _ => Ok(HeaderCopies { found: [first, second] }),
    }
}

/// Of two reasons the one that says most.
fn worse_of(first: HeaderError, second: HeaderError) -> HeaderError {
    let rank = |error: &HeaderError| match error {
        HeaderError::Format { .. } => 3,
        HeaderError::Corrupt { .. } => 2,
        HeaderError::Device(_) => 1,
        _ => 0,
    };
    if rank(&second) > rank(&first) { second } else { first }
}

/// Where the second copy may be, in bytes: it lies behind the first extent, whose size is a power of two.
const SECOND: core::ops::RangeInclusive<u32> = 11..=30;

/// Where a copy of a header may be, in bytes: whoever takes a device has to look there, for either copy alone is a database.
pub fn header_places() -> impl Iterator<Item = u64> {
    core::iter::once(0).chain(SECOND.map(|power| 1 << power))
}

fn search_second<R: flash::Read + ?Sized>(device: &R) -> Result<Found, HeaderError> {
    let mut reason = HeaderError::NotADatabase;
    for offset in SECOND.map(|power| 1u64 << power) {
        match read_second(device, offset) {
            Ok(found) => return Ok(found),
            Err(error) => reason = worse_of(reason, error),
        }
    }
    Err(reason)
}

/// The second copy at `offset`, if it says itself that it belongs there.
fn read_second<R: flash::Read + ?Sized>(device: &R, offset: u64) -> Result<Found, HeaderError> {
    let found = read_copy(device, offset)?;
    if found.header.layout.extent_bytes() != offset {
        return Err(HeaderError::Corrupt { what: "place of the second copy" });
    }
    Ok(found)
}

fn read_copy<R: flash::Read + ?Sized>(device: &R, offset: u64) -> Result<Found, HeaderError> {
    let page_bytes = u64::from(device.geometry().page_bytes.max(1));
    let mut bytes = [0; HEADER_BYTES];
    let within = (offset % page_bytes) as u32;
    match device.read(PageNumber(offset / page_bytes), within, &mut bytes) {
        Ok(()) => {}
        Err(flash::Error::OutOfRange { .. }) => return Err(HeaderError::NotADatabase),
        Err(error) => return Err(HeaderError::Device(error)),
    }
    Ok(Found { header: Header::decode(&bytes)?, bytes })
}

/// A header that a slot opened and whose check holds, before the root was asked whether it is the newest.
pub struct Unlocked {
    /// The secret that seals the data.
    pub volume_key: VolumeKey,
    /// The header: of two good copies that differ, the one changed more often.
    pub header: Header,
    /// None if the volume key itself opened it.
    slot: Option<Slot>,
    /// The copies whose check holds.
    copies: [Option<Header>; 2],
}

/// What is wrong with one copy while the other one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyFault {
    /// Unreadable, or its check does not hold.
    Damaged,
    /// An older header than the root names.
    Old,
}

/// A header that the root confirmed.
pub struct Settled {
    /// The header that holds.
    pub header: Header,
    /// The slot that was opened, if it still is one of the header's (during a change it may be one of the old ones).
    pub slot: Option<usize>,
    /// The copy that does not hold. Worth a note; `verify` says so; the next key change repairs it.
    pub fault: Option<(HeaderCopy, CopyFault)>,
    /// A key change that was cut short: whoever opens for writing finishes it.
    pub unfinished: Option<HeaderChange>,
}

impl HeaderCopies {
    /// The name that a readable copy gives. **Not authenticated**: good for messages and for finding a key.
    pub fn id_unchecked(&self) -> Option<DatabaseId> {
        self.readable().next().map(|(_, found)| found.header.id)
    }

    /// The layout that a readable copy gives. **Not authenticated.**
    pub fn layout_unchecked(&self) -> Option<VolumeLayout> {
        self.readable().next().map(|(_, found)| found.header.layout)
    }

    /// What the slots of a readable copy are for. **Not authenticated**: good for choosing whom to ask for a key.
    pub fn kinds_unchecked(&self) -> Vec<SlotKind> {
        let header = self.readable().next().map(|(_, found)| &found.header);
        header.into_iter().flat_map(|header| header.slots().map(|(_, slot)| slot.kind())).collect()
    }

    fn readable(&self) -> impl Iterator<Item = (usize, &Found)> {
        self.found.iter().enumerate().filter_map(|(index, found)| Some((index, found.as_ref().ok()?)))
    }

    /// Both readable, and the same.
    fn agree(&self) -> bool {
        matches!(&self.found, [Ok(one), Ok(two)] if one.bytes == two.bytes)
    }

    /// Opens the header with the first of `secrets` that opens a slot of it. A passphrase slot that costs less than
    /// `least` ([`ArgonCost::HOST`] on hosts, [`ArgonCost::MINIMUM`] on devices) or more than
    /// [`ArgonCost::MAXIMUM`] is not tried.
    ///
    /// # Errors
    /// [`HeaderError::WrongKey`] if no slot opens, [`HeaderError::Tampered`] if one opens and the header around it
    /// does not hold, [`HeaderError::Cost`], [`HeaderError::OutOfMemory`].
    pub fn unlock(&self, secrets: &[Secret<'_>], least: &ArgonCost) -> Result<Unlocked, HeaderError> {
        let mut reason = HeaderError::WrongKey { certain: self.agree() };
        for secret in secrets {
            for (id, slot) in self.distinct_slots() {
                match slot.unwrap(secret, id, least) {
                    Ok(None) => {}
                    Ok(Some(volume_key)) => match self.unlocked(volume_key, slot) {
                        Some(unlocked) => return Ok(unlocked),
                        None => reason = HeaderError::Tampered { what: "its check does not hold" },
                    },
                    Err(error) if matches!(reason, HeaderError::WrongKey { .. }) => reason = error,
                    Err(_) => {}
                }
            }
        }
        Err(reason)
    }

    /// Every slot of both copies, those that stand in both once.
    fn distinct_slots(&self) -> Vec<(DatabaseId, &Slot)> {
        let mut slots: Vec<(DatabaseId, &Slot)> = Vec::new();
        for (_, found) in self.readable() {
            for (_, slot) in found.header.slots() {
                let candidate = (found.header.id, slot);
                if !slots.contains(&candidate) {
                    slots.push(candidate);
                }
            }
        }
        slots
    }

    /// Opens the header with the volume key itself: shares of it put together again.
    ///
    /// # Errors
    /// [`HeaderError::WrongKey`] if no copy's check holds under it.
    pub fn unlock_with(&self, volume_key: VolumeKey) -> Result<Unlocked, HeaderError> {
        self.holding(volume_key, None).ok_or(HeaderError::WrongKey { certain: self.agree() })
    }

    fn unlocked(&self, volume_key: VolumeKey, slot: &Slot) -> Option<Unlocked> {
        let unlocked = self.holding(volume_key, Some(slot.clone()))?;
        let stands = unlocked.copies.iter().flatten().any(|copy| copy.has_slot(slot).is_some());
        stands.then_some(unlocked)
    }

    /// The copies whose check holds under a key.
    fn holding(&self, volume_key: VolumeKey, slot: Option<Slot>) -> Option<Unlocked> {
        let mut copies = [None, None];
        let mut best: Option<&Header> = None;
        for (index, found) in self.readable() {
            if found.header.check_holds(&found.bytes, &volume_key) {
                copies[index] = Some(found.header.clone());
                if best.is_none_or(|best| best.generation < found.header.generation) {
                    best = Some(&found.header);
                }
            }
        }
        let header = best?.clone();
        Some(Unlocked { volume_key, header, slot, copies })
    }
}

impl Unlocked {
    /// The number in `header` of the slot that was opened, if it is one of that header's.
    pub fn slot_in(&self, header: &Header) -> Option<usize> {
        header.has_slot(self.slot.as_ref()?)
    }

    /// What is wrong with a copy, as far as it can be told without the root.
    pub fn damaged(&self) -> Option<HeaderCopy> {
        self.copies.iter().position(Option::is_none).map(|copy| HeaderCopy::BOTH[copy])
    }

    /// Compares the copies with what the counter-bound root says, and finds the header that holds.
    ///
    /// # Errors
    /// [`HeaderError::Tampered`] where no copy is one that the root names, or the slot that opened is not in the
    /// header that holds.
    pub fn settle(&self, root: &RootDigests) -> Result<Settled, HeaderError> {
        let holding = |digest: SlotsDigest| self.copies.iter().flatten().find(|header| header.slots_digest() == digest);
        // Once one copy is the new one the change is carried on; before that the old header is put back.
        let target = root.next.and_then(holding).or_else(|| holding(root.current));
        let header =
            target.ok_or(HeaderError::Tampered { what: "its key slots are not those of the newest commit" })?;
        let target = header.slots_digest();
        let slot = self.slot_in(header);
        if root.next.is_some() {
            let unfinished = Some(HeaderChange::resume(root, header, &self.volume_key, self.holds(target)));
            return Ok(Settled { header: header.clone(), slot, fault: None, unfinished });
        }
        if self.slot.is_some() && slot.is_none() {
            return Err(HeaderError::Tampered { what: "the key slot that opened it was replaced" });
        }
        Ok(Settled { header: header.clone(), slot, fault: self.fault(target), unfinished: None })
    }

    /// Whether the slot that was opened is not in the header that holds: during a change that was cut short it stands in the copy that is
    /// to be written yet, and whoever finishes the change ends it. A host refuses it at once, so that one key is in force at a time.
    pub fn is_opened_by_a_replaced_slot(&self, settled: &Settled) -> bool {
        self.slot.is_some() && settled.slot.is_none()
    }

    /// Begins to put `new` in the place of the header that holds.
    ///
    /// # Panics
    /// If `new` has no slot in use.
    pub fn change(&self, current: &Header, new: &Header) -> HeaderChange {
        let holds = self.holds(current.slots_digest());
        HeaderChange::begin(current.slots_digest(), new, &self.volume_key, holds)
    }

    /// Begins to write again the copy that does not hold; `None` if both do.
    pub fn repair(&self, current: &Header) -> Option<HeaderChange> {
        let holds = self.holds(current.slots_digest());
        (holds != [true, true]).then(|| HeaderChange::repair(current, &self.volume_key, holds))
    }

    fn holds(&self, digest: SlotsDigest) -> [bool; 2] {
        [0, 1].map(|copy| self.copies[copy].as_ref().is_some_and(|header| header.slots_digest() == digest))
    }

    fn fault(&self, digest: SlotsDigest) -> Option<(HeaderCopy, CopyFault)> {
        let copy = self.holds(digest).iter().position(|holds| !holds)?;
        let fault = if self.copies[copy].is_none() { CopyFault::Damaged } else { CopyFault::Old };
        Some((HeaderCopy::BOTH[copy], fault))
    }
}
