//! What clouds can be asked of a WHERE: conditions that all rows of the answer meet. The query asks all of them again.

use std::sync::Arc;

use counterfoil_disperse::{Condition, Value, from_float};
use counterfoil_relation::{Comparison, Constant, Table, Test, Type};
use datafusion::logical_expr::{Expr, Like, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::scalar::ScalarValue;

use super::columns;
use crate::types;

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

/// The conditions that a physical predicate is, and nothing else; none: it is something else. `place` says which of the table's columns one
/// of the predicate's is.
pub(super) fn exact(
    table: &Table,
    predicate: &Arc<dyn PhysicalExpr>,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Option<Vec<Condition>> {
    split_conjunction(predicate).into_iter().map(|conjunct| exactly(table, conjunct, place)).collect()
}

fn exactly(
    table: &Table,
    conjunct: &Arc<dyn PhysicalExpr>,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Option<Condition> {
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().and_then(|column| place(column.index()));
    let value =
        |column: usize, expr: &Arc<dyn PhysicalExpr>| coded(table, column, expr.downcast_ref::<Literal>()?.value());
    if let Some(binary) = conjunct.downcast_ref::<BinaryExpr>() {
        let (of, with, operator) = match column(binary.left()) {
            Some(of) => (of, binary.right(), *binary.op()),
            None => (column(binary.right())?, binary.left(), binary.op().swap()?),
        };
        let (value, column) = (value(of, with)?, id(table, of));
        let range = |low, high| Some(Condition::Range { column, low, high });
        return match operator {
            Operator::Eq => Some(Condition::Equal { column, values: vec![value] }),
            Operator::Lt => range(None, Some((value, false))),
            Operator::LtEq => range(None, Some((value, true))),
            Operator::Gt => range(Some((value, false)), None),
            Operator::GtEq => range(Some((value, true)), None),
            _ => None,
        };
    }
    if let Some(list) = conjunct.downcast_ref::<InListExpr>().filter(|list| !list.negated()) {
        let of = column(list.expr())?;
        let values = list.list().iter().map(|expr| value(of, expr)).collect::<Option<Vec<_>>>()?;
        return (values.len() <= VALUES_MAX).then(|| Condition::Equal { column: id(table, of), values });
    }
    let like = conjunct.downcast_ref::<LikeExpr>().filter(|like| !like.negated() && !like.case_insensitive())?;
    let of = column(like.expr())?;
    let Value::String(pattern) = value(of, like.pattern())? else { return None };
    let text = String::from_utf8(pattern).ok()?;
    // The beginning alone, and letters that stand for themselves.
    let begin = text.strip_suffix('%').filter(|begin| !begin.contains(['%', '_', '\\']))?;
    Some(begun(table, of, begin))
}

/// A value of a column's type in the form in which the column's are coded; none: of another type, NULL, or one that is compared otherwise.
fn coded(table: &Table, column: usize, scalar: &ScalarValue) -> Option<Value> {
    let column = &table.columns[column];
    let is_plain = !matches!(column.kind, Type::Real | Type::Double | Type::Uuid | Type::Char(_));
    let is_same = match (&column.kind, scalar) {
        (Type::Numeric { scale, .. }, ScalarValue::Decimal128(_, _, own)) => *own == *scale as i8,
        (Type::Text | Type::VarChar(_), scalar) => scalar.data_type().is_string(),
        (kind, scalar) => types::arrow(kind) == scalar.data_type(),
    };
    let array = (is_plain && is_same && !scalar.is_null()).then(|| scalar.to_array().ok())??;
    columns::plain(&column.kind, &array).ok()?.value(0)
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
