//! A volume from outside: made, recovered, judged by its counter, opened.
//!
//! Recovery writes nothing. It brings an image to its last whole frame in memory ([`Recovered`]); from there it is
//! read ([`Recovered::snapshot`]) or opened for writing ([`Recovered::open`]). Opening is a commit:
//!
//! ```text
//! recovered root, version v      counter v, v - 1 or (opening root only) v - 2
//!   1. step the counter to v                       the root that a cut interrupted is complete
//!   2. opening root, version v + 2, flush          a cut here: found again, or written again elsewhere
//!   3. step to v + 1, step to v + 2                a cut here: the opening root is one or two ahead
//!   4. only now anything is shown, programmed, acknowledged
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;

use counterfoil_flash::{BlockNumber, Device, Read};
use counterfoil_vault::{Counter, CounterValue, Entropy, Epoch, OPENING_BYTES, Plain, Tag, Vault};

use crate::cache::PageCache;
use crate::checkpoint::{self, Changed};
use crate::frame::{HEAD_BYTES, Head};
use crate::layout::Layout;
use crate::pages::Pages;
use crate::root::Root;
use crate::snapshot::Snapshot;
use crate::space::{Owner, Space};
use crate::spine::{Follower, SpineEnd};
use crate::state::State;
use crate::store::CheckpointStore;
use crate::writer::{Settings, Writer};
use crate::{CommitNumber, Error};

/// The key of an opening root depends on its extent and contents alone: whoever looks for it does not know its
/// version yet.
const OPENING_VERSION: u64 = 0;

/// A medium, as readers share it and as the writer owns it.
pub struct Media {
    /// For everyone.
    pub reader: Arc<dyn Read + Send + Sync>,
    /// For the one writer.
    pub writer: Box<dyn Device + Send>,
}

/// Makes a volume: an empty first checkpoint and the first opening root. `counter_value` is what the counter holds.
/// Headers are the caller's.
///
/// # Errors
/// [`Error::Device`], [`Error::Full`], [`Error::NoEntropy`], [`Error::CounterLost`].
pub fn create(
    mut media: Media,
    vault: Arc<Vault>,
    layout: Layout,
    settings: Settings,
    entropy: &mut dyn Entropy,
    counter_value: u64,
    cache_bytes: usize,
) -> Result<Writer, Error> {
    let fixed = layout.fixed_extents().ok_or(Error::Corrupt { what: "layout of the volume" })?;
    let mut space = Space::new(fixed, layout.extents_max);
    let next = space.grant(Owner::Spine, counter_value, None)?;
    let nothing = Epoch { number: counter_value, salt: [0; 16] };
    let end = SpineEnd {
        extent: None,
        position: layout.extent_pages,
        epoch: nothing,
        next,
        tag: Tag::default(),
        closed: Tag::default(),
        commit: 0,
        version: counter_value,
        checkpoint: 0,
        opening: false,
    };
    let mut state = State { root: Root::empty(counter_value), space, changed: Changed::default() };
    let epoch = next_epoch(&end, 0, entropy)?;
    let mut store = CheckpointStore::create(&mut *media.writer, &vault, &layout, epoch)?;
    let changes = checkpoint::encode(&mut state, &end);
    store.commit(&mut *media.writer, &vault, epoch, &changes)?;
    let pages = Arc::new(Pages { media: media.reader, vault, layout, cache: PageCache::new(cache_bytes) });
    Recovered { pages, store, state, end }.begin(media.writer, settings, epoch, Binding::Step)
}

/// The epoch that an opening after `end` begins, above `counter_value` too.
fn next_epoch(end: &SpineEnd, counter_value: u64, entropy: &mut dyn Entropy) -> Result<Epoch, Error> {
    let number = end.version.max(counter_value).checked_add(2).ok_or(Error::Corrupt { what: "version" })?;
    let mut salt = [0; 16];
    entropy.fill(&mut salt).map_err(|_| Error::NoEntropy)?;
    Ok(Epoch { number, salt })
}

/// How an opening takes its counter along.
enum Binding {
    /// Two steps from where the image says it stands.
    Step,
    /// To the new epoch, wherever it stands.
    Adopt,
}

/// An image brought to its last whole frame, in memory. No counter has judged it yet.
pub struct Recovered {
    pub(crate) pages: Arc<Pages>,
    pub(crate) store: CheckpointStore,
    pub(crate) state: State,
    pub(crate) end: SpineEnd,
}

impl Recovered {
    /// Finds the newest checkpoint and follows the spine to its last whole frame. Writes nothing.
    ///
    /// # Errors
    /// [`Error::Tampered`] and [`Error::Corrupt`] if no root can be believed, [`Error::Device`].
    pub fn recover(
        media: Arc<dyn Read + Send + Sync>,
        vault: Arc<Vault>,
        layout: Layout,
        cache_bytes: usize,
    ) -> Result<Recovered, Error> {
        layout.validate(&media.geometry())?;
        let (store, records) = CheckpointStore::load(&*media, &vault, &layout)?;
        let (state, end) = checkpoint::decode(&records, layout.extents_max, layout.payload())?;
        let pages = Arc::new(Pages { media, vault, layout, cache: PageCache::new(cache_bytes) });
        let (state, end) = Follower::new(&pages, state, end).follow()?;
        Ok(Recovered { pages, store, state, end })
    }

    /// The version of the newest root, to be held against a counter.
    pub fn version(&self) -> u64 {
        self.end.version
    }

    /// The tag of the newest root.
    pub fn tag(&self) -> Tag {
        self.end.tag
    }

    /// The newest commit.
    pub fn commit(&self) -> CommitNumber {
        CommitNumber(self.end.commit)
    }

    /// Holds the image against what its counter says.
    ///
    /// # Errors
    /// [`Error::RolledBack`] if the counter has seen a newer root or another one at its value,
    /// [`Error::CounterLost`] if the counter is further behind than any cut explains.
    pub fn judge(&self, counter: &CounterValue) -> Result<(), Error> {
        let image = self.end.version;
        let Some(ahead) = image.checked_sub(counter.value) else {
            return Err(Error::RolledBack { image, counter: counter.value });
        };
        if ahead > 2 || (ahead == 2 && !self.end.opening) {
            let reason = format!("it stands at {} only, so it is older than the image or not the image's own", counter.value);
            return Err(Error::CounterLost { image, reason });
        }
        let expected = if ahead == 0 { self.end.tag } else { self.end.closed };
        match counter.tag {
            Some(tag) if tag != expected => Err(Error::RolledBack { image, counter: counter.value }),
            _ => Ok(()),
        }
    }

    /// What the image holds, for reading. Nothing is written, so acknowledged commits only are promised.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { root: Arc::new(self.state.root.clone()), pages: self.pages.clone() }
    }

    /// Opens for writing: completes what a cut interrupted and begins a new epoch.
    ///
    /// # Errors
    /// As [`Recovered::judge`]; [`Error::Full`], [`Error::NoEntropy`], [`Error::Device`].
    pub fn open(
        mut self,
        writer: Box<dyn Device + Send>,
        mut settings: Settings,
        entropy: &mut dyn Entropy,
    ) -> Result<Writer, Error> {
        if let Some(counter) = &mut settings.counter {
            let value = counter.value().map_err(|error| lost(&self.end, &error))?;
            self.judge(&value)?;
            complete(&mut **counter, &self.end, value.value).map_err(|error| lost(&self.end, &error))?;
        }
        self.state.space.hold_free_since(self.end.commit);
        let epoch = next_epoch(&self.end, 0, entropy)?;
        self.begin(writer, settings, epoch, Binding::Step)
    }

    /// Opens for writing and binds the image to its counter anew, whatever the counter says: on a person's word, or
    /// when a backup is restored. The epoch begins above the image's version and above `counter_value`, so every
    /// other image of this database is refused from then on. The caller leaves an incident behind.
    ///
    /// # Errors
    /// As [`Recovered::open`].
    pub fn adopt(
        mut self,
        writer: Box<dyn Device + Send>,
        settings: Settings,
        entropy: &mut dyn Entropy,
        counter_value: u64,
    ) -> Result<Writer, Error> {
        self.state.space.hold_free_since(self.end.commit);
        let epoch = next_epoch(&self.end, counter_value, entropy)?;
        self.begin(writer, settings, epoch, Binding::Adopt)
    }

    /// Writes the opening root, counts it and hands over to the writer.
    fn begin(
        mut self,
        mut device: Box<dyn Device + Send>,
        mut settings: Settings,
        epoch: Epoch,
        binding: Binding,
    ) -> Result<Writer, Error> {
        let pin = settings.pins.oldest();
        let next = self.state.space.grant(Owner::Spine, self.end.version, pin)?;
        let extent = self.end.next;
        let layout = self.pages.layout;
        prepare(&mut *device, &layout, extent.number)?;
        prepare(&mut *device, &layout, next.number)?;
        let head = Head {
            commit: self.end.commit + 1,
            version: epoch.number,
            previous: self.end.tag,
            closed: self.end.tag,
            checkpoint: self.store.version(),
            next,
            last: true,
            opening: true,
            used: epoch.salt.len() as u32,
            index: 0,
        };
        let mut page = vec![0; layout.page_bytes as usize];
        assert!(HEAD_BYTES + epoch.salt.len() + OPENING_BYTES <= page.len(), "an opening root fits a page");
        page[..HEAD_BYTES].copy_from_slice(&head.encode());
        page[HEAD_BYTES..HEAD_BYTES + epoch.salt.len()].copy_from_slice(&epoch.salt);
        let sealed = self.pages.vault.seal_opening(extent.allocation, 0, OPENING_VERSION, Plain::new(&mut page));
        let tag = sealed.tag();
        device.program(layout.page(extent.number, 0), sealed.bytes())?;
        device.flush()?;
        if let Some(counter) = &mut settings.counter {
            let bound = match binding {
                // Two steps, so that a root that a cut left one ahead of the old value is never taken for this one.
                Binding::Step => {
                    counter.step(epoch.number - 1, &self.end.tag).and_then(|()| counter.step(epoch.number, &tag))
                }
                Binding::Adopt => counter.adopt(epoch.number, &tag),
            };
            bound.map_err(|error| lost(&self.end, &error))?;
        }
        self.enter(&head, epoch, tag);
        self.store.release(head.checkpoint);
        Writer::new(self.pages, device, self.store, settings, self.state, self.end)
    }

    fn enter(&mut self, head: &Head, epoch: Epoch, tag: Tag) {
        Arc::make_mut(&mut self.state.root.epochs).insert(epoch.number, epoch.salt);
        (self.state.root.commit, self.state.root.version) = (head.commit, head.version);
        self.end = SpineEnd {
            extent: Some(self.end.next),
            position: 1,
            epoch,
            next: head.next,
            tag,
            closed: head.closed,
            commit: head.commit,
            version: head.version,
            checkpoint: head.checkpoint,
            opening: true,
        };
    }

    pub(crate) fn open_opening<'a>(
        vault: &Vault,
        allocation: u64,
        page: counterfoil_vault::Sealed<'a>,
    ) -> Option<counterfoil_vault::Opened<'a>> {
        vault.open_opening(allocation, 0, OPENING_VERSION, page).ok()
    }
}

/// Makes an extent writable whose contents nobody needs.
fn prepare(device: &mut dyn Device, layout: &Layout, extent: u32) -> Result<(), Error> {
    let geometry = device.geometry();
    let first = layout.page(extent, 0);
    if geometry.erase_before_program {
        let blocks = u64::from(layout.extent_pages / geometry.block_pages);
        let block = geometry.block_of(first).0;
        (block..block + blocks).try_for_each(|block| device.erase(BlockNumber(block)))?;
    } else {
        device.reserve(first, u64::from(layout.extent_pages))?;
    }
    Ok(())
}

/// Steps the counter up to a root that a cut left ahead of it.
fn complete(counter: &mut dyn Counter, end: &SpineEnd, value: u64) -> Result<(), counterfoil_vault::CounterError> {
    if end.version == value + 2 {
        counter.step(value + 1, &end.closed)?;
    }
    counter.step(end.version, &end.tag)
}

fn lost(end: &SpineEnd, error: &counterfoil_vault::CounterError) -> Error {
    Error::CounterLost { image: end.version, reason: format!("{error}") }
}

