//! Conditions that are decided on row images, before any column is decoded.
//!
//! A [`Test`] is true or not true of a row; a comparison with NULL is not true, as in a WHERE clause.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::{Error, RowBatch, RowBlock, Selection, Type};

/// A condition on one row.
#[derive(Clone, PartialEq)]
pub enum Test {
    /// The column is NULL, or is not.
    Null {
        /// The column's place in the table.
        column: usize,
        /// Whether NULL is wanted.
        wanted: bool,
    },
    /// The column compares so with the constant.
    Compare {
        /// The column's place in the table.
        column: usize,
        /// How it is to compare.
        comparison: Comparison,
        /// With what.
        constant: Constant,
    },
    /// The column equals one of the constants.
    In {
        /// The column's place in the table.
        column: usize,
        /// Which.
        constants: Vec<Constant>,
    },
    /// All of these.
    All(Vec<Test>),
    /// Any of these.
    Any(Vec<Test>),
    /// No row.
    Never,
}

/// The six comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// =
    Equal,
    /// <>
    Unequal,
    /// <
    Less,
    /// <=
    AtMost,
    /// >
    Greater,
    /// >=
    AtLeast,
}

/// A constant in the form in which a column's cells compare with it.
#[derive(Clone, PartialEq)]
pub enum Constant {
    /// Truth values, integers, dates and times.
    Whole(i64),
    /// REAL and DOUBLE PRECISION.
    Float(f64),
    /// NUMERIC at the column's scale.
    Decimal(i128),
    /// Texts, bytes and UUIDs.
    Bytes(Vec<u8>),
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }

    /// The comparison that holds of two values where this one does not.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Comparison::Equal => Comparison::Unequal,
            Comparison::Unequal => Comparison::Equal,
            Comparison::Less => Comparison::AtLeast,
            Comparison::AtMost => Comparison::Greater,
            Comparison::Greater => Comparison::AtMost,
            Comparison::AtLeast => Comparison::Less,
        }
    }

    /// The comparison that holds when the sides are exchanged.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::Greater => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
            same => same,
        }
    }
}

impl Test {
    /// One of two tests is true, or both. `a = 1 OR a = 2` is a list of values: an index serves it.
    #[must_use]
    pub fn or(self, other: Test) -> Test {
        let column_of = |test: &Test| match test {
            Test::Compare { column, comparison: Comparison::Equal, .. } | Test::In { column, .. } => Some(*column),
            _ => None,
        };
        let Some(column) = column_of(&self).filter(|column| column_of(&other) == Some(*column)) else {
            return match self {
                Test::Any(mut tests) => {
                    tests.push(other);
                    Test::Any(tests)
                }
                one => Test::Any(vec![one, other]),
            };
        };
        let mut constants = Vec::new();
        for test in [self, other] {
            match test {
                Test::Compare { constant, .. } => constants.push(constant),
                Test::In { constants: more, .. } => constants.extend(more),
                _ => {}
            }
        }
        Test::In { column, constants }
    }

    /// Adds the columns this test looks at.
    pub fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Test::Null { column, .. } | Test::Compare { column, .. } | Test::In { column, .. } => columns.push(*column),
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| test.columns(columns)),
            Test::Never => {}
        }
    }

    /// Whether it is a comparison of one column with constants, or with NULL.
    pub(super) fn is_of(&self, wanted: usize) -> bool {
        match self {
            Test::Null { column, .. } | Test::Compare { column, .. } | Test::In { column, .. } => *column == wanted,
            Test::All(_) | Test::Any(_) | Test::Never => false,
        }
    }

    /// Whether it says of which values a column has one.
    #[cfg(not(feature = "small"))]
    pub(super) fn is_of_values(&self) -> bool {
        match self {
            Test::Null { wanted, .. } => *wanted,
            Test::Compare { comparison, .. } => *comparison == Comparison::Equal,
            Test::In { .. } => true,
            Test::All(_) | Test::Any(_) | Test::Never => false,
        }
    }

    /// Whether it is true of a row of NULLs, as one that is not there is taken for.
    pub(super) fn is_true_of_none(&self) -> bool {
        match self {
            Test::Null { wanted, .. } => *wanted,
            Test::Compare { .. } | Test::In { .. } | Test::Never => false,
            Test::All(tests) => tests.iter().all(Test::is_true_of_none),
            Test::Any(tests) => tests.iter().any(Test::is_true_of_none),
        }
    }

    fn is_true(&self, batch: &RowBatch, row: usize) -> Result<bool, Error> {
        match self {
            Test::Null { column, wanted } => Ok(batch.is_null(row, *column) == *wanted),
            Test::Compare { column, comparison, constant } => {
                if batch.is_null(row, *column) {
                    return Ok(false);
                }
                Ok(comparison.holds(order(batch, row, *column, constant)?))
            }
            Test::In { column, constants } => {
                if batch.is_null(row, *column) {
                    return Ok(false);
                }
                for constant in constants {
                    if order(batch, row, *column, constant)?.is_eq() {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::All(tests) => {
                for test in tests {
                    if !test.is_true(batch, row)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Any(tests) => {
                for test in tests {
                    if test.is_true(batch, row)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Never => Ok(false),
        }
    }
}

/// How a cell that is not NULL compares with a constant.
fn order(batch: &RowBatch, row: usize, column: usize, constant: &Constant) -> Result<Ordering, Error> {
    let kind = batch.layout().columns()[column].kind;
    Ok(match constant {
        Constant::Whole(number) => whole(&kind, batch.fixed(row, column)).cmp(number),
        Constant::Float(number) => {
            let cell = batch.fixed(row, column);
            let value = match kind {
                Type::Real => f64::from(f32::from_le_bytes(bytes(cell))),
                _ => f64::from_le_bytes(bytes(cell)),
            };
            value.total_cmp(number)
        }
        Constant::Decimal(number) => i128::from_le_bytes(bytes(batch.fixed(row, column))).cmp(number),
        Constant::Bytes(wanted) if kind == Type::Uuid => batch.fixed(row, column).cmp(wanted),
        Constant::Bytes(wanted) => batch.variable(row, column)?.cmp(wanted.as_slice()),
    })
}

fn whole(kind: &Type, cell: &[u8]) -> i64 {
    match kind.bytes() {
        1 => i64::from(cell[0]),
        2 => i64::from(i16::from_le_bytes(bytes(cell))),
        4 => i64::from(i32::from_le_bytes(bytes(cell))),
        _ => i64::from_le_bytes(bytes(cell)),
    }
}

fn bytes<const N: usize>(cell: &[u8]) -> [u8; N] {
    cell.try_into().expect("a cell has as many bytes as its type")
}

/// The visible rows of a block of which all tests are true.
///
/// # Errors
/// [`Error::corrupt`] for images that make no sense.
pub fn select(block: &RowBlock, tests: &[Test]) -> Result<Selection, Error> {
    if tests.is_empty() && block.visible.is_none() {
        return Ok(Selection::All(block.count()));
    }
    let mut places: Vec<u32> = block.visible_rows().map(|row| row as u32).collect();
    for test in tests {
        narrow(&block.rows, test, &mut places)?;
    }
    Ok(if places.len() == block.count() { Selection::All(block.count()) } else { Selection::At(places) })
}

/// Keeps the places where the test is true. Comparisons of whole numbers, the most frequent, have a loop of their own.
fn narrow(batch: &RowBatch, test: &Test, places: &mut Vec<u32>) -> Result<(), Error> {
    if let Test::All(tests) = test {
        return tests.iter().try_for_each(|test| narrow(batch, test, places));
    }
    if let Test::Compare { column, comparison, constant: Constant::Whole(number) } = test {
        let (kind, comparison) = (batch.layout().columns()[*column].kind, *comparison);
        places.retain(|place| {
            let row = *place as usize;
            comparison.holds(whole(&kind, batch.fixed(row, *column)).cmp(number)) && !batch.is_null(row, *column)
        });
        return Ok(());
    }
    let mut failed = None;
    places.retain(|place| match test.is_true(batch, *place as usize) {
        Ok(holds) => holds,
        Err(error) => {
            failed = Some(error);
            false
        }
    });
    failed.map_or(Ok(()), Err)
}
