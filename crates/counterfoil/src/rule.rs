//! The rule of a table that a row would break, by its names: programs ask which one it was.

use counterfoil_relation::{Rule, Violation};

/// A rule that a row would break.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenRule {
    /// The table whose rule it is.
    pub table: String,
    /// The name of the rule; none for NOT NULL, which has none.
    pub constraint: Option<String>,
    /// The column that must not be NULL; none for other rules.
    pub column: Option<String>,
}

impl BrokenRule {
    /// None for what a type demands: that is no rule of the table.
    pub(crate) fn of(violation: &Violation) -> Option<Self> {
        let table = violation.table.clone();
        match violation.rule {
            Rule::NotNull => Some(BrokenRule { table, constraint: None, column: violation.columns.first().cloned() }),
            Rule::Unique | Rule::Reference | Rule::Referenced | Rule::Check => {
                Some(BrokenRule { table, constraint: Some(violation.constraint.clone()), column: None })
            }
            _ => None,
        }
    }
}
