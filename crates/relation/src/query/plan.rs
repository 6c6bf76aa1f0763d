//! What is asked of tables that are joined along foreign keys: columns or aggregates, grouped, sorted, limited.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Condition, Source, Test};
use crate::layout::Layout;
use crate::mean::mean_digits;
use crate::{ColumnId, Error, Type};
use counterfoil_log::Order as _;

/// A column of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The source, by its place among those of the question.
    pub source: usize,
    /// The column, by its place in the source's table.
    pub column: usize,
}

/// What an aggregate makes of the values of a column that are not NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many there are.
    Count,
    /// Their sum: of integers a BIGINT, of NUMERIC one of ten digits more. NULL where there are none.
    Sum,
    /// Their mean: of integers a double, of NUMERIC one that has the digits of [`crate::mean_digits`] and is rounded. NULL where there are none.
    Mean,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

/// A column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A column of a source. Where there are aggregates or groups, it is one of the groups.
    Column(Place),
    /// How many rows.
    CountRows,
    /// An aggregate.
    Aggregate(Function, Place),
}

/// A column by which an answer is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column of the answer, by its place.
    pub output: usize,
    /// From the greatest down.
    pub is_descending: bool,
    /// NULLs before all others.
    pub nulls_first: bool,
}

/// How the rows that come into question are found. The answer is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// By indexes where that is less work than reading all rows.
    #[default]
    Cheaper,
    /// By indexes wherever there are some, however many rows they name.
    Indexes,
    /// By reading all rows.
    Scan,
}

impl Access {
    /// Rows that an index may name of a table of so many, where it pays for one in `share` of them and for so few in any case.
    pub(super) fn rows_max(self, total: u64, share: u64, few: usize) -> usize {
        match self {
            Access::Indexes => usize::MAX,
            Access::Cheaper | Access::Scan => usize::try_from(total / share).unwrap_or(usize::MAX).max(few),
        }
    }
}

/// A question.
#[derive(Clone, Default)]
pub struct Plan {
    /// The tables: one is the root, the others are joined by it.
    pub sources: Vec<Source>,
    /// What must be true besides, of rows of several of them.
    pub conditions: Vec<Condition>,
    /// How their rows are found.
    pub access: Access,
    /// The columns of the answer.
    pub outputs: Vec<Output>,
    /// What makes a group, beyond columns that are outputs.
    pub groups: Vec<Place>,
    /// Of the answer's rows those of which these are true; their columns are outputs.
    pub having: Vec<Test>,
    /// No row twice.
    pub is_distinct: bool,
    /// In this order.
    pub order: Vec<Order>,
    /// Rows that are not sorted may come in any order, and a limit may take any of them: where memory is short, less is read. Otherwise
    /// they come in the order of the root's numbers. A compiled plan leaves it out.
    pub in_any_order: bool,
    /// So many rows are left out first.
    pub offset: u64,
    /// Rows wanted, at most.
    pub limit: Option<u64>,
    /// How many of the outputs are shown, from the first on; the others are there to be sorted by, or for `having`.
    pub shown: usize,
}

/// Digits that a NUMERIC has at most.
pub(crate) const PRECISION_MAX: u8 = 38;
/// Digits that a sum of NUMERIC has more than what it sums up.
const SUM_DIGITS: u8 = 10;
impl Plan {
    /// Whether rows of the answer stand for groups of rows.
    pub(super) fn is_grouped(&self) -> bool {
        !self.groups.is_empty() || self.outputs.iter().any(|output| !matches!(output, Output::Column(_)))
    }

    /// Whether it is all the same in which order rows are read: nobody minds, or they are sorted or grouped first.
    pub(super) fn is_read_in_any_order(&self) -> bool {
        self.in_any_order || self.is_grouped() || self.is_distinct || !self.order.is_empty()
    }

    /// All that makes a group.
    pub(super) fn group_places(&self) -> Vec<Place> {
        let mut places = self.groups.clone();
        places.extend(self.outputs.iter().filter_map(|output| match output {
            Output::Column(place) => Some(*place),
            _ => None,
        }));
        places.order();
        places.dedup();
        places
    }

    /// The type of a column of a source.
    pub(super) fn kind_at(&self, place: Place) -> Result<Type, Error> {
        let column = self.sources.get(place.source).and_then(|source| source.table.columns.get(place.column));
        column.map(|column| column.kind).ok_or_else(|| Error::misuse("a column that is not there"))
    }

    /// The type of an output.
    ///
    /// # Errors
    /// [`Error::misuse`] for a column that is not there, [`Error::not_supported`] for an aggregate of such values.
    pub fn kind_of(&self, output: Output) -> Result<Type, Error> {
        let none = || Error::not_supported("such an aggregate of such values".into());
        Ok(match output {
            Output::Column(place) => self.kind_at(place)?,
            Output::CountRows | Output::Aggregate(Function::Count, _) => Type::BigInt,
            Output::Aggregate(function, place) => match (function, self.kind_at(place)?) {
                (Function::Least | Function::Greatest, kind) => kind,
                (Function::Sum, Type::SmallInt | Type::Integer | Type::BigInt) => Type::BigInt,
                (Function::Mean, Type::SmallInt | Type::Integer | Type::BigInt) => Type::Double,
                (Function::Sum, Type::Numeric { precision, scale }) => {
                    Type::Numeric { precision: precision.saturating_add(SUM_DIGITS).min(PRECISION_MAX), scale }
                }
                (Function::Mean, Type::Numeric { precision, scale }) => {
                    let (precision, scale) = mean_digits(precision, scale);
                    Type::Numeric { precision, scale }
                }
                _ => return Err(none()),
            },
        })
    }

    /// The layout of the first `count` columns of the answer.
    pub(super) fn layout(&self, count: usize) -> Result<Arc<Layout>, Error> {
        let kinds =
            self.outputs.iter().take(count).map(|output| self.kind_of(*output)).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Layout::new(kinds.into_iter().enumerate().map(|(number, kind)| (ColumnId(number as u32), kind)))))
    }

    /// For each source the columns whose values are needed.
    pub(super) fn columns(&self) -> Vec<Vec<usize>> {
        let shown = self.outputs.iter().filter_map(|output| match output {
            Output::Column(place) | Output::Aggregate(_, place) => Some(*place),
            Output::CountRows => None,
        });
        let mut places: Vec<Place> = shown.chain(self.groups.iter().copied()).collect();
        for (source, of_source) in self.sources.iter().enumerate() {
            places.extend(of_source.tested_columns().into_iter().map(|column| Place { source, column }));
        }
        self.conditions.iter().for_each(|condition| condition.places(&mut places));
        places.order();
        places.dedup();
        let of = |source| places.iter().filter(move |place| place.source == source).map(|place| place.column);
        (0..self.sources.len()).map(|source| of(source).collect()).collect()
    }

    /// Whether it makes sense; nothing in it is believed before.
    pub(super) fn check(&self) -> Result<(), Error> {
        let roots = self.sources.iter().filter(|source| source.path.is_none()).count();
        let orders = self.order.iter().all(|order| order.output < self.outputs.len());
        let is_hidden = self.is_distinct && self.shown < self.outputs.len();
        // Without groups WHERE says it all.
        let is_having = !self.having.is_empty() && !self.is_grouped();
        if roots != 1 || is_having || !orders || self.shown > self.outputs.len() || is_hidden {
            return Err(Error::misuse("a question that makes no sense"));
        }
        let mut tested = Vec::new();
        self.conditions.iter().for_each(|condition| condition.places(&mut tested));
        for (source, of_source) in self.sources.iter().enumerate() {
            tested.extend(of_source.tested_columns().into_iter().map(|column| Place { source, column }));
        }
        if !self.conditions.iter().all(|condition| condition.is_within(self.sources.len())) {
            return Err(Error::misuse("a condition on a table that is not there"));
        }
        tested.iter().chain(&self.groups).try_for_each(|place| self.kind_at(*place).map(drop))?;
        self.outputs.iter().try_for_each(|output| self.kind_of(*output).map(drop))
    }
}
