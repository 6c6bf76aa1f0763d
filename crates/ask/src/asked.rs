//! A SELECT that was understood, from the question to the result.

use counterfoil_proof::{Definition, Direction, Question, TotalsOf, TotalsQuestion, Value};

use crate::condition::{Condition, Row};
use crate::error::{Error, not_supported};
use crate::groups::Groups;
use crate::names::Names;
use crate::plan::{Plan, Wanted};
use crate::result::{Table, aggregate, project, sort};
use crate::select::{Output, Shown, SortKey, check_outputs, outputs, sort_keys};
use crate::statement::Statement;
use crate::totals;

/// A SELECT of one published table, and how it is answered.
#[derive(Debug)]
pub struct Asked {
    definition: Definition,
    condition: Condition,
    outputs: Vec<Output>,
    is_distinct: bool,
    groups: Groups,
    sort_keys: Vec<SortKey>,
    limit: Option<u64>,
    offset: u64,
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
        let statement = Statement::parse(sql)?;
        if statement.table != definition.name {
            return Err(Error::UnknownTable { name: statement.table, known: definition.name.clone() });
        }
        let table = statement.alias.as_ref().unwrap_or(&statement.table);
        let names = Names { definition, table };
        let outputs = outputs(&names, &statement.items)?;
        let groups = Groups::of(&names, &outputs, &statement.group_by)?;
        check_outputs(&outputs, &groups.columns)?;
        if statement.is_distinct && !groups.is_none() {
            return not_supported("DISTINCT beside GROUP BY");
        }
        let (groups, sort_keys) = if groups.is_none() {
            (groups, sort_keys(&names, &outputs, statement.is_distinct, &statement.order_by)?)
        } else {
            (groups.sorted(&names, &outputs, &statement.order_by)?, Vec::new())
        };
        let condition = match &statement.condition {
            Some(expression) => names.condition(expression)?,
            None => Condition::Constant(Some(true)),
        };
        let mut asked = Self {
            definition: definition.clone(),
            condition,
            outputs,
            is_distinct: statement.is_distinct,
            groups,
            sort_keys,
            limit: statement.limit,
            offset: statement.offset,
            plan: Plan::nothing(),
            totals: None,
        };
        asked.plan = asked.planned()?;
        if asked.is_aggregate() && asked.plan.question.is_some() {
            asked.totals = totals::question(definition, &asked.condition, &asked.outputs, &asked.groups)?;
        }
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
        columns.extend(&self.groups.columns);
        self.condition.columns(&mut columns);
        let counts_rows = !self.is_aggregate() && !self.is_distinct;
        let rows = self.limit.filter(|_| counts_rows).and_then(|limit| limit.checked_add(self.offset));
        let wanted = Wanted { condition: &self.condition, columns, sort_keys: &self.sort_keys, rows };
        Plan::of(&self.definition, &wanted)
    }

    fn is_aggregate(&self) -> bool {
        !self.groups.is_none() || self.outputs.iter().any(|output| matches!(output.shown, Shown::Aggregate(_)))
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
        let Some(question) = self.question() else { return "nothing can match: nobody is asked".into() };
        if let Some(totals) = self.totals() {
            return self.along(totals.order(), totals.intervals().len()) + ", exactly, by signed totals";
        }
        let mut plan = self.along(question.order(), question.intervals().len());
        if let Some(limit) = question.limit() {
            let side = if question.direction() == Direction::Ascending { "first" } else { "last" };
            plan += &format!(", the {side} {limit} rows");
        }
        plan + if self.plan.is_exact { ", exactly" } else { ", then the condition on each row" }
    }

    fn along(&self, order: u8, intervals: usize) -> String {
        let name = |column: &u16| self.definition.columns[usize::from(*column)].name.as_str();
        let columns: Vec<&str> = self.definition.orders[usize::from(order)].iter().map(name).collect();
        format!("order {order} by ({}), intervals: {intervals}", columns.join(", "))
    }

    /// The result, from verified totals of [`Asked::totals`].
    ///
    /// # Errors
    /// [`Error::Overflow`]: a sum or mean that its type does not hold. [`Error::OtherRows`]: totals of another question.
    pub fn answer_totals(&self, groups: &[TotalsOf]) -> Result<Table, Error> {
        let question = self.totals().ok_or(Error::OtherRows("nobody was asked for totals"))?;
        let rows = totals::rows(&self.definition, question, &self.outputs, &self.groups, groups)?;
        Ok(self.table(rows))
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
        let shown = if !self.groups.is_none() {
            self.groups.of_rows(matching, &self.outputs)?
        } else if self.is_aggregate() {
            vec![aggregate(&matching, &self.outputs)?]
        } else {
            project(&matching, &self.outputs, self.is_distinct)?
        };
        Ok(self.table(shown))
    }

    fn table(&self, shown: Vec<Vec<Value>>) -> Table {
        let (offset, limit) = (size(self.offset), self.limit.map_or(usize::MAX, size));
        Table {
            names: self.outputs.iter().map(|output| output.name.clone()).collect(),
            kinds: self.outputs.iter().map(|output| output.kind).collect(),
            rows: shown.into_iter().skip(offset).take(limit).collect(),
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
