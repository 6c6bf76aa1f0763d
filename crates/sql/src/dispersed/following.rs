//! A client that reads learns what others have told: where there are others, with each query while they are active, and once a second
//! otherwise. Within a transaction the queries do that see what is committed meanwhile: before it has written, and of those that see
//! one state the first.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_disperse::Kept;
use counterfoil_log::View;
use counterfoil_relation::{Named, Table};
use datafusion::sql::sqlparser::ast::{ObjectName, Visit, Visitor};

use super::before;
use super::claiming::{Claiming, Look};
use super::learning::{Learns, later};
use super::lease::{claiming, emptied};
use super::leases::Leases;
use super::{Dispersed, is_dispersed, kept, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::statement;

/// So long a query waits for somebody who writes here.
const WRITER: Duration = Duration::from_millis(100);

/// The names of relations in a statement.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        // What is no name of a table is passed over here, and told of where it is planned.
        self.0.extend(statement::table_name(relation));
        ControlFlow::Continue(())
    }
}

impl Session {
    /// Before a query: learns what other clients have told clouds of the tables that it names.
    ///
    /// # Errors
    /// Those of reading what is here, and where more clouds than may fail stand at others' addresses. What else clouds answer, or do not, is
    /// no reason not to read.
    pub(crate) fn follow(&mut self, query: &impl Visit) -> Result<()> {
        if !self.guard.transaction.sees_what_comes() {
            return Ok(());
        }
        let tables = self.dispersed_tables(query)?;
        tables.iter().try_for_each(|table| self.follow_table(table, false))
    }

    /// The dispersed tables that a query names, and the views that it names.
    pub(super) fn dispersed_tables(&self, query: &impl Visit) -> Result<Vec<Arc<Table>>> {
        let (mut names, mut seen, mut tables) = (Names::default(), BTreeSet::new(), Vec::new());
        _ = query.visit(&mut names);
        // No transaction sees this state for good: what is learned is committed behind it.
        let view = self.guard.engine.store.snapshot()?;
        while let Some(name) = names.0.pop_first() {
            if !seen.insert(name.clone()) {
                continue;
            }
            match self.engine().relations.named(&view, statement::plain(&name)).map_err(Error::Relation)? {
                Some(Named::Table(table)) if is_dispersed(&table) => tables.push(table),
                Some(Named::View(view)) => _ = statement::parse(&view.sql)?.visit(&mut names),
                _ => {}
            }
        }
        Ok(tables)
    }

    /// `at_once`: however short a time ago that was done; what cannot be learned is an error then.
    pub(super) fn follow_table(&mut self, table: &Arc<Table>, at_once: bool) -> Result<()> {
        let leases = &shared(self.engine()).clone().leases;
        // Whoever has the lease knows all that there is.
        if leases.is_held(table.id) || !(at_once || leases.follows(table.id)) {
            return Ok(());
        }
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let Some((claiming, None)) = claiming(shared(self.engine()), &view, table, &kept)? else { return Ok(()) };
        drop(view);
        let looks = claiming.peek(shared(self.engine()));
        if let Some(displaced) = claiming.displaced(&table.name, &kept, &looks) {
            return Err(displaced);
        }
        let end = ended(table, &claiming, &kept, &looks);
        let learned = match end.map(Err).unwrap_or_else(|| later(table, &claiming, (&kept, None), &looks)) {
            Ok(None) => {
                note_seen(&claiming, leases, table, &looks);
                Ok(())
            }
            Ok(Some(later)) => self.learn_aside(table, &later, (Learns::WhatFollows, WRITER)),
            Err(error) => Err(error),
        };
        match learned {
            Err(error @ (Error::Interrupted | Error::TimedOut)) => Err(error),
            // Whoever asks at once has met it; and of addresses that lead to other clouds no answer is to be had.
            Err(error) if at_once || matches!(error, Error::Network(_)) => Err(error),
            Err(error) => {
                self.notices.push(format!("what others have told clouds is not seen: {error}"));
                Ok(())
            }
            Ok(()) => {
                leases.note_followed(table.id);
                Ok(())
            }
        }
    }
}

/// What was read needs not be read again, but for claims: who is to change the table looks at them himself.
fn note_seen(claiming: &Claiming, leases: &Leases, table: &Table, looks: &[Look]) {
    for (cloud, contents) in claiming.clouds.iter().zip(looks.iter().map(Look::contents)) {
        let Some(contents) = contents else { continue };
        let places = contents.places.iter().filter(|place| !contents.claims.contains_key(place));
        leases.note_seen(table.id, &cloud.url, places);
    }
}

/// Why clouds may not have rows of a view any more: other clients have told them something since, or nothing that they show leads here.
pub(super) enum Overtaken {
    /// That, or how it lies now: whoever asks again learns it, or why he cannot.
    WhatFollows,
    /// The table was dropped, or its key was changed.
    End(Error),
}

/// Whether other clients have told clouds something since a view: then they may have let go of rows that it has.
pub(super) fn is_overtaken(dispersed: &Dispersed, view: &dyn View, table: &Table) -> Result<Option<Overtaken>> {
    let kept = kept(view, table)?;
    // Of one that was put back no question is narrowed.
    let Some((claiming, None)) = claiming(dispersed, view, table, &kept)? else { return Ok(None) };
    if dispersed.leases.is_held(table.id) {
        return Ok(None);
    }
    let looks = claiming.peek(dispersed);
    if let Some(end) = ended(table, &claiming, &kept, &looks) {
        return Ok(Some(Overtaken::End(end)));
    }
    let later = later(table, &claiming, (&kept, None), &looks);
    // What nobody here can read is something, too.
    if later.map_or(true, |later| later.is_some()) {
        dispersed.leases.note_overtaken(table.id);
        return Ok(Some(Overtaken::WhatFollows));
    }
    Ok(None)
}

/// Whether clouds show that another client has changed the key, or nothing of a table that they were told of.
pub(super) fn ended(table: &Table, claiming: &Claiming, kept: &Kept, looks: &[Look]) -> Option<Error> {
    let gone = claiming.gone(looks).map(|cloud| before::gone(table, cloud));
    let is_emptied = || claiming.are_emptied(looks, kept.declaration().may_fail);
    gone.or_else(|| is_emptied().then(|| emptied(table, &claiming.clouds[0])))
}
