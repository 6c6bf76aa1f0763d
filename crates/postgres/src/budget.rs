//! Room for what is large: one budget for all clients of a server.
//!
//! What is small needs none of it, so that nobody is refused a statement because others send large ones.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all clients have together, beside what is small.
#[derive(Debug)]
pub struct Budget {
    left: AtomicUsize,
    small: usize,
}

impl Budget {
    /// So many bytes; what takes up to `small` of them takes none of it.
    pub fn new(bytes: usize, small: usize) -> Arc<Self> {
        Arc::new(Budget { left: AtomicUsize::new(bytes), small })
    }
}

/// What somebody has of a budget, given back when it goes.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    taken: usize,
}

impl Share {
    /// Nothing yet.
    pub fn of(budget: &Arc<Budget>) -> Self {
        Share { budget: budget.clone(), taken: 0 }
    }

    /// Has room for so many bytes in all from now on; false, and as it was, where there is none.
    #[must_use]
    pub fn is_enlarged(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(self.budget.small);
        if let Some(more) = wanted.checked_sub(self.taken) {
            let take = |left: usize| left.checked_sub(more);
            if self.budget.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                return false;
            }
            self.taken = wanted;
        }
        true
    }

    /// Needs room for so many bytes in all, and gives back the rest.
    pub fn shrink(&mut self, bytes: usize) {
        let wanted = bytes.saturating_sub(self.budget.small);
        if let Some(less) = self.taken.checked_sub(wanted) {
            self.budget.left.fetch_add(less, Ordering::SeqCst);
            self.taken = wanted;
        }
    }

    /// Whether anything of the budget is taken.
    pub fn is_taken(&self) -> bool {
        self.taken > 0
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// Bytes of a message, and the room for them.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    share: Share,
}

impl Held {
    /// None yet.
    pub fn of(budget: &Arc<Budget>) -> Self {
        Held { bytes: Vec::new(), share: Share::of(budget) }
    }

    /// None any more; room for small ones is kept for the next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(self.share.budget.small);
        self.share.shrink(0);
    }

    /// Whether there is room for so many bytes in all from now on; where not, it is as it was.
    #[must_use]
    pub fn is_enlarged(&mut self, bytes: usize) -> bool {
        let has_room = self.share.is_enlarged(bytes);
        if has_room {
            self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
        }
        has_room
    }

    /// The bytes, to be added to as far as there is room.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let budget = Budget::new(100, 10);
        let left = || budget.left.load(Ordering::SeqCst);
        let (mut first, mut second) = (Share::of(&budget), Share::of(&budget));
        assert!(first.is_enlarged(10) && left() == 100, "small");
        assert!(first.is_enlarged(80) && left() == 30);
        assert!(!second.is_enlarged(41) && left() == 30, "one byte too many");
        assert!(second.is_enlarged(40) && left() == 0);
        assert!(second.is_enlarged(20) && left() == 0, "nothing is given back unasked");
        second.shrink(20);
        assert_eq!(left(), 20);
        drop(first);
        assert_eq!(left(), 90);
        let mut held = Held::of(&budget);
        assert!(!held.is_enlarged(101));
        assert!(held.is_enlarged(100));
        held.bytes().extend([7; 100]);
        assert_eq!((held.len(), left()), (100, 0));
        held.clear();
        assert_eq!((held.len(), left()), (0, 90));
        drop((second, held));
        assert_eq!(left(), 100);
    }
}
