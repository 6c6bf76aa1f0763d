//! The rows of section 7's database as numbers, in memory: what the rebuilt design is filled from, and what all answers are held
//! against.

use std::collections::BTreeSet;

use counterfoil_flash_sim::Dice;

use super::figure7::{self, INDEXED, TABLES};
use super::paper::Key;
use super::table1::{Asked, Is, Query};

/// Tables, in the order of [`TABLES`].
pub const T0: usize = 5;

/// An attribute that is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    Id,
    /// One of [`INDEXED`].
    Value(usize),
}

/// An index of a table: the attribute of a table that it joins, or of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    pub table: usize,
    pub attribute: Attribute,
}

/// A row deleted, with what references it, or updated.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Delete {
        table: usize,
        row: u64,
    },
    /// Of an indexed attribute.
    Value {
        table: usize,
        row: u64,
        value: usize,
        number: u64,
    },
    /// Of A1.
    Filling {
        table: usize,
        row: u64,
    },
}

/// What an answer shows of a row of T0: A1 of it and of rows that it joins.
pub type Shown = Vec<Box<str>>;

/// All rows.
#[derive(Clone)]
pub struct Data {
    /// Rows of T0 for which values were chosen.
    scale: u64,
    tables: Vec<Rows>,
    /// For each table and each one it joins: which of its references leads there, and to which table.
    ways: Vec<Vec<Option<(usize, usize)>>>,
    /// For each table those it joins, and itself.
    joined: Vec<Vec<usize>>,
}

#[derive(Clone, Default)]
struct Rows {
    references: Vec<Vec<u32>>,
    values: Vec<[u32; 4]>,
    gone: Vec<bool>,
    /// Rows of which A1 was updated.
    filled: BTreeSet<u64>,
}

/// What A1 of a row is updated to.
pub fn filling(table: usize, row: u64) -> String {
    let mut text = format!("updated {row:012} ").repeat(8);
    text.truncate(TABLES[table].a1_bytes());
    text
}

/// The tables that a table joins, and itself.
pub fn joined(table: usize) -> Vec<usize> {
    let mut all = vec![table];
    all.extend(references(table).iter().flat_map(|other| joined(*other)));
    all
}

/// The tables that a table references.
pub fn references(table: usize) -> Vec<usize> {
    TABLES[table].references.iter().map(|name| number(name)).collect()
}

/// A table's place.
pub fn number(name: &str) -> usize {
    TABLES.iter().position(|table| table.name == name).expect("one of the six tables")
}

/// The indexes of a table: 64 of all tables. Its own ID is its rows' place.
pub fn selections(table: usize) -> Vec<Selection> {
    let values = || (0..INDEXED.len()).map(Attribute::Value);
    let of = |other: usize| {
        let id = (other != table).then_some(Attribute::Id);
        id.into_iter().chain(values()).map(move |attribute| Selection { table: other, attribute })
    };
    joined(table).into_iter().flat_map(of).collect()
}

/// The key of a number.
pub fn key(attribute: Attribute, number: u64) -> Key {
    match attribute {
        Attribute::Id => format!("{number:010}"),
        Attribute::Value(_) => figure7::value(number),
    }
    .into_bytes()
    .try_into()
    .expect("ten bytes")
}

impl Data {
    /// Tables as they are loaded.
    pub fn loaded(rows: u64) -> Self {
        let way = |table: usize, other: usize| {
            references(table).into_iter().enumerate().find(|(_, parent)| joined(*parent).contains(&other))
        };
        let all = 0..TABLES.len();
        let mut data = Self {
            scale: rows,
            tables: vec![Rows::default(); TABLES.len()],
            ways: all.clone().map(|table| all.clone().map(|other| way(table, other)).collect()).collect(),
            joined: all.map(joined).collect(),
        };
        TABLES.iter().enumerate().for_each(|(table, known)| data.add(table, known.rows(rows)));
        data
    }

    /// Adds so many rows to a table.
    pub fn add(&mut self, table: usize, count: u64) {
        let rows = &mut self.tables[table];
        rows.references.resize(TABLES[table].references.len(), Vec::new());
        for id in rows.values.len() as u64..rows.values.len() as u64 + count {
            let row = TABLES[table].row(id, self.scale);
            rows.references.iter_mut().zip(row.references).for_each(|(column, parent)| column.push(parent as u32));
            rows.values.push(row.values.map(|value| value[4..].parse().expect("a number")));
            rows.gone.push(false);
        }
    }

    pub fn rows(&self, table: usize) -> u64 {
        self.tables[table].values.len() as u64
    }

    /// The row of another table that a row joins.
    pub fn row_of(&self, table: usize, row: u64, other: usize) -> u64 {
        if table == other {
            return row;
        }
        let (place, parent) = self.ways[table][other].expect("a table that is joined");
        self.row_of(parent, u64::from(self.tables[table].references[place][row as usize]), other)
    }

    /// What an index has of a row.
    pub fn number_of(&self, table: usize, row: u64, Selection { table: other, attribute }: Selection) -> u64 {
        let row = self.row_of(table, row, other);
        match attribute {
            Attribute::Id => row,
            Attribute::Value(value) => u64::from(self.tables[other].values[row as usize][value]),
        }
    }

    /// Whether a row and all it joins are there.
    pub fn is_there(&self, table: usize, row: u64) -> bool {
        self.joined[table].iter().all(|other| !self.tables[*other].gone[self.row_of(table, row, *other) as usize])
    }

    /// Chooses rows to delete and to update, as many of each, evenly over all tables; updates evenly over the attributes.
    pub fn changes(&self, count: u64) -> Vec<Change> {
        let mut dice = Dice::new(count + 7);
        let total: u64 = (0..TABLES.len()).map(|table| self.rows(table)).sum();
        let mut touched = BTreeSet::new();
        let mut draw = |dice: &mut Dice| loop {
            let mut row = dice.below(total);
            let mut table = 0;
            while row >= self.rows(table) {
                row -= self.rows(table);
                table += 1;
            }
            if touched.insert((table, row)) {
                return (table, row);
            }
        };
        let mut changes = Vec::new();
        for turn in 0..count {
            let (table, row) = draw(&mut dice);
            changes.push(match turn % 5 {
                4 => Change::Filling { table, row },
                value => {
                    let other = dice.below(self.rows(table)) as usize;
                    let number = u64::from(self.tables[table].values[other][value as usize]);
                    Change::Value { table, row, value: value as usize, number }
                }
            });
        }
        changes.extend((0..count).map(|_| {
            let (table, row) = draw(&mut dice);
            Change::Delete { table, row }
        }));
        changes
    }

    pub fn change(&mut self, change: &Change) {
        match *change {
            Change::Delete { table, row } => self.tables[table].gone[row as usize] = true,
            Change::Value { table, row, value, number } => {
                self.tables[table].values[row as usize][value] = number as u32
            }
            Change::Filling { table, row } => {
                self.tables[table].filled.insert(row);
            }
        }
    }

    /// What the query is to show of some rows of T0, in ascending order.
    pub fn shown(&self, query: &Query, rows: &[u64]) -> Vec<Shown> {
        let a1 = |table: usize, row: u64| match self.tables[table].filled.contains(&row) {
            true => filling(table, row),
            false => TABLES[table].row(row, self.scale).a1,
        };
        let tables: Vec<usize> = query.shown.iter().map(|name| number(name)).collect();
        let of_row =
            |row: &u64| tables.iter().map(|table| a1(*table, self.row_of(T0, *row, *table)).into_boxed_str()).collect();
        let mut shown: Vec<Shown> = rows.iter().map(of_row).collect();
        shown.sort_unstable();
        shown
    }

    /// The rows of T0 that a query has, ascending: by looking at all of them.
    pub fn answer(&self, query: &Query) -> Vec<u64> {
        let range = |is: &Is| match is {
            Is::Id(id) => *id..*id + 1,
            Is::Equal(value) => number_in(value)..number_in(value) + 1,
            Is::Above(value) => number_in(value) + 1..u64::MAX,
        };
        let asked: Vec<_> = query.asked.iter().map(asked).map(|(selection, is)| (selection, range(is))).collect();
        let is_true =
            |row: u64| asked.iter().all(|(selection, range)| range.contains(&self.number_of(T0, row, *selection)));
        (0..self.rows(T0)).filter(|row| is_true(*row) && self.is_there(T0, *row)).collect()
    }
}

/// What a query asks about.
pub fn asked(Asked { table, column, is }: &Asked) -> (Selection, &Is) {
    let value = INDEXED.iter().position(|name| name == column);
    (Selection { table: number(table), attribute: value.map_or(Attribute::Id, Attribute::Value) }, is)
}

/// The number in a value.
pub fn number_in(value: &str) -> u64 {
    value[4..].parse().expect("a value of the database")
}
