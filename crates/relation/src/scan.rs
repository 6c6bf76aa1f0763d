//! Reading a table from end to end.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::View;

use crate::access::Access;
use crate::read::Wanted;
use crate::{Error, Layout, RowBlock};

/// A scan under way. It owns its view, so it may move to a thread of its own.
pub struct Scan<V> {
    view: V,
    access: Arc<Access>,
    wanted: Wanted,
    /// Segments by place, and the positions in them still to be read.
    ranges: VecDeque<(usize, Range<u64>)>,
}

impl<V: View> Scan<V> {
    pub(crate) fn new(view: V, access: Access) -> Self {
        let all = access.parts.iter().enumerate().map(|(place, part)| (place, 0..part.count));
        let ranges = all.filter(|(_, range)| !range.is_empty()).collect();
        Scan { view, access: Arc::new(access), wanted: Wanted::all(), ranges }
    }

    /// Which columns' long values are wanted, by their places in the table; without it, all. Asking for a long value of
    /// another column is an error.
    #[must_use]
    pub fn with_columns(self, columns: &[usize]) -> Self {
        Scan { wanted: Wanted::only(columns), ..self }
    }

    /// How many bytes the long values of a block may have; one row alone may have four times as many, and more are [`Error::memory`].
    #[must_use]
    pub fn with_heap_bytes(self, heap_bytes: u64) -> Self {
        Scan { wanted: self.wanted.clone().within(heap_bytes), ..self }
    }

    /// The layout of all its blocks: the table's newest.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.access.shape.newest
    }

    /// Rows not yet read, visible or not.
    #[must_use]
    pub fn rows_left(&self) -> u64 {
        self.ranges.iter().map(|(_, range)| range.end - range.start).sum()
    }

    /// The next rows, at most `rows_max` (fewer if their long values are many); `None` at the end. Blocks without a
    /// visible row are passed over.
    ///
    /// # Errors
    /// [`crate::Cause::Log`] and [`Error::corrupt`] for what cannot be read, after which the scan goes on behind it.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<RowBlock>, Error> {
        loop {
            let Some((part, range)) = self.ranges.front_mut() else { return Ok(None) };
            let (part, from) = (*part, range.start);
            let count = (range.end - from).min(rows_max.max(1) as u64);
            range.start += count;
            let block = self.access.read(&self.view, part, from, count as usize, &self.wanted);
            if let Ok(block) = &block {
                // A block cut short leaves the rest for the next call.
                range.start = from + block.count() as u64;
            }
            if range.is_empty() {
                self.ranges.pop_front();
            }
            let block = block?;
            if block.visible_count() > 0 {
                return Ok(Some(block));
            }
        }
    }
}

impl<V: View + Clone> Scan<V> {
    /// Cuts what is left into at most `parts` scans of about the same size, in order.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Scan<V>> {
        let share = self.rows_left().div_ceil(parts.max(1) as u64).max(1);
        let mut scans: Vec<Scan<V>> = Vec::new();
        let mut room = 0;
        for (part, mut range) in self.ranges {
            while !range.is_empty() {
                if room == 0 {
                    let (view, access, wanted) = (self.view.clone(), self.access.clone(), self.wanted.clone());
                    scans.push(Scan { view, access, wanted, ranges: VecDeque::new() });
                    room = share;
                }
                let end = range.end.min(range.start + room);
                room -= end - range.start;
                if let Some(scan) = scans.last_mut() {
                    scan.ranges.push_back((part, range.start..end));
                }
                range.start = end;
            }
        }
        scans
    }
}
