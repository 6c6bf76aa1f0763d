//! The spine: the chain of commit frames, and how it is followed after an open.
//!
//! The spine is a list of extents. Each page's head names the extent in which the spine goes on, so a reader never
//! searches: what comes after a page is either the next page of the extent or page 0 of the named one. Page 0 of the
//! named extent may also be an *opening root*: it names the frame after which it continues, and everything that a cut
//! left behind that frame is dead, readable or not.
//!
//! ```text
//!  extent 7                     extent 9                      extent 4
//!  | O | F | F F F | F | x | -> | O | F | F | .. | F F | ->   | F .. (continues a frame, or is the next opening)
//!                        ^ torn by a cut: the opening root in 9 names the last whole frame
//! ```
//!
//! Invariants: a page is programmed once under one (allocation, epoch); every page holds the tag of the one before;
//! commit numbers rise by one from frame to frame; versions never fall.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use counterfoil_flash as flash;
use counterfoil_vault::{Epoch, Kind, Place, Sealed, Tag, Vault};

use crate::bytes::Cursor;
use crate::frame::{Element, Head, next_element};
use crate::opening;
use crate::pages::Pages;
use crate::pool_element::PoolElement;
use crate::space::Extent;
use crate::state::{Context, NUMBER_MAX, State};
use crate::{Cause, Error};

/// The end of the spine: where the next frame goes and what it must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpineEnd {
    /// The extent being written; none before the first opening root.
    pub(crate) extent: Option<Extent>,
    /// The position after the last page.
    pub(crate) position: u32,
    pub(crate) epoch: Epoch,
    /// Where the spine goes on when this extent is full or a new opening comes.
    pub(crate) next: Extent,
    /// Tag of the last page.
    pub(crate) tag: Tag,
    /// Tag of the last page with the version before `version`.
    pub(crate) closed: Tag,
    pub(crate) commit: u64,
    pub(crate) version: u64,
    /// The record store's version that the last frame names.
    pub(crate) checkpoint: u64,
    /// Whether the last frame is an opening root.
    pub(crate) opening: bool,
}

impl SpineEnd {
    /// The tag that a frame of `version` must give as its `closed`.
    pub(crate) fn closed_for(&self, version: u64) -> Tag {
        if version == self.version { self.closed } else { self.tag }
    }

    /// The end after a frame whose last page has this head and tag.
    pub(crate) fn after(&self, head: &Head, extent: Extent, position: u32, epoch: Epoch, tag: Tag) -> SpineEnd {
        SpineEnd {
            extent: Some(extent),
            position,
            epoch,
            next: head.next,
            tag,
            closed: head.closed,
            commit: head.commit,
            version: head.version,
            checkpoint: head.checkpoint,
            opening: head.opening,
        }
    }
}

/// An opened page of the spine.
struct SpinePage<'a> {
    head: Head,
    tag: Tag,
    used: &'a [u8],
}

/// A frame read from the spine.
struct Frame {
    end: SpineEnd,
    elements: Vec<u8>,
    /// Extents that became known as the spine's next ones.
    extents: Vec<Extent>,
}

/// Opening root found in page 0 of the next extent.
struct OpeningRoot {
    head: Head,
    epoch: Epoch,
    tag: Tag,
}

/// What comes next on the spine.
enum Step {
    Frame(Box<Frame>),
    /// An opening root; the end after it.
    Opening(Box<SpineEnd>),
}

impl Step {
    /// The version of the record store that it names.
    fn checkpoint(&self) -> u64 {
        match self {
            Step::Frame(frame) => frame.end.checkpoint,
            Step::Opening(end) => end.checkpoint,
        }
    }
}

/// Walks along the spine and authenticates it, whatever it tells.
pub(crate) struct Walker {
    pages: Arc<Pages>,
    pub(crate) end: SpineEnd,
    /// The opening root in the next extent, once it was looked for.
    reopened: Option<Option<Box<OpeningRoot>>>,
    /// What the medium answered instead of a page, if it ever did: some media answer so for ever where a write was
    /// torn. Whether something that was acknowledged stood there is for the counter to say.
    pub(crate) unreadable: Cell<Option<flash::Error>>,
    /// Some of the pages of the next frame are there, and not yet all of them.
    is_between: Cell<bool>,
}

/// What following the spine came to.
pub(crate) struct Followed {
    pub(crate) state: Box<State>,
    pub(crate) end: SpineEnd,
    /// What kept recovery from looking further, if something did.
    pub(crate) unreadable: Option<flash::Error>,
    /// Where the last root is an opening root: state and end before it.
    pub(crate) before_opening: Option<Box<(Box<State>, SpineEnd)>>,
    /// Nothing stands where the spine might have gone on: no opening root, and no page of a frame.
    pub(crate) is_at_end: bool,
}

/// Follows the spine from a checkpoint to its last whole frame.
pub(crate) struct Follower {
    walker: Walker,
    state: Box<State>,
    /// The end of what was applied.
    end: SpineEnd,
    /// Both as they were before the opening root that was applied last, until a frame comes behind it.
    before_opening: Option<Box<(Box<State>, SpineEnd)>>,
    /// Frames that name a newer checkpoint than this one are not followed, unless it is the one named at the beginning:
    /// that of a window which the record store left, and whose versions were others.
    newest_checkpoint: u64,
    first_checkpoint: u64,
}

impl Follower {
    pub(crate) fn new(pages: &Arc<Pages>, state: Box<State>, end: SpineEnd) -> Self {
        let walker = Walker::new(pages, end.clone());
        let first_checkpoint = end.checkpoint;
        Follower { walker, state, end, before_opening: None, newest_checkpoint: u64::MAX, first_checkpoint }
    }

    /// Ends before the first frame or opening root that names a newer checkpoint than this one.
    pub(crate) fn up_to(self, newest_checkpoint: u64) -> Self {
        Follower { newest_checkpoint, ..self }
    }

    /// Applies every whole frame. A frame at the very end whose pages did not all reach the medium does not count.
    #[inline(never)]
    pub(crate) fn follow(mut self) -> Result<Followed, Error> {
        // The newest frame found waits here until it is known whether another follows: then its flush covered its pages.
        let mut newest: Option<Box<Frame>> = None;
        let mut is_at_end = true;
        while let Some(step) = self.walker.step()? {
            is_at_end = false;
            if let Some(frame) = newest.take() {
                self.apply(&frame)?;
            }
            if step.checkpoint() > self.newest_checkpoint && step.checkpoint() != self.first_checkpoint {
                break;
            }
            match step {
                Step::Frame(frame) => newest = Some(frame),
                Step::Opening(end) => self.enter(*end)?,
            }
        }
        if let Some(frame) = newest {
            self.apply_last(&frame)?;
        }
        let Follower { walker, state, end, before_opening, .. } = self;
        let (unreadable, is_between) = (walker.unreadable.get(), walker.is_between.get());
        let is_at_end = is_at_end && !is_between && unreadable.is_none();
        Ok(Followed { state, end, unreadable, before_opening, is_at_end })
    }

    /// Applies the last frame, unless a page that it programmed and did not flush is missing.
    #[inline(never)]
    fn apply_last(&mut self, frame: &Frame) -> Result<(), Error> {
        if !lists_pages(frame)? {
            return self.apply(frame);
        }
        let before = (self.state.clone(), self.end.clone(), self.before_opening.clone());
        self.apply(frame)?;
        if !self.unflushed_pages_open(frame)? {
            (self.state, self.end, self.before_opening) = before;
        }
        Ok(())
    }

    /// Goes on in the opening root's extent and epoch.
    #[inline(never)]
    fn enter(&mut self, end: SpineEnd) -> Result<(), Error> {
        self.before_opening = Some(Box::new((self.state.clone(), self.end.clone())));
        self.state.take_spine_extent(end.next)?;
        Arc::make_mut(&mut self.state.root.epochs).insert(end.epoch.number, end.epoch.salt);
        (self.state.root.commit, self.state.root.version) = (end.commit, end.version);
        self.end = end;
        Ok(())
    }

    #[inline(never)]
    fn apply(&mut self, frame: &Frame) -> Result<(), Error> {
        for extent in &frame.extents {
            self.state.take_spine_extent(*extent)?;
        }
        let context = Context {
            commit: frame.end.commit,
            version: frame.end.version,
            epoch: frame.end.epoch.number,
            layout: self.walker.pages.layout,
        };
        let mut cursor = Cursor::new(&frame.elements, "commit frame");
        while let Some(element) = next_element(&mut cursor)? {
            self.state.apply(&element, &context)?;
        }
        (self.state.root.commit, self.state.root.version) = (frame.end.commit, frame.end.version);
        self.end = frame.end.clone();
        self.before_opening = None;
        Ok(())
    }

    /// Whether every page that the frame lists as unflushed is there. Only asked of the last frame: the flush of a
    /// later one covered its pages too.
    fn unflushed_pages_open(&self, frame: &Frame) -> Result<bool, Error> {
        let mut cursor = Cursor::new(&frame.elements, "commit frame");
        while let Some(element) = next_element(&mut cursor)? {
            let (pages, root) = (&self.walker.pages, &self.state.root);
            let (found, tag) = match element {
                Element::Unflushed { id, page, tag } => (pages.tag_of(root, id, page), tag),
                Element::Pool(PoolElement::Unflushed { id, page, tag }) => (pages.nameless_tag(root, id, page), tag),
                _ => continue,
            };
            match found {
                Ok(found) if found == tag => {}
                Ok(_) => return Ok(false),
                Err(error) => match error.cause() {
                    Cause::Tampered { .. } | Cause::Device(flash::Error::OutOfRange { .. }) => return Ok(false),
                    Cause::Device(device) if *device != flash::Error::Latched => {
                        self.walker.unreadable.set(Some(*device));
                        return Ok(false);
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(true)
    }
}

/// Whether a frame lists pages that were not flushed before it.
fn lists_pages(frame: &Frame) -> Result<bool, Error> {
    let mut cursor = Cursor::new(&frame.elements, "commit frame");
    while let Some(element) = next_element(&mut cursor)? {
        if matches!(element, Element::Unflushed { .. } | Element::Pool(PoolElement::Unflushed { .. })) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Walker {
    pub(crate) fn new(pages: &Arc<Pages>, end: SpineEnd) -> Self {
        Walker { pages: pages.clone(), end, reopened: None, unreadable: Cell::new(None), is_between: Cell::new(false) }
    }

    /// The next whole frame or opening root, or none where the spine ends.
    #[inline(never)]
    fn step(&mut self) -> Result<Option<Step>, Error> {
        let reopened = match self.reopened.take() {
            Some(reopened) => reopened,
            None => self.opening_root(&self.end)?,
        };
        if let Some(OpeningRoot { head, epoch, tag }) = reopened.as_deref()
            && head.previous == self.end.tag
        {
            let in_order = (self.end.version..=NUMBER_MAX).contains(&head.version);
            if head.commit != self.end.commit + 1 || !in_order {
                return Err(Error::corrupt("opening root"));
            }
            self.end = self.end.after(head, self.end.next, 1, *epoch, *tag);
            return Ok(Some(Step::Opening(Box::new(self.end.clone()))));
        }
        let frame = self.frame(&self.end)?;
        let stays = frame.as_ref().is_some_and(|frame| frame.end.next == self.end.next);
        if reopened.is_some() && !stays {
            // It continues from a frame that is not there: frames were taken away.
            return Err(self.lost());
        }
        self.reopened = stays.then_some(reopened);
        Ok(frame.map(|frame| {
            self.end = frame.end.clone();
            Step::Frame(frame)
        }))
    }

    /// The elements of the next frame that is no opening root, for who only wants to know what changed. The caller
    /// knows that there is one.
    pub(crate) fn elements(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self.step()? {
            Some(Step::Frame(frame)) => Ok(Some(frame.elements)),
            Some(Step::Opening(_)) => Ok(None),
            None => Err(self.unreadable.get().map_or_else(|| self.lost(), Error::from)),
        }
    }

    pub(crate) fn lost(&self) -> Error {
        let extent = self.end.extent.unwrap_or(self.end.next);
        Error::tampered("commit frame", self.pages.layout.page(extent.number, self.end.position).0)
    }

    /// Reads page 0 of the next extent as an opening root.
    #[inline(never)]
    fn opening_root(&self, end: &SpineEnd) -> Result<Option<Box<OpeningRoot>>, Error> {
        let layout = &self.pages.layout;
        let next = end.next;
        if next.number >= layout.extents_max {
            return Err(Error::corrupt("next extent of the spine"));
        }
        let mut bytes = vec![0; layout.page_bytes as usize];
        if !self.read_page(next.number, 0, &mut bytes)? {
            return Ok(None);
        }
        let page = Sealed::from_medium(&mut bytes);
        let Some(opened) = opening::open_root(&self.pages.vault, next.allocation, page) else {
            return Ok(None);
        };
        let tag = opened.tag();
        let (head, elements) = Head::decode(opened.payload())?;
        let salt = elements.try_into().map_err(|_| Error::corrupt("opening root"))?;
        if !head.opening || !head.last || head.index != 0 {
            return Err(Error::corrupt("opening root"));
        }
        Ok(Some(Box::new(OpeningRoot { head, epoch: Epoch { number: head.version, salt }, tag })))
    }

    /// Reads the frame that follows `before`, if all of it is there.
    #[inline(never)]
    fn frame(&self, before: &SpineEnd) -> Result<Option<Box<Frame>>, Error> {
        let mut end = before.clone();
        let (mut elements, mut extents) = (Vec::new(), Vec::new());
        let mut bytes = vec![0; self.pages.layout.page_bytes as usize];
        for index in 0.. {
            let Some(mut extent) = end.extent else { return Ok(None) };
            let moved = end.position >= self.pages.layout.extent_pages;
            if moved {
                (extent, end.position) = (end.next, 0);
            }
            self.is_between.set(index > 0);
            let Some(SpinePage { head, tag, used }) = self.open_page(extent, &end, &mut bytes)? else {
                return Ok(None);
            };
            let follows = head.previous == end.tag
                && head.commit == before.commit + 1
                && head.index == index
                && !head.opening
                && (head.version == before.version || head.version == before.version + 1)
                && head.closed == before.closed_for(head.version)
                && (moved || head.next == end.next);
            if !follows {
                return Ok(None);
            }
            elements.extend_from_slice(used);
            if moved {
                extents.push(head.next);
            }
            end = end.after(&head, extent, end.position + 1, end.epoch, tag);
            if head.last {
                return Ok(Some(Box::new(Frame { end, elements, extents })));
            }
        }
        Ok(None)
    }

    fn open_page<'b>(
        &self,
        extent: Extent,
        end: &SpineEnd,
        bytes: &'b mut [u8],
    ) -> Result<Option<SpinePage<'b>>, Error> {
        if !self.read_page(extent.number, end.position, bytes)? {
            return Ok(None);
        }
        let place =
            Place { kind: Kind::Frame, allocation: extent.allocation, position: end.position, epoch: end.epoch };
        let vault: &Vault = &self.pages.vault;
        let payload = self.pages.layout.payload();
        let Ok(opened) = vault.open(&place, Sealed::from_medium(bytes)) else { return Ok(None) };
        let tag = opened.tag();
        let (head, used) = Head::decode(&bytes[..payload])?;
        Ok(Some(SpinePage { head, tag, used }))
    }

    /// Reads one page; false if there is none that can be read.
    fn read_page(&self, extent: u32, position: u32, bytes: &mut [u8]) -> Result<bool, Error> {
        match self.pages.media.read(self.pages.layout.page(extent, position), 0, bytes) {
            Ok(()) => Ok(true),
            // Past the end of a medium that has not grown so far.
            Err(flash::Error::OutOfRange { .. }) => Ok(false),
            Err(flash::Error::Latched) => Err(flash::Error::Latched.into()),
            Err(error) => {
                self.unreadable.set(Some(error));
                Ok(false)
            }
        }
    }
}
