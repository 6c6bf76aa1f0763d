//! A SELECT that was understood, from the question to the result.

use counterfoil_proof::{Definition, Question, TotalsOf, TotalsQuestion, Value};

use crate::condition::{Condition, Row};
use crate::error::Error;
use crate::names::Names;
use crate::plan::{Plan, Wanted, along};
use crate::result::Table;
use crate::shape::Shape;
use crate::statement::Statement;
use crate::totals;

/// A SELECT of one published table, and how it is answered.
#[derive(Debug)]
pub struct Asked {
    definition: Definition,
    condition: Condition,
    shape: Shape,
    plan: Plan,
    totals: Option<TotalsQuestion>,
}

impl Asked {
    /// Understands `sql` as a SELECT of the table `definition`.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::OtherRows`]: what is not understood or not done here is refused, never left out.
    pub fn parse(sql: &str, definition: &Definition) -> Result<Self, Error> {
        definition.check()?;
        let statement = Statement::parse(sql)?.of_one_table()?;
        if statement.table != definition.name {
            return Err(Error::UnknownTable { name: statement.table, known: definition.name.clone() });
        }
        let table = statement.alias.as_ref().unwrap_or(&statement.table);
        let names = Names::of_one(definition, table);
        let shape = Shape::of(&names, &statement)?;
        let condition = match &statement.condition {
            Some(expression) => names.condition(expression)?,
            None => Condition::Constant(Some(true)),
        };
        let plan = Plan::nothing();
        let mut asked = Self { definition: definition.clone(), condition, shape, plan, totals: None };
        asked.plan = asked.planned()?;
        if asked.shape.is_aggregate() && asked.plan.question.is_some() {
            asked.totals = totals::question(definition, &asked.condition, &asked.shape)?;
        }
        Ok(asked)
    }

    /// The table that `sql` asks, before its definition is known.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Syntax`], [`Error::NotSupported`].
    pub fn table_of(sql: &str) -> Result<String, Error> {
        Ok(Statement::parse(sql)?.of_one_table()?.table)
    }

    fn planned(&self) -> Result<Plan, Error> {
        let shape = &self.shape;
        if shape.limit == Some(0) {
            return Ok(Plan::nothing());
        }
        let mut columns = shape.columns();
        self.condition.columns(&mut columns);
        let counts_rows = !shape.is_aggregate() && !shape.is_distinct;
        let rows = shape.limit.filter(|_| counts_rows).and_then(|limit| limit.checked_add(shape.offset));
        let wanted = Wanted { condition: &self.condition, columns, sort_keys: &shape.sort_keys, rows };
        Plan::of(&self.definition, &wanted)
    }

    /// What a mirror is asked; none if no row can match, or none is wanted: [`Asked::answer`] then takes no rows.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.plan.question.as_ref()
    }

    /// What a mirror may be asked instead, if signed totals say all that is wanted: [`Asked::answer_totals`] takes them. Where
    /// they cannot be proved, since rows have changed after the last period, rows can.
    #[must_use]
    pub fn totals(&self) -> Option<&TotalsQuestion> {
        self.totals.as_ref()
    }

    /// How it is answered, in words for people.
    #[must_use]
    pub fn plan(&self) -> String {
        let Some(totals) = self.totals() else { return self.plan.words(&self.definition) };
        along(&self.definition, totals.order(), totals.intervals().len()) + ", exactly, by signed totals"
    }

    /// The result, from verified totals of [`Asked::totals`].
    ///
    /// # Errors
    /// [`Error::Overflow`]: a sum or mean that its type does not hold. [`Error::OtherRows`]: totals of another question.
    pub fn answer_totals(&self, groups: &[TotalsOf]) -> Result<Table, Error> {
        let question = self.totals().ok_or(Error::OtherRows("nobody was asked for totals"))?;
        Ok(self.shape.shown(totals::rows(&self.definition, question, &self.shape, groups)?))
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
        self.shape.table(matching)
    }
}
