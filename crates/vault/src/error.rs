//! What opening can answer instead of a page.

use core::fmt;

use crate::Kind;

/// A page, or a cell, is not what was sealed at this place: changed, moved, stale, rotten, or never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tampered {
    /// What the page was to be.
    pub kind: Kind,
    /// The allocation it was looked for in.
    pub allocation: u64,
    /// The page within it.
    pub position: u32,
}

impl fmt::Display for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Frame => "commit frame",
            Kind::Opening => "opening root",
            Kind::Container => "page",
            Kind::RecordData => "record page",
            Kind::RecordIndex => "record index page",
            Kind::Spill => "working page",
            Kind::Cells => "cell page",
            Kind::Sector => "sector",
            Kind::Nameless => "leaf page",
        };
        write!(f, "{name} {} of allocation {} does not authenticate", self.position, self.allocation)
    }
}

impl core::error::Error for Tampered {}
