//! `SELECT set_config(name, value, is_local)`: SET, as a function.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, SelectItem, SetExpr, Statement,
    Value as Literal, ValueWithSpan,
};

use crate::error::Result;
use crate::idioms::text_of;
use crate::session::Session;
use crate::statement::fold;

impl Session {
    /// Sets what a query wants set that reads no table.
    ///
    /// # Errors
    /// Those of SET.
    pub(crate) fn set_config(&mut self, statement: &Statement) -> Result<()> {
        let Statement::Query(query) = statement else { return Ok(()) };
        let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
        if !select.from.is_empty() {
            return Ok(());
        }
        for item in &select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            if let Some((name, value, is_local)) = wanted(expr) {
                self.set_one(is_local, &name.to_ascii_lowercase(), value)?;
            }
        }
        Ok(())
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
