//! Which fragments there are of each column, and which clouds hold them.
//!
//! 1. Every column has sealed cells, at one cloud more than may fail: any of them gives the values back to whoever has the key. Or at
//!    every one of its clouds, or in a piece at each, as it was said of the column.
//! 2. Numbers that are added up have shares at every cloud, `may_collude + 1` of which give a value away.
//! 3. An index code (tags, orders) is made only for an operation that was declared, at one cloud more than may fail.
//!    A code that shows more than it must is made where it was declared by a word that says `danger`.
//!    Codes of one column begin at different clouds, and so do columns: whoever holds one code need not hold the next.
//! 4. A placement that cannot keep what was declared is refused, with what to change.

use std::fmt;

use crate::coding::erasure::PIECES_MAX;
use crate::declaration::{Column, Declaration, Distribution, Kind};

/// What a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// A sealed cell.
    Cell,
    /// A piece of a sealed cell, by its number.
    Piece(u8),
    /// A share of a limb.
    Share(u8),
    /// A share of 1 where there is a value, and of 0 where there is NULL.
    Present,
    /// A tag of the whole value.
    Tag,
    /// A tag of each of the first prefixes.
    Prefix,
    /// A code that questions are compared with.
    Order,
    /// A code that is in order by itself.
    DangerOrder,
}

impl Coding {
    /// A byte that no other coding has, for names and keys.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Cell => 1,
            Self::Present => 2,
            Self::Tag => 3,
            Self::Prefix => 4,
            Self::Order => 5,
            // One at each cloud.
            Self::Piece(_) => 6,
            Self::DangerOrder => 7,
            Self::Share(limb) => 16 + limb,
        }
    }
}

/// A fragment of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The column's number.
    pub column: u16,
    /// What it is.
    pub coding: Coding,
    /// The places, among the table's clouds, of those that hold it.
    pub holders: Vec<usize>,
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The fragments, by column.
    pub fragments: Vec<Fragment>,
}

/// Why a table cannot be dispersed as it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not enough clouds: so many are, and so many are needed.
    Clouds {
        /// How many there are.
        there: usize,
        /// How many it takes.
        needed: usize,
        /// For what.
        why: String,
    },
    /// One cloud twice.
    SameCloud(String),
    /// An operation that does not go with a column's type.
    Operation {
        /// The column.
        column: String,
        /// What was declared.
        operation: &'static str,
        /// Why it does not go, and what does.
        why: &'static str,
    },
    /// More clouds than a cell may have pieces.
    Pieces(String),
    /// More rows than any sum has room for.
    Rows(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clouds { there, needed, why } => {
                write!(f, "{there} clouds, where {why} takes {needed}: name more of them, or declare less")
            }
            Self::SameCloud(name) => write!(f, "cloud {name} is named twice: a cloud that fails, fails as a whole"),
            Self::Operation { column, operation, why } => write!(f, "column {column} FOR ({operation}): {why}"),
            Self::Pieces(column) => {
                write!(f, "column {column}: cells have up to {PIECES_MAX} pieces: name fewer clouds")
            }
            Self::Rows(rows) => write!(f, "max_rows = {rows}: sums of so many rows have no room in 61 bits"),
        }
    }
}

impl Placement {
    /// Where the fragments of a table go.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn plan(declaration: &Declaration) -> Result<Self, Refusal> {
        check_clouds(declaration)?;
        let mut fragments = Vec::new();
        for (at, column) in declaration.columns.iter().enumerate() {
            check_operations(declaration, column)?;
            if column.distribution == Distribution::Dispersed {
                fragments.extend(pieces(column));
            }
            let mut place = |coding, start: usize, count: usize| {
                let clouds: Vec<usize> = column.clouds.iter().map(|cloud| usize::from(*cloud)).collect();
                let nth = |next: usize| clouds[(at + start + next) % clouds.len()];
                let mut holders: Vec<usize> = (0..count.min(clouds.len())).map(nth).collect();
                holders.sort_unstable();
                fragments.push(Fragment { column: column.id, coding, holders });
            };
            let copies = declaration.may_fail + 1;
            match column.distribution {
                Distribution::Spare => place(Coding::Cell, 0, copies),
                Distribution::Replicated => place(Coding::Cell, 0, usize::MAX),
                Distribution::Dispersed => {}
            }
            if let Some(limbs) = declaration.limbs(column) {
                (0..limbs.count()).for_each(|limb| place(Coding::Share(limb as u8), 0, usize::MAX));
                if column.nullable {
                    place(Coding::Present, 0, usize::MAX);
                }
            }
            let codes = [
                (column.operations.equality, Coding::Tag),
                (column.operations.range, Coding::Order),
                (column.operations.prefix, Coding::Prefix),
                (column.operations.danger_order, Coding::DangerOrder),
            ];
            for (start, (_, coding)) in codes.into_iter().filter(|(is_wanted, _)| *is_wanted).enumerate() {
                place(coding, start + 1, copies);
            }
        }
        Ok(Self { fragments })
    }

    /// A fragment of a column.
    #[must_use]
    pub fn fragment(&self, column: u16, coding: Coding) -> Option<&Fragment> {
        self.fragments.iter().find(|fragment| fragment.column == column && fragment.coding == coding)
    }

    /// The clouds that have cells of a column, or pieces of them.
    #[must_use]
    pub fn cell_holders(&self, column: u16) -> Vec<usize> {
        let is_cell = |of: &&Fragment| of.column == column && matches!(of.coding, Coding::Cell | Coding::Piece(_));
        self.fragments.iter().filter(is_cell).flat_map(|of| of.holders.iter().copied()).collect()
    }

    /// What a cloud holds.
    pub fn held_by(&self, cloud: usize) -> impl Iterator<Item = &Fragment> {
        self.fragments.iter().filter(move |fragment| fragment.holders.contains(&cloud))
    }
}

/// A piece at each cloud of a column: its number is that of the cloud among those of the column.
fn pieces(column: &Column) -> impl Iterator<Item = Fragment> {
    (0..).zip(&column.clouds).map(|(number, cloud)| Fragment {
        column: column.id,
        coding: Coding::Piece(number),
        holders: vec![usize::from(*cloud)],
    })
}

fn check_clouds(declaration: &Declaration) -> Result<(), Refusal> {
    let Declaration { clouds, may_fail, may_collude, .. } = declaration;
    for (at, name) in clouds.iter().enumerate() {
        if clouds[..at].contains(name) {
            return Err(Refusal::SameCloud(name.clone()));
        }
    }
    let refused = |there: usize, needed: usize, why: String| match there < needed {
        true => Err(Refusal::Clouds { there, needed, why }),
        false => Ok(()),
    };
    refused(clouds.len(), may_fail + 1, format!("may_fail = {may_fail}"))?;
    for Column { name, operations, clouds, .. } in &declaration.columns {
        refused(clouds.len(), may_fail + 1, format!("column {name} with may_fail = {may_fail}"))?;
        if operations.sum {
            let why = format!("the sum of {name} with may_fail = {may_fail} and may_collude = {may_collude}");
            refused(clouds.len(), may_fail + may_collude + 1, why)?;
        }
    }
    Ok(())
}

fn check_operations(declaration: &Declaration, column: &Column) -> Result<(), Refusal> {
    let refused = |operation, why| Err(Refusal::Operation { column: column.name.clone(), operation, why });
    let operations = &column.operations;
    if column.distribution == Distribution::Dispersed && declaration.pieces(column).is_none() {
        return Err(Refusal::Pieces(column.name.clone()));
    }
    if operations.sum {
        match column.kind {
            Kind::Number { adds: true, .. } if declaration.limbs(column).is_none() => {
                return Err(Refusal::Rows(declaration.rows_max));
            }
            Kind::Number { adds: true, .. } => {}
            Kind::Float => {
                return refused("sum", "floating-point numbers have no exact sums: declare it NUMERIC(p, s)");
            }
            _ => return refused("sum", "values of its type are not added up"),
        }
    }
    let range = if operations.danger_order { "danger order" } else { "range" };
    let has_range = operations.range || operations.danger_order;
    match column.kind {
        _ if operations.range && operations.danger_order => {
            refused(range, "it answers what FOR (range) does, which shows clouds less: declare one of them")
        }
        Kind::Number { wide: true, .. } if has_range => refused(range, "ranges go up to 18 digits: declare fewer"),
        Kind::Bytes if has_range => refused(range, "BYTEA has no ranges at clouds: leave it out"),
        Kind::Number { .. } | Kind::Float | Kind::Bytes if operations.prefix => {
            refused("prefix", "only texts have prefixes")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Coding, Placement, Refusal};
    use crate::declaration::{Column, Declaration, Distribution, Kind, Operations, ROWS_MAX_DEFAULT};

    pub(crate) fn people(clouds: usize, may_fail: usize, may_collude: usize) -> Declaration {
        let column = |id: u16, name: &str, kind, operations| Column {
            id,
            name: name.into(),
            kind,
            nullable: id > 0,
            operations,
            distribution: Distribution::default(),
            clouds: (0..clouds as u16).collect(),
        };
        let number = |bits| Kind::Number { bits, wide: false, adds: true };
        let operations = Operations::default();
        Declaration {
            table: [7; 16],
            columns: vec![
                column(0, "id", number(64), Operations { equality: true, ..operations }),
                column(1, "name", Kind::Text, Operations { equality: true, prefix: true, ..operations }),
                column(2, "salary", number(34), Operations { sum: true, range: true, ..operations }),
                column(3, "note", Kind::Text, operations),
            ],
            clouds: ["a", "b", "c", "d", "e"][..clouds].iter().map(|name| (*name).to_owned()).collect(),
            may_fail,
            may_collude,
            rows_max: ROWS_MAX_DEFAULT,
        }
    }

    #[test]
    fn fragments_go_where_enough_of_them_survive() {
        let declaration = people(3, 1, 1);
        let placement = Placement::plan(&declaration).expect("a placement");
        for fragment in &placement.fragments {
            let is_share = matches!(fragment.coding, Coding::Share(_) | Coding::Present);
            assert_eq!(fragment.holders.len(), if is_share { 3 } else { 2 }, "{fragment:?}");
        }
        let holders = |column, coding| &placement.fragment(column, coding).expect("a fragment").holders;
        // One code of a name is where another one is not.
        assert_ne!(holders(1, Coding::Tag), holders(1, Coding::Prefix));
        assert_eq!(placement.fragment(3, Coding::Tag), None);
        // Ten digits and 2^25 rows are one limb.
        assert_eq!(placement.fragment(2, Coding::Share(1)), None);
    }

    #[test]
    fn cells_are_distributed_as_it_was_said() {
        let mut declaration = people(4, 1, 1);
        declaration.columns[1].distribution = Distribution::Replicated;
        declaration.columns[3].distribution = Distribution::Dispersed;
        declaration.columns[3].clouds = vec![0, 2, 3];
        let placement = Placement::plan(&declaration).expect("a placement");
        assert_eq!(placement.cell_holders(0).len(), 2);
        assert_eq!(placement.cell_holders(1), [0, 1, 2, 3]);
        assert_eq!(placement.cell_holders(3), [0, 2, 3]);
        assert_eq!(placement.fragment(3, Coding::Cell), None);
        assert_eq!(placement.fragment(3, Coding::Piece(1)).expect("a piece").holders, [2]);
        assert_eq!(declaration.pieces(&declaration.columns[3]).expect("pieces").needed(), 2);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        assert!(matches!(Placement::plan(&people(2, 1, 1)), Err(Refusal::Clouds { there: 2, needed: 3, .. })));
        assert!(matches!(Placement::plan(&people(1, 1, 0)), Err(Refusal::Clouds { needed: 2, .. })));
        assert!(Placement::plan(&people(5, 2, 2)).is_ok());
        let mut twice = people(3, 1, 1);
        twice.clouds[2] = "a".into();
        assert_eq!(Placement::plan(&twice), Err(Refusal::SameCloud("a".into())));
        let mut float = people(3, 1, 1);
        float.columns[2].kind = Kind::Float;
        assert!(matches!(Placement::plan(&float), Err(Refusal::Operation { operation: "sum", .. })));
        let mut many = people(3, 1, 1);
        many.rows_max = u64::MAX;
        assert_eq!(Placement::plan(&many), Err(Refusal::Rows(u64::MAX)));
    }
}
