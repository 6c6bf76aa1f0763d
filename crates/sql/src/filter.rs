//! Conditions that are decided on row images, before any column is decoded.
//!
//! A [`Test`] is true or not true of a row; a comparison with NULL is not true, as in a WHERE clause. Only conditions
//! that mean exactly the same here and in the query library are compiled, so the plan need not ask again.
//!
//! The same tests choose an index: see [`candidates`].

use counterfoil_relation::{IndexId, KeyBound, KeyRange, RowBatch, RowBlock, Table, Type, Value as Stored};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::value::parse;

/// A condition on one row.
#[derive(Clone, PartialEq)]
pub enum Test {
    /// The column is NULL, or is not.
    Null { column: usize, wanted: bool },
    /// The column compares so with the constant.
    Compare { column: usize, comparison: Comparison, constant: Constant },
    /// The column equals one of the constants.
    In { column: usize, constants: Vec<Constant> },
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
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }

    fn of(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Eq => Comparison::Equal,
            Operator::NotEq => Comparison::Unequal,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::AtMost,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::AtLeast,
            _ => return None,
        })
    }

    fn turned(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::Greater => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
            same => same,
        }
    }
}

/// The test that means exactly what `expr` means as a condition, if there is one.
pub fn compile(expr: &Expr, table: &Table) -> Option<Test> {
    let column = |expr: &Expr| match expr {
        Expr::Column(column) => table.column(&column.name).map(|(position, _)| position),
        _ => None,
    };
    match expr {
        Expr::Column(_) => {
            let column = column(expr)?;
            (table.columns[column].kind == Type::Boolean).then(|| truth(column, 1))
        }
        Expr::Not(inner) => {
            let column = column(inner)?;
            (table.columns[column].kind == Type::Boolean).then(|| truth(column, 0))
        }
        Expr::IsNull(inner) => Some(Test::Null { column: column(inner)?, wanted: true }),
        Expr::IsNotNull(inner) => Some(Test::Null { column: column(inner)?, wanted: false }),
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => Some(Test::All(Vec::new())),
        Expr::Literal(ScalarValue::Boolean(_), _) => Some(Test::Never),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            Some(Test::All(vec![compile(left, table)?, compile(right, table)?]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(either(compile(left, table)?, compile(right, table)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let comparison = Comparison::of(*op)?;
            match (left.as_ref(), right.as_ref()) {
                (left, Expr::Literal(value, _)) => compare(table, column(left)?, comparison, value),
                (Expr::Literal(value, _), right) => compare(table, column(right)?, comparison.turned(), value),
                _ => None,
            }
        }
        Expr::Between(between) if !between.negated => {
            let column = column(&between.expr)?;
            let (Expr::Literal(low, _), Expr::Literal(high, _)) = (between.low.as_ref(), between.high.as_ref()) else {
                return None;
            };
            let low = compare(table, column, Comparison::AtLeast, low)?;
            Some(Test::All(vec![low, compare(table, column, Comparison::AtMost, high)?]))
        }
        Expr::InList(list) if !list.negated => {
            let column = column(&list.expr)?;
            let mut constants = Vec::with_capacity(list.list.len());
            for item in &list.list {
                let Expr::Literal(value, _) = item else { return None };
                // NULL in the list makes the condition NULL where nothing else matches: not true either way.
                if !value.is_null() {
                    constants.push(constant(&table.columns[column].kind, value)?);
                }
            }
            Some(Test::In { column, constants })
        }
        _ => None,
    }
}

/// Either of two tests. The library writes a short IN as `a = 1 OR a = 2`: as a list again, an index serves it.
fn either(left: Test, right: Test) -> Test {
    let column_of = |test: &Test| match test {
        Test::Compare { column, comparison: Comparison::Equal, .. } | Test::In { column, .. } => Some(*column),
        _ => None,
    };
    let Some(column) = column_of(&left).filter(|column| column_of(&right) == Some(*column)) else {
        return Test::Any(vec![left, right]);
    };
    let mut constants = Vec::new();
    for test in [left, right] {
        match test {
            Test::Compare { constant, .. } => constants.push(constant),
            Test::In { constants: more, .. } => constants.extend(more),
            _ => {}
        }
    }
    Test::In { column, constants }
}

fn truth(column: usize, wanted: i64) -> Test {
    Test::Compare { column, comparison: Comparison::Equal, constant: Constant::Whole(wanted) }
}

fn compare(table: &Table, column: usize, comparison: Comparison, value: &ScalarValue) -> Option<Test> {
    if value.is_null() {
        return Some(Test::Never);
    }
    Some(Test::Compare { column, comparison, constant: constant(&table.columns[column].kind, value)? })
}

fn constant(kind: &Type, value: &ScalarValue) -> Option<Constant> {
    Some(match (kind, value) {
        (Type::Boolean, ScalarValue::Boolean(Some(truth))) => Constant::Whole(i64::from(*truth)),
        (Type::SmallInt, ScalarValue::Int16(Some(number))) => Constant::Whole(i64::from(*number)),
        (Type::Integer, ScalarValue::Int32(Some(number))) => Constant::Whole(i64::from(*number)),
        (Type::BigInt, ScalarValue::Int64(Some(number))) => Constant::Whole(*number),
        (Type::Real, ScalarValue::Float32(Some(number))) => Constant::Float(f64::from(*number) + 0.0),
        (Type::Double, ScalarValue::Float64(Some(number))) => Constant::Float(*number + 0.0),
        (Type::Numeric { scale, .. }, ScalarValue::Decimal128(Some(number), _, given)) if *given == *scale as i8 => {
            Constant::Decimal(*number)
        }
        (Type::Date, ScalarValue::Date32(Some(days))) => Constant::Whole(i64::from(*days)),
        (Type::Time, ScalarValue::Time64Microsecond(Some(ticks)))
        | (Type::Timestamp { nanoseconds: false }, ScalarValue::TimestampMicrosecond(Some(ticks), None))
        | (Type::Timestamp { nanoseconds: true }, ScalarValue::TimestampNanosecond(Some(ticks), None))
        | (Type::TimestampTz, ScalarValue::TimestampMicrosecond(Some(ticks), Some(_))) => Constant::Whole(*ticks),
        (Type::Uuid, value) => Constant::Bytes(parse::uuid(value.try_as_str()??)?.to_vec()),
        (Type::Text | Type::VarChar(_) | Type::Char(_), value) => {
            Constant::Bytes(value.try_as_str()??.as_bytes().to_vec())
        }
        (Type::Bytea, ScalarValue::BinaryView(Some(bytes)) | ScalarValue::Binary(Some(bytes))) => {
            Constant::Bytes(bytes.clone())
        }
        _ => return None,
    })
}

/// The constant as a value of a key.
fn stored(kind: &Type, constant: &Constant) -> Option<Stored> {
    Some(match (kind, constant) {
        (Type::Boolean, Constant::Whole(number)) => Stored::Boolean(*number != 0),
        (Type::SmallInt | Type::Integer | Type::BigInt, Constant::Whole(number)) => Stored::BigInt(*number),
        (Type::Date, Constant::Whole(days)) => Stored::Date(i32::try_from(*days).ok()?),
        (Type::Time, Constant::Whole(ticks)) => Stored::Time(*ticks),
        (Type::Timestamp { .. }, Constant::Whole(ticks)) => Stored::Timestamp(*ticks),
        (Type::TimestampTz, Constant::Whole(ticks)) => Stored::TimestampTz(*ticks),
        (Type::Real | Type::Double, Constant::Float(number)) => Stored::Double(*number),
        (Type::Numeric { .. }, Constant::Decimal(number)) => Stored::Numeric(*number),
        (Type::Bytea, Constant::Bytes(bytes)) => Stored::Bytea(bytes.clone()),
        (Type::Uuid, Constant::Bytes(bytes)) => Stored::Uuid(bytes.as_slice().try_into().ok()?),
        (_, Constant::Bytes(bytes)) => Stored::Text(String::from_utf8(bytes.clone()).ok()?),
        _ => return None,
    })
}

impl Test {
    /// Adds the columns this test looks at.
    pub fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Test::Null { column, .. } | Test::Compare { column, .. } | Test::In { column, .. } => columns.push(*column),
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| test.columns(columns)),
            Test::Never => {}
        }
    }

    fn is_true(&self, batch: &RowBatch, row: usize) -> Result<bool> {
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
fn order(batch: &RowBatch, row: usize, column: usize, constant: &Constant) -> Result<std::cmp::Ordering> {
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
        Constant::Bytes(wanted) => batch.variable(row, column).map_err(Error::Relation)?.cmp(wanted.as_slice()),
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
/// [`Error::Relation`] for images that make no sense.
pub fn select(block: &RowBlock, tests: &[Test]) -> Result<Rows> {
    if tests.is_empty() && block.visible.is_none() {
        return Ok(Rows::All(block.count()));
    }
    let mut places: Vec<u32> = block.visible_rows().map(|row| row as u32).collect();
    for test in tests {
        narrow(&block.rows, test, &mut places)?;
    }
    Ok(if places.len() == block.count() { Rows::All(block.count()) } else { Rows::At(places) })
}

/// Keeps the places where the test is true. Comparisons of whole numbers, the most frequent, have a loop of their own.
fn narrow(batch: &RowBatch, test: &Test, places: &mut Vec<u32>) -> Result<()> {
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

/// Most values of an IN list that are looked up one by one.
const LOOKUPS_MAX: usize = 256;

/// The index ranges in which every row lies of which the tests are true: the best index there is for them.
pub fn candidates(tests: &[Test], table: &Table) -> Option<(IndexId, Vec<KeyRange>)> {
    let mut flat = Vec::new();
    tests.iter().for_each(|test| flatten(test, &mut flat));
    let mut best: Option<(usize, IndexId, Vec<KeyRange>)> = None;
    // Those of paths have no columns.
    for index in table.indexes.iter().filter(|index| !index.columns.is_empty()) {
        let Some(columns) = index.columns.iter().map(|id| table.position(*id)).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let Some((weight, ranges)) = ranges(&flat, table, &columns) else { continue };
        let weight = weight * 2 + usize::from(index.unique && weight >= 2 * columns.len());
        if best.as_ref().is_none_or(|(other, ..)| weight > *other) {
            best = Some((weight, index.id, ranges));
        }
    }
    best.map(|(_, index, ranges)| (index, ranges))
}

fn flatten<'a>(test: &'a Test, flat: &mut Vec<&'a Test>) {
    match test {
        Test::All(tests) => tests.iter().for_each(|test| flatten(test, flat)),
        other => flat.push(other),
    }
}

/// What the tests say of an index's columns: how much (2 for a value, 1 for bounds), and the ranges.
fn ranges(tests: &[&Test], table: &Table, columns: &[usize]) -> Option<(usize, Vec<KeyRange>)> {
    let mut prefix = Vec::new();
    for column in columns {
        match equal(tests, table, *column) {
            Some(value) => prefix.push(value),
            None => break,
        }
    }
    let weight = prefix.len() * 2;
    let Some(next) = columns.get(prefix.len()).copied() else {
        return Some((weight, vec![KeyRange::equal(prefix)]));
    };
    if let Some(values) = listed(tests, table, next) {
        let with = |value: Stored| KeyRange::equal(prefix.iter().cloned().chain([value]).collect());
        return Some((weight + 2, values.into_iter().map(with).collect()));
    }
    let bounds = bounds(tests, table, next);
    match (weight, bounds) {
        (0, None) => None,
        (weight, None) => Some((weight, vec![KeyRange::equal(prefix)])),
        (weight, bounds) => Some((weight + 1, vec![KeyRange { prefix, bounds }])),
    }
}

fn equal(tests: &[&Test], table: &Table, wanted: usize) -> Option<Stored> {
    tests.iter().find_map(|test| match test {
        Test::Compare { column, comparison: Comparison::Equal, constant } if *column == wanted => {
            stored(&table.columns[wanted].kind, constant)
        }
        Test::Null { column, wanted: true } if *column == wanted => Some(Stored::Null),
        _ => None,
    })
}

fn listed(tests: &[&Test], table: &Table, wanted: usize) -> Option<Vec<Stored>> {
    let constants = tests.iter().find_map(|test| match test {
        Test::In { column, constants } if *column == wanted && constants.len() <= LOOKUPS_MAX => Some(constants),
        _ => None,
    })?;
    let mut once: Vec<&Constant> = Vec::new();
    constants.iter().for_each(|constant| {
        if !once.contains(&constant) {
            once.push(constant);
        }
    });
    once.into_iter().map(|constant| stored(&table.columns[wanted].kind, constant)).collect()
}

fn bounds(tests: &[&Test], table: &Table, wanted: usize) -> Option<(KeyBound, KeyBound)> {
    let (mut low, mut high) = (KeyBound::Unbounded, KeyBound::Unbounded);
    for test in tests {
        let Test::Compare { column, comparison, constant } = test else { continue };
        if *column != wanted {
            continue;
        }
        // Several bounds on one side: any of them is right, since every test is asked again of each row.
        let Some(value) = stored(&table.columns[wanted].kind, constant) else { continue };
        match comparison {
            Comparison::Less => high = KeyBound::Excluded(value),
            Comparison::AtMost => high = KeyBound::Included(value),
            Comparison::Greater => low = KeyBound::Excluded(value),
            Comparison::AtLeast => low = KeyBound::Included(value),
            Comparison::Equal | Comparison::Unequal => {}
        }
    }
    (low != KeyBound::Unbounded || high != KeyBound::Unbounded).then_some((low, high))
}
