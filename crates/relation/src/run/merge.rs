//! Several sorted runs read as one, in order, from any entry on.

use alloc::vec::Vec;

use counterfoil_log::View;

use super::stream::Stream;
use super::{Head, Run};
use crate::Error;
use crate::key::{Head as KeyHead, head};

/// Walks the pieces of a sorted run one after another.
struct Chain<'a> {
    /// The piece in work.
    stream: Option<Stream>,
    /// Those after it.
    rest: core::slice::Iter<'a, Run>,
    /// Bytes that are read at a time.
    piece_bytes: usize,
}

impl<'a> Chain<'a> {
    /// On the first entry after one.
    fn after(view: &dyn View, pieces: &'a [Run], entry: &[u8], piece_bytes: usize) -> Result<Self, Error> {
        let passed = pieces.partition_point(|piece| piece.last.as_slice() <= entry);
        let mut rest = pieces.get(passed..).unwrap_or_default().iter();
        let stream = match rest.as_slice().first() {
            Some(piece) if piece.first.as_slice() <= entry => {
                rest.next();
                Some(Stream::at(piece, Head::bare().data_block(view, piece, entry)?, piece_bytes))
            }
            _ => None,
        };
        let mut chain = Chain { stream, rest, piece_bytes };
        while chain.advance(view)? && chain.current().is_some_and(|current| current <= entry) {}
        Ok(chain)
    }

    fn current(&self) -> Option<&[u8]> {
        self.stream.as_ref()?.current()
    }

    /// Steps to the next entry; whether there is one.
    fn advance(&mut self, view: &dyn View) -> Result<bool, Error> {
        loop {
            if let Some(stream) = &mut self.stream
                && stream.advance(view)?
            {
                return Ok(true);
            }
            let Some(piece) = self.rest.next() else {
                self.stream = None;
                return Ok(false);
            };
            self.stream = Some(Stream::at(piece, 0, self.piece_bytes));
        }
    }
}

/// Several sorted runs read as one.
pub(crate) struct Merge<'a> {
    chains: Vec<Chain<'a>>,
    /// Those that stand on an entry, and what that begins with, the least entry last.
    order: Vec<(KeyHead, usize)>,
    /// The entry given last.
    last: Vec<u8>,
}

impl<'a> Merge<'a> {
    /// Before the first entry after one; all are after one without bytes. Each run is given as its pieces, and read so many bytes at a
    /// time.
    pub(crate) fn after(
        view: &dyn View,
        runs: impl Iterator<Item = &'a [Run]>,
        entry: &[u8],
        piece_bytes: usize,
    ) -> Result<Self, Error> {
        let chains = runs.map(|pieces| Chain::after(view, pieces, entry, piece_bytes)).collect::<Result<_, _>>()?;
        let mut merge = Merge { chains, order: Vec::new(), last: entry.to_vec() };
        (0..merge.chains.len()).for_each(|chain| merge.file(chain));
        Ok(merge)
    }

    /// Whether there is no entry left.
    pub(crate) fn is_over(&self) -> bool {
        self.order.is_empty()
    }

    /// Appends the next entry to `out`; whether there was one. The same entry in several runs comes once.
    pub(crate) fn next(&mut self, view: &dyn View, out: &mut Vec<u8>) -> Result<bool, Error> {
        let start = out.len();
        let Some((_, least)) = self.order.pop() else { return Ok(false) };
        out.extend_from_slice(self.chains[least].current().unwrap_or_default());
        // Nobody has looked at the order within a run before.
        if self.last.as_slice() >= &out[start..] {
            return Err(Error::corrupt("", "order of an index run"));
        }
        self.last.clear();
        self.last.extend_from_slice(&out[start..]);
        self.step(view, least)?;
        let head = head(&out[start..]);
        let is_same = |(other, chain): &mut (KeyHead, usize), chains: &[Chain<'_>]| {
            *other == head && chains[*chain].current() == Some(&out[start..])
        };
        while let Some((_, same)) = self.order.pop_if(|other| is_same(other, &self.chains)) {
            self.step(view, same)?;
        }
        Ok(true)
    }

    fn step(&mut self, view: &dyn View, chain: usize) -> Result<(), Error> {
        self.chains[chain].advance(view)?;
        self.file(chain);
        Ok(())
    }

    /// Files a run by the entry on which it stands.
    fn file(&mut self, chain: usize) {
        let Some(entry) = self.chains[chain].current() else { return };
        let head = head(entry);
        let is_later = |(other_head, other): &(KeyHead, usize)| {
            (other_head.cmp(&head)).then_with(|| self.chains[*other].current().cmp(&Some(entry))).is_gt()
        };
        let place = self.order.partition_point(is_later);
        self.order.insert(place, (head, chain));
    }
}
