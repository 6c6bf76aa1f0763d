//! Records by name: an index that needs no memory and no pages of its own.
//!
//! ```text
//! ids of names: 0 .. Shape::names; a name belongs at the id that its hash gives, or at the next one that is free
//! record: length of the name u8, 1 to 255 | name | value; empty: a name was deleted here, look on
//! ```
//! 1. From the id that a name's hash gives to the one where it stands no id is without a record.
//! 2. Whoever chooses names can make them collide, and so make a lookup read every name. Nothing else.

use counterfoil_flash::Device;

use crate::bytes;
use crate::state::RecordId;

use super::error::Error;
use super::store::Standalone;
use super::word::Word;

/// Marks of deleted names that go with a deletion at most.
const MARKS_MAX: usize = 8;

/// A name and the value under it.
pub type Named<'b> = (&'b [u8], &'b [u8]);

/// Where a name stands, or could stand.
enum Place {
    /// It stands there, and its record has so many bytes.
    Taken(u32, usize),
    /// It stands nowhere, and this id is free for it; none if there is none.
    Free(Option<u32>),
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Copies the value under a name to the start of `buffer`, which has room for a byte and the longest name with its value that
    /// the store holds, whichever stands in the way; how long the value is. Reads two pages, and two for each other name that stands in the way.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::Name`] and those of [`Standalone::read`].
    pub fn read_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<usize, Error> {
        match self.look_up(name, buffer)? {
            Place::Taken(_, bytes) => {
                let value = 1 + name.len()..bytes;
                for (to, from) in value.clone().enumerate() {
                    let byte = buffer.get(from).copied().unwrap_or(0);
                    bytes::copy(buffer.get_mut(to..).unwrap_or_default(), &[byte]);
                }
                Ok(value.len())
            }
            Place::Free(_) => Err(Error::NoRecord),
        }
    }

    /// Commits a value under a name; what was there is replaced. `buffer` has room for name, value and a byte, and for every
    /// record under a name. The new version.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::IdsExhausted`] if all ids of names are taken, and those of [`Standalone::commit`].
    pub fn put_named(&mut self, name: &[u8], value: &[u8], buffer: &mut [u8]) -> Result<u64, Error> {
        let id = match self.look_up(name, buffer)? {
            Place::Taken(id, _) | Place::Free(Some(id)) => id,
            Place::Free(None) => return Err(Error::IdsExhausted),
        };
        let bytes = 1 + name.len() + value.len();
        let record = buffer.get_mut(..bytes).ok_or(Error::BufferTooSmall)?;
        let [length, rest @ ..] = record else { return Err(Error::BufferTooSmall) };
        let (first, last) = rest.split_at_mut_checked(name.len()).ok_or(Error::BufferTooSmall)?;
        *length = name.len() as u8;
        bytes::copy(first, name);
        bytes::copy(last, value);
        self.commit(&[(RecordId(id), Some(record))])
    }

    /// Commits that there is nothing under a name any more. The new version.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::Name`] and those of [`Standalone::commit`].
    pub fn delete_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<u64, Error> {
        let Place::Taken(id, _) = self.look_up(name, buffer)? else { return Err(Error::NoRecord) };
        if self.find(self.after(id))?.is_some() {
            // Another name may stand behind it: something has to tell that the search goes on.
            return self.commit(&[(RecordId(id), Some(&[]))]);
        }
        // Nothing does, so no search needs to come as far, and what tells it to go on before this is not needed either.
        let (mut gone, mut count, mut id) = ([(RecordId(id), None); MARKS_MAX], 1, id);
        for place in &mut gone[1..] {
            id = if id > 0 { id - 1 } else { self.names() - 1 };
            if !matches!(self.read(RecordId(id), buffer), Ok(0)) {
                break;
            }
            (*place, count) = ((RecordId(id), None), count + 1);
        }
        self.commit(gone.get(..count.min(self.changes_max())).unwrap_or_default())
    }

    /// The id that a search looks at after this one.
    fn after(&self, id: u32) -> u32 {
        if id + 1 < self.names() { id + 1 } else { 0 }
    }

    /// The name and the value that stand at this id, in `buffer`; none if it holds no name. For listing all of them: ids
    /// below [`Standalone::names`].
    ///
    /// # Errors
    /// Those of [`Standalone::read`].
    pub fn named_at<'b>(&mut self, id: u32, buffer: &'b mut [u8]) -> Result<Option<Named<'b>>, Error> {
        let bytes = match self.read(RecordId(id), buffer) {
            Err(Error::NoRecord) => return Ok(None),
            bytes => bytes?,
        };
        let record = buffer.get(..bytes).unwrap_or_default();
        let Some((length, rest)) = record.split_first() else { return Ok(None) };
        rest.split_at_checked(usize::from(*length)).map(Some).ok_or(Error::Corrupt)
    }

    /// How many ids belong to names.
    pub fn names(&self) -> u32 {
        self.state.shape.names
    }

    fn look_up(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<Place, Error> {
        let count = self.names();
        if name.is_empty() || name.len() > usize::from(u8::MAX) || count == 0 {
            return Err(Error::Name);
        }
        let (mut id, mut free) = (bytes::fnv(name).checked_rem(count).unwrap_or(0), None);
        for _ in 0..count {
            match self.read(RecordId(id), buffer) {
                Err(Error::NoRecord) => return Ok(Place::Free(free.or(Some(id)))),
                Ok(0) => free = free.or(Some(id)),
                Ok(bytes) if is_named(buffer.get(..bytes).unwrap_or_default(), name) => {
                    return Ok(Place::Taken(id, bytes));
                }
                other => drop(other?),
            }
            id = self.after(id);
        }
        Ok(Place::Free(free))
    }
}

fn is_named(record: &[u8], name: &[u8]) -> bool {
    let Some((length, rest)) = record.split_first() else { return false };
    usize::from(*length) == name.len() && rest.starts_with(name)
}
