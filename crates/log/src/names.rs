//! Which records of the record store hold the chunks of which name.
//!
//! There is an entry for each container and each group of a volume, and nearly all of them have one record: of those that the log
//! numbers, kind and number are one number of four bytes, and the record stands beside it. What is longer, or has another name, is
//! kept by a name as short as can be.
//!
//! A commit in the making marks what it changes, so that it can be kept or undone when it is known what became of it:
//! records that it was given, and those that it gives back.

use alloc::vec::Vec;

use counterfoil_record::RecordId;

use crate::maps::Map;
use crate::named_lists::{NUMBERS_MAX as NUMBERS_OF_ONE_MAX, NamedLists};
use crate::view::space::LOG;

/// A record that a commit in the making was given.
const NEW: u32 = 1 << 31;
/// A record that a commit in the making gives back.
const GONE: u32 = 1 << 30;
/// Records are numbered below this.
const IDS_MAX: u32 = GONE;
/// Names that the log numbers, each with the bytes of its number.
const NUMBERED: [(&[u8], usize); 4] = [(b"container", 8), (b"group", 8), (b"space", 4), (b"pool", 8)];
/// Numbers below this one and their kind are a number together.
const NUMBERS_MAX: u32 = 1 << 30;
/// The first byte of a name of one of those kinds; of any other name that might begin like one.
const KIND: u8 = 0x80;
const OTHER: u8 = 0xFF;

/// The records of all names.
#[derive(Default)]
pub(crate) struct Names {
    /// Of numbered names that have one record.
    single: Map<u32, u32>,
    ids: NamedLists,
}

/// The kind of a name that the log numbers, and its number.
fn numbered(key: &[u8]) -> Option<(u8, &[u8])> {
    let (_, name) = key.split_first().filter(|(space, _)| **space == LOG)?;
    NUMBERED.iter().zip(0..).find_map(|((prefix, bytes), kind)| {
        name.strip_prefix(*prefix).filter(|number| number.len() == *bytes).map(|number| (kind, number))
    })
}

/// A name that the log numbers as one number, where it is small enough: no two names are the same.
fn small(key: &[u8]) -> Option<u32> {
    let (kind, number) = numbered(key)?;
    let number = number.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    u32::try_from(number).ok().filter(|number| *number < NUMBERS_MAX).map(|number| number | u32::from(kind) << 30)
}

/// A name as it is kept: no two names are the same.
fn short(key: &[u8]) -> Vec<u8> {
    if let Some((kind, number)) = numbered(key) {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        return [&[KIND + kind], number.get(zeros..).unwrap_or_default()].concat();
    }
    let escape: &[u8] = if key.first().is_some_and(|first| *first >= KIND) { &[OTHER] } else { &[] };
    [escape, key].concat()
}

impl Names {
    /// The records of a name with their marks, in the order of its chunks.
    fn marked(&self, key: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let single = small(key).and_then(|name| self.single.get(&name)).copied();
        let more = single.is_none().then(|| self.ids.of(&short(key)));
        single.into_iter().chain(more.into_iter().flatten())
    }

    /// The records of a name, in the order of its chunks.
    pub(crate) fn of(&self, key: &[u8]) -> impl Iterator<Item = RecordId> + '_ {
        self.marked(key).map(|id| RecordId(id & !(NEW | GONE)))
    }

    /// One more than the highest number of a record.
    pub(crate) fn end(&self) -> usize {
        let ids = self.single.values().copied().chain(self.ids.all());
        ids.map(|id| (id & !(NEW | GONE)) as usize + 1).max().unwrap_or(0)
    }

    /// Notes the records of a name that was read; whether their numbers make sense.
    pub(crate) fn add(&mut self, key: &[u8], ids: &[u32]) -> bool {
        let is_sound = (1..=NUMBERS_OF_ONE_MAX).contains(&ids.len()) && ids.iter().all(|id| *id < IDS_MAX);
        if is_sound {
            self.set(key, ids);
        }
        is_sound
    }

    fn set(&mut self, key: &[u8], ids: &[u32]) {
        let name = small(key);
        if let (Some(name), [single]) = (name, ids) {
            if self.single.insert(name, *single).is_none() && !self.ids.is_empty() {
                self.ids.set(&short(key), &[]);
            }
        } else {
            name.map(|name| self.single.remove(&name));
            self.ids.set(&short(key), ids);
        }
    }

    /// Makes a name have so many records, for a commit in the making; `allocate` gives those that it lacks.
    pub(crate) fn assign<E>(
        &mut self,
        key: &[u8],
        count: usize,
        mut allocate: impl FnMut() -> Result<RecordId, E>,
    ) -> Result<bool, E> {
        let mut ids: Vec<u32> = self.marked(key).collect();
        if ids.len() == count {
            return Ok(true);
        }
        if count > NUMBERS_OF_ONE_MAX {
            return Ok(false);
        }
        ids.iter_mut().skip(count).for_each(|id| *id |= GONE);
        while ids.len() < count {
            let RecordId(id) = allocate()?;
            if id >= IDS_MAX {
                return Ok(false);
            }
            ids.push(id | NEW);
        }
        self.set(key, &ids);
        Ok(true)
    }

    /// The commit came to be, or not.
    pub(crate) fn settle(&mut self, came_to_be: bool) {
        let (lost, kept) = if came_to_be { (GONE, NEW) } else { (NEW, GONE) };
        self.single.retain(|_, id| {
            let is_left = *id & lost == 0;
            *id &= !kept;
            is_left
        });
        self.ids.change(|id| (id & lost == 0).then_some(id & !kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &Names, key: &[u8]) -> Vec<u32> {
        names.of(key).map(|id| id.0).collect()
    }

    #[test]
    fn no_two_names_are_kept_as_the_same() {
        let numbered = |name: &[u8], number: &[u8]| [&[LOG], name, number].concat();
        let keys = [
            numbered(b"container", &[0; 8]),
            numbered(b"container", &[0, 0, 0, 0, 0, 0, 1, 0]),
            numbered(b"container", &[0, 0, 0, 0, 0, 0, 0, 1]),
            numbered(b"container", &[1]),
            numbered(b"group", &[0, 0, 0, 0, 0, 0, 0, 1]),
            numbered(b"space", &[0, 0, 0, 1]),
            numbered(b"root", &[]),
            Vec::from([KIND, 1]),
            Vec::from([KIND]),
            Vec::from([OTHER]),
            Vec::from([OTHER, KIND, 1]),
            Vec::from([1]),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert!(keys[..place].iter().all(|other| short(other) != short(key)), "{key:?}");
            let as_number = |other: &&Vec<u8>| small(key).is_some() && small(other) == small(key);
            assert!(!keys[..place].iter().any(|other| as_number(&other)), "{key:?}");
        }
        assert_eq!(short(&keys[1]), [KIND, 1, 0]);
        assert_eq!((small(&keys[1]), small(&keys[5])), (Some(256), Some(2 << 30 | 1)));
        assert_eq!(small(&numbered(b"group", &(1_u64 << 30).to_be_bytes())), None);
    }

    #[test]
    fn a_numbered_name_may_become_longer_and_shorter() {
        let key = [&[LOG], b"container".as_slice(), &7_u64.to_be_bytes()].concat();
        let mut names = Names::default();
        assert!(names.add(&key, &[3]) && !names.add(&key, &[]) && !names.add(&key, &[IDS_MAX]));
        for (count, came_to_be, expected) in [
            (2, false, &[3][..]),
            (2, true, &[3, 9]),
            (1, false, &[3, 9]),
            (1, true, &[3]),
            (0, false, &[3]),
            (0, true, &[]),
        ] {
            assert_eq!(names.assign(&key, count, || Ok::<_, ()>(RecordId(9))), Ok(true));
            names.settle(came_to_be);
            assert_eq!(of(&names, &key), expected);
        }
        assert!(names.single.is_empty() && names.ids.is_empty());
    }

    #[test]
    fn what_a_commit_assigns_is_kept_with_it_or_forgotten() {
        for came_to_be in [true, false] {
            let mut names = Names::default();
            assert!(names.add(b"\x01long", &[4, 5]) && names.add(b"\x01gone", &[9]));
            let mut next = 20;
            let mut allocate = || {
                next += 1;
                Ok::<_, ()>(RecordId(next))
            };
            for (key, count) in [(b"\x01long".as_slice(), 1), (b"\x01gone", 0), (b"\x01new", 2)] {
                assert_eq!(names.assign(key, count, &mut allocate), Ok(true));
            }
            assert_eq!((of(&names, b"\x01long"), of(&names, b"\x01new")), (Vec::from([4, 5]), Vec::from([21, 22])));
            names.settle(came_to_be);
            let after = [b"\x01long".as_slice(), b"\x01gone", b"\x01new"].map(|key| of(&names, key));
            let expected: [&[u32]; 3] = if came_to_be { [&[4], &[], &[21, 22]] } else { [&[4, 5], &[9], &[]] };
            assert_eq!(after.each_ref().map(Vec::as_slice), expected);
            assert_eq!(names.end(), if came_to_be { 23 } else { 10 });
        }
    }
}
