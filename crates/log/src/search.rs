//! A search in what is sorted, for maps of devices: one loop for all kinds of entries, which is called for each comparison.

use core::cmp::Ordering;

/// The place among `count` sorted entries of one that is neither less nor more than what is searched, or where it would go in;
/// `compare` says how the entry at a place compares to that.
#[inline(never)]
pub(crate) fn search(count: usize, compare: &mut dyn FnMut(usize) -> Ordering) -> Result<usize, usize> {
    let (mut from, mut until) = (0, count);
    // What comes last is asked first: most keys are numbers that go up.
    let mut at = count.wrapping_sub(1);
    while from < until {
        match compare(at) {
            Ordering::Less => from = at + 1,
            Ordering::Equal => return Ok(at),
            Ordering::Greater => until = at,
        }
        at = from + (until - from) / 2;
    }
    Err(from)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_is_found_is_what_the_library_finds() {
        for count in 0..40_u32 {
            let all: Vec<u32> = (0..count).map(|number| number * 3).collect();
            for key in 0..count * 3 + 2 {
                let found = search(all.len(), &mut |at| all[at].cmp(&key));
                assert_eq!(found, all.binary_search(&key), "{key} of {count}");
            }
        }
    }
}
