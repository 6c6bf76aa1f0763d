//! A question to tables that are joined along foreign keys: columns of rows of which conditions are true, or what becomes of them in
//! groups, once each, in order.

use counterfoil_relation::Function;

use crate::filter::Comparison;
use crate::value::Value;

/// What is asked: columns of the rows of tables of which conditions are true.
///
/// Debug shows names, never values.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The tables, in the order in which a star shows their columns.
    pub(super) sources: Vec<Source>,
    /// The columns of the answer.
    pub(super) shown: Vec<Shown>,
    /// What must be true of a row.
    pub(super) conditions: Vec<Condition>,
    /// What becomes of the rows.
    pub(super) refined: Refined,
    /// Rows wanted, at most.
    pub(super) limit: Option<usize>,
}

/// What becomes of rows before they are the answer's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Refined {
    /// What makes a group.
    pub(super) groups: Vec<ColumnName>,
    /// Which groups are wanted: those of which all these are true.
    pub(super) having: Vec<(Made, Comparison, Value)>,
    /// No row twice.
    pub(super) is_distinct: bool,
    /// In this order.
    pub(super) order: Vec<Order>,
    /// So many rows are left out first.
    pub(super) offset: u64,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A column of a table.
    Column(ColumnName),
    /// How many rows.
    Rows,
    /// What a function makes of the values of a column.
    Of(Function, ColumnName),
}

/// What the rows of an answer are sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) by: By,
    pub(super) is_descending: bool,
    pub(super) nulls_first: bool,
}

/// A column that is sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A column of the answer, by its place.
    Place(usize),
    /// One that is worked out, or a name of one.
    Made(Made),
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) table: String,
    /// What columns name it by.
    pub(super) alias: String,
    pub(super) joined: Joined,
}

/// How a table comes to those before it.
#[derive(Clone, Debug)]
pub(super) enum Joined {
    /// Beside them: nothing said yet.
    Beside,
    /// Rows stay where these are true; they name tables from the one of this number on.
    Where { from: usize, on: Vec<Condition> },
    /// As before, and rows stay that find none.
    OrNone { from: usize, on: Vec<Condition> },
}

/// A column of the answer.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    /// All columns of all tables.
    All,
    /// All columns of one.
    AllOf(String),
    /// One, perhaps by another name.
    Column(ColumnName, Option<String>),
    /// What is made of the rows of a group, by this name.
    Made(Made, String),
}

/// A column, by its name as the table has it, and the name of the table where it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub(super) table: Option<String>,
    pub(super) column: String,
}

/// What may be asked of a row. A comparison with NULL is true of none.
///
/// Debug shows names, never values.
#[derive(Clone, Debug)]
pub struct Condition(pub(super) Asked);

/// What a condition asks.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// Two columns are equal.
    Same(ColumnName, ColumnName),
    /// A column is NULL, or is not.
    Null { column: ColumnName, wanted: bool },
    /// A column compares so with a value.
    Compare { column: ColumnName, comparison: Comparison, value: Value },
    /// A column has one of these values.
    In { column: ColumnName, values: Vec<Value> },
    /// A text is like a pattern.
    Like { column: ColumnName, pattern: String },
    /// A truth value is this one.
    Is { column: ColumnName, truth: bool },
    /// All of these.
    All(Vec<Condition>),
    /// Any of these.
    Any(Vec<Condition>),
    /// This is false; where it is NULL, so is its opposite.
    Not(Box<Condition>),
}

/// A column: `table.column`, or `column` where one table alone has it. Names are as they were created, nothing is folded.
#[must_use]
pub fn column(name: &str) -> ColumnName {
    match name.split_once('.') {
        Some((table, column)) => ColumnName { table: Some(table.into()), column: column.into() },
        None => ColumnName { table: None, column: name.into() },
    }
}

impl ColumnName {
    fn compares(self, comparison: Comparison, value: impl Into<Value>) -> Condition {
        Condition(Asked::Compare { column: self, comparison, value: value.into() })
    }

    /// `=`
    #[must_use]
    pub fn equals(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::Equal, value)
    }

    /// `<>`
    #[must_use]
    pub fn differs(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::Unequal, value)
    }

    /// `<`
    #[must_use]
    pub fn less(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::Less, value)
    }

    /// `<=`
    #[must_use]
    pub fn at_most(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::AtMost, value)
    }

    /// `>`
    #[must_use]
    pub fn greater(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::Greater, value)
    }

    /// `>=`
    #[must_use]
    pub fn at_least(self, value: impl Into<Value>) -> Condition {
        self.compares(Comparison::AtLeast, value)
    }

    /// `BETWEEN`, the bounds included.
    #[must_use]
    pub fn between(self, low: impl Into<Value>, high: impl Into<Value>) -> Condition {
        self.clone().at_least(low).and(self.at_most(high))
    }

    /// `IN`
    #[must_use]
    pub fn is_in<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Condition {
        Condition(Asked::In { column: self, values: values.into_iter().map(Into::into).collect() })
    }

    /// `LIKE`: `%` stands for any letters, `_` for one, and a `\` before them for themselves.
    #[must_use]
    pub fn like(self, pattern: impl Into<String>) -> Condition {
        Condition(Asked::Like { column: self, pattern: pattern.into() })
    }

    /// `IS NULL`
    #[must_use]
    pub fn is_null(self) -> Condition {
        Condition(Asked::Null { column: self, wanted: true })
    }

    /// `IS NOT NULL`
    #[must_use]
    pub fn is_not_null(self) -> Condition {
        Condition(Asked::Null { column: self, wanted: false })
    }

    /// `=` another column.
    #[must_use]
    pub fn is_same_as(self, other: ColumnName) -> Condition {
        Condition(Asked::Same(self, other))
    }
}

impl Condition {
    /// Both are true.
    #[must_use]
    pub fn and(self, other: Condition) -> Condition {
        let mut all = Vec::new();
        for condition in [self, other] {
            match condition.0 {
                Asked::All(conditions) => all.extend(conditions),
                one => all.push(Condition(one)),
            }
        }
        Condition(Asked::All(all))
    }

    /// One of them is true, or both.
    #[must_use]
    pub fn or(self, other: Condition) -> Condition {
        let mut any = Vec::new();
        for condition in [self, other] {
            match condition.0 {
                Asked::Any(conditions) => any.extend(conditions),
                one => any.push(Condition(one)),
            }
        }
        Condition(Asked::Any(any))
    }
}

impl std::ops::Not for Condition {
    type Output = Condition;

    /// It is false: neither of the two is true of what is NULL.
    fn not(self) -> Condition {
        Condition(Asked::Not(Box::new(self)))
    }
}

impl Question {
    /// All columns of all rows of a table.
    #[must_use]
    pub fn of(table: &str) -> Self {
        Question::default().with(table, Joined::Beside)
    }

    fn with(mut self, table: &str, joined: Joined) -> Self {
        self.sources.push(Source { table: table.into(), alias: table.into(), joined });
        self
    }

    /// Joins a table where `on` is true.
    #[must_use]
    pub fn join(self, table: &str, on: Condition) -> Self {
        self.with(table, Joined::Where { from: 0, on: vec![on] })
    }

    /// Joins a table where `on` is true; rows that find none stay, with NULLs.
    #[must_use]
    pub fn left_join(self, table: &str, on: Condition) -> Self {
        self.with(table, Joined::OrNone { from: 0, on: vec![on] })
    }

    /// Of these rows those of which `condition` is true.
    #[must_use]
    pub fn filter(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// These columns, behind those asked for before; without any all are shown.
    #[must_use]
    pub fn columns<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.shown.extend(names.into_iter().map(|name| Shown::Column(column(name), None)));
        self
    }

    /// How many rows there are in a group, or in all, as a column of this name.
    #[must_use]
    pub fn count_rows(mut self, name: &str) -> Self {
        self.shown.push(Shown::Made(Made::Rows, name.into()));
        self
    }

    /// What a function makes of the values of a column, in a group or in all, as a column of this name.
    #[must_use]
    pub fn aggregate(mut self, function: Function, of: ColumnName, name: &str) -> Self {
        self.shown.push(Shown::Made(Made::Of(function, of), name.into()));
        self
    }

    /// A row for each group of rows that have the same here.
    #[must_use]
    pub fn group_by(mut self, column: ColumnName) -> Self {
        self.refined.groups.push(column);
        self
    }

    /// No row twice.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        self.refined.is_distinct = true;
        self
    }

    /// In the order of this column, NULLs last; behind what was asked for before.
    #[must_use]
    pub fn order_by(self, column: ColumnName) -> Self {
        self.ordered(column, false)
    }

    /// From the greatest of this column down, NULLs first; behind what was asked for before.
    #[must_use]
    pub fn order_by_descending(self, column: ColumnName) -> Self {
        self.ordered(column, true)
    }

    fn ordered(mut self, column: ColumnName, is_descending: bool) -> Self {
        let by = By::Made(Made::Column(column));
        self.refined.order.push(Order { by, is_descending, nulls_first: is_descending });
        self
    }

    /// So many rows are left out first.
    #[must_use]
    pub fn offset(mut self, rows: u64) -> Self {
        self.refined.offset = rows;
        self
    }

    /// So many rows at most, whichever come first.
    #[must_use]
    pub fn limit(self, rows: usize) -> Self {
        Question { limit: Some(rows), ..self }
    }
}
