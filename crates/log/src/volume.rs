//! A volume from outside: made, recovered, judged by its counter, opened.
//!
//! Recovery writes nothing. It brings an image to its last whole frame in memory ([`Recovered`]); from there it is
//! read ([`Recovered::snapshot`]) or opened for writing ([`Recovered::open`], see `opening`).

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_flash::{self as flash, Device, PageNumber, Read};
use counterfoil_vault::{CounterValue, Entropy, Epoch, Tag, Vault};

use crate::ahead::Ahead;
use crate::checkpoint::{self, Changed, Checkpoint, Parts};
use crate::copy::Captured;
use crate::layout::Layout;
use crate::opening;
use crate::pages::Pages;
use crate::root::Root;
use crate::snapshot::Snapshot;
use crate::space::{Needs, Owner, Space};
use crate::spine::{Followed, Follower, SpineEnd};
use crate::state::State;
use crate::store::CheckpointStore;
use crate::writer::{Counting, Settings, Writer};
use crate::{Cause, CommitNumber, Error};

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
/// [`crate::Cause::Device`], [`Error::full`], [`crate::Cause::NoEntropy`], [`crate::Cause::CounterLost`].
#[inline(never)]
pub fn create(
    mut media: Media,
    vault: Arc<Vault>,
    layout: Layout,
    settings: Settings,
    entropy: &mut dyn Entropy,
    counter_value: u64,
    cache_bytes: usize,
) -> Result<Writer, Error> {
    let fixed = layout.fixed_extents().ok_or_else(|| Error::corrupt("layout of the volume"))?;
    let mut space = Space::new(fixed, layout.extents_max);
    let next = space.grant_chosen(fixed, Owner::Spine)?;
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
    let mut state = Box::new(State { root: Root::empty(counter_value), space, changed: Changed::default() });
    let epoch = next_epoch(&end, 0, entropy)?;
    let mut store = CheckpointStore::create(&mut *media.writer, &vault, &layout, epoch)?;
    store.commit(&mut *media.writer, &vault, epoch, &Checkpoint { state: &state, end: &end })?;
    state.changes_are_written();
    let pages = Arc::new(Pages::new(media.reader, vault, layout, cache_bytes));
    let base = end.clone();
    let recovered = Recovered { pages, store, state, end, base, unreadable: None, before_opening: None, ahead: None };
    recovered.begin(media.writer, settings, epoch)
}

/// The newest checkpoint, and what it tells.
#[inline(never)]
fn newest_checkpoint_of(
    media: &dyn Read,
    vault: &Vault,
    layout: &Layout,
) -> Result<(Box<CheckpointStore>, Box<State>, SpineEnd), Error> {
    let mut parts = Parts::default();
    let store = CheckpointStore::load(media, vault, layout, &mut |key, value| parts.take(key, value, layout))?;
    let (state, base) = checkpoint::decode(parts, layout)?;
    Ok((store, state, base))
}

fn next_epoch(end: &SpineEnd, counter_value: u64, entropy: &mut dyn Entropy) -> Result<Epoch, Error> {
    let number = opening::next_epoch_number(end, counter_value)?;
    let mut salt = [0; 16];
    entropy.fill(&mut salt).map_err(|_| Error::from(Cause::NoEntropy))?;
    Ok(Epoch { number, salt })
}

/// An image brought to its last whole frame, in memory. No counter has judged it yet.
pub struct Recovered {
    pub(crate) pages: Arc<Pages>,
    pub(crate) store: Box<CheckpointStore>,
    pub(crate) state: Box<State>,
    pub(crate) end: SpineEnd,
    /// The end of the spine as the checkpoint has it.
    pub(crate) base: SpineEnd,
    /// What the medium answered instead of a page behind the last frame.
    pub(crate) unreadable: Option<flash::Error>,
    /// Where the newest root is an opening root: what there was before it.
    before_opening: Option<Box<(Box<State>, SpineEnd)>>,
    /// What stands behind the last frame, where that is known to be nothing.
    ahead: Option<Ahead>,
}

impl Recovered {
    /// Finds the newest checkpoint and follows the spine to its last whole frame. Writes nothing.
    ///
    /// # Errors
    /// [`Error::tampered`] and [`Error::corrupt`] if no root can be believed, [`crate::Cause::Device`].
    pub fn recover(
        media: Arc<dyn Read + Send + Sync>,
        vault: Arc<Vault>,
        layout: Layout,
        cache_bytes: usize,
    ) -> Result<Recovered, Error> {
        Recovered::recover_up_to(media, vault, layout, cache_bytes, |_| u64::MAX)
    }

    /// As [`Recovered::recover`], but beside a writer and from a copy of the record store: up to the first frame that
    /// names a checkpoint which that copy does not hold yet. Such a frame frees what a copy of the volume needs that
    /// begins with the older checkpoint.
    ///
    /// # Errors
    /// As [`Recovered::recover`].
    pub fn recover_captured(
        captured: Captured,
        vault: Arc<Vault>,
        layout: Layout,
        cache_bytes: usize,
    ) -> Result<Recovered, Error> {
        Recovered::recover_up_to(Arc::new(captured), vault, layout, cache_bytes, CheckpointStore::version)
    }

    #[inline(never)]
    fn recover_up_to(
        media: Arc<dyn Read + Send + Sync>,
        vault: Arc<Vault>,
        layout: Layout,
        cache_bytes: usize,
        newest_checkpoint: impl Fn(&CheckpointStore) -> u64,
    ) -> Result<Recovered, Error> {
        layout.validate(&media.geometry())?;
        let (store, state, base) = newest_checkpoint_of(&*media, &vault, &layout)?;
        let newest_checkpoint = newest_checkpoint(&store);
        let pages = Arc::new(Pages::new(media, vault, layout, cache_bytes));
        Recovered::followed(pages, (store, state, base), newest_checkpoint)
    }

    /// Not beside what finds the checkpoint: each needs as much of the stack as there may be.
    #[inline(never)]
    fn followed(
        pages: Arc<Pages>,
        (store, state, base): (Box<CheckpointStore>, Box<State>, SpineEnd),
        newest_checkpoint: u64,
    ) -> Result<Recovered, Error> {
        let follower = Follower::new(&pages, state, base.clone()).up_to(newest_checkpoint);
        let Followed { state, end, unreadable, before_opening, .. } = follower.follow()?;
        state.validate(&end, &pages.layout)?;
        Ok(Recovered { pages, store, state, end, base, unreadable, before_opening, ahead: None })
    }

    /// Follows the spine on from where it was followed to, for whoever reads beside a writer. The caller has held a
    /// pin at or below [`Recovered::commit`] since before it was recovered: without one the way on may be gone.
    ///
    /// It costs two pages read and nothing deciphered while nobody writes.
    ///
    /// # Errors
    /// As [`Recovered::recover`].
    pub fn catch_up(self) -> Result<Recovered, Error> {
        // Read before the spine is followed: what comes to stand there in between is noticed the next time.
        let ahead = Ahead::of(&self.pages, &self.end)?;
        if ahead.is_some() && ahead == self.ahead {
            return Ok(self);
        }
        let Recovered { pages, store, state, end, base, .. } = self;
        let followed = Follower::new(&pages, state, end).follow()?;
        let ahead = ahead.filter(|_| followed.is_at_end);
        let Followed { state, end, unreadable, before_opening, .. } = followed;
        state.validate(&end, &pages.layout)?;
        // A writer that is alive tears nothing.
        unreadable.map_or(Ok(()), Err)?;
        Ok(Recovered { pages, store, state, end, base, unreadable, before_opening, ahead })
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

    /// What the medium answered instead of a page where the spine might go on. Some media answer so for ever where a
    /// write was torn; on others it may pass.
    pub fn unreadable(&self) -> Option<flash::Error> {
        self.unreadable
    }

    /// Copies of the checkpoint's pages that do not authenticate, and whether the other copy does: that is enough to go
    /// on, and the next opening for writing makes both good.
    ///
    /// # Errors
    /// [`Error::latched`].
    pub fn damaged_checkpoint_pages(&mut self) -> Result<Vec<(PageNumber, bool)>, Error> {
        self.store.damaged_pages(&*self.pages.media, &self.pages.vault)
    }

    /// Holds the image against what its counter says.
    ///
    /// # Errors
    /// [`crate::Cause::RolledBack`] if the counter has seen a newer root or another one at its value,
    /// [`crate::Cause::CounterLost`] if the counter is further behind than any cut explains; [`crate::Cause::Device`] if a page could
    /// not be read and the counter does not vouch for the image without it.
    pub fn judge(&self, counter: &CounterValue) -> Result<(), Error> {
        let judged = self.compare(counter);
        match self.unreadable {
            Some(error) if judged.is_err() || counter.value != self.end.version => Err(error.into()),
            _ => judged,
        }
    }

    fn compare(&self, counter: &CounterValue) -> Result<(), Error> {
        let image = self.end.version;
        let Some(ahead) = image.checked_sub(counter.value) else {
            return Err(Error::from(Cause::RolledBack { image, counter: counter.value }));
        };
        if ahead > 2 || (ahead == 2 && !self.end.opening) {
            // Attempts to adopt an older image that were cut: what they were made upon is what the counter speaks of.
            if let Some(before) = self.before_opening.as_ref().map(|before| &before.1)
                && (1..counter.value).contains(&before.version)
            {
                return Err(Error::from(Cause::RolledBack { image: before.version, counter: counter.value }));
            }
            let reason =
                format!("it stands at {} only, so it is older than the image or not the image's own", counter.value);
            return Err(Error::from(Cause::CounterLost { image, reason }));
        }
        let expected = if ahead == 0 { self.end.tag } else { self.end.closed };
        match counter.tag {
            Some(tag) if tag != expected => Err(Error::from(Cause::RolledBack { image, counter: counter.value })),
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
    /// As [`Recovered::judge`]; [`Error::full`], [`crate::Cause::NoEntropy`], [`crate::Cause::Device`].
    #[inline(never)]
    pub fn open(
        mut self,
        mut writer: Box<dyn Device + Send>,
        mut settings: Settings,
        entropy: &mut dyn Entropy,
    ) -> Result<Writer, Error> {
        self.pages.require_same_process()?;
        // What was read may stand in the system's cache only, left by a process that died before its flush. Neither
        // the counter nor an opening root may name what a power cut can still take away.
        writer.flush()?;
        // Where no counter says that nothing acknowledged stood in it, a page that cannot be read now is waited for.
        let vouched = settings.counter.is_some() && matches!(settings.counting, Counting::EveryCommit);
        if let Some(error) = self.unreadable.filter(|_| !vouched) {
            return Err(error.into());
        }
        let mut is_counted = false;
        if let Some(counter) = &mut settings.counter {
            let value = counter.value().map_err(|error| opening::lost(&self.end, &error))?;
            self.judge(&value)?;
            is_counted = value.value == self.end.version;
            opening::complete(&mut **counter, &self.end, value.value)
                .map_err(|error| opening::lost(&self.end, &error))?;
        }
        self.before_opening = None;
        self.state.space.hold_free_since(self.end.commit);
        let epoch = next_epoch(&self.end, 0, entropy)?;
        // Looked at where it is to be: a writer is large, and would be on the stack twice.
        let mut begun = self.begin(writer, settings, epoch);
        if let Ok(writer) = &mut begun {
            if !is_counted {
                writer.leave_spine_behind()?;
            }
            writer.shorten_spine_if_long()?;
        }
        begun
    }

    /// Opens for writing and binds the image to its counter anew, whatever the counter says: on a person's word, or
    /// when a backup is restored. The epoch begins above the image's version and above `counter_value`, so every
    /// other image of this database is refused from then on. `first` leaves the incident behind that tells of it, in
    /// commits that are durable before the counter is bound: a cut before that leaves an image that the counter does not
    /// accept, a cut after it one that holds the incident.
    ///
    /// # Errors
    /// As [`Recovered::open`], and those of `first`.
    pub fn adopt<E: From<Error>>(
        mut self,
        mut writer: Box<dyn Device + Send>,
        mut settings: Settings,
        entropy: &mut dyn Entropy,
        counter_value: u64,
        first: impl FnOnce(&mut Writer) -> Result<(), E>,
    ) -> Result<Writer, E> {
        self.pages.require_same_process()?;
        writer.flush().map_err(Error::from)?;
        let mut counter = settings.counter.take();
        if let Some(counter) = &mut counter {
            // Before anything is written: a root that no counter can be bound to is ahead of the good one, too.
            counter.reserve().map_err(|error| opening::lost(&self.end, &error))?;
        }
        // Above what a cut attempt has used too: what it left half written was sealed under that number.
        let epoch = next_epoch(&self.end, counter_value, entropy)?;
        self.forget_cut_adoption(counter_value);
        self.state.space.hold_free_since(self.end.commit);
        let mut writer = self.begin(writer, settings, epoch)?;
        first(&mut writer)?;
        if let Some(counter) = counter {
            writer.bind(counter)?;
        }
        // Not before: the image must not move on further than the incident while its counter does not follow.
        writer.leave_spine_behind()?;
        writer.shorten_spine_if_long()?;
        Ok(writer)
    }

    /// A root that an adoption wrote above the counter, and behind which a cut left nothing: the next attempt takes its
    /// place, so that what was there before it still tells what the image is.
    fn forget_cut_adoption(&mut self, counter_value: u64) {
        let is_known = |end: &SpineEnd| (1..=counter_value).contains(&end.version);
        if self.end.version > counter_value
            && let Some(before) = self.before_opening.take_if(|before| is_known(&before.1))
        {
            (self.state, self.end) = *before;
        }
    }

    /// Writes the opening root, counts it and hands over to the writer.
    #[inline(never)]
    fn begin(
        mut self,
        mut device: Box<dyn Device + Send>,
        mut settings: Settings,
        epoch: Epoch,
    ) -> Result<Writer, Error> {
        let checkpoint = self.store.version();
        let needs = Needs { counted: self.end.version, oldest_pin: settings.pins.oldest() };
        let space = &mut self.state.space;
        let next = opening::grant(&mut *device, &self.pages, space, (Owner::Spine, None), (needs, 0))?;
        let going_on = (&mut *self.state, &mut self.end);
        opening::write_root(&self.pages, &mut *device, &mut settings, going_on, epoch, (checkpoint, next))?;
        self.store.release(checkpoint);
        let mended = self.store.mend_copies(&mut *device, &self.pages.vault)?;
        if let Some(counter) = &mut settings.counter
            && opening::wants_every_commit(&mut **counter).map_err(|error| opening::lost(&self.end, &error))?
        {
            settings.counting = Counting::EveryCommit;
        }
        let mut begun = Writer::new(self.pages, device, self.store, settings, self.state, (self.base, self.end));
        if let Ok(writer) = &mut begun {
            writer.mended = mended;
        }
        begun
    }
}
