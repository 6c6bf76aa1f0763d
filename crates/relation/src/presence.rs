//! Which row numbers of a rewritten segment are there, and where their rows lie.
//!
//! ```text
//! for each 4096 row numbers with a row among them, in order:
//! | chunk u64 | rows before it u64 | bitmap, 512 bytes |        row number - segment's first = chunk * 4096 + bit
//! ```
//!
//! Invariants (checked when read): chunks ascend; "rows before" is the sum of the bits before; no chunk is empty.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Deref;

use counterfoil_log::{ContainerId, Lock, View};

use crate::{Error, few_or_many};

const CHUNK_ROWS: u64 = 4096;
const CHUNK_BYTES: usize = 16 + 512;
/// Chunks that are kept of all maps that are not.
const RECENT_CHUNKS: usize = few_or_many(1, 4);

/// The row numbers of a segment, counted from its first.
#[derive(Debug)]
pub(crate) struct Presence {
    span: u64,
    count: u64,
    chunk_count: usize,
    chunks: Chunks,
}

/// Where chunks are: a map that there is no room for is read chunk by chunk.
#[derive(Debug)]
enum Chunks {
    Kept(Vec<Chunk>),
    Read { container: ContainerId, recent: Arc<Recent> },
}

/// The chunks that were read last, of all maps.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    chunks: Lock<Vec<(ContainerId, usize, Arc<Chunk>)>>,
}

impl Recent {
    /// Forgets them: containers may be others by now.
    pub(crate) fn clear(&self) {
        self.chunks.write(Vec::clear);
    }

    fn find(&self, container: ContainerId, place: usize) -> Option<Arc<Chunk>> {
        self.chunks.read(|chunks| {
            let found = chunks.iter().find(|(of, at, _)| (*of, *at) == (container, place));
            found.map(|(_, _, chunk)| chunk.clone())
        })
    }

    fn keep(&self, container: ContainerId, place: usize, chunk: &Arc<Chunk>) {
        self.chunks.write(|chunks| {
            if chunks.len() >= RECENT_CHUNKS {
                chunks.remove(0);
            }
            chunks.push((container, place, chunk.clone()));
        });
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    number: u64,
    before: u64,
    /// Rows before the next one.
    end: u64,
    bits: [u64; 64],
}

impl Chunk {
    fn decode(bytes: &[u8; CHUNK_BYTES]) -> Chunk {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |place: usize| u64::from_le_bytes(words[place]);
        let bits: [u64; 64] = core::array::from_fn(|place| word(place + 2));
        let rows: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Chunk { number: word(0), before: word(1), end: word(1).saturating_add(rows), bits }
    }

    /// The number of its last row.
    fn last(&self) -> Option<u64> {
        numbers_of(self).last()
    }
}

/// A chunk that is looked at.
enum Looked<'a> {
    Kept(&'a Chunk),
    Read(Arc<Chunk>),
}

impl Deref for Looked<'_> {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        match self {
            Looked::Kept(chunk) => chunk,
            Looked::Read(chunk) => chunk,
        }
    }
}

fn wrong() -> Error {
    Error::corrupt("", "map of the rows of a segment")
}

impl Presence {
    /// What [`PresenceBuilder`] wrote, for a segment of `span` row numbers: kept where it takes no more than `room` bytes of memory.
    pub(crate) fn open(
        view: &dyn View,
        container: ContainerId,
        span: u64,
        room: usize,
        recent: &Arc<Recent>,
    ) -> Result<Self, Error> {
        let length = view.length(container).map_err(Error::log(""))?;
        let length = usize::try_from(length).map_err(|_| wrong())?;
        if length / CHUNK_BYTES <= room / size_of::<Chunk>() {
            let mut bytes = vec![0; length];
            view.read(container, 0, &mut bytes).map_err(Error::log(""))?;
            return Presence::decode(&bytes, span);
        }
        if !length.is_multiple_of(CHUNK_BYTES) {
            return Err(wrong());
        }
        let (chunk_count, chunks) = (length / CHUNK_BYTES, Chunks::Read { container, recent: recent.clone() });
        let mut presence = Presence { span, count: u64::MAX, chunk_count, chunks };
        let (end, last) = presence.chunk(view, chunk_count - 1).map(|chunk| (chunk.end, chunk.last()))?;
        presence.count = end;
        if last.is_none_or(|last| last >= span) { Err(wrong()) } else { Ok(presence) }
    }

    fn decode(bytes: &[u8], span: u64) -> Result<Self, Error> {
        let (pieces, rest) = bytes.as_chunks::<CHUNK_BYTES>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        let mut chunks: Vec<Chunk> = Vec::with_capacity(pieces.len());
        let mut count = 0;
        for piece in pieces {
            let chunk = Chunk::decode(piece);
            let ascends = chunks.last().is_none_or(|last| last.number < chunk.number);
            if !ascends || chunk.before != count || chunk.end == count || chunk.number > span / CHUNK_ROWS {
                return Err(wrong());
            }
            count = chunk.end;
            chunks.push(chunk);
        }
        if chunks.last().and_then(Chunk::last).is_some_and(|last| last >= span) {
            return Err(wrong());
        }
        Ok(Presence { span, count, chunk_count: chunks.len(), chunks: Chunks::Kept(chunks) })
    }

    /// Rows there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// What it takes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match &self.chunks {
            Chunks::Kept(chunks) => chunks.capacity() * size_of::<Chunk>(),
            Chunks::Read { .. } => 0,
        }
    }

    fn chunk(&self, view: &dyn View, place: usize) -> Result<Looked<'_>, Error> {
        let (container, recent) = match &self.chunks {
            Chunks::Kept(chunks) => return Ok(Looked::Kept(&chunks[place])),
            Chunks::Read { container, recent } => (*container, recent),
        };
        if let Some(chunk) = recent.find(container, place) {
            return Ok(Looked::Read(chunk));
        }
        let mut bytes = [0; CHUNK_BYTES];
        view.read(container, (place * CHUNK_BYTES) as u64, &mut bytes).map_err(Error::log(""))?;
        let chunk = Arc::new(Chunk::decode(&bytes));
        let fits = (place as u64..=self.span / CHUNK_ROWS).contains(&chunk.number)
            && chunk.before <= place as u64 * CHUNK_ROWS
            && (chunk.before + 1..=self.count).contains(&chunk.end);
        if !fits {
            return Err(wrong());
        }
        recent.keep(container, place, &chunk);
        Ok(Looked::Read(chunk))
    }

    /// Reads it as a whole: whatever is not as it was written is damage.
    pub(crate) fn check(&self, view: &dyn View) -> Result<(), Error> {
        let (mut before, mut number) = (0, None);
        for place in 0..self.chunk_count {
            let chunk = self.chunk(view, place)?;
            if chunk.before != before || number.is_some_and(|number| number >= chunk.number) {
                return Err(wrong());
            }
            (before, number) = (chunk.end, Some(chunk.number));
        }
        if before == self.count { Ok(()) } else { Err(wrong()) }
    }

    /// Finds a chunk that orders as what is looked for, first near where it is guessed to be: where it is, and itself if it is there.
    fn search(
        &self,
        view: &dyn View,
        guess: u64,
        order: &dyn Fn(&Chunk) -> Ordering,
    ) -> Result<(usize, Option<Looked<'_>>), Error> {
        let (mut low, mut high, mut step) = (0, self.chunk_count, 1);
        let mut place = guess.min(high.saturating_sub(1) as u64) as usize;
        while low < high {
            let chunk = self.chunk(view, place)?;
            match order(&chunk) {
                Ordering::Equal => return Ok((place, Some(chunk))),
                Ordering::Less => low = place + 1,
                Ordering::Greater => high = place,
            }
            place = match (low > 0, high < self.chunk_count) {
                (true, false) => (low + step - 1).min(high.saturating_sub(1)),
                (false, true) => high.saturating_sub(step),
                _ => low + (high - low) / 2,
            };
            step *= 2;
        }
        Ok((low, None))
    }

    /// The chunk with this number.
    fn numbered(&self, view: &dyn View, chunk: u64) -> Result<(usize, Option<Looked<'_>>), Error> {
        self.search(view, chunk, &|one| one.number.cmp(&chunk))
    }

    /// The chunk in which the row at a position is.
    fn of_position(&self, view: &dyn View, position: u64) -> Result<(usize, Option<Looked<'_>>), Error> {
        let rows = self.count.div_ceil(self.chunk_count.max(1) as u64).max(1);
        self.search(view, position / rows, &|chunk| match chunk {
            chunk if chunk.before > position => Ordering::Greater,
            chunk if chunk.end <= position => Ordering::Less,
            _ => Ordering::Equal,
        })
    }

    /// Where the row with this number lies, if it is there.
    pub(crate) fn position(&self, view: &dyn View, number: u64) -> Result<Option<u64>, Error> {
        let (_, Some(chunk)) = self.numbered(view, number / CHUNK_ROWS)? else { return Ok(None) };
        let bit = number % CHUNK_ROWS;
        let (word, bit) = ((bit / 64) as usize, bit % 64);
        if chunk.bits[word] & (1 << bit) == 0 {
            return Ok(None);
        }
        let words: u64 = chunk.bits[..word].iter().map(|word| u64::from(word.count_ones())).sum();
        let below = chunk.bits[word] & ((1 << bit) - 1);
        Ok(Some(chunk.before + words + u64::from(below.count_ones())))
    }

    /// Rows below this number.
    pub(crate) fn rank(&self, view: &dyn View, number: u64) -> Result<u64, Error> {
        let bit = number % CHUNK_ROWS;
        match self.numbered(view, number / CHUNK_ROWS)? {
            (_, Some(found)) => {
                let below = numbers_of(&found).take_while(|there| there % CHUNK_ROWS < bit).count() as u64;
                Ok(found.before + below)
            }
            (place, None) if place == self.chunk_count => Ok(self.count),
            (place, None) => Ok(self.chunk(view, place)?.before),
        }
    }

    /// The number of the row at a position.
    pub(crate) fn number(&self, view: &dyn View, position: u64) -> Result<Option<u64>, Error> {
        let (_, Some(chunk)) = self.of_position(view, position)? else { return Ok(None) };
        let mut rest = position - chunk.before;
        for (place, word) in chunk.bits.iter().enumerate() {
            let count = u64::from(word.count_ones());
            if rest < count {
                let bit = ones(*word).nth(rest as usize);
                return Ok(bit.map(|bit| chunk.number * CHUNK_ROWS + place as u64 * 64 + bit));
            }
            rest -= count;
        }
        Ok(None)
    }

    /// The numbers of the rows from a position on, in order, so many at most.
    pub(crate) fn numbers(&self, view: &dyn View, position: u64, count: usize) -> Result<Vec<u64>, Error> {
        let (mut place, mut chunk) = self.of_position(view, position)?;
        let left = usize::try_from(self.count.saturating_sub(position)).unwrap_or(usize::MAX);
        let mut numbers = Vec::with_capacity(count.min(left));
        let mut skip = chunk.as_ref().map_or(0, |chunk| position - chunk.before) as usize;
        while let Some(of) = chunk {
            numbers.extend(numbers_of(&of).skip(skip).take(count - numbers.len()));
            (place, skip) = (place + 1, 0);
            let is_done = numbers.len() == count || place == self.chunk_count;
            chunk = if is_done { None } else { Some(self.chunk(view, place)?) };
        }
        Ok(numbers)
    }
}

fn numbers_of(chunk: &Chunk) -> impl Iterator<Item = u64> + '_ {
    let base = chunk.number * CHUNK_ROWS;
    chunk
        .bits
        .iter()
        .enumerate()
        .flat_map(move |(place, word)| ones(*word).map(move |bit| base + place as u64 * 64 + bit))
}

/// The places of the ones in a word.
fn ones(mut word: u64) -> impl Iterator<Item = u64> {
    core::iter::from_fn(move || {
        let bit = u64::from(word.trailing_zeros());
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// Writes row numbers that come in order.
#[derive(Default)]
pub(crate) struct PresenceBuilder {
    bytes: Vec<u8>,
    current: Option<Chunk>,
    count: u64,
    last: u64,
}

impl PresenceBuilder {
    pub(crate) fn push(&mut self, number: u64) {
        assert!(self.count == 0 || number > self.last, "row numbers come in order");
        let chunk = number / CHUNK_ROWS;
        if self.current.as_ref().is_none_or(|current| current.number != chunk) {
            self.close_chunk();
            self.current = Some(Chunk { number: chunk, before: self.count, end: self.count, bits: [0; 64] });
        }
        let bit = number % CHUNK_ROWS;
        if let Some(current) = &mut self.current {
            current.bits[(bit / 64) as usize] |= 1 << (bit % 64);
            current.end += 1;
        }
        self.last = number;
        self.count += 1;
    }

    fn close_chunk(&mut self) {
        let Some(chunk) = self.current.take() else { return };
        self.bytes.extend_from_slice(&chunk.number.to_le_bytes());
        self.bytes.extend_from_slice(&chunk.before.to_le_bytes());
        chunk.bits.iter().for_each(|word| self.bytes.extend_from_slice(&word.to_le_bytes()));
    }

    /// The bytes; `None` if there are no numbers.
    pub(crate) fn into_bytes(mut self) -> Option<Vec<u8>> {
        self.close_chunk();
        (self.count > 0).then_some(self.bytes)
    }

    /// The bytes; `None` if the numbers run from 0 on without a gap, when no map is needed.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        self.close_chunk();
        (self.count > 0 && self.last + 1 != self.count).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_log::{Memory, Storage as _};

    use super::*;

    fn written(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut builder = PresenceBuilder::default();
        numbers.into_iter().for_each(|number| builder.push(number));
        builder.finish().unwrap()
    }

    /// The bytes of a map, stored.
    fn stored(bytes: &[u8]) -> (Memory, ContainerId) {
        let mut memory = Memory::default();
        let group = memory.create_group().unwrap();
        let container = memory.create_container(group).unwrap();
        memory.append(container, bytes).unwrap();
        (memory, container)
    }

    /// A map as a whole, and one that is read in pieces.
    fn both(memory: &Memory, container: ContainerId, span: u64) -> [Result<Presence, Error>; 2] {
        [usize::MAX, 0].map(|room| Presence::open(memory, container, span, room, &Arc::default()))
    }

    #[test]
    fn numbers_and_positions_are_inverse() {
        for step in [1, 40_000] {
            let there = |number: &u64| number % 7 == 3 || number / 5000 == 4;
            let numbers: Vec<u64> = (0..40_000).filter(there).map(|number| number * step).collect();
            let (memory, container) = stored(&written(numbers.iter().copied()));
            for presence in both(&memory, container, numbers[numbers.len() - 1] + 1) {
                let presence = presence.unwrap();
                assert_eq!(presence.count(), numbers.len() as u64);
                presence.check(&memory).unwrap();
                for number in [0, 3, 4, 4095, 4096, 19_999, 25_000, 39_999, 1 << 40] {
                    let number = number * step;
                    let below = numbers.iter().filter(|there| **there < number).count() as u64;
                    assert_eq!(presence.rank(&memory, number).unwrap(), below);
                }
                for start in [0, 1, 77, 4095, 4096, 9000, numbers.len() - 1, numbers.len()] {
                    for count in [0, 1, 5000, 100_000] {
                        let wanted: Vec<u64> = numbers[start..].iter().copied().take(count).collect();
                        assert_eq!(presence.numbers(&memory, start as u64, count).unwrap(), wanted);
                    }
                }
                // In no order, so that chunks are looked for.
                for place in 0..numbers.len() {
                    let position = place * 7919 % numbers.len();
                    let number = numbers[position];
                    assert_eq!(presence.position(&memory, number).unwrap(), Some(position as u64));
                    assert_eq!(presence.number(&memory, position as u64).unwrap(), Some(number));
                }
                assert_eq!(presence.number(&memory, numbers.len() as u64).unwrap(), None);
                assert_eq!(presence.position(&memory, 0).unwrap(), None);
                assert_eq!(presence.position(&memory, 1 << 60).unwrap(), None);
            }
        }
    }

    #[test]
    fn a_map_without_room_takes_no_memory_and_few_reads() {
        let numbers: Vec<u64> = (0..4_000_000).filter(|number| number % 100 != 7).collect();
        let (memory, container) = stored(&written(numbers.iter().copied()));
        let [kept, read] = both(&memory, container, 4_000_000).map(Result::unwrap);
        assert!(kept.bytes() > 500_000 && read.bytes() == 0);
        let probes = core::cell::Cell::new(0);
        for position in [0, 1_000_000, 3_900_000] {
            let order = |chunk: &Chunk| {
                probes.set(probes.get() + 1);
                match chunk {
                    chunk if chunk.before > position => Ordering::Greater,
                    chunk if chunk.end <= position => Ordering::Less,
                    _ => Ordering::Equal,
                }
            };
            let rows = read.count.div_ceil(read.chunk_count as u64);
            assert!(read.search(&memory, position / rows, &order).unwrap().1.is_some());
        }
        assert!(probes.get() <= 6, "{} chunks for three", probes.get());
    }

    #[test]
    fn no_gap_needs_no_map() {
        let mut builder = PresenceBuilder::default();
        (0..5000).for_each(|number| builder.push(number));
        assert_eq!(builder.finish(), None);
        assert_eq!(PresenceBuilder::default().finish(), None);
    }

    #[test]
    fn nonsense_is_corrupt() {
        let bytes = written([3, 9000, 9001, 20_000]);
        let is_corrupt = |bytes: &[u8], span: u64| {
            let (memory, container) = stored(bytes);
            both(&memory, container, span).map(|map| map.and_then(|map| map.check(&memory)).is_err())
        };
        assert_eq!(is_corrupt(&bytes, 20_001), [false, false]);
        assert_eq!(is_corrupt(&bytes, 20_000), [true, true]);
        assert_eq!(is_corrupt(&bytes[1..], 20_001), [true, true]);
        assert_eq!(is_corrupt(&vec![0; CHUNK_BYTES], 20_001), [true, true]);
        let mut swapped = bytes.clone();
        swapped[..2 * CHUNK_BYTES].rotate_left(CHUNK_BYTES);
        assert_eq!(is_corrupt(&swapped, 20_001), [true, true]);
        for place in [0, 1] {
            let mut high = bytes.clone();
            high[place * CHUNK_BYTES..place * CHUNK_BYTES + 8].fill(0xFF);
            assert_eq!(is_corrupt(&high, u64::MAX), [true, true]);
        }
    }
}
