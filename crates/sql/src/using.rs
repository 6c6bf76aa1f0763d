//! `JOIN ... USING (k)`: both sides have one column `k` between them, as in PostgreSQL.
//!
//! The query library takes the left side's for it, NULL as it may be in a RIGHT or FULL JOIN, knows no `k` in conditions, and leaves columns where
//! they were (DataFusion 55). Here the join says what it means:
//!
//! | written | here |
//! |---|---|
//! | `a JOIN b USING (k)` | `a JOIN b ON a.k = b.k` |
//! | `k` | `a.k`, of a RIGHT JOIN `b.k`, of a FULL JOIN `coalesce(a.k, b.k)` |
//! | `*` | `k`, and what `a` and `b` have besides |
//!
//! Where a name is not surely that of one table (a join of several on the left of which none has merged it, joins in parentheses, NATURAL), all
//! stays as it is written.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, OrderBy,
    OrderByKind, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins,
    WildcardAdditionalOptions,
};

use crate::dialect::call;
use crate::rewriting;
use crate::statement::{fold, ident};

/// Writes out what USING means.
pub(crate) fn written_out(select: &mut Select, order: &mut Option<OrderBy>) {
    let mut all = Vec::new();
    for from in &select.from {
        match Tables::of(from) {
            Some(tables) => all.push(tables),
            None => return,
        }
    }
    let merged: Vec<Merged> = all.iter().flat_map(|tables| tables.merged.iter().cloned()).collect();
    let is_twice = |one: &Merged| merged.iter().filter(|other| other.name == one.name).count() > 1;
    if merged.is_empty() || merged.iter().any(is_twice) || select.projection.iter().any(has_options) {
        return;
    }
    select.from.iter_mut().zip(&all).for_each(|(from, tables)| tables.say(from));
    select.projection = select.projection.drain(..).flat_map(|item| item_of(item, &all)).collect();
    say_what_names_mean(select, order, &merged);
}

/// Puts in the place of names without a table what they mean.
fn say_what_names_mean(select: &mut Select, order: &mut Option<OrderBy>, merged: &[Merged]) {
    let mut tell = |expr: &mut Expr| {
        if let Expr::Identifier(name) = expr
            && let Some(merged) = merged.iter().find(|merged| merged.name == fold(name))
        {
            *expr = merged.value.clone();
        }
    };
    rewriting::of_query(&mut select.projection, &mut tell);
    rewriting::of_query(&mut select.selection, &mut tell);
    rewriting::of_query(&mut select.group_by, &mut tell);
    rewriting::of_query(&mut select.having, &mut tell);
    rewriting::of_query(&mut select.distinct, &mut tell);
    rewriting::of_query(&mut select.named_window, &mut tell);
    rewriting::of_query(&mut select.qualify, &mut tell);
    let Some(OrderBy { kind: OrderByKind::Expressions(all), .. }) = order else { return };
    let shown: HashSet<String> = select.projection.iter().filter_map(shown_as).collect();
    for by in all {
        // By itself a name is that of a column of the answer, if there is one.
        if !matches!(&by.expr, Expr::Identifier(name) if shown.contains(&fold(name))) {
            rewriting::of_query(&mut by.expr, &mut tell);
        }
    }
}

/// A column of several tables.
#[derive(Clone)]
struct Merged {
    name: String,
    value: Expr,
    /// Whose columns it is, by the places of tables.
    of: Vec<usize>,
}

/// The tables of a FROM and what USING makes one of them.
struct Tables {
    names: Vec<Ident>,
    /// The same with schemas, as all of a table's columns are asked for.
    whole: Vec<ObjectName>,
    merged: Vec<Merged>,
    /// The conditions of the joins that had USING.
    conditions: Vec<Option<Expr>>,
}

impl Tables {
    /// None where a name is not surely one table's.
    fn of(from: &TableWithJoins) -> Option<Self> {
        let mut tables = Self { names: Vec::new(), whole: Vec::new(), merged: Vec::new(), conditions: Vec::new() };
        tables.add(&from.relation)?;
        for join in &from.joins {
            tables.add(&join.relation)?;
            let condition = match constraint_of(&join.join_operator) {
                Some(JoinConstraint::Using(columns)) => Some(tables.merge(&join.join_operator, columns)?),
                Some(JoinConstraint::Natural) => return None,
                _ => None,
            };
            tables.conditions.push(condition);
        }
        Some(tables)
    }

    fn add(&mut self, factor: &TableFactor) -> Option<()> {
        let (name, whole) = name_of(factor)?;
        self.names.push(name);
        self.whole.push(whole);
        Some(())
    }

    /// What the next join's condition is.
    fn merge(&mut self, join: &JoinOperator, columns: &[ObjectName]) -> Option<Expr> {
        let right_table = self.names.len() - 1;
        let mut condition: Option<Expr> = None;
        let mut newly = Vec::new();
        for column in columns {
            let [ObjectNamePart::Identifier(column)] = &column.0[..] else { return None };
            let name = fold(column);
            let column_of = |table: usize| Expr::CompoundIdentifier(vec![self.names[table].clone(), column.clone()]);
            let right = column_of(right_table);
            let before = self.merged.iter().position(|merged| merged.name == name).map(|at| self.merged[at].clone());
            let before = match before {
                Some(merged) => merged,
                None if right_table == 1 => Merged { name: name.clone(), value: column_of(0), of: vec![0] },
                None => return None,
            };
            let equal = binary(before.value.clone(), BinaryOperator::Eq, right.clone());
            condition = Some(condition.map_or(equal.clone(), |all| binary(all, BinaryOperator::And, equal)));
            let value = match join {
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
                JoinOperator::FullOuter(_) => call("coalesce", vec![before.value, right]),
                _ => before.value,
            };
            newly.push(Merged { name, value, of: before.of.into_iter().chain([right_table]).collect() });
        }
        // Those of the last join come first.
        self.merged.retain(|merged| newly.iter().all(|new| new.name != merged.name));
        self.merged.splice(0..0, newly);
        condition
    }

    fn say(&self, from: &mut TableWithJoins) {
        for (join, condition) in from.joins.iter_mut().zip(&self.conditions) {
            if let Some(condition) = condition {
                join.join_operator = on(&join.join_operator, condition.clone());
            }
        }
    }

    /// All columns: those of several tables first.
    fn columns(&self) -> Vec<SelectItem> {
        let merged = self.merged.iter().map(|merged| shown(&merged.name, merged.value.clone()));
        let rest = self.whole.iter().enumerate().map(|(at, table)| {
            let of = self.merged.iter().filter(|merged| merged.of.contains(&at));
            let left_out: Vec<ObjectName> = of.map(|merged| object(ident(&merged.name))).collect();
            let opt_exclude = (!left_out.is_empty()).then_some(ExcludeSelectItem::Multiple(left_out));
            let table = SelectItemQualifiedWildcardKind::ObjectName(table.clone());
            SelectItem::QualifiedWildcard(table, WildcardAdditionalOptions { opt_exclude, ..Default::default() })
        });
        merged.chain(rest).collect()
    }
}

fn object(name: Ident) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(name)])
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// What a column of an answer is called, if it says so.
fn shown_as(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

fn shown(name: &str, value: Expr) -> SelectItem {
    SelectItem::ExprWithAlias { expr: value, alias: ident(name) }
}

/// What a table is called, if it is one.
fn name_of(factor: &TableFactor) -> Option<(Ident, ObjectName)> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some((alias.name.clone(), object(alias.name.clone())))
        }
        TableFactor::Table { name, alias: None, .. } => Some((name.0.last()?.as_ident().cloned()?, name.clone())),
        _ => None,
    }
}

/// What a join by a condition says, if it is one that may have USING.
fn constraint_of(join: &JoinOperator) -> Option<&JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// The same join by a condition.
fn on(join: &JoinOperator, condition: Expr) -> JoinOperator {
    let constraint = JoinConstraint::On(condition);
    match join {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => JoinOperator::LeftOuter(constraint),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => JoinOperator::RightOuter(constraint),
        JoinOperator::FullOuter(_) => JoinOperator::FullOuter(constraint),
        _ => JoinOperator::Inner(constraint),
    }
}

/// Whether `*` has more to say.
fn has_options(item: &SelectItem) -> bool {
    let SelectItem::Wildcard(options) = item else { return false };
    let plain = WildcardAdditionalOptions { wildcard_token: options.wildcard_token.clone(), ..Default::default() };
    *options != plain
}

fn item_of(item: SelectItem, all: &[Tables]) -> Vec<SelectItem> {
    match item {
        SelectItem::Wildcard(_) => all.iter().flat_map(Tables::columns).collect(),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
            let mut merged = all.iter().flat_map(|tables| &tables.merged);
            let merged = merged.find(|merged| merged.name == fold(&name));
            let plain = || SelectItem::UnnamedExpr(Expr::Identifier(name.clone()));
            vec![merged.map_or_else(plain, |merged| shown(&merged.name, merged.value.clone()))]
        }
        other => vec![other],
    }
}
