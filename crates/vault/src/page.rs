//! Three states of a page in memory, as three types over one borrowed buffer.
//!
//! ```text
//! Plain  --seal-->  Sealed  --open-->  Opened
//!                     ^ from_medium: the only way in from outside
//! ```
//! 1. Bytes from a medium are [`Sealed`] and nothing else; only `open` turns them into [`Opened`].
//! 2. A [`Sealed`] page is exactly one page: payload, then the tag in its last [`TAG_BYTES`] bytes.

/// The tag that authenticates a page.
pub type Tag = [u8; TAG_BYTES];

/// Bytes of a page's tag.
pub const TAG_BYTES: usize = 16;

/// Bytes at the end of an opening page that are not payload: synthetic value and tag.
pub const OPENING_BYTES: usize = 48;

/// A page of our own making, not sealed yet.
pub struct Plain<'a>(pub(crate) &'a mut [u8]);

/// A page as it stands on a medium: not to be believed.
pub struct Sealed<'a>(pub(crate) &'a mut [u8]);

/// A page that authenticated at the place that was asked for.
pub struct Opened<'a> {
    pub(crate) page: &'a mut [u8],
    pub(crate) payload_bytes: usize,
}

impl<'a> Plain<'a> {
    /// Takes exactly one page: payload first, the last [`TAG_BYTES`] (for an opening [`OPENING_BYTES`]) bytes are
    /// overwritten by sealing.
    pub fn new(page: &'a mut [u8]) -> Plain<'a> {
        Plain(page)
    }
}

impl<'a> Sealed<'a> {
    /// Takes exactly one page as it was read from a medium.
    pub fn from_medium(page: &'a mut [u8]) -> Sealed<'a> {
        Sealed(page)
    }

    /// The page, as it goes to the medium.
    pub fn bytes(&self) -> &[u8] {
        self.0
    }

    /// The tag; zeros for a buffer too short to hold one, which never opens.
    pub fn tag(&self) -> Tag {
        tag_of(self.0)
    }
}

impl<'a> Opened<'a> {
    /// The bytes that were sealed.
    pub fn payload(&self) -> &[u8] {
        &self.page[..self.payload_bytes]
    }

    /// The same, for the lifetime of the buffer.
    pub fn into_payload(self) -> &'a mut [u8] {
        &mut self.page[..self.payload_bytes]
    }

    /// The tag under which the page opened.
    pub fn tag(&self) -> Tag {
        tag_of(self.page)
    }
}

/// What becomes of a page that cannot be sealed as it was asked: our own promise was broken. A host stops. A part without an
/// operating system has nobody to tell, and there a panic is a hang: the page is wiped, so that nothing goes out unsealed,
/// and never opens.
pub(crate) fn unsealable<'a>(page: Plain<'a>, broken: &str) -> Sealed<'a> {
    wiped(page.0, broken);
    Sealed(page.0)
}

/// The same, where there are only its bytes.
pub(crate) fn wiped(bytes: &mut [u8], broken: &str) {
    bytes.fill(0);
    #[cfg(feature = "std")]
    panic!("{broken}");
    #[cfg(not(feature = "std"))]
    let _ = broken;
}

fn tag_of(page: &[u8]) -> Tag {
    page.last_chunk::<TAG_BYTES>().copied().unwrap_or_default()
}
