//! All series of a table, by number: a list whose copy shares what does not change.
//!
//! A change copies the list when a reader holds it: 10,000 pointers would be counted up and down for each. So they lie in boards
//! of 256 that are shared as a whole, and a change of one series copies one board.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Index;

use crate::series::Series;

const BOARD: usize = 256;

/// Series by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf {
    boards: Vec<Arc<Vec<Arc<Series>>>>,
    len: usize,
}

impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Arc<Series>> {
        self.boards.get(at / BOARD)?.get(at % BOARD)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Series>> + '_ {
        self.boards.iter().flat_map(|board| board.iter())
    }

    /// A place, to be changed.
    ///
    /// # Panics
    /// If there are not so many.
    pub(crate) fn place(&mut self, at: usize) -> &mut Arc<Series> {
        &mut Arc::make_mut(&mut self.boards[at / BOARD])[at % BOARD]
    }

    /// Makes the list so long, with the same series in all new places.
    pub(crate) fn extend_to(&mut self, len: usize, new: &Arc<Series>) {
        while self.len < len {
            if self.len.is_multiple_of(BOARD) {
                self.boards.push(Arc::default());
            }
            let board = Arc::make_mut(&mut self.boards[self.len / BOARD]);
            let more = (len - self.len).min(BOARD - board.len());
            board.resize(board.len() + more, new.clone());
            self.len += more;
        }
    }
}

impl Index<usize> for Shelf {
    type Output = Arc<Series>;

    fn index(&self, at: usize) -> &Arc<Series> {
        &self.boards[at / BOARD][at % BOARD]
    }
}

impl<'a> IntoIterator for &'a Shelf {
    type Item = &'a Arc<Series>;
    type IntoIter = core::iter::FlatMap<
        core::slice::Iter<'a, Arc<Vec<Arc<Series>>>>,
        core::slice::Iter<'a, Arc<Series>>,
        fn(&'a Arc<Vec<Arc<Series>>>) -> core::slice::Iter<'a, Arc<Series>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        fn each(board: &Arc<Vec<Arc<Series>>>) -> core::slice::Iter<'_, Arc<Series>> {
            board.iter()
        }
        self.boards.iter().flat_map(each as fn(&'a Arc<Vec<Arc<Series>>>) -> _)
    }
}
