//! What the queries of a statement ask for beside rows: those inside others too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, Select, Statement, Visit as _, Visitor};

use crate::error::{Error, Result};

/// Whether a query asks that its rows stay as they are: FOR UPDATE and its kin.
pub(crate) fn is_locking(statement: &Statement) -> bool {
    statement.visit(&mut Locks).is_break()
}

/// Refuses the parts of queries that would be dropped silently.
pub(crate) fn refuse(statement: &Statement) -> Result<()> {
    match statement.visit(&mut Dropped) {
        ControlFlow::Break(what) => Err(Error::NotSupported(what.into())),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Locks;

impl Visitor for Locks {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if query.locks.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

struct Dropped;

impl Visitor for Dropped {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        match query.locks.iter().any(|lock| lock.nonblock.is_some()) {
            true => ControlFlow::Break("NOWAIT and SKIP LOCKED: SET lock_timeout says how long is waited"),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
        match select.into {
            Some(_) => ControlFlow::Break("SELECT INTO: write CREATE TABLE ... AS"),
            None => ControlFlow::Continue(()),
        }
    }
}
