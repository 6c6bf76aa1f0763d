//! The table that rows go to: found or made, with the columns that they need, and which rows it cannot take.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_relation::{self as relation, Named, NewColumn, NewKey, NewTable, Table, Type, Value};
use counterfoil_series::{Kind, Values, columns_max, text_bytes_max};

use super::{Appended, NewField, NewPoints, Reason, TIME_COLUMN, numbers};
use crate::define::reserved;
use crate::error::{Error, Result};
use crate::series::{self, Form, told};
use crate::session::Session;
use crate::transaction::Change;
use crate::views::Cascade;

/// Where rows go.
pub(super) struct Target {
    pub(super) table: Arc<Table>,
    pub(super) form: Form,
    pub(super) kinds: Arc<[Kind]>,
    /// The column of the engine that each field goes to; none for one that no row needs.
    pub(super) slot_of: Vec<Option<usize>>,
    /// The number of the series of each set; none where no row needs it.
    pub(super) series_of: Vec<Option<u32>>,
    pub(super) refuses_duplicates: bool,
    pub(super) text_bytes_max: usize,
    /// What is before this time is not kept.
    pub(super) oldest: i64,
}

const TIME: Type = Type::Timestamp { nanoseconds: true };

impl Target {
    /// Columns that the engine has, dropped ones among them.
    pub(super) fn slots(&self) -> usize {
        self.kinds.len()
    }

    /// Finds or makes the table of rows, and refuses those that it cannot take; none where it can take none.
    pub(super) fn prepare(
        session: &mut Session,
        change: &mut Change,
        points: &NewPoints<'_>,
        appended: &mut Appended,
    ) -> Result<Option<Target>> {
        let page_bytes = change.lease.payload_bytes();
        refuse_alone(points, text_bytes_max(page_bytes), appended);
        let found = match find(session, change, points)? {
            Ok(found) => found,
            Err(reason) => {
                appended.refuse_all(reason);
                return Ok(None);
            }
        };
        let made = match found {
            Some(table) => {
                refuse_tags(&table, points, appended);
                refuse_types(&table, points, appended);
                session.add_fields(change, table, points, columns_max(page_bytes), appended)?
            }
            None => session.make_table(change, points, columns_max(page_bytes), appended)?,
        };
        let Some(table) = made else { return Ok(None) };
        // Two columns of one name among the rows: the first one made the column.
        refuse_types(&table, points, appended);
        let (form, tables) = (Form::of(&table)?, session.engine().series().clone());
        let series_of = numbers::of_sets(&tables, &mut change.lease, &table, &form, points, appended)?;
        let slot_of = points.fields.iter().map(|field| slot(&table, &form, field)).collect();
        let kinds = tables.kinds(&*change.lease, form.number).map_err(told(&table))?;
        let refuses_duplicates = series::Told::table(&table).refuses_duplicates();
        let text_bytes_max = text_bytes_max(page_bytes);
        let oldest = tables.oldest(&*change.lease, form.number).map_err(told(&table))?;
        Ok(Some(Target { table, form, kinds, slot_of, series_of, refuses_duplicates, text_bytes_max, oldest }))
    }
}

fn slot(table: &Table, form: &Form, field: &NewField<'_>) -> Option<usize> {
    let (place, _) = table.column(field.name).filter(|(_, column)| column.kind == field.kind)?;
    form.values.iter().find(|(other, _)| *other == place).map(|(_, slot)| *slot)
}

/// Refuses what no table could take: texts that are too long, numbers out of the range of their type.
fn refuse_alone(points: &NewPoints<'_>, bytes_max: usize, appended: &mut Appended) {
    let mut bytes = HashMap::<usize, usize>::new();
    for field in &points.fields {
        match &field.values {
            Values::Texts(texts) => {
                for (row, at) in field.places(0, points.times.len()) {
                    *bytes.entry(row).or_default() += texts[at].len();
                }
            }
            Values::Integers(values) => {
                let Type::Numeric { precision, .. } = field.kind else { continue };
                let limit = 10_u64.saturating_pow(precision.into());
                let places = field.places(0, points.times.len());
                let wrong = places.filter(|(_, at)| values[*at].unsigned_abs() >= limit).map(|(row, _)| row);
                appended.refuse(wrong, Reason::Range { column: field.name.to_owned(), is: field.kind });
            }
            Values::Doubles(_) => {}
        }
    }
    let too_long = bytes.into_iter().filter(|(_, bytes)| *bytes > bytes_max).map(|(row, _)| row);
    appended.refuse(too_long, Reason::Texts(bytes_max));
}

/// The table of rows, if there is one; or why there can be none.
fn find(
    session: &Session,
    change: &Change,
    points: &NewPoints<'_>,
) -> Result<std::result::Result<Option<Arc<Table>>, Reason>> {
    let name = &points.table;
    let is = |what: &str| Reason::Table(format!("{name:?} is {what}, not a series table: use another measurement"));
    Ok(match session.engine().relations().named(&*change.lease, name).map_err(Error::Relation)? {
        Some(Named::Table(table)) if !series::is_series(&table) => Err(is("a relation")),
        Some(Named::Table(table)) => match unfit(&table, points) {
            None => Ok(Some(table)),
            Some(why) => Err(Reason::Table(format!("table {name:?} {why}"))),
        },
        Some(Named::View(_)) => Err(is("a view")),
        Some(Named::Index(..)) => Err(is("an index")),
        None if !points.may_create => Err(Reason::NoTable(name.clone())),
        None => match wrong_name(name) {
            Some(why) => Err(Reason::Name(why)),
            None => Ok(None),
        },
    })
}

/// Why a name cannot be that of a table or column.
fn wrong_name(name: &str) -> Option<String> {
    let max = relation::NAME_BYTES_MAX;
    if name.is_empty() || name.len() > max {
        return Some(format!("names have 1 to {max} bytes, this one has {}: use another", name.len()));
    }
    reserved(name).err().map(|error| error.to_string())
}

/// Why a series table is not one that rows like these can go to.
fn unfit(table: &Table, points: &NewPoints<'_>) -> Option<String> {
    let form = Form::of(table).ok()?;
    let of =
        |name: &str| table.engine.as_ref()?.options.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    for (name, value) in &points.options {
        if let Some(other) = of(name).filter(|other| *other != value) {
            return Some(format!("is that of {name} = {other:?}: use another measurement"));
        }
    }
    let time = &table.columns[form.time];
    if time.name != TIME_COLUMN || time.kind != TIME {
        return Some(format!("has another time: the last column of its key must be {TIME_COLUMN}, a TIMESTAMP(9)"));
    }
    if let Some(place) = form.keys.iter().find(|place| table.columns[**place].kind != Type::Text) {
        return Some(format!("has column {:?} in its key, which is no TEXT", table.columns[*place].name));
    }
    if !table.checks.is_empty() {
        return Some("has CHECK constraints, which are not asked here: use INSERT".to_owned());
    }
    let strict = form.values.iter().map(|(place, _)| &table.columns[*place]);
    let strict = { strict }.find(|column| column.not_null || column.default.is_some());
    strict.map(|column| format!("has column {:?} with NOT NULL or DEFAULT: use INSERT", column.name))
}

/// Refuses the rows of sets with a tag that the table's key has not.
fn refuse_tags(table: &Table, points: &NewPoints<'_>, appended: &mut Appended) {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
    for (at, tag) in points.tags.iter().enumerate() {
        let reason = match table.column(tag) {
            Some((_, column)) if key.contains(&column.id) && tag != TIME_COLUMN => continue,
            Some(_) => Reason::TagAndField(tag.clone()),
            None => Reason::NewTag(tag.clone()),
        };
        let has: Vec<bool> = points.sets.iter().map(|set| set.iter().any(|(tag, _)| *tag == at)).collect();
        appended.refuse((0..points.times.len()).filter(|row| has[points.set_of[*row] as usize]), reason);
    }
}

/// Refuses the rows with a field whose column has another type, or is one of the key.
fn refuse_types(table: &Table, points: &NewPoints<'_>, appended: &mut Appended) {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
    for field in &points.fields {
        let column = field.name.to_owned();
        let reason = match table.column(field.name) {
            Some((_, of)) if key.contains(&of.id) => Reason::TagAndField(column),
            Some((_, of)) if of.kind != field.kind => Reason::Type { column, given: field.kind, is: of.kind },
            _ => continue,
        };
        refuse_field(field, points, appended, reason);
    }
}

fn refuse_field(field: &NewField<'_>, points: &NewPoints<'_>, appended: &mut Appended, reason: Reason) {
    appended.refuse(field.places(0, points.times.len()).map(|(row, _)| row), reason);
}

/// Whether a row that is not refused has the field.
fn is_needed(field: &NewField<'_>, points: &NewPoints<'_>, appended: &Appended) -> bool {
    field.places(0, points.times.len()).any(|(row, _)| !appended.is_refused(row))
}

impl Session {
    /// Makes the table that rows need; none where no row is left.
    fn make_table(
        &mut self,
        change: &mut Change,
        points: &NewPoints<'_>,
        columns_max: usize,
        appended: &mut Appended,
    ) -> Result<Option<Arc<Table>>> {
        let tags = needed_tags(points, appended);
        if let Some(why) = tags.iter().find_map(|tag| wrong_name(tag)) {
            appended.refuse_all(Reason::Name(why));
        }
        let mut columns: Vec<NewColumn> =
            tags.into_iter().map(|tag| NewColumn::new(tag, Type::Text).not_null()).collect();
        columns.push(NewColumn::new(TIME_COLUMN, TIME).not_null());
        let key = columns.iter().map(|column| column.name.clone()).collect();
        let key_columns = columns.len();
        for field in &points.fields {
            if !is_needed(field, points, appended) {
                continue;
            }
            let place = columns.iter().position(|column| column.name == field.name);
            if place.is_some_and(|place| place >= key_columns) {
                continue;
            }
            match why_not(field, place.is_some(), columns.len() - key_columns, columns_max) {
                Some(reason) => refuse_field(field, points, appended, reason),
                None => columns.push(NewColumn::new(field.name, field.kind)),
            }
        }
        if appended.rows() == 0 {
            return Ok(None);
        }
        let engine = Some(relation::Engine { name: series::ENGINE.to_owned(), options: points.options.clone() });
        let primary_key = Some(NewKey { name: None, columns: key });
        let table = NewTable { name: points.table.clone(), columns, primary_key, engine, ..NewTable::default() };
        series::check(&table)?;
        let relations = self.engine().relations().clone();
        let made = relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
        series::create(self.engine().series(), &mut change.lease, &made)?;
        Ok(Some(made))
    }

    /// Adds the columns that rows need; none where no row is left.
    fn add_fields(
        &mut self,
        change: &mut Change,
        table: Arc<Table>,
        points: &NewPoints<'_>,
        columns_max: usize,
        appended: &mut Appended,
    ) -> Result<Option<Arc<Table>>> {
        let mut table = table;
        for field in &points.fields {
            if table.column(field.name).is_some() || !is_needed(field, points, appended) {
                continue;
            }
            let tables = self.engine().series().clone();
            let slots = tables.kinds(&*change.lease, Form::of(&table)?.number).map_err(told(&table))?.len();
            let reason = match why_not(field, false, slots, columns_max) {
                _ if !points.may_create => Some(Reason::NoColumn(field.name.to_owned())),
                None => match self.add_field(change, &table, field)? {
                    Ok(wider) => {
                        table = wider;
                        None
                    }
                    Err(reason) => Some(reason),
                },
                refused => refused,
            };
            if let Some(reason) = reason {
                refuse_field(field, points, appended, reason);
            }
        }
        Ok((appended.rows() > 0).then_some(table))
    }

    /// Adds one column, unless a view would change by it.
    fn add_field(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        field: &NewField<'_>,
    ) -> Result<std::result::Result<Arc<Table>, Reason>> {
        let over = self.views_over(change, &table.name)?;
        let point = if over.is_empty() { None } else { Some(change.lease.savepoint()?) };
        let column = NewColumn::new(field.name, field.kind);
        let relations = self.engine().relations().clone();
        let wider = relations.add_column(&mut *change.lease, table, &column, &Value::Null).map_err(Error::Relation)?;
        series::add_column(self.engine().series(), &mut change.lease, &wider)?;
        match (self.keep_views(change, &over, &format!("table {}", table.name), Cascade::Never), point) {
            (Err(Error::Constraint(why)), Some(point)) => {
                change.lease.rollback_to(&point)?;
                self.engine().rolled_back(&*change.lease);
                Ok(Err(Reason::Column(why)))
            }
            (kept, _) => kept.map(|()| Ok(wider)),
        }
    }
}

/// The tags that rows have which are not refused, so that no other one gets into the key of a new table.
fn needed_tags<'a>(points: &'a NewPoints<'_>, appended: &Appended) -> Vec<&'a String> {
    let mut is_needed = vec![false; points.tags.len()];
    let mut is_seen = vec![false; points.sets.len()];
    for (row, set) in points.set_of.iter().enumerate() {
        if !appended.is_refused(row) && !std::mem::replace(&mut is_seen[*set as usize], true) {
            points.sets[*set as usize].iter().for_each(|(tag, _)| is_needed[*tag] = true);
        }
    }
    { points.tags.iter().zip(is_needed) }.filter(|(_, is_needed)| *is_needed).map(|(tag, _)| tag).collect()
}

/// Why a column cannot be added.
fn why_not(field: &NewField<'_>, taken: bool, columns: usize, columns_max: usize) -> Option<Reason> {
    if taken || field.name == TIME_COLUMN {
        return Some(Reason::TagAndField(field.name.to_owned()));
    }
    if let Some(why) = wrong_name(field.name) {
        return Some(Reason::Name(why));
    }
    (columns >= columns_max).then_some(Reason::Columns(columns_max))
}
