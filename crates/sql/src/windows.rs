//! `OVER (w ORDER BY v)`: windows that say more than the one that they name.
//!
//! The query library puts a window in the place of its name where nothing else stands (`OVER w`), and otherwise forgets the name (DataFusion
//! 55). Here what the named one says is written out.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    Expr, NamedWindowDefinition, NamedWindowExpr, OrderBy, Select, WindowSpec, WindowType,
};

use crate::rewriting;
use crate::statement::fold;

/// Writes out the windows that a query names.
pub(crate) fn name_nothing(select: &mut Select, order: &mut Option<OrderBy>) {
    let mut named = Named::default();
    for NamedWindowDefinition(name, window) in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(window) = window {
            named.write_out(window);
        }
        let window = match window {
            NamedWindowExpr::WindowSpec(window) => Some(window.clone()),
            NamedWindowExpr::NamedWindow(other) => named.0.get(&fold(other)).cloned(),
        };
        named.0.extend(window.map(|window| (fold(name), window)));
    }
    if named.0.is_empty() {
        return;
    }
    let mut write_out = |expr: &mut Expr| {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
        {
            named.write_out(window);
        }
    };
    rewriting::of_query(&mut select.projection, &mut write_out);
    rewriting::of_query(&mut select.qualify, &mut write_out);
    rewriting::of_query(order, &mut write_out);
}

/// Windows by their names.
#[derive(Default)]
struct Named(HashMap<String, WindowSpec>);

impl Named {
    fn write_out(&self, window: &mut WindowSpec) {
        let Some(named) = window.window_name.as_ref().and_then(|name| self.0.get(&fold(name))) else { return };
        window.window_name = None;
        window.partition_by.clone_from(&named.partition_by);
        if window.order_by.is_empty() {
            window.order_by.clone_from(&named.order_by);
        }
        if window.window_frame.is_none() {
            window.window_frame.clone_from(&named.window_frame);
        }
    }
}
