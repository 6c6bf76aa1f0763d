//! `SELECT set_config(name, value, is_local)`: SET, as a function.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, SelectItem, SetExpr, Statement,
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
        let mut is_set = false;
        for item in &select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            if let Some((name, value)) = wanted(expr) {
                self.settings.set(&name.to_ascii_lowercase(), value)?;
                is_set = true;
            }
        }
        if is_set {
            self.tell_planner();
        }
        Ok(())
    }
}

/// The name and the value.
fn wanted(expr: &Expr) -> Option<(&str, &str)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(setting)), FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), _] =
        list.args.as_slice()
    else {
        return None;
    };
    let is_called = fold(name.0.last().and_then(ObjectNamePart::as_ident)?) == "set_config";
    is_called.then_some((text_of(setting)?, text_of(value)?))
}
