//! Sets of values of one column, as ranges of their encodings: what conditions are made of, and intervals.

/// Values whose encodings lie from `start` on and before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    /// Whether it holds one value, whose encoding `start` is.
    pub(crate) is_point: bool,
}

/// Values as ranges. Invariants: sorted, none empty, no two overlap. Ranges that touch stay apart, so that points do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(Vec<Range>);

/// Before all values that are not NULL.
pub(crate) const FIRST: &[u8] = &[1];
/// NULL, behind all others.
pub(crate) const NULL: &[u8] = &[2];
pub(crate) const BEHIND_NULL: &[u8] = &[3];

/// The first bytes that are behind all that begin with `prefix`, which begins with no FF.
pub(crate) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    while bytes.last() == Some(&0xff) {
        bytes.pop();
    }
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}

impl Set {
    pub(crate) fn range(start: &[u8], end: &[u8]) -> Self {
        if start < end {
            Self(vec![Range { start: start.to_vec(), end: end.to_vec(), is_point: false }])
        } else {
            Self::default()
        }
    }

    pub(crate) fn point(encoded: &[u8]) -> Self {
        Self(vec![Range { start: encoded.to_vec(), end: behind(encoded), is_point: true }])
    }

    /// All values and NULL.
    pub(crate) fn all() -> Self {
        Self::range(FIRST, BEHIND_NULL)
    }

    /// All values but NULL.
    pub(crate) fn values() -> Self {
        Self::range(FIRST, NULL)
    }

    pub(crate) fn null() -> Self {
        Self::point(NULL)
    }

    pub(crate) fn ranges(&self) -> &[Range] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, encoded: &[u8]) -> bool {
        let at = self.0.partition_point(|range| range.end[..] <= *encoded);
        self.0.get(at).is_some_and(|range| range.start[..] <= *encoded)
    }

    /// What is in any of `sets`.
    pub(crate) fn union(sets: Vec<Self>) -> Self {
        let mut ranges: Vec<Range> = sets.into_iter().flat_map(|set| set.0).collect();
        ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start).then_with(|| b.end.cmp(&a.end)));
        let mut joined: Vec<Range> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start < last.end => {
                    if range.end > last.end {
                        last.end = range.end;
                        last.is_point = false;
                    }
                }
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// What is in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            let (start, end) = ((&left.start).max(&right.start), (&left.end).min(&right.end));
            if start < end {
                // A point is inside another range or outside: no cut lies within a whole encoding.
                common.push(Range {
                    start: start.clone(),
                    end: end.clone(),
                    is_point: left.is_point || right.is_point,
                });
            }
            if left.end <= right.end {
                a.next();
            } else {
                b.next();
            }
        }
        Self(common)
    }

    /// The values, NULL left out, that are not in it.
    pub(crate) fn complement(&self) -> Self {
        self.without(NULL)
    }

    /// The values and NULL that are not in it.
    pub(crate) fn complement_with_null(&self) -> Self {
        self.without(BEHIND_NULL)
    }

    fn without(&self, end: &[u8]) -> Self {
        let mut gaps = Vec::new();
        let mut from = FIRST;
        for range in &self.0 {
            gaps.push(Self::range(from, (&range.start[..]).min(end)));
            from = &range.end;
        }
        gaps.push(Self::range(from, end));
        Self(gaps.into_iter().flat_map(|gap| gap.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Set;

    /// Points and ranges over the encodings 01 00 .. 01 07 and NULL, and a mask of what they hold.
    fn set() -> impl Strategy<Value = (Set, u16)> {
        prop::collection::vec((0u8..8, 0u8..8, any::<bool>()), 0..4).prop_map(|parts| {
            let mut mask = 0;
            let mut sets = Vec::new();
            for (from, to, is_point) in parts {
                if is_point {
                    sets.push(Set::point(&[1, from]));
                    mask |= 1 << from;
                } else {
                    sets.push(Set::range(&[1, from], &[1, to]));
                    mask |= (from..to).map(|bit| 1 << bit).sum::<u16>();
                }
            }
            (Set::union(sets), mask)
        })
    }

    fn mask(set: &Set) -> u16 {
        let encoded = (0u8..8).map(|value| vec![1, value]).chain([vec![2]]);
        encoded.enumerate().filter(|(_, bytes)| set.contains(bytes)).map(|(bit, _)| 1 << bit).sum()
    }

    proptest! {
        #[test]
        fn sets_are_sets((a, in_a) in set(), (b, in_b) in set()) {
            prop_assert_eq!(mask(&a), in_a);
            prop_assert_eq!(mask(&a.intersection(&b)), in_a & in_b);
            prop_assert_eq!(mask(&a.complement()), !in_a & 0xff);
            prop_assert_eq!(mask(&a.complement_with_null()), !in_a & 0x1ff);
            prop_assert_eq!(mask(&Set::union(vec![a.clone(), b.clone(), Set::null()])), in_a | in_b | 0x100);
            for set in [&a, &a.intersection(&b), &Set::union(vec![a.clone(), b.clone()])] {
                prop_assert!(set.ranges().windows(2).all(|pair| pair[0].end <= pair[1].start));
                prop_assert!(set.ranges().iter().all(|range| !range.is_point || range.end == super::behind(&range.start)));
            }
        }
    }
}
