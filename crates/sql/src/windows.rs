//! `OVER (w ORDER BY v)`: windows that say more than the one that they name.
//!
//! The query library puts a window in the place of its name where nothing else stands (`OVER w`), and otherwise forgets the name (DataFusion
//! 55). Here what the named one says is written out.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, NamedWindowDefinition, NamedWindowExpr, OrderBy, Query, Select, VisitMut, VisitorMut, WindowSpec, WindowType,
};

use crate::statement::fold;

/// Writes out the windows that a query names.
pub(crate) fn name_nothing(select: &mut Select, order: &mut Option<OrderBy>) {
    let mut named = Named { windows: HashMap::new(), inside: 0 };
    for NamedWindowDefinition(name, window) in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(window) = window {
            named.write_out(window);
        }
        let window = match window {
            NamedWindowExpr::WindowSpec(window) => Some(window.clone()),
            NamedWindowExpr::NamedWindow(other) => named.windows.get(&fold(other)).cloned(),
        };
        named.windows.extend(window.map(|window| (fold(name), window)));
    }
    if !named.windows.is_empty() {
        let _ = select.projection.visit(&mut named);
        let _ = select.qualify.visit(&mut named);
        let _ = order.visit(&mut named);
    }
}

/// Windows by their names, which queries inside do not know.
struct Named {
    windows: HashMap<String, WindowSpec>,
    inside: usize,
}

impl Named {
    fn write_out(&self, window: &mut WindowSpec) {
        let Some(named) = window.window_name.as_ref().and_then(|name| self.windows.get(&fold(name))) else { return };
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

impl VisitorMut for Named {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
            && self.inside == 0
        {
            self.write_out(window);
        }
        ControlFlow::Continue(())
    }
}
