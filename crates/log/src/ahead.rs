//! What stands behind the end of the spine, as it lies there: whoever reads beside a writer asks before each statement whether
//! there is a newer commit, and mostly there is none. Two pages that have the same bytes as when they were found to be nothing
//! are nothing still, and need not be deciphered to say so.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash as flash;

use crate::pages::Pages;
use crate::spine::SpineEnd;
use crate::{Cause, Error};

/// The bytes of the page where the next frame would begin, and of the one where an opening root would stand. One beyond the end
/// of a medium that has not grown so far has none.
#[derive(PartialEq, Eq)]
pub(crate) struct Ahead {
    frame: Option<Vec<u8>>,
    opening: Option<Vec<u8>>,
}

impl Ahead {
    /// What stands there now; none where the medium does not say, which is for whoever follows the spine to judge.
    pub(crate) fn of(pages: &Pages, end: &SpineEnd) -> Result<Option<Ahead>, Error> {
        let layout = &pages.layout;
        let within = end.extent.filter(|_| end.position < layout.extent_pages);
        let read = |extent, position| match read(pages, extent, position) {
            Err(flash::Error::Latched) => Err(Error::from(Cause::Device(flash::Error::Latched))),
            read => Ok(read.ok()),
        };
        // At the end of an extent both are the first page of the next one.
        let frame = within.map_or(Ok(Some(None)), |extent| read(extent.number, end.position))?;
        let opening = read(end.next.number, 0)?;
        Ok(frame.zip(opening).map(|(frame, opening)| Ahead { frame, opening }))
    }
}

fn read(pages: &Pages, extent: u32, position: u32) -> Result<Option<Vec<u8>>, flash::Error> {
    let mut bytes = vec![0; pages.layout.page_bytes as usize];
    match pages.media.read(pages.layout.page(extent, position), 0, &mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(flash::Error::OutOfRange { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
