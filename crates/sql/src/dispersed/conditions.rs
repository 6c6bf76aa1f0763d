//! What clouds can be asked of a WHERE: conditions that all rows of the answer meet. The query asks all of them again.

use counterfoil_disperse::{Condition, Value, from_float};
use counterfoil_relation::{Comparison, Constant, Table, Test, Type};
use datafusion::logical_expr::{Expr, Like};
use datafusion::scalar::ScalarValue;

/// Values that one question names at most: more are looked for here.
const VALUES_MAX: usize = 1 << 16;

/// The conditions that tests, all of which are to be true, imply.
pub(super) fn conditions(table: &Table, tests: &[Test]) -> Vec<Condition> {
    tests.iter().flat_map(|test| of_test(table, test)).collect()
}

/// The column and the letters with which `column LIKE 'abc%'` has texts begin.
pub(super) fn begins(expr: &Expr, table: &Table) -> Option<(usize, String)> {
    let Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) = expr else {
        return None;
    };
    let Expr::Literal(ScalarValue::Utf8(Some(pattern)) | ScalarValue::Utf8View(Some(pattern)), _) = pattern.as_ref()
    else {
        return None;
    };
    let Expr::Column(column) = expr.as_ref() else { return None };
    let (place, _) = table.column(&column.name)?;
    // A backslash takes the meaning of what follows it.
    let end = pattern.find(['%', '_', '\\'])?;
    (end > 0).then(|| (place, pattern[..end].to_owned()))
}

/// The condition that a text begins so.
pub(super) fn begun(table: &Table, place: usize, text: &str) -> Condition {
    Condition::Prefix { column: id(table, place), text: text.to_owned() }
}

fn of_test(table: &Table, test: &Test) -> Vec<Condition> {
    match test {
        Test::All(tests) => conditions(table, tests),
        Test::In { column, constants } if constants.len() <= VALUES_MAX => {
            let values = constants.iter().map(|constant| value(table, *column, constant)).collect::<Option<_>>();
            values.map(|values| Condition::Equal { column: id(table, *column), values }).into_iter().collect()
        }
        Test::Compare { column, comparison, constant } => compared(table, *column, *comparison, constant),
        _ => Vec::new(),
    }
}

fn compared(table: &Table, column: usize, comparison: Comparison, constant: &Constant) -> Vec<Condition> {
    let Some(value) = value(table, column, constant) else { return Vec::new() };
    let column = id(table, column);
    let (low, high) = match comparison {
        Comparison::Equal => return vec![Condition::Equal { column, values: vec![value] }],
        Comparison::Unequal => return Vec::new(),
        Comparison::Less => (None, Some((value, false))),
        Comparison::AtMost => (None, Some((value, true))),
        Comparison::Greater => (Some((value, false)), None),
        Comparison::AtLeast => (Some((value, true)), None),
    };
    vec![Condition::Range { column, low, high }]
}

fn id(table: &Table, column: usize) -> u16 {
    table.columns[column].id.0 as u16
}

/// A constant in the form in which the column's values are coded.
fn value(table: &Table, column: usize, constant: &Constant) -> Option<Value> {
    Some(match (constant, &table.columns[column].kind) {
        // A REAL is compared after it was widened: what it is sealed as.
        (Constant::Float(float), _) => Value::Number(from_float(*float)),
        (Constant::Whole(number), _) => Value::Number(i128::from(*number)),
        (Constant::Decimal(number), _) => Value::Number(*number),
        // As bytes UUIDs are compared, and as texts they are sealed.
        (Constant::Bytes(_), Type::Uuid) => return None,
        (Constant::Bytes(bytes), _) => Value::String(bytes.clone()),
    })
}
