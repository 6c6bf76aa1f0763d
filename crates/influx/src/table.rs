//! The lines of one measurement in a batch.
//!
//! 1. `sets`, `times` and `lines` have one entry for each row.
//! 2. A line is taken whole or not at all: everything that can be wrong is looked at before the first value is pushed.
//! 3. No name is both a tag and a field.

use std::collections::HashMap;

use crate::column::{Column, Values};
use crate::limits::{COLUMNS_MAX, TIME_COLUMN};
use crate::line::Line;
use crate::problem::{Problem, Reject};
use crate::quality;
use crate::schema::{Kind, Schema};
use crate::tags::TagSets;
use crate::text::Text;
use crate::value::{FieldType, Value};

/// The rows of one measurement.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Table {
    /// The measurement.
    pub name: String,
    /// Its tag sets.
    pub tags: TagSets,
    /// The tag set of each row.
    pub sets: Vec<u32>,
    /// The time of each row, in nanoseconds since 1970-01-01 00:00 UTC.
    pub times: Vec<i64>,
    /// The number of the line that each row came from.
    pub lines: Vec<u64>,
    /// The fields, in the order in which they came.
    pub fields: Vec<Column>,
    by_name: HashMap<String, usize>,
    /// For each field the last attempt to take a line that names it, so that a second time is noticed.
    marks: Vec<u64>,
    attempts: u64,
    /// Where the fields of the last line went: the next line mostly has the same ones.
    route: Vec<usize>,
}

/// What a table has to know about the world to take a line.
pub(crate) struct Context<'a> {
    pub(crate) schema: &'a dyn Schema,
    pub(crate) quality_fields: &'a [String],
}

impl Table {
    pub(crate) fn new(name: String) -> Table {
        Table { name, ..Table::default() }
    }

    /// Rows in it.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// Says that the store refused a row.
    pub fn reject(&self, row: usize, problem: Problem) -> Reject {
        Reject { line: self.lines.get(row).copied().unwrap_or(0), column: 0, problem }
    }

    /// Looks at the tags of a line whose series is new.
    pub(crate) fn check_tags(&self, line: &Line<'_>, context: &Context<'_>) -> Result<(), Problem> {
        let mut columns = 1 + self.tags.names().len() + self.fields.len();
        let mut names: Vec<_> = line.tags().map(|(name, _)| name.unescaped()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Problem::TagTwice(twice[0].clone().into_owned()));
        }
        for name in names {
            if self.tags.knows(&name) {
                continue;
            }
            columns += 1;
            if name == TIME_COLUMN {
                return Err(Problem::ReservedName);
            }
            let field = context.schema.column(&self.name, &name).is_some_and(|kind| kind != Kind::Tag);
            if field || self.by_name.get(&*name).is_some_and(|&field| !self.fields[field].values.is_empty()) {
                return Err(Problem::TagAndField(name.into_owned()));
            }
        }
        if columns > COLUMNS_MAX { Err(Problem::Limit("columns of a table", COLUMNS_MAX)) } else { Ok(()) }
    }

    /// Finds or makes the column of each field, and checks its type. What a line that is then rejected leaves behind is
    /// an empty column, which takes any type and goes when the batch is finished.
    pub(crate) fn check_fields(&mut self, line: &Line<'_>, context: &Context<'_>) -> Result<(), Problem> {
        self.attempts += 1;
        for (index, (name, value)) in line.fields().enumerate() {
            let column = self.column(index, name, line, context)?;
            if self.marks[column] == self.attempts {
                return Err(Problem::FieldTwice(self.fields[column].name.clone()));
            }
            self.marks[column] = self.attempts;
            self.check_type(column, &value, context)?;
            match self.route.get_mut(index) {
                Some(place) => *place = column,
                None => self.route.push(column),
            }
        }
        Ok(())
    }

    fn column(
        &mut self,
        index: usize,
        name: Text<'_>,
        line: &Line<'_>,
        context: &Context<'_>,
    ) -> Result<usize, Problem> {
        let name = name.unescaped();
        let routed = self.route.get(index).copied().filter(|&column| self.fields[column].name == *name);
        let known = routed.or_else(|| self.by_name.get(&*name).copied());
        if let Some(column) = known.filter(|&column| !self.fields[column].values.is_empty()) {
            return Ok(column);
        }
        self.check_name(&name, line, context)?;
        if let Some(column) = known {
            return Ok(column);
        }
        if 1 + self.tags.names().len() + self.fields.len() >= COLUMNS_MAX {
            return Err(Problem::Limit("columns of a table", COLUMNS_MAX));
        }
        // Any type: the column is empty.
        self.fields.push(Column::new(name.clone().into_owned(), FieldType::Float));
        self.by_name.insert(name.into_owned(), self.fields.len() - 1);
        self.marks.push(0);
        Ok(self.fields.len() - 1)
    }

    /// Whether a field may have this name.
    fn check_name(&self, name: &str, line: &Line<'_>, context: &Context<'_>) -> Result<(), Problem> {
        if name == TIME_COLUMN {
            return Err(Problem::ReservedName);
        }
        let tag = self.tags.knows(name) || line.tags().any(|(tag, _)| tag.unescaped() == name);
        if tag || context.schema.column(&self.name, name) == Some(Kind::Tag) {
            return Err(Problem::TagAndField(name.to_owned()));
        }
        Ok(())
    }

    /// Holds a value against its column: the batch's, or the store's where the batch has none yet.
    fn check_type(&mut self, column: usize, value: &Value<'_>, context: &Context<'_>) -> Result<(), Problem> {
        let column = &mut self.fields[column];
        let mut wanted = value.field_type();
        if context.quality_fields.contains(&column.name) {
            if quality::of_value(value).is_none() {
                return Err(Problem::NotAQuality(shown(value)));
            }
            wanted = FieldType::Quality;
        }
        if column.values.is_empty() {
            column.values = match context.schema.column(&self.name, &column.name) {
                Some(Kind::Field(known)) => Values::new(known),
                _ => Values::new(wanted),
            };
        }
        match column.values.field_type() {
            has if has == wanted => Ok(()),
            has => Err(Problem::TypeConflict { field: column.name.clone(), line: wanted, column: has }),
        }
    }

    /// Takes a line that was checked.
    pub(crate) fn push(&mut self, set: u32, time: i64, number: u64, line: &Line<'_>) {
        let row = self.times.len() as u32;
        self.sets.push(set);
        self.times.push(time);
        self.lines.push(number);
        for ((_, value), &column) in line.fields().zip(&self.route) {
            let column = &mut self.fields[column];
            column.mark(row);
            match (&mut column.values, value) {
                (Values::Float(values), Value::Float(value)) => values.push(value),
                (Values::Integer(values), Value::Integer(value)) => values.push(value),
                (Values::Unsigned(values), Value::Unsigned(value)) => values.push(value),
                (Values::Boolean(values), Value::Boolean(value)) => values.push(value),
                (Values::Text(values), Value::Text(value)) => values.push(|text| value.push_to(text)),
                (Values::Quality(values), value) => values.push(quality::of_value(&value).expect("checked")),
                _ => unreachable!("the types were checked"),
            }
        }
    }

    pub(crate) fn finish(&mut self) {
        self.fields.retain(|column| !column.values.is_empty());
        let rows = self.times.len() as u32;
        self.fields.iter_mut().for_each(|column| column.finish(rows));
    }
}

/// A value for people, cut short.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Float(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Text(text) => text.unescaped().chars().take(40).collect(),
    }
}
