//! What an owner signs beside its rows, unless it says otherwise.

use counterfoil_proof::{Definition, FIRST_RID, NODE_COLUMNS_MAX, NodesOf, Type};

/// Which answers are small and quick because of signatures that are no row's. Part of a table's definition: it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Totals along the first order: COUNT, SUM, MIN, MAX and AVG of a range take no rows. A signature for every eleven rows;
    /// a row that changes takes one on each level, when the period ends.
    pub totals: bool,
    /// Filters of the values of each order's first column: joins take no rows for values that are not there. A signature for
    /// each value that comes or goes.
    pub filters: bool,
}

impl Default for Beside {
    /// Both. Of other orders there are no totals: they would cost as much for each.
    fn default() -> Self {
        Self { totals: true, filters: true }
    }
}

impl Beside {
    /// What is signed beside the rows of a table.
    #[must_use]
    pub fn of(definition: &Definition) -> Self {
        Self { totals: !definition.nodes.is_empty(), filters: !definition.filters.is_empty() }
    }

    /// The definition with it.
    #[must_use]
    pub fn put_into(self, mut definition: Definition) -> Definition {
        definition.nodes = if self.totals { totals(&definition) } else { Vec::new() };
        definition.filters = if self.filters { filters(&definition) } else { Vec::new() };
        definition
    }
}

fn totals(definition: &Definition) -> Vec<NodesOf> {
    let kind = |column: &u16| definition.columns[usize::from(*column)].kind;
    let columns = (0..definition.columns.len() as u16).filter(|column| Type::has_totals(kind(column)));
    vec![NodesOf { order: 0, columns: columns.take(NODE_COLUMNS_MAX).collect() }]
}

fn filters(definition: &Definition) -> Vec<u8> {
    let orders = definition.orders.iter().take((FIRST_RID / 2) as usize);
    orders.zip(0..).filter(|(order, _)| !order.is_empty()).map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::{Column, Scheme};

    use super::*;

    #[test]
    fn both_fit_any_definition_and_are_known_again() {
        let columns = |kinds: &[Type]| -> Vec<Column> {
            kinds.iter().enumerate().map(|(at, kind)| Column { name: format!("c{at}"), kind: *kind }).collect()
        };
        let many = vec![Type::Integer; 100];
        for kinds in [&[Type::Text, Type::Date, Type::Numeric(9, 2), Type::Uuid][..], &[Type::Bytea], &many] {
            let orders = vec![vec![0]; if kinds.len() > 1 { 16 } else { 1 }];
            let (scheme, nodes, filters) = (Scheme::PerRecord, Vec::new(), Vec::new());
            let (table, name, columns) = ([7; 16], "t".into(), columns(kinds));
            let plain = Definition { table, name, columns, orders, scheme, nodes, filters };
            for beside in [(true, true), (true, false), (false, true), (false, false)] {
                let beside = Beside { totals: beside.0, filters: beside.1 };
                let definition = beside.put_into(plain.clone());
                assert_eq!((definition.check(), Beside::of(&definition)), (Ok(()), beside));
            }
        }
        let plain = vec![Type::Text, Type::Date, Type::Numeric(9, 2)];
        let (table, name, columns, orders) = ([7; 16], "t".into(), columns(&plain), vec![vec![0, 1], vec![2]]);
        let (scheme, nodes, filters) = (Scheme::PerRecord, Vec::new(), Vec::new());
        let definition = Definition { table, name, columns, orders, scheme, nodes, filters };
        let definition = Beside::default().put_into(definition);
        assert_eq!(definition.nodes, [NodesOf { order: 0, columns: vec![1, 2] }]);
        assert_eq!(definition.filters, [0, 1]);
    }
}
