//! The memory of an answer, and where it puts what that has no room for.
//!
//! ```text
//! append ... append | a piece is full: kept in memory, if the queries of the engine have some left; otherwise sealed, to the spill
//! read              | from the pieces, each opened as a whole
//! ```

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use counterfoil_relation::{self as relation, BUDGET_BYTES_MIN, Scratch};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::error::{Error, Result};
use crate::pieces::Pieces;
use crate::spill::SealedFiles;

/// A piece is this part of an answer's memory,
const PIECE_PART: usize = 32;
/// within these bounds.
const PIECE_BYTES: (usize, usize) = (1 << 10, 64 << 10);
/// What an answer asks for first, as a part of what all queries have.
const SHARE: usize = 16;

/// What answers are worked out with.
#[derive(Clone)]
pub(crate) struct Means {
    /// The memory of all queries.
    pub(crate) pool: Arc<dyn MemoryPool>,
    /// Bytes of it.
    pub(crate) bytes: usize,
    pub(crate) spill: Option<Arc<SealedFiles>>,
}

impl Means {
    /// Memory for one answer: its share, or the least that it can do with where others have taken theirs.
    pub(crate) fn lend(&self) -> Result<Lent> {
        let reservation = MemoryConsumer::new("Answer").register(&self.pool);
        let mut bytes = (self.bytes / SHARE).max(BUDGET_BYTES_MIN);
        while reservation.try_grow(bytes).is_err() {
            if bytes == BUDGET_BYTES_MIN {
                // Beside what others have.
                let needed = Some(self.pool.reserved().saturating_add(bytes));
                return Err(Error::of_tables(relation::Error::memory(needed)));
            }
            bytes = BUDGET_BYTES_MIN;
        }
        Ok(Lent { bytes, reservation })
    }

    /// Where an answer puts aside what so many bytes have no room for.
    pub(crate) fn aside(&self, bytes: usize) -> Aside {
        Aside::new(&self.pool, self.spill.as_ref(), bytes)
    }
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Means").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Memory that an answer has until it ends.
pub(crate) struct Lent {
    pub(crate) bytes: usize,
    reservation: MemoryReservation,
}

impl Lent {
    /// Takes more, for an answer that needs `needed` at least: whether there was as much.
    pub(crate) fn grow(&mut self, needed: usize) -> bool {
        // It may find out of a larger row later: a little more than that, or twice what it had.
        let wished = needed.saturating_add(needed / 8).max(self.bytes.saturating_mul(2));
        let Some(bytes) = [wished, needed].into_iter().find(|bytes| self.reservation.try_resize(*bytes).is_ok()) else {
            return false;
        };
        let is_more = bytes > self.bytes;
        self.bytes = bytes;
        is_more
    }
}

/// What an answer has put aside.
pub(crate) struct Aside {
    /// The memory of the pieces that are kept.
    kept: MemoryReservation,
    /// Whether any are.
    keeps: bool,
    /// The first pieces; those that are forgotten are empty.
    pieces: Vec<Vec<u8>>,
    /// How many are.
    forgotten: usize,
    /// All behind them.
    sealed: Option<Pieces>,
    sealed_count: usize,
    /// Whether one of them could not be put there.
    is_full: bool,
    /// The sealed piece that was read last, by its number among them.
    open: Option<(usize, Bytes)>,
    /// The piece that is being filled.
    tail: Vec<u8>,
    piece_bytes: usize,
    /// What went wrong, in more words than the tables have.
    failed: Option<Error>,
}

impl Aside {
    fn new(pool: &Arc<dyn MemoryPool>, spill: Option<&Arc<SealedFiles>>, bytes: usize) -> Self {
        let piece_bytes = (bytes / PIECE_PART).clamp(PIECE_BYTES.0, PIECE_BYTES.1);
        Aside {
            kept: MemoryConsumer::new("Answer aside").register(pool),
            keeps: true,
            pieces: Vec::new(),
            forgotten: 0,
            sealed: spill.map(|spill| spill.pieces(piece_bytes)),
            sealed_count: 0,
            is_full: false,
            open: None,
            tail: Vec::new(),
            piece_bytes,
            failed: None,
        }
    }

    /// Where rows are put aside that so many bytes have no room for, and others need what memory there is: none is kept in it if there
    /// is somewhere else.
    pub(crate) fn sealed(pool: &Arc<dyn MemoryPool>, spill: Option<&Arc<SealedFiles>>, bytes: usize) -> Self {
        Aside { keeps: spill.is_none(), ..Aside::new(pool, spill, bytes) }
    }

    /// What an answer ended with: what went wrong here, or what the tables say.
    pub(crate) fn error(&mut self, error: relation::Error) -> Error {
        // An answer may have gone on without what there was no room for.
        let failed = self.failed.take().filter(|_| error.is_memory());
        failed.unwrap_or_else(|| Error::of_tables(error))
    }

    /// Puts a full piece away.
    fn put(&mut self) -> Result<()> {
        if self.keeps && self.sealed_count == 0 && self.kept.try_grow(self.tail.capacity()).is_ok() {
            self.pieces.push(std::mem::replace(&mut self.tail, Vec::with_capacity(self.piece_bytes)));
            return Ok(());
        }
        let Some(sealed) = self.sealed.as_mut().filter(|_| !self.is_full) else {
            return Err(Error::Memory(
                "the query has no room to put rows aside: give it more (--ram), or let it look at fewer rows".into(),
            ));
        };
        // Where that fails the piece stays, since what else lies in it is still read; and no other is sealed in its place.
        self.is_full = true;
        sealed.put(&self.tail)?;
        self.is_full = false;
        self.tail.clear();
        self.sealed_count += 1;
        Ok(())
    }

    fn copy(&mut self, place: usize, from: usize, buffer: &mut [u8]) -> Result<()> {
        let bytes = match place.checked_sub(self.pieces.len()) {
            None => &self.pieces[place],
            Some(number) if number < self.sealed_count => self.opened(number)?,
            Some(_) => &self.tail,
        };
        let there = bytes.get(from..from + buffer.len());
        buffer.copy_from_slice(there.ok_or_else(|| Error::Bug("more than was put aside".into()))?);
        Ok(())
    }

    fn opened(&mut self, number: usize) -> Result<&[u8]> {
        let is_open = self.open.as_ref().is_some_and(|(open, _)| *open == number);
        if let (false, Some(sealed)) = (is_open, &mut self.sealed) {
            self.open = None;
            self.open = Some((number, sealed.read(number)?));
        }
        Ok(self.open.as_ref().map_or(&[][..], |(_, bytes)| bytes))
    }

    fn told<T>(&mut self, result: Result<T>) -> std::result::Result<T, relation::Error> {
        result.map_err(|error| {
            self.failed = Some(error);
            relation::Error::memory(None)
        })
    }
}

impl Scratch for Aside {
    fn append(&mut self, bytes: &[u8]) -> std::result::Result<u64, relation::Error> {
        let start = ((self.pieces.len() + self.sealed_count) * self.piece_bytes + self.tail.len()) as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, after) = rest.split_at(rest.len().min(self.piece_bytes - self.tail.len()));
            self.tail.extend_from_slice(taken);
            rest = after;
            if self.tail.len() == self.piece_bytes {
                let put = self.put();
                self.told(put)?;
            }
        }
        Ok(start)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> std::result::Result<(), relation::Error> {
        let (mut at, mut done) = (offset as usize, 0);
        while done < buffer.len() {
            let (place, from) = (at / self.piece_bytes, at % self.piece_bytes);
            let count = (buffer.len() - done).min(self.piece_bytes - from);
            let copied = self.copy(place, from, &mut buffer[done..done + count]);
            self.told(copied)?;
            at += count;
            done += count;
        }
        Ok(())
    }

    fn is_roomy(&self) -> bool {
        self.sealed.is_some()
    }

    fn forget_before(&mut self, offset: u64) {
        let whole = offset as usize / self.piece_bytes;
        for piece in self.pieces.iter_mut().take(whole).skip(self.forgotten) {
            self.kept.shrink(piece.capacity());
            *piece = Vec::new();
        }
        self.forgotten = self.forgotten.max(whole.min(self.pieces.len()));
        if let (Some(number), Some(sealed)) = (whole.checked_sub(self.pieces.len()), &mut self.sealed) {
            sealed.forget_before(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;
    use crate::spill::Spill;

    fn means(bytes: usize, spills: bool) -> Means {
        let spill = Spill { folder: std::env::temp_dir(), bytes_max: 1 << 20 };
        let spill = spills.then(|| Arc::new(SealedFiles::new(spill).unwrap()));
        Means { pool: Arc::new(GreedyMemoryPool::new(bytes)), bytes, spill }
    }

    #[test]
    fn what_is_put_aside_comes_back_from_memory_and_from_the_spill() {
        for bytes in [1 << 20, 40_000] {
            let mut aside = means(bytes, true).aside(BUDGET_BYTES_MIN);
            let text: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
            let starts: Vec<u64> = text.chunks(777).map(|chunk| aside.append(chunk).unwrap()).collect();
            let sealed = aside.sealed_count;
            assert_eq!(sealed > 0, bytes < text.len(), "{sealed} sealed");
            for (start, chunk) in starts.iter().zip(text.chunks(777)).rev() {
                let mut buffer = vec![0; chunk.len()];
                aside.read(*start, &mut buffer).unwrap();
                assert_eq!(buffer, chunk);
            }
            let kept = aside.kept.size();
            aside.forget_before(starts[150]);
            assert!(aside.kept.size() < kept);
            for (start, chunk) in starts.iter().zip(text.chunks(777)).skip(150) {
                let mut buffer = vec![0; chunk.len()];
                aside.read(*start, &mut buffer).unwrap();
                assert_eq!(buffer, chunk);
            }
        }
    }

    #[test]
    fn without_room_it_says_so() {
        let means = means(1000, false);
        let mut aside = means.aside(BUDGET_BYTES_MIN);
        let error = aside.append(&[7; 5000]).unwrap_err();
        assert!(matches!(aside.error(error), Error::Memory(text) if text.contains("no room")));
    }

    #[test]
    fn what_lies_there_is_read_when_there_is_no_room_for_more() {
        let spill = Spill { folder: std::env::temp_dir(), bytes_max: 100_000 };
        let means = Means { spill: Some(Arc::new(SealedFiles::new(spill).unwrap())), ..means(1000, false) };
        let mut aside = means.aside(BUDGET_BYTES_MIN);
        let chunk = |number: u32| number.to_le_bytes().repeat(100);
        let starts: Vec<u64> = (0..).map_while(|number| aside.append(&chunk(number)).ok()).collect();
        assert!((50..300).contains(&starts.len()), "{} chunks", starts.len());
        assert!(aside.append(&[7; 5000]).is_err());
        for (number, start) in (0..).zip(&starts) {
            let mut buffer = vec![0; 400];
            aside.read(*start, &mut buffer).unwrap();
            assert!(buffer == chunk(number), "chunk {number}");
        }
        // Whoever went on is told of what stopped it later.
        assert!(!matches!(aside.error(relation::Error::misuse("another")), Error::Memory(_)));
    }

    #[test]
    fn answers_share_what_there_is() {
        let means = means(20 * BUDGET_BYTES_MIN, true);
        let lent: Vec<Lent> = std::iter::from_fn(|| means.lend().ok()).collect();
        assert!(lent.len() >= 16 && lent.iter().all(|lent| lent.bytes >= BUDGET_BYTES_MIN));
        assert!(matches!(means.lend(), Err(Error::Memory(text)) if text.contains("--ram")));
        drop(lent);
        assert!(means.lend().is_ok());
    }
}
