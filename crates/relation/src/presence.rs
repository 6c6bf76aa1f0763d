//! Which row numbers of a rewritten segment are there, and where their rows lie.
//!
//! ```text
//! for each 4096 row numbers with a row among them, in order:
//! | chunk u64 | rows before it u64 | bitmap, 512 bytes |        row number - segment's first = chunk * 4096 + bit
//! ```
//!
//! Invariants (checked when read): chunks ascend; "rows before" is the sum of the bits before; no chunk is empty.

use alloc::vec::Vec;

use crate::Error;

const CHUNK_ROWS: u64 = 4096;
const CHUNK_BYTES: usize = 16 + 512;

/// The row numbers of a segment, counted from its first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Presence {
    chunks: Vec<Chunk>,
    count: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    number: u64,
    before: u64,
    bits: [u64; 64],
}

impl Chunk {
    fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Presence {
    /// Reads what [`PresenceBuilder`] wrote, for a segment of `span` row numbers.
    pub(crate) fn decode(bytes: &[u8], span: u64) -> Result<Self, Error> {
        let wrong = || Error::corrupt("", "map of the rows of a segment");
        let (pieces, rest) = bytes.as_chunks::<CHUNK_BYTES>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        let mut chunks: Vec<Chunk> = Vec::with_capacity(pieces.len());
        let mut count = 0;
        for piece in pieces {
            let (words, _) = piece.as_chunks::<8>();
            let word = |place: usize| u64::from_le_bytes(words[place]);
            let chunk = Chunk { number: word(0), before: word(1), bits: core::array::from_fn(|place| word(place + 2)) };
            let ascends = chunks.last().is_none_or(|last| last.number < chunk.number);
            let rows = chunk.count();
            if !ascends || chunk.before != count || rows == 0 || chunk.number > span / CHUNK_ROWS {
                return Err(wrong());
            }
            count += rows;
            chunks.push(chunk);
        }
        let presence = Presence { chunks, count };
        match count.checked_sub(1).and_then(|last| presence.number(last)) {
            Some(last) if last >= span => Err(wrong()),
            _ => Ok(presence),
        }
    }

    /// Rows there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Where the row with this number lies, if it is there.
    pub(crate) fn position(&self, number: u64) -> Option<u64> {
        let place = self.chunks.binary_search_by_key(&(number / CHUNK_ROWS), |chunk| chunk.number).ok()?;
        let chunk = &self.chunks[place];
        let bit = number % CHUNK_ROWS;
        let (word, bit) = ((bit / 64) as usize, bit % 64);
        if chunk.bits[word] & (1 << bit) == 0 {
            return None;
        }
        let words: u64 = chunk.bits[..word].iter().map(|word| u64::from(word.count_ones())).sum();
        let below = chunk.bits[word] & ((1 << bit) - 1);
        Some(chunk.before + words + u64::from(below.count_ones()))
    }

    /// Rows below this number.
    pub(crate) fn rank(&self, number: u64) -> u64 {
        let chunk = number / CHUNK_ROWS;
        let place = self.chunks.partition_point(|one| one.number < chunk);
        let Some(found) = self.chunks.get(place) else { return self.count };
        if found.number > chunk {
            return found.before;
        }
        let bit = number % CHUNK_ROWS;
        found.before + numbers_of(found).take_while(|there| there % CHUNK_ROWS < bit).count() as u64
    }

    /// The number of the row at a position.
    pub(crate) fn number(&self, position: u64) -> Option<u64> {
        let chunk = self.chunk_of(position)?;
        let mut rest = position - chunk.before;
        for (place, word) in chunk.bits.iter().enumerate() {
            let count = u64::from(word.count_ones());
            if rest < count {
                let bit = ones(*word).nth(rest as usize)?;
                return Some(chunk.number * CHUNK_ROWS + place as u64 * 64 + bit);
            }
            rest -= count;
        }
        None
    }

    fn chunk_of(&self, position: u64) -> Option<&Chunk> {
        let place = self.chunks.partition_point(|chunk| chunk.before <= position).checked_sub(1)?;
        self.chunks.get(place)
    }

    /// The numbers of the rows from a position on, in order.
    pub(crate) fn numbers(&self, position: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.chunks.partition_point(|chunk| chunk.before <= position).saturating_sub(1);
        let chunks = self.chunks.get(first..).unwrap_or_default();
        let skip = chunks.first().map_or(0, |chunk| position - chunk.before);
        chunks.iter().flat_map(numbers_of).skip(usize::try_from(skip).unwrap_or(usize::MAX))
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
            self.current = Some(Chunk { number: chunk, before: self.count, bits: [0; 64] });
        }
        let bit = number % CHUNK_ROWS;
        if let Some(current) = &mut self.current {
            current.bits[(bit / 64) as usize] |= 1 << (bit % 64);
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
    use super::*;
    use alloc::vec;

    fn presence(numbers: &[u64]) -> Presence {
        let mut builder = PresenceBuilder::default();
        numbers.iter().for_each(|number| builder.push(*number));
        let span = numbers.last().map_or(0, |last| last + 1);
        Presence::decode(&builder.finish().unwrap(), span).unwrap()
    }

    #[test]
    fn numbers_and_positions_are_inverse() {
        let numbers: Vec<u64> = (0..40_000).filter(|number| number % 7 == 3 || number / 5000 == 4).collect();
        let presence = presence(&numbers);
        assert_eq!(presence.count(), numbers.len() as u64);
        for (position, number) in numbers.iter().enumerate() {
            assert_eq!(presence.position(*number), Some(position as u64));
        }
        for number in [0, 3, 4, 4095, 4096, 19_999, 25_000, 39_999, 1 << 40] {
            assert_eq!(presence.rank(number), numbers.iter().filter(|there| **there < number).count() as u64);
        }
        for start in [0, 1, 77, 4095, 4096, 9000, numbers.len() - 1] {
            assert!(presence.numbers(start as u64).eq(numbers[start..].iter().copied()));
        }
        for (position, number) in numbers.iter().enumerate() {
            assert_eq!(presence.number(position as u64), Some(*number));
        }
        assert_eq!(presence.number(numbers.len() as u64), None);
        assert_eq!(presence.position(0), None);
        assert_eq!(presence.position(1 << 40), None);
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
        let mut builder = PresenceBuilder::default();
        [3, 9000, 9001].iter().for_each(|number| builder.push(*number));
        let bytes = builder.finish().unwrap();
        assert!(Presence::decode(&bytes, 9002).is_ok());
        assert!(Presence::decode(&bytes, 9001).is_err());
        assert!(Presence::decode(&bytes[1..], 9002).is_err());
        assert!(Presence::decode(&vec![0; CHUNK_BYTES], 9002).is_err());
        let mut swapped = bytes[CHUNK_BYTES..].to_vec();
        swapped.extend_from_slice(&bytes[..CHUNK_BYTES]);
        assert!(Presence::decode(&swapped, 9002).is_err());
        let mut high = bytes;
        high[CHUNK_BYTES..CHUNK_BYTES + 8].fill(0xFF);
        assert!(Presence::decode(&high, u64::MAX).is_err());
    }
}
