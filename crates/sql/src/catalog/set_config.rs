//! `SELECT set_config(name, value, is_local)`: SET, as a function.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, SelectItem, SetExpr, Statement,
    Value as Literal, ValueWithSpan,
};

use crate::error::Result;
use crate::idioms::text_of;
use crate::session::{Outcome, Session};
use crate::statement::fold;

/// Whether a query that reads no table wants something set.
pub(crate) fn is_asked(statement: &Statement) -> bool {
    items(statement).iter().any(|item| asked(item).is_some())
}

fn items(statement: &Statement) -> &[SelectItem] {
    let Statement::Query(query) = statement else { return &[] };
    match query.body.as_ref() {
        SetExpr::Select(select) if select.from.is_empty() => &select.projection,
        _ => &[],
    }
}

fn asked(item: &SelectItem) -> Option<(&str, &str, bool)> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => wanted(expr),
        _ => None,
    }
}

impl Session {
    /// Sets what a query wants set, and answers it. Where that fails nothing is set: its row is worked out before anybody asks for it.
    ///
    /// # Errors
    /// Those of SET, and of the query.
    pub(crate) fn set_config(&mut self, statement: Statement) -> Result<Outcome> {
        let before = self.settings.clone();
        let answered = self.set_and_answer(statement);
        if answered.is_err() {
            self.settings = before;
            self.follow_settings()?;
        }
        answered
    }

    fn set_and_answer(&mut self, statement: Statement) -> Result<Outcome> {
        for (name, value, is_local) in items(&statement).iter().filter_map(asked) {
            self.set_one(is_local, &name.to_ascii_lowercase(), value)?;
        }
        let plan = self.plan_of(statement)?;
        self.rows_read(&plan, true).map(Outcome::Rows)
    }
}

/// The name and the value, and whether it ends with the transaction.
fn wanted(expr: &Expr) -> Option<(&str, &str, bool)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let given = |place: usize| match list.args.get(place) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(given))) => Some(given),
        _ => None,
    };
    let (setting, value, is_local) = (given(0)?, given(1)?, given(2)?);
    let is_local = matches!(is_local, Expr::Value(ValueWithSpan { value: Literal::Boolean(true), .. }));
    let is_called = fold(name.0.last().and_then(ObjectNamePart::as_ident)?) == "set_config";
    is_called.then_some((text_of(setting)?, text_of(value)?, is_local))
}
