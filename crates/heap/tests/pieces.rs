//! Pieces are taken, given back and resized in any order: none is another's, and what is free is found again.

use counterfoil_heap::{Heap, Units};
use proptest::prelude::*;

/// Memory that knows which of its bytes are taken.
struct Memory {
    words: Vec<u32>,
    taken: Vec<bool>,
    /// Behind it nothing may be written.
    top: usize,
}

impl Memory {
    fn of(bytes: usize) -> Self {
        Self { words: vec![0; bytes / 4], taken: vec![false; bytes], top: 0 }
    }

    fn mark(&mut self, place: usize, bytes: usize, is_taken: bool) {
        for byte in &mut self.taken[place..place + bytes] {
            assert_ne!(*byte, is_taken, "a byte is somebody else's");
            *byte = is_taken;
        }
    }
}

impl Units for Memory {
    fn word(&self, place: usize) -> u32 {
        assert!(!self.taken[place..place + 4].contains(&true), "a note is read in what is taken");
        self.words[place / 4]
    }

    fn set_word(&mut self, place: usize, word: u32) {
        assert!(!self.taken[place..place + 4].contains(&true), "a note is written into what is taken");
        self.words[place / 4] = word;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take { bytes: usize, align: usize },
    Give { which: usize },
    Resize { which: usize, bytes: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..90_usize, 0..4_u32).prop_map(|(bytes, align)| Step::Take { bytes, align: 1 << align }),
        2 => any::<usize>().prop_map(|which| Step::Give { which }),
        2 => (any::<usize>(), 0..120_usize).prop_map(|(which, bytes)| Step::Resize { which, bytes }),
    ]
}

/// A piece: where it is, how many bytes were asked for, and the alignment.
type Piece = (usize, usize, usize);

fn run(steps: Vec<Step>, bytes: usize, unit: usize) {
    let (mut heap, mut memory) = (Heap::begin(bytes), Memory::of(bytes));
    let mut pieces: Vec<Piece> = Vec::new();
    let whole = |bytes: usize| bytes.div_ceil(unit).max(1) * unit;
    for step in steps {
        match step {
            Step::Take { bytes: wanted, align } => {
                let before = memory.taken.clone();
                let Some(place) = heap.take(&mut memory, wanted, align, bytes) else {
                    // Then it fits nowhere.
                    let fits =
                        |at: usize| at + whole(wanted) <= bytes && !before[at..at + whole(wanted)].contains(&true);
                    assert!(!(0..bytes).step_by(align.max(unit)).any(fits), "{wanted} bytes would fit");
                    continue;
                };
                assert_eq!(place % align, 0);
                memory.mark(place, whole(wanted), true);
                pieces.push((place, wanted, align));
            }
            Step::Give { which } if !pieces.is_empty() => {
                let (place, bytes, _) = pieces.swap_remove(which % pieces.len());
                memory.mark(place, whole(bytes), false);
                heap.give(&mut memory, place, bytes);
            }
            Step::Resize { which, bytes: wanted } if !pieces.is_empty() => {
                let which = which % pieces.len();
                let (place, old, _) = pieces[which];
                memory.mark(place, whole(old), false);
                memory.mark(place, whole(old.min(wanted)), true);
                let behind = place + whole(old)..place + whole(wanted).max(whole(old));
                let is_free = behind.end <= bytes && !memory.taken[behind].contains(&true);
                let done = heap.resize(&mut memory, place, (old, wanted), bytes);
                assert_eq!(done, is_free, "{old} to {wanted} at {place}");
                if done {
                    memory.mark(place, whole(old.min(wanted)), false);
                    memory.mark(place, whole(wanted), true);
                    pieces[which].1 = wanted;
                } else {
                    memory.mark(place, whole(old.min(wanted)), false);
                    memory.mark(place, whole(old), true);
                }
            }
            _ => {}
        }
        memory.top = pieces.iter().map(|(place, bytes, _)| place + whole(*bytes)).max().unwrap_or(0);
        assert_eq!(heap.top(), memory.top, "the top is where the last piece ends");
    }
    for (place, bytes, _) in pieces {
        memory.mark(place, whole(bytes), false);
        heap.give(&mut memory, place, bytes);
    }
    assert_eq!(heap.top(), 0);
    assert_eq!(heap.take(&mut memory, bytes, 1, bytes), Some(0), "all of it is one piece again");
}

proptest! {
    #[test]
    fn no_piece_is_anothers_and_all_come_back(steps in prop::collection::vec(step(), 0..200)) {
        run(steps, 2048, 4);
    }

    #[test]
    fn more_memory_has_larger_units(steps in prop::collection::vec(step(), 0..60)) {
        run(steps, 600_000, 16);
    }
}

#[test]
fn memory_ends_where_it_is_said_to_end() {
    let (mut heap, mut memory) = (Heap::begin(1024), Memory::of(1024));
    assert_eq!(heap.take(&mut memory, 100, 4, 1024), Some(0));
    assert_eq!(heap.take(&mut memory, 100, 4, 199), None, "the stack is there");
    assert_eq!(heap.take(&mut memory, 100, 4, 200), Some(100));
    assert!(!heap.resize(&mut memory, 100, (100, 101), 200));
    assert!(heap.resize(&mut memory, 100, (100, 101), 204));
    assert_eq!(heap.take(&mut memory, usize::MAX, 1, 1024), None);
    assert_eq!(Heap::empty().take(&mut memory, 1, 1, 0), None, "there is none yet");
}

#[test]
#[should_panic(expected = "free already")]
fn what_is_given_back_twice_is_noticed() {
    let (mut heap, mut memory) = (Heap::begin(1024), Memory::of(1024));
    let pieces = [0; 3].map(|_| heap.take(&mut memory, 8, 4, 1024).expect("a piece"));
    heap.give(&mut memory, pieces[1], 8);
    heap.give(&mut memory, pieces[1], 8);
}
