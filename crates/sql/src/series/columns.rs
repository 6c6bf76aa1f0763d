//! Arrow columns straight into the engine: what comes in bulk needs no image of each row.
//!
//! ```text
//! key columns -> bytes that name a series -> its number   time column -> times   other columns -> columns of the engine
//! ```
//! It takes what it can be sure of: columns that are checked by their type alone. Everything else, and every batch that breaks a
//! rule, goes the way of rows, which finds the words for it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_relation::{Column, Table, Type};
use counterfoil_series::{self as series, Batch, Kind, Points, Text, Values};
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};

use super::change::{self, Elsewhere};
use super::options::Told;
use super::{Form, apart, told};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::store::Lease;

/// Columns of rows that are to be stored, by their place in the table.
pub(crate) struct Given<'a> {
    pub(crate) columns: &'a [Option<ArrayRef>],
    pub(crate) rows: usize,
    /// Whether each row is to be stored: it was in such a table before.
    pub(crate) as_given: bool,
}

/// Stores rows that come as columns of their table's types; none where they have to go the way of rows.
pub(crate) fn insert(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    given: &Given<'_>,
) -> Result<Option<Elsewhere>> {
    let form = Form::of(table)?;
    if !is_plain(table, &form, given) {
        return Ok(None);
    }
    let Some(keys) = Keys::of(&form, given) else { return Ok(None) };
    let (of, distinct) = keys.number(given.rows);
    let tables = &engine.series;
    let numbers = tables.number(&mut **lease, form.number, distinct.iter().map(|key| &**key)).map_err(told(table))?;
    let series = of.into_iter().map(|place| numbers[place as usize]).collect();
    let kinds = tables.kinds(&**lease, form.number).map_err(told(table))?;
    let rows = points(table, &form, &kinds, given)?;
    let batch = Cow::Owned(Batch { series, rows });
    change::store(engine, lease, (table, &form), batch, given.as_given).map(Some)
}

/// Whether points go straight into a table: nothing has to be asked of single ones.
pub(super) fn takes_points(table: &Table) -> bool {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
    let may_be_absent = |column: &Column| !column.not_null || key.contains(&column.id);
    asks_nothing(table) && table.columns.iter().all(may_be_absent)
}

/// Whether a table has no rule that is about rows.
fn asks_nothing(table: &Table) -> bool {
    !(apart::is_apart(table) || !table.checks.is_empty() || Told::table(table).refuses_duplicates())
}

/// Whether nothing has to be asked of single rows.
fn is_plain(table: &Table, form: &Form, given: &Given<'_>) -> bool {
    if !asks_nothing(table) {
        return false;
    }
    let is_plain = |(place, column): (usize, &Column)| match &given.columns[place] {
        None => column.default.is_none() && column.default_value.is_none() && !column.not_null && place != form.time,
        Some(array) => is_plain_kind(&column.kind) && (array.null_count() == 0 || !column.not_null),
    };
    table.columns.iter().enumerate().all(is_plain)
}

/// Whether all values of an Arrow column of this type are values of it.
fn is_plain_kind(kind: &Type) -> bool {
    use Type::{BigInt, Boolean, Bytea, Date, Double, Integer, Real, SmallInt, Text, Time, Timestamp, TimestampTz};
    matches!(
        kind,
        Boolean
            | SmallInt
            | Integer
            | BigInt
            | Date
            | Time
            | Timestamp { .. }
            | TimestampTz
            | Real
            | Double
            | Text
            | Bytea
    )
}

/// The columns that name a series.
struct Keys<'a> {
    columns: Vec<KeyColumn<'a>>,
}

/// Gives the bytes of rows.
enum KeyColumn<'a> {
    Variable(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Integers, and how many of their low bytes an image has.
    Fixed(Vec<i64>, usize),
}

impl<'a> Keys<'a> {
    /// None where a name is too long: the way of rows says so.
    fn of(form: &Form, given: &'a Given<'_>) -> Option<Keys<'a>> {
        let mut columns = Vec::with_capacity(form.keys.len());
        for place in &form.keys {
            let array = given.columns[*place].as_ref()?;
            columns.push(if let Some(texts) = array.as_string_view_opt() {
                if (0..texts.len()).any(|row| texts.value(row).len() > usize::from(u16::MAX)) {
                    return None;
                }
                KeyColumn::Variable(Box::new(|row| texts.value(row).as_bytes()))
            } else {
                KeyColumn::Fixed(whole(array)?, array.data_type().primitive_width().unwrap_or(1))
            });
        }
        Some(Keys { columns })
    }

    fn write(&self, row: usize, key: &mut Vec<u8>) {
        key.clear();
        for column in &self.columns {
            match column {
                KeyColumn::Variable(text) => {
                    let text = text(row);
                    key.extend_from_slice(&(text.len() as u16).to_le_bytes());
                    key.extend_from_slice(text);
                }
                KeyColumn::Fixed(values, bytes) => key.extend_from_slice(&values[row].to_le_bytes()[..*bytes]),
            }
        }
    }

    /// The series of each row, by its key, and the different keys there are. Rows come mostly in stretches of a series, or in turn: what
    /// followed a series last time is tried first.
    fn number(&self, rows: usize) -> (Vec<u32>, Vec<Arc<[u8]>>) {
        let (mut places, mut distinct) = (HashMap::<Arc<[u8]>, u32>::new(), Vec::<Arc<[u8]>>::new());
        let (mut next, mut key, mut before) = (Vec::<u32>::new(), Vec::new(), 0_u32);
        let mut of = Vec::with_capacity(rows);
        for row in 0..rows {
            self.write(row, &mut key);
            let is = |place: &u32| distinct.get(*place as usize).is_some_and(|other| **other == *key);
            let guesses = [next.get(before as usize).copied().unwrap_or(0), before];
            let place = match guesses.into_iter().find(is).or_else(|| places.get(&*key).copied()) {
                Some(place) => place,
                None => {
                    let (new, shared) = (distinct.len() as u32, Arc::<[u8]>::from(&*key));
                    places.insert(shared.clone(), new);
                    distinct.push(shared);
                    next.push(new);
                    new
                }
            };
            next[before as usize] = place;
            before = place;
            of.push(place);
        }
        (of, distinct)
    }
}

fn points(table: &Table, form: &Form, kinds: &[Kind], given: &Given<'_>) -> Result<Points> {
    let odd = || Error::Bug("an array of another type than its column".into());
    let nothing = |kind: &Kind| {
        let mut column = series::Column::new(*kind);
        column.append_nothing(given.rows);
        column
    };
    let times = given.columns[form.time].as_ref().and_then(whole).ok_or_else(odd)?;
    let mut columns: Vec<Option<series::Column>> = vec![None; kinds.len()];
    for (place, slot) in &form.values {
        let Some(array) = &given.columns[*place] else { continue };
        let values = match super::kind(&table.columns[*place].kind) {
            Some(Kind::Integer) => whole(array).map(Values::Integers),
            Some(Kind::Double) => doubles(array).map(Values::Doubles),
            Some(Kind::Text) => texts(array).map(Values::Texts),
            None => None,
        };
        let mut column = series::Column { values: values.ok_or_else(odd)?, present: None };
        if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
            forget_behind(&mut column.values, nulls);
            column.present = Some(nulls.iter().collect());
        }
        *columns.get_mut(*slot).ok_or_else(odd)? = Some(column);
    }
    let columns = columns.into_iter().zip(kinds).map(|(column, kind)| column.unwrap_or_else(|| nothing(kind)));
    Ok(Points { times, columns: columns.collect() })
}

/// What an array holds where a value is NULL is anything: it must not be stored.
fn forget_behind(values: &mut Values, nulls: &NullBuffer) {
    let absent = (0..nulls.len()).filter(|row| nulls.is_null(*row));
    match values {
        Values::Integers(values) => absent.for_each(|row| values[row] = 0),
        Values::Doubles(values) => absent.for_each(|row| values[row] = 0.0),
        Values::Texts(_) => {}
    }
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<&[T::Native]> {
    array.as_primitive_opt::<T>().map(|array| &**array.values())
}

/// Values that the engine holds as integers.
fn whole(array: &ArrayRef) -> Option<Vec<i64>> {
    fn wide<T: Copy + Into<i64>>(values: &[T]) -> Vec<i64> {
        values.iter().map(|value| (*value).into()).collect()
    }
    primitive::<Int64Type>(array)
        .or_else(|| primitive::<TimestampMicrosecondType>(array))
        .or_else(|| primitive::<TimestampNanosecondType>(array))
        .or_else(|| primitive::<Time64MicrosecondType>(array))
        .map(<[i64]>::to_vec)
        .or_else(|| primitive::<Int16Type>(array).map(wide))
        .or_else(|| primitive::<Int32Type>(array).map(wide))
        .or_else(|| primitive::<Date32Type>(array).map(wide))
        .or_else(|| array.as_boolean_opt().map(|array| array.values().iter().map(i64::from).collect()))
}

fn doubles(array: &ArrayRef) -> Option<Vec<f64>> {
    // Adding 0.0 turns -0.0 into 0.0 and leaves every other number alone.
    let doubles = |values: &[f64]| values.iter().map(|value| value + 0.0).collect();
    let reals = |values: &[f32]| values.iter().map(|value| f64::from(*value + 0.0)).collect();
    primitive::<Float64Type>(array).map(doubles).or_else(|| primitive::<Float32Type>(array).map(reals))
}

fn texts(array: &ArrayRef) -> Option<Vec<Text>> {
    let none = Text::from([]);
    if let Some(texts) = array.as_string_view_opt() {
        return Some(
            texts.iter().map(|text| text.map_or_else(|| none.clone(), |text| text.as_bytes().into())).collect(),
        );
    }
    let bytes = array.as_binary_view_opt()?;
    Some(bytes.iter().map(|bytes| bytes.map_or_else(|| none.clone(), Text::from)).collect())
}
