//! A SELECT of two published tables: rows of the first one are asked for, and then the rows of the second that they match.
//!
//! ```text
//! SELECT ... FROM a [LEFT] JOIN b ON a.x = b.y [AND ...] [WHERE ...] ...
//! first question: the part of an order of a in which the condition can be true
//! second: the rows of b with each x that was verified, in an order of b that begins with y
//! ```
//! Both tables' columns stand in a row, those of the first one before: what is said of one table's rows holds for pairs.
//! NULL equals nothing, so it is not asked for.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_proof::{Definition, POINTS_BYTES_MAX, POINTS_MAX, Points, Question, Value};

use crate::condition::{Condition, Row};
use crate::error::{Error, not_supported};
use crate::literal::Comparison;
use crate::names::Names;
use crate::plan::{Plan, Wanted, order_words};
use crate::result::Table;
use crate::shape::Shape;
use crate::statement::{Joined, Statement};

/// Pairs of rows that are looked at, at most: rows of one value on both sides multiply.
const PAIRS_MAX: usize = 1 << 20;

/// A SELECT of two published tables, and how it is answered.
#[derive(Debug)]
pub struct AskedJoin {
    first: Definition,
    second: Definition,
    /// The columns of both.
    both: Definition,
    is_left: bool,
    /// What ON says of a pair.
    on: Condition,
    /// What WHERE says of a pair, or of a row without a match and NULLs.
    condition: Condition,
    /// The parts of both that are about the first table alone, and that no result lacks.
    of_first: Condition,
    shape: Shape,
    plan: Plan,
    /// The column of the first table whose values are asked for, and the order of the second that begins with them.
    value_column: u16,
    order: u8,
    /// Columns of the second table that are wanted.
    columns: Vec<u16>,
}

impl AskedJoin {
    /// Understands `sql` as a SELECT of the tables `first` and `second`, in the order in which FROM has them.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::OtherRows`]: what is not understood or not done here is refused, never left out.
    pub fn parse(sql: &str, first: &Definition, second: &Definition) -> Result<Self, Error> {
        first.check()?;
        second.check()?;
        let statement = Statement::parse(sql)?;
        let Some(join) = &statement.join else { return not_supported("one table where a join is asked") };
        for (name, definition) in [(&statement.table, first), (&join.table, second)] {
            if *name != definition.name {
                return Err(Error::UnknownTable { name: name.clone(), known: definition.name.clone() });
            }
        }
        let both = beside(first, second);
        let names = names(&statement, join, &both, first.columns.len() as u16)?;
        let on = names.condition(&join.on)?;
        let condition = match &statement.condition {
            Some(expression) => names.condition(expression)?,
            None => Condition::Constant(Some(true)),
        };
        let shape = Shape::of(&names, &statement)?;
        let (value_column, order) = equality(&on, first, second)?;
        let width = first.columns.len() as u16;
        let needed = |condition: &Condition| if join.is_left { Vec::new() } else { own_parts(condition, width) };
        let of_first = Condition::And([own_parts(&condition, width), needed(&on)].concat());
        let mut asked = Self {
            first: first.clone(),
            second: second.clone(),
            both,
            is_left: join.is_left,
            on,
            condition,
            of_first,
            shape,
            plan: Plan::nothing(),
            value_column,
            order,
            columns: Vec::new(),
        };
        asked.make_plan()?;
        Ok(asked)
    }

    /// The two tables that `sql` asks, before their definitions are known; none if it asks one.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Syntax`], [`Error::NotSupported`].
    pub fn tables_of(sql: &str) -> Result<Option<[String; 2]>, Error> {
        let statement = Statement::parse(sql)?;
        Ok(statement.join.map(|join| [statement.table, join.table]))
    }

    fn make_plan(&mut self) -> Result<(), Error> {
        if self.shape.limit == Some(0) {
            return Ok(());
        }
        let width = self.first.columns.len() as u16;
        let mut columns = self.shape.columns();
        self.on.columns(&mut columns);
        self.condition.columns(&mut columns);
        let (mut own, mut others): (Vec<u16>, Vec<u16>) = columns.into_iter().partition(|column| *column < width);
        own.push(self.value_column);
        others.iter_mut().for_each(|column| *column -= width);
        self.columns = others;
        let wanted = Wanted { condition: &self.of_first, columns: own, sort_keys: &[], rows: None };
        self.plan = Plan::of(&self.first, &wanted)?;
        Ok(())
    }

    /// What a mirror of the first table is asked; none if no row can match, or none is wanted: [`AskedJoin::answer`] then
    /// takes no rows.
    #[must_use]
    pub fn first_question(&self) -> Option<&Question> {
        self.plan.question.as_ref()
    }

    /// What a mirror of the second table is asked when the first one's rows are verified; none if there is no value to
    /// be looked for: [`AskedJoin::answer`] then takes no rows of it.
    ///
    /// # Errors
    /// [`Error::OtherRows`]: rows of another question. [`Error::NotSupported`]: more values than a question has.
    pub fn second_question(&self, rows: &[Vec<Value>]) -> Result<Option<Points>, Error> {
        let mut values = BTreeSet::new();
        for values_of_row in rows {
            let row = self.first_row(values_of_row)?;
            if self.of_first.on(&row)? == Some(true) && *row.value(self.value_column)? != Value::Null {
                values.insert(row.encoded(self.value_column)?);
            }
        }
        if values.is_empty() {
            return Ok(None);
        }
        if values.len() > POINTS_MAX || values.iter().map(Vec::len).sum::<usize>() > POINTS_BYTES_MAX {
            return not_supported(format!("a join by more than {POINTS_MAX} values, or 8 megabytes of them, at once"));
        }
        let values = values.into_iter().collect();
        Ok(Some(Points::new(&self.second, self.order, values, &self.columns)?))
    }

    /// How it is answered, in words for people.
    #[must_use]
    pub fn plan(&self) -> String {
        let (first, second) = (&self.first.name, &self.second.name);
        let words = self.plan.words(&self.first);
        if self.plan.question.is_none() {
            return words;
        }
        let columns = order_words(&self.second, self.order);
        let filters = if self.second.filters.contains(&self.order) { ", with filters" } else { "" };
        format!("{first}: {words}; {second}: order {} by ({columns}), value by value{filters}", self.order)
    }

    /// A row of the first table, of which only its own columns are asked.
    fn first_row<'a>(&'a self, values: &'a [Value]) -> Result<Row<'a>, Error> {
        let columns = self.first_question().map_or(&[][..], Question::columns);
        if columns.is_empty() || values.len() != columns.len() {
            return Err(Error::OtherRows("another number of columns"));
        }
        Ok(Row { definition: &self.both, columns, values })
    }

    /// The columns of the second table's rows, as they come.
    fn second_columns(&self) -> Vec<u16> {
        let mut columns = self.columns.clone();
        columns.extend(&self.second.orders[usize::from(self.order)]);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The result, from verified rows of both tables with their questions' columns.
    ///
    /// # Errors
    /// [`Error::Overflow`]: a sum or mean that its type does not hold. [`Error::OtherRows`]: rows of other questions.
    /// [`Error::NotSupported`]: more than a million pairs of rows.
    pub fn answer(&self, first: Vec<Vec<Value>>, second: Vec<Vec<Value>>) -> Result<Table, Error> {
        let pairs = self.pairs(&first, &second)?;
        let columns = self.pair_columns();
        let rows = pairs.iter().map(|values| Row { definition: &self.both, columns: &columns, values }).collect();
        self.shape.table(rows)
    }

    fn pair_columns(&self) -> Vec<u16> {
        let width = self.first.columns.len() as u16;
        let own = self.first_question().map_or(&[][..], Question::columns);
        own.iter().copied().chain(self.second_columns().into_iter().map(|column| column + width)).collect()
    }

    /// The pairs of which ON and WHERE are true, and rows without a match where they stay.
    fn pairs(&self, first: &[Vec<Value>], second: &[Vec<Value>]) -> Result<Vec<Vec<Value>>, Error> {
        let matches = self.by_value(second)?;
        let columns = self.pair_columns();
        let nulls = vec![Value::Null; self.second_columns().len()];
        let (mut pairs, mut looked_at) = (Vec::new(), 0);
        for values in first {
            let row = self.first_row(values)?;
            if self.of_first.on(&row)? != Some(true) {
                continue;
            }
            let mut is_matched = false;
            let value = row.encoded(self.value_column)?;
            for other in matches.get(&value).into_iter().flatten() {
                looked_at += 1;
                if looked_at > PAIRS_MAX {
                    return not_supported("a join of more than a million pairs of rows");
                }
                let pair = [&values[..], other].concat();
                let row = Row { definition: &self.both, columns: &columns, values: &pair };
                if self.on.on(&row)? == Some(true) {
                    is_matched = true;
                    if self.condition.on(&row)? == Some(true) {
                        pairs.push(pair);
                    }
                }
            }
            if self.is_left && !is_matched {
                let pair = [&values[..], &nulls].concat();
                let row = Row { definition: &self.both, columns: &columns, values: &pair };
                if self.condition.on(&row)? == Some(true) {
                    pairs.push(pair);
                }
            }
        }
        Ok(pairs)
    }

    /// Rows of the second table by the value that they are looked for by.
    fn by_value<'a>(&self, second: &'a [Vec<Value>]) -> Result<BTreeMap<Vec<u8>, Vec<&'a [Value]>>, Error> {
        let columns = self.second_columns();
        let mut by_value: BTreeMap<Vec<u8>, Vec<&[Value]>> = BTreeMap::new();
        for values in second {
            if values.len() != columns.len() {
                return Err(Error::OtherRows("another number of columns"));
            }
            let row = Row { definition: &self.second, columns: &columns, values };
            let value = row.encoded(self.second.orders[usize::from(self.order)][0])?;
            by_value.entry(value).or_default().push(values);
        }
        Ok(by_value)
    }
}

/// The columns of both tables in a row; a definition of nothing that is published.
fn beside(first: &Definition, second: &Definition) -> Definition {
    let columns = first.columns.iter().chain(&second.columns).cloned().collect();
    Definition { columns, orders: Vec::new(), nodes: Vec::new(), filters: Vec::new(), ..first.clone() }
}

fn names<'a>(statement: &'a Statement, join: &'a Joined, both: &'a Definition, width: u16) -> Result<Names<'a>, Error> {
    let first = statement.alias.as_ref().unwrap_or(&statement.table);
    let second = join.alias.as_ref().unwrap_or(&join.table);
    if first == second {
        return not_supported(format!("two tables called {first}"));
    }
    Ok(Names { definition: both, tables: vec![(first, 0..width), (second, width..both.columns.len() as u16)] })
}

/// The parts of a condition that are about the first table's columns alone.
fn own_parts(condition: &Condition, width: u16) -> Vec<Condition> {
    let is_own = |part: &&Condition| {
        let mut columns = Vec::new();
        part.columns(&mut columns);
        columns.iter().all(|column| *column < width)
    };
    condition.parts().into_iter().filter(is_own).cloned().collect()
}

/// The column of the first table that ON says is equal to one with which an order of the second begins, and that order:
/// one with filters if there is one.
fn equality(on: &Condition, first: &Definition, second: &Definition) -> Result<(u16, u8), Error> {
    let width = first.columns.len() as u16;
    let mut is_any = false;
    let mut best = None;
    for part in on.parts() {
        let Condition::Columns(a, Comparison::Equal, b) = part else { continue };
        let (own, other) = (*a.min(b), *a.max(b));
        if own >= width || other < width {
            continue;
        }
        is_any = true;
        for (at, order) in second.orders.iter().enumerate() {
            let rank = (second.filters.contains(&(at as u8)), std::cmp::Reverse(order.len()));
            if order.first() == Some(&(other - width)) && best.is_none_or(|(known, _, _)| rank > known) {
                best = Some((rank, own, at as u8));
            }
        }
    }
    match best {
        Some((_, own, order)) => Ok((own, order)),
        None if is_any => not_supported("a join by a column of the second table with which none of its orders begins"),
        None => not_supported("a join without an equality of a column of each table in ON"),
    }
}
