//! A SELECT that was understood, from the question to the result.

use counterfoil_proof::{Definition, Direction, Question, Value};

use crate::condition::{Condition, Row};
use crate::error::Error;
use crate::names::Names;
use crate::plan::{Plan, Wanted};
use crate::result::{Table, aggregate, project, sort};
use crate::select::{Output, Shown, SortKey, outputs, sort_keys};
use crate::statement::Statement;

/// A SELECT of one published table, and how it is answered.
#[derive(Debug)]
pub struct Asked {
    definition: Definition,
    condition: Condition,
    outputs: Vec<Output>,
    is_distinct: bool,
    sort_keys: Vec<SortKey>,
    limit: Option<u64>,
    offset: u64,
    plan: Plan,
}

impl Asked {
    /// Understands `sql` as a SELECT of the table `definition`.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::OtherRows`]: what is not understood or not done here is refused, never left out.
    pub fn parse(sql: &str, definition: &Definition) -> Result<Self, Error> {
        definition.check()?;
        let statement = Statement::parse(sql)?;
        if statement.table != definition.name {
            return Err(Error::UnknownTable { name: statement.table, known: definition.name.clone() });
        }
        let table = statement.alias.as_ref().unwrap_or(&statement.table);
        let names = Names { definition, table };
        let outputs = outputs(&names, &statement.items)?;
        let sort_keys = sort_keys(&names, &outputs, statement.is_distinct, &statement.order_by)?;
        let condition = match &statement.condition {
            Some(expression) => names.condition(expression)?,
            None => Condition::Constant(Some(true)),
        };
        let mut asked = Self {
            definition: definition.clone(),
            condition,
            outputs,
            is_distinct: statement.is_distinct,
            sort_keys,
            limit: statement.limit,
            offset: statement.offset,
            plan: Plan::nothing(),
        };
        asked.plan = asked.planned()?;
        Ok(asked)
    }

    /// The table that `sql` asks, before its definition is known.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Syntax`], [`Error::NotSupported`].
    pub fn table_of(sql: &str) -> Result<String, Error> {
        Statement::parse(sql).map(|statement| statement.table)
    }

    fn planned(&self) -> Result<Plan, Error> {
        if self.limit == Some(0) {
            return Ok(Plan::nothing());
        }
        let mut columns: Vec<u16> = self.outputs.iter().filter_map(|output| output.shown.column()).collect();
        columns.extend(self.sort_keys.iter().map(|key| key.column));
        self.condition.columns(&mut columns);
        let counts_rows = !self.is_aggregate() && !self.is_distinct;
        let rows = self.limit.filter(|_| counts_rows).and_then(|limit| limit.checked_add(self.offset));
        let wanted = Wanted { condition: &self.condition, columns, sort_keys: &self.sort_keys, rows };
        Plan::of(&self.definition, &wanted)
    }

    fn is_aggregate(&self) -> bool {
        self.outputs.iter().any(|output| matches!(output.shown, Shown::Aggregate(_)))
    }

    /// What a mirror is asked; none if no row can match, or none is wanted: [`Asked::answer`] then takes no rows.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.plan.question.as_ref()
    }

    /// How it is answered, in words for people.
    #[must_use]
    pub fn plan(&self) -> String {
        let Some(question) = self.question() else { return "nothing can match: nobody is asked".into() };
        let name = |column: &u16| self.definition.columns[usize::from(*column)].name.as_str();
        let order: Vec<&str> = self.definition.orders[usize::from(question.order())].iter().map(name).collect();
        let mut plan =
            format!("order {} by ({}), intervals: {}", question.order(), order.join(", "), question.intervals().len());
        if let Some(limit) = question.limit() {
            let side = if question.direction() == Direction::Ascending { "first" } else { "last" };
            plan += &format!(", the {side} {limit} rows");
        }
        plan + if self.plan.is_exact { ", exactly" } else { ", then the condition on each row" }
    }

    /// The result, from verified rows with the question's columns in its order.
    ///
    /// # Errors
    /// [`Error::Overflow`]: a sum or mean that its type does not hold. [`Error::OtherRows`]: rows of another question.
    pub fn answer(&self, rows: Vec<Vec<Value>>) -> Result<Table, Error> {
        let columns = self.question().map_or(&[][..], Question::columns);
        if self.question().is_none() && !rows.is_empty() {
            return Err(Error::OtherRows("nobody was asked"));
        }
        let mut matching = Vec::with_capacity(rows.len());
        for values in &rows {
            let row = Row { definition: &self.definition, columns, values };
            if values.len() != columns.len() {
                return Err(Error::OtherRows("another number of columns"));
            }
            if self.plan.is_exact || self.condition.on(&row)? == Some(true) {
                matching.push(row);
            }
        }
        sort(&mut matching, &self.sort_keys)?;
        let shown = if self.is_aggregate() {
            vec![aggregate(&matching, &self.outputs)?]
        } else {
            project(&matching, &self.outputs, self.is_distinct)?
        };
        let (offset, limit) = (size(self.offset), self.limit.map_or(usize::MAX, size));
        Ok(Table {
            names: self.outputs.iter().map(|output| output.name.clone()).collect(),
            kinds: self.outputs.iter().map(|output| output.kind).collect(),
            rows: shown.into_iter().skip(offset).take(limit).collect(),
        })
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
