//! Conditions on a row of the root and on what it joins: tests of any of the tables, under AND and OR.
//!
//! Invariants:
//! 1. a condition is true or not true; what SQL calls unknown is not true, and nothing here negates: so AND and OR of what is true
//!    say what they say in a WHERE clause;
//! 2. where a source has no row, its columns are NULL.

use alloc::vec;
use alloc::vec::Vec;

use super::test::{Test, select};
use super::{JoinedRows, NO_ROW, Place, Side};
use crate::Error;

/// A condition on a row of the root and on what it joins.
#[derive(Clone, PartialEq)]
pub enum Condition {
    /// The test is true of the row of this source, by its place among those of the question.
    Of(usize, Test),
    /// All of these.
    All(Vec<Condition>),
    /// Any of these.
    Any(Vec<Condition>),
}

impl Condition {
    /// One of two is true, or both. What is said of one source alone is one test of it, which one look at its indexes serves.
    #[must_use]
    pub fn or(self, other: Condition) -> Condition {
        let mut any = match self {
            Condition::Any(any) => any,
            one => vec![one],
        };
        let more = match other {
            Condition::Any(any) => any,
            one => vec![one],
        };
        for condition in more {
            let Condition::Of(source, test) = condition else {
                any.push(condition);
                continue;
            };
            let known = any.iter_mut().find_map(|known| match known {
                Condition::Of(of, known) if *of == source => Some(known),
                _ => None,
            });
            match known {
                Some(known) => *known = core::mem::replace(known, Test::Never).or(test),
                None => any.push(Condition::Of(source, test)),
            }
        }
        match any.len() {
            1 => any.swap_remove(0),
            _ => Condition::Any(any),
        }
    }

    /// Adds the columns this condition looks at.
    pub fn places(&self, places: &mut Vec<Place>) {
        match self {
            Condition::Of(source, test) => {
                let mut columns = Vec::new();
                test.columns(&mut columns);
                places.extend(columns.into_iter().map(|column| Place { source: *source, column }));
            }
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().for_each(|condition| condition.places(places));
            }
        }
    }

    /// Whether all sources that it names are among so many.
    pub(super) fn is_within(&self, sources: usize) -> bool {
        match self {
            Condition::Of(source, _) => *source < sources,
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().all(|condition| condition.is_within(sources))
            }
        }
    }

    /// Whether it says something of a source.
    pub(super) fn names(&self, source: usize) -> bool {
        match self {
            Condition::Of(named, _) => *named == source,
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().any(|condition| condition.names(source))
            }
        }
    }

    /// Of which rows it is true.
    pub(super) fn holds(&self, rows: &JoinedRows) -> Result<Vec<bool>, Error> {
        let (conditions, is_any) = match self {
            Condition::Of(source, test) => return test_holds(rows, *source, test),
            Condition::All(conditions) => (conditions, false),
            Condition::Any(conditions) => (conditions, true),
        };
        let mut holds = vec![!is_any; rows.count];
        for condition in conditions {
            let more = condition.holds(rows)?;
            let both = |(one, other): (&mut bool, bool)| *one = if is_any { *one || other } else { *one && other };
            holds.iter_mut().zip(more).for_each(both);
        }
        Ok(holds)
    }
}

fn test_holds(rows: &JoinedRows, source: usize, test: &Test) -> Result<Vec<bool>, Error> {
    let of_none = test.is_true_of_none();
    let Some(Side { block, places }) = rows.sides.get(source).and_then(Option::as_ref) else {
        let mut columns = Vec::new();
        test.columns(&mut columns);
        // One that looks at no column says the same of every row.
        return match columns.is_empty() {
            true => Ok(vec![of_none; rows.count]),
            false => Err(Error::misuse("a condition on a table that was not read")),
        };
    };
    let mut holds = vec![false; block.count()];
    select(block, core::slice::from_ref(test))?.each(|place| holds[place] = true);
    Ok(places.iter().map(|place| if *place == NO_ROW { of_none } else { holds[*place as usize] }).collect())
}

/// Takes a conjunction apart.
pub(super) fn conjuncts<'c>(conditions: &'c [Condition], flat: &mut Vec<&'c Condition>) {
    for condition in conditions {
        match condition {
            Condition::All(inner) => conjuncts(inner, flat),
            other => flat.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparison, Constant};

    fn equal(source: usize, column: usize, number: i64) -> Condition {
        let constant = Constant::Whole(number);
        Condition::Of(source, Test::Compare { column, comparison: Comparison::Equal, constant })
    }

    #[test]
    fn alternatives_of_one_source_are_one_test() {
        let any = equal(0, 1, 5).or(equal(1, 0, 6)).or(equal(0, 1, 7)).or(equal(1, 2, 8).or(equal(2, 0, 9)));
        let Condition::Any(any) = any else { panic!("not alternatives") };
        assert!(any.len() == 3 && any.iter().all(|one| one.is_within(3) && !one.is_within(0)));
        let numbers = Test::In { column: 1, constants: vec![Constant::Whole(5), Constant::Whole(7)] };
        assert!(any[0] == Condition::Of(0, numbers));
        assert!(equal(0, 1, 5).or(equal(0, 2, 6)).names(0) && !any[1].names(2));
    }

    #[test]
    fn what_is_not_there_is_null() {
        let column = 0;
        let constant = Constant::Whole(1);
        let is_null = |wanted| Test::Null { column, wanted };
        let compared = Test::Compare { column, comparison: Comparison::Unequal, constant };
        assert!(is_null(true).is_true_of_none() && !is_null(false).is_true_of_none());
        assert!(!compared.is_true_of_none() && !Test::Never.is_true_of_none());
        assert!(Test::Any(vec![compared.clone(), is_null(true)]).is_true_of_none());
        assert!(!Test::All(vec![compared, is_null(true)]).is_true_of_none() && Test::All(Vec::new()).is_true_of_none());
    }
}
