//! A heap for parts with little memory, which may share it with the stack.
//!
//! ```text
//! | taken | free | taken | free | taken | never reached, or given back: untouched ...
//! 0                                      top
//! ```
//! Memory is cut into units of four bytes (more, where there are more than 64 Ki of them), and each piece lies where it fits first.
//! What is free is a list in the order of its places, and notes its size and what is free next in its own first unit, so that no
//! piece is too small for it. Nothing is noted beside what is taken: whoever gives back says how much it was.
//!
//! Invariants
//! 1. What is free never adjoins what is free, nor the top: it is one piece with it.
//! 2. Nothing behind the top is read or written.
//!
//! This crate cuts memory up and touches none but by [`Units`]; making pointers of places is a matter of whoever has the memory.
#![no_std]
#![forbid(unsafe_code)]

/// Where memory ends that may be taken: so many bytes from its beginning.
pub type End = usize;

/// Bytes of a unit at least.
const UNIT_BYTES_MIN: usize = 4;
/// The number of no unit.
const NONE: u16 = u16::MAX;

/// The units of some memory, by their numbers: a word is read and written at the beginning of each.
pub trait Units {
    /// The word at the beginning of a unit.
    fn word(&self, unit_offset: usize) -> u32;

    /// Puts one there.
    fn set_word(&mut self, unit_offset: usize, word: u32);
}

/// How memory is cut up.
#[derive(Debug)]
pub struct Heap {
    /// The first piece that is free.
    first: u16,
    /// Behind all that is taken.
    top: u16,
    /// How often the least unit's bytes are doubled.
    doubled: u8,
}

/// A piece that is free: how many units, and the next one.
#[derive(Clone, Copy)]
struct Free {
    units: u16,
    next: u16,
}

impl Heap {
    /// Of no memory: nothing is taken until [`Heap::begin`].
    #[must_use]
    pub const fn empty() -> Self {
        Heap { first: NONE, top: 0, doubled: 0 }
    }

    /// Of so many bytes, of which none is taken.
    #[must_use]
    pub const fn begin(bytes: usize) -> Self {
        let mut doubled = 0;
        while bytes / (UNIT_BYTES_MIN << doubled) >= NONE as usize {
            doubled += 1;
        }
        Heap { doubled, ..Heap::empty() }
    }

    /// Where all that is taken ends, in bytes: nothing was written behind it.
    #[must_use]
    pub fn top(&self) -> usize {
        self.bytes(self.top)
    }

    /// Takes so many bytes at a multiple of `align`, a power of two, before `end`; where they begin. None: there are not so many.
    pub fn take(&mut self, memory: &mut impl Units, bytes: usize, align: usize, end: End) -> Option<usize> {
        let units = self.units(bytes)?;
        let align = self.units(align)?;
        let (mut before, mut at) = (NONE, self.first);
        while at != NONE {
            let free = self.free(memory, at);
            let start = aligned(at, align)?;
            if start.checked_add(units)? <= at + free.units {
                self.cut(memory, (before, at), (start, units));
                return Some(self.bytes(start));
            }
            (before, at) = (at, free.next);
        }
        let (old, start) = (self.top, aligned(self.top, align)?);
        let top = start.checked_add(units).filter(|top| *top < NONE && self.bytes(*top) <= end)?;
        self.top = top;
        if start > old {
            self.set_free(memory, old, Free { units: start - old, next: NONE });
            self.link(memory, before, old);
        }
        Some(self.bytes(start))
    }

    /// Gives back what was taken.
    ///
    /// # Panics
    /// Some of it is free.
    pub fn give(&mut self, memory: &mut impl Units, place: usize, bytes: usize) {
        let (at, units) = self.taken(place, bytes);
        let ([before_last, before], next) = self.neighbours(memory, at);
        let (mut from, mut end, mut after, mut linked) = (at, at + units, next, before);
        assert!(next == NONE || end <= next, "what is given back is free already");
        if end == next {
            let free = self.free(memory, next);
            (end, after) = (next + free.units, free.next);
        }
        if before != NONE {
            let end_before = before + self.free(memory, before).units;
            assert!(end_before <= at, "what is given back is free already");
            if end_before == at {
                (from, linked) = (before, before_last);
            }
        }
        if end == self.top {
            self.top = from;
            self.link(memory, linked, NONE);
        } else {
            self.set_free(memory, from, Free { units: end - from, next: after });
            self.link(memory, linked, from);
        }
    }

    /// Makes what was taken smaller, or larger where the memory behind it is free before `end`; whether it is so now.
    pub fn resize(&mut self, memory: &mut impl Units, place: usize, (old, new): (usize, usize), end: End) -> bool {
        let (Some(wanted), (at, units)) = (self.units(new), self.taken(place, old)) else { return false };
        let behind = at + units;
        if wanted <= units {
            if wanted < units {
                self.give(memory, self.bytes(at + wanted), self.bytes(units - wanted));
            }
            return true;
        }
        let more = wanted - units;
        if behind == self.top {
            let top = behind.checked_add(more).filter(|top| *top < NONE && self.bytes(*top) <= end);
            self.top = top.unwrap_or(self.top);
            return top.is_some();
        }
        let ([_, before], next) = self.neighbours(memory, at);
        if next != behind || self.free(memory, next).units < more {
            return false;
        }
        self.cut(memory, (before, next), (next, more));
        true
    }

    /// What is free before and behind a place: the last two pieces before, and the first behind.
    fn neighbours(&self, memory: &impl Units, at: u16) -> ([u16; 2], u16) {
        let (mut before, mut next) = ([NONE; 2], self.first);
        while next < at {
            before = [before[1], next];
            next = self.free(memory, next).next;
        }
        (before, next)
    }

    /// Takes units out of a piece that is free; what is left of it before and behind stays free.
    fn cut(&mut self, memory: &mut impl Units, (before, at): (u16, u16), (start, units): (u16, u16)) {
        let Free { units: all, mut next } = self.free(memory, at);
        let (behind, end) = (start + units, at + all);
        if behind < end {
            self.set_free(memory, behind, Free { units: end - behind, next });
            next = behind;
        }
        if start > at {
            self.set_free(memory, at, Free { units: start - at, next });
            next = at;
        }
        self.link(memory, before, next);
    }

    /// Has the piece before go on with another one.
    fn link(&mut self, memory: &mut impl Units, before: u16, next: u16) {
        if before == NONE {
            self.first = next;
        } else {
            let free = self.free(memory, before);
            self.set_free(memory, before, Free { next, ..free });
        }
    }

    fn free(&self, memory: &impl Units, at: u16) -> Free {
        let word = memory.word(self.bytes(at));
        Free { units: (word >> 16) as u16, next: word as u16 }
    }

    fn set_free(&self, memory: &mut impl Units, at: u16, free: Free) {
        memory.set_word(self.bytes(at), u32::from(free.units) << 16 | u32::from(free.next));
    }

    /// The units of what is said to be taken.
    fn taken(&self, place: usize, bytes: usize) -> (u16, u16) {
        let at = u16::try_from(place >> self.shift()).ok();
        let units = self.units(bytes);
        let inside = at.zip(units).filter(|(at, units)| at.checked_add(*units).is_some_and(|end| end <= self.top));
        inside.expect("what was taken is given back")
    }

    /// So many bytes in whole units; one at least.
    fn units(&self, bytes: usize) -> Option<u16> {
        u16::try_from((bytes.checked_add(self.bytes(1) - 1)? >> self.shift()).max(1)).ok()
    }

    fn bytes(&self, units: u16) -> usize {
        usize::from(units) << self.shift()
    }

    /// By how many bits bytes are shifted to be units.
    fn shift(&self) -> u32 {
        UNIT_BYTES_MIN.trailing_zeros() + u32::from(self.doubled)
    }
}

/// The next multiple of `align`, which is a power of two: a division would be code of its own on a small processor.
fn aligned(at: u16, align: u16) -> Option<u16> {
    Some(at.checked_add(align - 1)? & !(align - 1))
}
