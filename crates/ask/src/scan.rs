//! Rows as a program wants them that has an SQL of its own: what is asked, and what is left to do with the answer.

use counterfoil_proof::{Definition, Direction, Question, Value};

use crate::condition::{Condition, Row};
use crate::error::Error;
use crate::literal::{Comparison, place_of};
use crate::plan::{self, Plan};
use crate::select::SortKey;
use crate::set::Set;

/// A condition on a row that is true or not: of a comparison with NULL it is not.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of these; of none it is true.
    All(Vec<Filter>),
    /// Any of these; of none it is not.
    Any(Vec<Filter>),
    /// Whether the column is NULL, or is not.
    Null {
        /// The number of the column.
        column: u16,
        /// Whether NULL is wanted.
        wanted: bool,
    },
    /// The column compares so with the value, which is one of the column's sort.
    Compare {
        /// The number of the column.
        column: u16,
        /// How.
        comparison: Comparison,
        /// With what.
        value: Value,
    },
    /// The column is one of the values.
    In {
        /// The number of the column.
        column: u16,
        /// Which.
        values: Vec<Value>,
    },
    /// No row.
    Never,
}

/// What is wanted of a published table.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Rows for which this is true.
    pub filter: Filter,
    /// The numbers of their columns that are wanted, in any order.
    pub columns: Vec<u16>,
    /// By what they are to be sorted, if an order of the table can do that: [`Scan::is_sorted`] says so.
    pub sort_keys: Vec<SortKey>,
    /// Rows at most.
    pub limit: Option<u64>,
}

/// How what is wanted is asked.
///
/// ```
/// use counterfoil_ask::{Comparison, Filter, Scan, Wanted};
/// use counterfoil_proof::{Column, Definition, Scheme, Type, Value};
///
/// let column = |name: &str, kind| Column { name: name.into(), kind };
/// let definition = Definition {
///     table: [7; 16],
///     name: "fares".into(),
///     columns: vec![column("line", Type::Text), column("price", Type::Numeric(10, 2))],
///     orders: vec![vec![0]],
///     scheme: Scheme::PerRecord,
///     nodes: Vec::new(),
///     filters: Vec::new(),
/// };
/// let dear = Filter::Compare { column: 1, comparison: Comparison::Greater, value: Value::Numeric(300) };
/// let wanted = Wanted { filter: dear, columns: vec![0], sort_keys: Vec::new(), limit: None };
/// let scan = Scan::of(&definition, &wanted)?;
/// assert_eq!(scan.plan(), "order 0 by (line), intervals: 1, then the condition on each row");
/// // The question has the column of the condition, too.
/// let answer = vec![vec![Value::Text("U6".into()), Value::Numeric(240)], vec![Value::Text("U7".into()), Value::Numeric(360)]];
/// assert_eq!(scan.rows(answer)?, [[Value::Text("U7".into()), Value::Numeric(360)]]);
/// assert_eq!(scan.places(), [0]);
/// # Ok::<(), counterfoil_ask::Error>(())
/// ```
#[derive(Debug)]
pub struct Scan {
    definition: Definition,
    condition: Condition,
    columns: Vec<u16>,
    limit: Option<u64>,
    plan: Plan,
}

impl Scan {
    /// Plans how it is asked.
    ///
    /// # Errors
    /// [`Error::NoValue`]: a value that is none of its column's sort; [`Error::Malformed`]: a column that is not there.
    pub fn of(definition: &Definition, wanted: &Wanted) -> Result<Self, Error> {
        definition.check()?;
        let condition = condition(definition, &wanted.filter)?;
        let plan = match wanted.limit {
            Some(0) => Plan::nothing(),
            rows => {
                let mut columns = wanted.columns.clone();
                condition.columns(&mut columns);
                let sort_keys = &wanted.sort_keys;
                Plan::of(definition, &plan::Wanted { condition: &condition, columns, sort_keys, rows })?
            }
        };
        let (definition, columns, limit) = (definition.clone(), wanted.columns.clone(), wanted.limit);
        Ok(Self { definition, condition, columns, limit, plan })
    }

    /// What a mirror is asked; none if no row can match, or none is wanted: [`Scan::rows`] then takes no rows.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.plan.question.as_ref()
    }

    /// How it is asked, in words for people.
    #[must_use]
    pub fn plan(&self) -> String {
        self.plan.words(&self.definition)
    }

    /// Whether [`Scan::rows`] gives rows by the keys that they are to be sorted by.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.plan.along.is_some()
    }

    /// Where the columns that are wanted stand in a row of the answer.
    #[must_use]
    pub fn places(&self) -> Vec<usize> {
        let asked = self.question().map_or(&[][..], Question::columns);
        self.columns.iter().filter_map(|column| asked.binary_search(column).ok()).collect()
    }

    /// The rows that are wanted, with the question's columns, from the verified rows of the question.
    ///
    /// # Errors
    /// [`Error::OtherRows`]: rows of another question.
    pub fn rows(&self, mut rows: Vec<Vec<Value>>) -> Result<Vec<Vec<Value>>, Error> {
        let Some(question) = self.question() else {
            return if rows.is_empty() { Ok(rows) } else { Err(Error::OtherRows("nobody was asked")) };
        };
        if rows.iter().any(|row| row.len() != question.columns().len()) {
            return Err(Error::OtherRows("another number of columns"));
        }
        if !self.plan.is_exact {
            let mut wrong = None;
            rows.retain(|values| {
                let row = Row { definition: &self.definition, columns: question.columns(), values };
                self.condition.on(&row).unwrap_or_else(|error| wrong.replace(error).and(None)) == Some(true)
            });
            wrong.map_or(Ok(()), Err)?;
        }
        // With a limit a mirror counts, and answers, from the side that is wanted.
        if question.limit().is_none() && self.plan.along == Some(Direction::Descending) {
            rows.reverse();
        }
        let most = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        rows.truncate(most);
        Ok(rows)
    }
}

fn condition(definition: &Definition, filter: &Filter) -> Result<Condition, Error> {
    Ok(match filter {
        Filter::Never => Condition::Constant(Some(false)),
        Filter::All(parts) if parts.is_empty() => Condition::Constant(Some(true)),
        Filter::Any(parts) if parts.is_empty() => Condition::Constant(Some(false)),
        Filter::All(parts) => Condition::And(flat(definition, parts, true)?),
        Filter::Any(parts) => Condition::Or(flat(definition, parts, false)?),
        Filter::Null { column, wanted: true } => Condition::IsNull(there(definition, *column)?),
        Filter::Null { column, wanted: false } => Condition::Within(there(definition, *column)?, Set::values()),
        Filter::Compare { column, comparison, value } => {
            Condition::Within(there(definition, *column)?, among(definition, *column, *comparison, value)?)
        }
        Filter::In { column, values } => {
            let column = there(definition, *column)?;
            let equal = |value| among(definition, column, Comparison::Equal, value);
            Condition::Within(column, Set::union(values.iter().map(equal).collect::<Result<_, Error>>()?))
        }
    })
}

/// The conditions that are to be true together, or of which any is: what is of the same sort within another is taken out of it.
fn flat(definition: &Definition, parts: &[Filter], is_all: bool) -> Result<Vec<Condition>, Error> {
    let mut flat = Vec::new();
    for part in parts {
        match (condition(definition, part)?, is_all) {
            (Condition::And(inner), true) | (Condition::Or(inner), false) if flat.is_empty() => flat = inner,
            (Condition::And(inner), true) | (Condition::Or(inner), false) => flat.extend(inner),
            (other, _) => flat.push(other),
        }
    }
    Ok(flat)
}

fn there(definition: &Definition, column: u16) -> Result<u16, Error> {
    let is_there = usize::from(column) < definition.columns.len();
    let absent = counterfoil_proof::Malformed("a question about columns that are not there");
    if is_there { Ok(column) } else { Err(absent.into()) }
}

/// The values of a column that compare so: none do with NULL.
fn among(definition: &Definition, column: u16, comparison: Comparison, value: &Value) -> Result<Set, Error> {
    let kind = definition.columns[usize::from(column)].kind;
    Ok(comparison.values(&place_of(kind, value)?).unwrap_or_default())
}
