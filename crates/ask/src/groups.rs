//! GROUP BY columns: rows become groups, groups become rows of the result.

use std::collections::BTreeMap;

use counterfoil_proof::{Definition, Value};
use sqlparser::ast::{Expr, OrderByExpr, Value as Written};

use crate::condition::Row;
use crate::error::{Error, not_supported};
use crate::names::Names;
use crate::result::aggregate;
use crate::select::{Output, Shown, sorted_by};

/// The columns of GROUP BY, and how groups are sorted: by themselves, unless ORDER BY says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) columns: Vec<u16>,
    keys: Vec<Key>,
}

/// By which column of the result groups are sorted.
#[derive(Clone, Copy, Debug)]
struct Key {
    output: usize,
    is_descending: bool,
    nulls_first: bool,
}

impl Groups {
    /// Understands GROUP BY, of columns by name or by their number in the result.
    pub(crate) fn of(names: &Names<'_>, outputs: &[Output], expressions: &[Expr]) -> Result<Self, Error> {
        let mut columns = Vec::new();
        for expression in expressions {
            let column = match names.column(expression)? {
                Some(column) => column,
                None => numbered(outputs, expression)?,
            };
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        Ok(Self { columns, keys: Vec::new() })
    }

    pub(crate) fn is_none(&self) -> bool {
        self.columns.is_empty()
    }

    /// Understands ORDER BY of groups: what is shown of them.
    pub(crate) fn sorted(self, names: &Names<'_>, outputs: &[Output], order_by: &[OrderByExpr]) -> Result<Self, Error> {
        let mut keys = Vec::new();
        for key in order_by {
            if key.with_fill.is_some() {
                return not_supported("WITH FILL");
            }
            let shown = sorted_by(names, outputs, &key.expr)?;
            let Some(output) = outputs.iter().position(|output| output.shown == shown) else {
                return not_supported("GROUP BY with ORDER BY something that is not selected");
            };
            let is_descending = key.options.asc == Some(false);
            let nulls_first = key.options.nulls_first.unwrap_or(is_descending);
            keys.push(Key { output, is_descending, nulls_first });
        }
        Ok(Self { keys, ..self })
    }

    /// The encodings of a group's columns.
    pub(crate) fn key<'a>(
        &self,
        definition: &Definition,
        value: impl Fn(u16) -> Result<&'a Value, Error>,
    ) -> Result<Vec<u8>, Error> {
        let mut key = Vec::new();
        for column in &self.columns {
            let kind = definition.columns[usize::from(*column)].kind;
            kind.encode(value(*column)?, &mut key).map_err(|_| Error::OtherRows("a value of another type"))?;
        }
        Ok(key)
    }

    /// The rows of the result, from those of the table.
    pub(crate) fn of_rows(&self, rows: Vec<Row<'_>>, outputs: &[Output]) -> Result<Vec<Vec<Value>>, Error> {
        let mut groups: BTreeMap<Vec<u8>, Vec<Row<'_>>> = BTreeMap::new();
        for row in rows {
            let key = self.key(row.definition, |column| row.value(column))?;
            groups.entry(key).or_default().push(row);
        }
        let shown = groups.values().map(|rows| {
            let mut shown = aggregate(rows, outputs)?;
            for (value, output) in shown.iter_mut().zip(outputs) {
                if let (Shown::Column(column), Some(row)) = (output.shown, rows.first()) {
                    value.clone_from(row.value(column)?);
                }
            }
            Ok(shown)
        });
        self.in_order(shown.collect::<Result<_, Error>>()?, outputs)
    }

    /// Sorts the rows of a result, which come by their groups.
    pub(crate) fn in_order(&self, shown: Vec<Vec<Value>>, outputs: &[Output]) -> Result<Vec<Vec<Value>>, Error> {
        let mut keyed = Vec::with_capacity(shown.len());
        for values in shown {
            let key: Result<Vec<Vec<u8>>, Error> = self.keys.iter().map(|key| key.bytes(&values, outputs)).collect();
            keyed.push((key?, values));
        }
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(keyed.into_iter().map(|(_, values)| values).collect())
    }
}

impl Key {
    /// Bytes that sort as a value does in the direction of the key.
    fn bytes(self, values: &[Value], outputs: &[Output]) -> Result<Vec<u8>, Error> {
        let value = &values[self.output];
        let mut bytes = vec![u8::from((*value == Value::Null) != self.nulls_first)];
        let mut encoded = Vec::new();
        let kind = outputs[self.output].kind;
        kind.encode(value, &mut encoded).map_err(|_| Error::Overflow("an aggregate"))?;
        if self.is_descending {
            // No encoding begins another, so that all turned sorts the other way round.
            encoded.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes.append(&mut encoded);
        Ok(bytes)
    }
}

fn numbered(outputs: &[Output], expression: &Expr) -> Result<u16, Error> {
    let number = match expression {
        Expr::Value(value) => match &value.value {
            Written::Number(text, false) => text.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
            _ => None,
        },
        _ => None,
    };
    match number.and_then(|at| outputs.get(at)).map(|output| output.shown) {
        Some(Shown::Column(column)) => Ok(column),
        _ => not_supported("GROUP BY anything but columns"),
    }
}
