//! Queries (4.1): lists of identifiers of T0 from its indexes, merged; then, row by row, what is joined and shown.

use std::collections::{BTreeSet, HashMap};

use super::changes::Compensation;
use super::database::{Database, FILLING_AT, FILLING_BYTES, ranged};
use crate::milo::data::{self, Attribute, Selection, T0};
use crate::milo::table1::{Is, Query};

/// Values of A1 of other tables than T0 that stay in memory: 16 KB.
const VALUES_KEPT: usize = 170;

/// What is asked of an attribute, by numbers.
#[derive(Clone, Copy)]
enum Range {
    Equal(u64),
    Above(u64),
}

/// Rows that an index names although they are no longer so, by a row of the table asked about.
type Stale = (usize, BTreeSet<u64>);

/// Values of A1 in memory, each with when it was used last.
#[derive(Default)]
struct Kept {
    values: HashMap<(usize, u64), u64>,
    uses: u64,
}

impl Kept {
    /// Whether a value is in memory; it is from now on.
    fn holds(&mut self, place: (usize, u64)) -> bool {
        self.uses += 1;
        let was_there = self.values.insert(place, self.uses).is_some();
        if self.values.len() > VALUES_KEPT {
            let oldest = self.values.iter().min_by_key(|(_, used)| **used).map(|(place, _)| *place);
            oldest.map(|oldest| self.values.remove(&oldest));
        }
        was_there
    }
}

impl Database {
    /// The rows of T0 that a query has, ascending, once everything shown of them was read.
    pub fn ask(&self, query: &Query) -> Vec<u64> {
        let mut named: Option<Vec<u64>> = None;
        let mut stale: Vec<Stale> = Vec::new();
        for (selection, is) in query.asked.iter().map(data::asked) {
            let (rows, gone) = self.named(selection, is);
            stale.extend((!gone.is_empty()).then_some((selection.table, gone)));
            named = Some(match named {
                Some(before) => common(&before, &rows),
                None => rows,
            });
        }
        self.show(query, &named.unwrap_or_default(), &stale)
    }

    /// Rows of T0 that an index names, the newest first, and rows of the table asked about of which that is no longer so.
    fn named(&self, selection: Selection, is: &Is) -> (Vec<u64>, BTreeSet<u64>) {
        let range = match is {
            Is::Id(id) if selection.table == T0 => return (vec![*id], BTreeSet::new()),
            Is::Id(id) => Range::Equal(*id),
            Is::Equal(value) => Range::Equal(data::number_in(value)),
            Is::Above(value) => Range::Above(data::number_in(value)),
        };
        let mut rows = self.indexed(T0, selection, range);
        let Compensation { gone, come } = self.compensation(selection, range);
        if !come.is_empty() {
            for row in come {
                match selection.table {
                    T0 => rows.push(row),
                    table => {
                        let id = Selection { table, attribute: Attribute::Id };
                        rows.extend(self.indexed(T0, id, Range::Equal(row)));
                    }
                }
            }
            rows.sort_unstable_by(|a, b| b.cmp(a));
            rows.dedup();
        }
        (rows, gone)
    }

    fn compensation(&self, selection: Selection, range: Range) -> Compensation {
        match range {
            _ if self.changes.is_empty() => Compensation::default(),
            Range::Equal(number) => self.changes.of_value(&self.nand, selection, number),
            Range::Above(number) => self.changes.above(&self.nand, selection, number),
        }
    }

    /// Rows of a table that join a row of which an attribute has this ID, the newest first.
    pub fn joining(&self, table: usize, other: usize, row: u64) -> Vec<u64> {
        self.indexed(table, Selection { table: other, attribute: Attribute::Id }, Range::Equal(row))
    }

    /// Rows of a table that an index names, the newest first: those that are fresh before the others.
    fn indexed(&self, table: usize, selection: Selection, range: Range) -> Vec<u64> {
        let stored = &self.tables[table];
        let index = stored.index(selection);
        let mut rows = match range {
            Range::Equal(number) => stored.fresh.lookup(&self.nand, index, &data::key(selection.attribute, number)),
            Range::Above(number) => {
                assert!(table == T0 && selection == ranged(), "the attribute that is indexed for ranges");
                stored.ranges.above(&self.nand, number)
            }
        };
        rows.iter_mut().for_each(|row| *row += stored.sorted_rows);
        let (from, to) = match range {
            Range::Equal(number) => (number, number),
            Range::Above(number) => (number + 1, 999_999),
        };
        let keys = [from, to].map(|number| data::key(selection.attribute, number));
        rows.extend(stored.sorted[index].lookup(&self.nand, &keys[0], &keys[1]));
        rows
    }

    /// Reads what rows join and A1 of the tables shown, and passes over rows that are stale or gone.
    fn show(&self, query: &Query, named: &[u64], stale: &[Stale]) -> Vec<u64> {
        let needs_joins = query.shown.len() > 1 || !self.changes.is_empty();
        let shown: Vec<usize> = query.shown.iter().map(|name| data::number(name)).collect();
        let (mut kept, mut rows) = (Kept::default(), Vec::new());
        for row in named {
            let mut joined = vec![(T0, *row)];
            joined.extend(if needs_joins { self.joins(T0, *row) } else { Vec::new() });
            let is_gone = joined.iter().any(|place| self.changes.deleted.contains(place));
            let row_of = |table: usize| joined.iter().find(|(other, _)| *other == table).map(|(_, row)| *row);
            let is_stale = stale.iter().any(|(table, gone)| row_of(*table).is_some_and(|row| gone.contains(&row)));
            if is_gone || is_stale {
                continue;
            }
            for table in &shown {
                let place = (*table, row_of(*table).expect("a table that is joined"));
                if *table == T0 || !kept.holds(place) {
                    self.read_filling(place);
                }
            }
            rows.push(*row);
        }
        rows.reverse();
        rows
    }

    fn read_filling(&self, (table, row): (usize, u64)) {
        if !self.changes.read_filling(&self.nand, table, row) {
            let mut bytes = [0; FILLING_BYTES];
            self.tables[table].rows.read(&self.nand, row, FILLING_AT, &mut bytes);
            assert_eq!(bytes[..8], row.to_le_bytes(), "the row that was asked for");
        }
    }
}

/// What two lists, the newest first, have in common.
fn common(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut right = right.iter().peekable();
    let is_there = |row: &&u64| {
        while right.next_if(|other| *other > *row).is_some() {}
        right.peek() == Some(row)
    };
    left.iter().filter(is_there).copied().collect()
}
