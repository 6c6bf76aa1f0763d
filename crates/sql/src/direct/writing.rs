//! A question as a statement, for the query library.

use std::fmt::Write;

use super::question::{Asked, By, ColumnName, Condition, Joined, Made, Order, Question, Shown};
use crate::answered::name_of;
use crate::filter::Comparison;
use crate::value::Value;

/// A text being written, and the values of its parameters.
#[derive(Default)]
struct Writing {
    text: String,
    values: Vec<Value>,
}

/// The text of a question, and its parameters.
pub(super) fn statement(question: &Question) -> (String, Vec<Value>) {
    let mut writing = Writing::default();
    let refined = &question.refined;
    let shown = question.shown.iter().map(shown).collect::<Vec<_>>().join(", ");
    let distinct = if refined.is_distinct { "DISTINCT " } else { "" };
    writing.add(format_args!("SELECT {distinct}{} FROM", if shown.is_empty() { "*" } else { &shown }));
    for (number, source) in question.sources.iter().enumerate() {
        let between = match &source.joined {
            Joined::Beside if number == 0 => "",
            Joined::Beside => ",",
            Joined::Where { .. } => " JOIN",
            Joined::OrNone { .. } => " LEFT JOIN",
        };
        writing.add(format_args!("{between} {} AS {}", quoted(&source.table), quoted(&source.alias)));
        if let Joined::Where { on, .. } | Joined::OrNone { on, .. } = &source.joined {
            writing.all(" ON ", on);
        }
    }
    if !question.conditions.is_empty() {
        writing.all(" WHERE ", &question.conditions);
    }
    let listed = |all: Vec<String>| all.join(", ");
    if !refined.groups.is_empty() {
        writing.add(format_args!(" GROUP BY {}", listed(refined.groups.iter().map(name).collect())));
    }
    for (number, (of, comparison, value)) in refined.having.iter().enumerate() {
        let before = if number == 0 { "HAVING" } else { "AND" };
        writing.add(format_args!(" {before} {} {} ", made(of), sign(*comparison)));
        writing.value(value);
    }
    if !refined.order.is_empty() {
        writing.add(format_args!(" ORDER BY {}", listed(refined.order.iter().map(ordered).collect())));
    }
    if refined.offset > 0 {
        writing.add(format_args!(" OFFSET {}", refined.offset));
    }
    if let Some(limit) = question.limit {
        writing.add(format_args!(" LIMIT {limit}"));
    }
    (writing.text, writing.values)
}

/// A name in quotes, whatever stands in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn name(column: &ColumnName) -> String {
    match &column.table {
        Some(table) => format!("{}.{}", quoted(table), quoted(&column.column)),
        None => quoted(&column.column),
    }
}

fn shown(shown: &Shown) -> String {
    match shown {
        Shown::All => "*".into(),
        Shown::AllOf(alias) => format!("{}.*", quoted(alias)),
        Shown::Column(column, None) => name(column),
        Shown::Column(column, Some(alias)) => format!("{} AS {}", name(column), quoted(alias)),
        Shown::Made(of, alias) => format!("{} AS {}", made(of), quoted(alias)),
    }
}

fn made(of: &Made) -> String {
    match of {
        Made::Column(column) => name(column),
        Made::Rows => "count(*)".into(),
        Made::Of(function, column) => format!("{}({})", name_of(*function), name(column)),
    }
}

fn ordered(order: &Order) -> String {
    let by = match &order.by {
        By::Place(place) => (place + 1).to_string(),
        By::Made(of) => made(of),
    };
    let down = if order.is_descending { " DESC" } else { "" };
    let nulls = if order.nulls_first { "FIRST" } else { "LAST" };
    format!("{by}{down} NULLS {nulls}")
}

impl Writing {
    fn add(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing into a text does not fail.
        let _ = self.text.write_fmt(what);
    }

    fn value(&mut self, value: &Value) {
        self.values.push(value.clone());
        self.add(format_args!("${}", self.values.len()));
    }

    fn all(&mut self, before: &str, conditions: &[Condition]) {
        self.text.push_str(before);
        self.joined(" AND ", conditions);
    }

    fn joined(&mut self, between: &str, conditions: &[Condition]) {
        self.text.push('(');
        for (number, condition) in conditions.iter().enumerate() {
            if number > 0 {
                self.text.push_str(between);
            }
            self.condition(condition);
        }
        self.text.push(')');
    }

    fn condition(&mut self, condition: &Condition) {
        match &condition.0 {
            Asked::Same(one, other) => self.add(format_args!("{} = {}", name(one), name(other))),
            Asked::Null { column, wanted: true } => self.add(format_args!("{} IS NULL", name(column))),
            Asked::Null { column, wanted: false } => self.add(format_args!("{} IS NOT NULL", name(column))),
            Asked::Compare { column, comparison, value } => {
                self.add(format_args!("{} {} ", name(column), sign(*comparison)));
                self.value(value);
            }
            Asked::In { column, values } if values.is_empty() => {
                self.add(format_args!("({} IS NULL AND false)", name(column)))
            }
            Asked::In { column, values } => {
                self.add(format_args!("{} IN (", name(column)));
                for (number, value) in values.iter().enumerate() {
                    self.text.push_str(if number > 0 { ", " } else { "" });
                    self.value(value);
                }
                self.text.push(')');
            }
            Asked::Like { column, pattern } => {
                self.add(format_args!("{} LIKE ", name(column)));
                self.value(&Value::Text(pattern.clone()));
            }
            Asked::Is { column, truth: true } => self.text.push_str(&name(column)),
            Asked::Is { column, truth: false } => self.add(format_args!("NOT {}", name(column))),
            Asked::All(conditions) => self.joined(" AND ", conditions),
            Asked::Any(conditions) => self.joined(" OR ", conditions),
            Asked::Not(condition) => {
                self.text.push_str("NOT (");
                self.condition(condition);
                self.text.push(')');
            }
        }
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::Unequal => "<>",
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::Greater => ">",
        Comparison::AtLeast => ">=",
    }
}
