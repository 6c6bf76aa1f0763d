//! REPAIR TABLE: clouds get back what they have lost, from the others, and are told what they have not been told.
//!
//! In a database that was put back there may be rows that were deleted since its copy was made. All clouds had each of them once; if more
//! than may fail lack it now, one that has not failed was told to let go of it, and so it goes here, too. Rows that were on their way to
//! another layout may lie there by now: they are looked for there first. What a cloud is owed (owed.rs) it never had: that it lacks it
//! says nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Goal, Kept, Layout, Rows, State, Table as Away, Untold};
use counterfoil_relation::Table;

use super::catalogue;
use super::learning::Learns;
use super::readable::Place;
use super::tidying::Tidied;
use super::waiting::Waiting;
use super::{is_put_back, keep, kept, opened, shared};
use crate::error::{Error, Result};
use crate::incidents::incidents;
use crate::planner;
use crate::session::{Outcome, Session};
use crate::show;

/// How far a repair goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Which rows lie where.
    Rows,
    /// The same, and whatever another copy of this database has told clouds since is undone.
    TakeOver,
    /// The same, and whatever is here alone is undone where another copy has told clouds something since.
    GiveWay,
    /// The same as [`How::Rows`], and what lies there.
    Contents,
    /// The same as [`How::Rows`], but that what no cloud can give back goes before.
    LetGo,
}

/// Rows that are put back at once.
pub(super) const ROWS: usize = 1 << 12;

/// The rows that a cloud has, and places of what it has from before.
pub(super) type There = (Rows, Vec<u64>);

/// What clouds say they have of a layout, each of them.
pub(super) struct Seen {
    pub(super) away: Away,
    there: Vec<Result<There, Failure>>,
}

impl Seen {
    /// Whether a row is lost: more clouds lack it than may fail, and were not told that they are owed it; or so many are owed it, and none
    /// shows it.
    fn is_lost(&self, layout: &Layout, row: u64) -> bool {
        let (mut lacking, mut owed) = (0, 0);
        for (there, untold) in self.there.iter().zip(&layout.state.untold) {
            let is_owed = untold.owed.contains(row);
            owed += usize::from(is_owed);
            lacking += usize::from(!is_owed && there.as_ref().is_ok_and(|(rows, _)| !rows.contains(row)));
        }
        let may_fail = layout.declaration.may_fail;
        // Who does not answer may have what others are owed.
        let is_silent = self.there.iter().any(Result::is_err);
        lacking > may_fail || owed > may_fail && self.showing(row) == 0 && !is_silent
    }

    /// What is known of a layout, where clouds that answer are owed all that they do not show.
    pub(super) fn state(&self, layout: &Layout) -> State {
        layout.state.as_shown(self.there.iter().map(|there| there.as_ref().ok().map(|(rows, _)| rows)))
    }

    /// The clouds that do not say what they have, and why.
    pub(super) fn silent(&self) -> impl Iterator<Item = (usize, &Failure)> {
        self.there.iter().enumerate().filter_map(|(cloud, there)| Some((cloud, there.as_ref().err()?)))
    }

    /// How many clouds show it.
    fn showing(&self, row: u64) -> usize {
        self.there.iter().flatten().filter(|(rows, _)| rows.contains(row)).count()
    }
}

/// Rows of a layout that more clouds lack than may fail.
struct Lost {
    layout: u32,
    /// Those that lie in the layout to which rows come.
    moved: Rows,
    gone: Rows,
}

impl Lost {
    fn of(kept: &Kept, seen: &[Seen]) -> Result<Vec<Self>> {
        let (may_fail, clouds) = (kept.declaration().may_fail, kept.declaration().clouds.len());
        let now = seen.last().ok_or_else(|| Error::Bug("a table without a layout".into()))?;
        let lost = kept.layouts().iter().zip(seen).map(|(layout, seen)| {
            let is_lost = |row: &u64| seen.is_lost(layout, *row);
            let is_there = |row: &u64| now.showing(*row) + may_fail >= clouds;
            let (moved, gone) = layout.state.live.iter().filter(is_lost).partition::<Vec<u64>, _>(is_there);
            Self { layout: layout.number, moved: moved.into_iter().collect(), gone: gone.into_iter().collect() }
        });
        Ok(lost.collect())
    }
}

/// What was done, by the layout and its clouds' names.
pub(super) type Done = BTreeMap<(u32, String), Repaired>;

/// The same by clouds, of whichever layout.
fn by_clouds(done: Done) -> BTreeMap<String, Repaired> {
    let mut all: BTreeMap<String, Repaired> = BTreeMap::new();
    done.into_iter().for_each(|((_, cloud), own)| all.entry(cloud).or_default().add(own));
    all
}

/// What was done at a cloud.
#[derive(Default)]
pub(super) struct Repaired {
    pub(super) put: u64,
    pub(super) removed: u64,
    pub(super) failure: Option<String>,
    /// Whether something of it is not as it was written.
    pub(super) is_damaged: bool,
}

impl Repaired {
    pub(super) fn add(&mut self, other: Self) {
        self.put += other.put;
        self.removed += other.removed;
        self.failure = self.failure.take().or(other.failure);
        self.is_damaged |= other.is_damaged;
    }

    pub(super) fn fail(&mut self, failure: &Failure) {
        self.failure.get_or_insert_with(|| failure.to_string());
        self.is_damaged |= matches!(failure, Failure::Malformed(_));
    }

    fn failed(failure: &Failure) -> Self {
        let mut failed = Self::default();
        failed.fail(failure);
        failed
    }
}

impl Session {
    /// Compares what each cloud says it has with what it is to have, and mends it.
    pub(crate) fn repair(&mut self, name: &str, how: How) -> Result<Outcome> {
        let takes_over = how == How::TakeOver;
        self.guard.transaction.allows_alone("REPAIR TABLE")?;
        let view = self.view()?;
        let table = planner::table(self.engine(), &view, name)?;
        if !super::is_dispersed(&table) {
            return Err(Error::Misuse(format!("table {name} is not dispersed: there is nothing to repair at clouds")));
        }
        if catalogue::waits_for_shares(shared(self.engine()), &view, &table) {
            catalogue::require_backup(shared(self.engine()), &view, &table)?;
        }
        drop(view);
        match how {
            How::TakeOver => {}
            How::GiveWay => drop(self.lease_as(&table, Learns::Everything)?),
            How::Rows | How::Contents | How::LetGo => drop(self.lease(&table)?),
        }
        // A cloud that does not show its catalogue may know of a later day than this database: it is asked again then.
        let mut tidied = self.tidy_catalogue(&table, takes_over)?;
        let shown = self.renew_catalogues(&table, std::mem::take(&mut tidied.told), how)?;
        let all_show_it = shown.iter().all(Result::is_ok);
        if !takes_over {
            // Nothing is told to clouds that have let go of it: `restore --from` one of them would find a table without rows.
            self.check_there(&table)?;
        }
        // What nobody can give back cannot move either.
        if how == How::LetGo {
            self.let_go_of_the_unreadable(&table)?;
        }
        self.move_all(&table)?;
        let (mut done, is_put_back) = self.repair_layouts(&table, (&tidied, all_show_it, how))?;
        if is_put_back {
            // What could not move before.
            self.move_all(&table)?;
        }
        if how == How::Contents {
            self.compare_contents(&table, &mut done)?;
        }
        let mut done = by_clouds(done);
        self.tell_the_rest(&table, &mut done)?;
        self.note_catalogues(&table, &mut done)?;
        self.note_moved_after_all(&table)?;
        if done.values().all(|of| of.failure.is_none()) {
            // What was found on the way advised to do what has been done.
            let advice = format!("; REPAIR TABLE {}", table.name);
            self.notices.iter_mut().for_each(|notice| *notice = notice.replace(&advice, ", and is complete again"));
        }
        let texts = |text: &dyn Fn(&Repaired) -> String| done.values().map(|of| Some(text(of))).collect::<Vec<_>>();
        show::table(vec![
            ("cloud", done.keys().cloned().map(Some).collect()),
            ("rows_put", texts(&|of| of.put.to_string())),
            ("rows_removed", texts(&|of| of.removed.to_string())),
            ("state", texts(&|of| of.failure.clone().unwrap_or_else(|| "complete".into()))),
        ])
    }

    /// Tells clouds what waits for them, since they may take it now; and notes of which it waits nevertheless.
    fn tell_the_rest(&mut self, table: &Arc<Table>, done: &mut BTreeMap<String, Repaired>) -> Result<()> {
        let waits = |session: &mut Self| -> Result<Vec<(String, u64)>> {
            let kept = kept(&session.view()?, table)?;
            let of = |untold: &Untold| untold.lacks.len() + untold.keeps.len() + untold.owed.len();
            let untold = kept.current().state.untold.iter().map(of);
            let waits = kept.declaration().clouds.iter().cloned().zip(untold);
            Ok(waits.filter(|(_, rows)| *rows > 0).collect())
        };
        if waits(self)?.is_empty() {
            return Ok(());
        }
        self.move_all(table)?;
        for (cloud, rows) in waits(self)? {
            let text = format!("{rows} rows wait that it has not been told of: the notes say why");
            done.entry(cloud).or_default().failure.get_or_insert(text);
        }
        Ok(())
    }

    /// A cloud that does not show its catalogue is told nothing more, whatever it has.
    fn note_catalogues(&mut self, table: &Arc<Table>, done: &mut BTreeMap<String, Repaired>) -> Result<()> {
        let clouds = kept(&self.view()?, table)?.declaration().clouds.clone();
        for (cloud, end) in clouds.into_iter().zip(self.catalogues_in_the_end(table)?) {
            let Some(text) = end else { continue };
            done.entry(cloud).or_default().failure.get_or_insert(text);
        }
        Ok(())
    }

    /// What was done at each cloud; and whether the database had been put back.
    fn repair_layouts(
        &mut self,
        table: &Arc<Table>,
        (tidied, all_show_catalogue, how): (&Tidied, bool, How),
    ) -> Result<(Done, bool)> {
        let takes_over = how == How::TakeOver;
        let engine = self.engine().clone();
        let _one_at_a_time = shared(&engine).telling.lock();
        self.lease_at_once(table, 0)?;
        let (mut kept, seen, is_put_back) = self.look(table)?;
        if is_put_back {
            kept = self.let_go(table, &seen, (all_show_catalogue, takes_over))?;
        }
        let may_fail = kept.declaration().may_fail;
        let may_remove = |cloud: usize| takes_over || tidied.knows_strays(cloud, may_fail);
        let mut done = Done::new();
        for (layout, seen) in kept.layouts().iter().zip(seen) {
            let is_current = layout.number == kept.current().number;
            self.repair_layout(table, (layout, seen), &|cloud| is_current && may_remove(cloud), &mut done)?;
        }
        Ok((done, is_put_back))
    }

    /// The same of one layout; from some clouds is taken what they are not to have.
    fn repair_layout(
        &mut self,
        table: &Arc<Table>,
        (layout, seen): (&Layout, Seen),
        removes: &dyn Fn(usize) -> bool,
        done: &mut Done,
    ) -> Result<()> {
        let state = seen.state(layout);
        let place = Place { layout, state: &state, away: &seen.away };
        let has = |(cloud, _): &(usize, _)| !layout.dropped.contains(&(*cloud as u16));
        for (cloud, there) in seen.there.into_iter().enumerate().filter(has) {
            let repaired = match there {
                Ok(there) => self.repair_at(table, (place, removes(cloud)), (cloud, there))?,
                Err(failure) => Repaired::failed(&failure),
            };
            done.insert((layout.number, layout.declaration.clouds[cloud].clone()), repaired);
        }
        Ok(())
    }

    /// What is known of a table, what its clouds say of each layout, and whether the database was put back.
    pub(super) fn look(&mut self, table: &Table) -> Result<(Kept, Vec<Seen>, bool)> {
        let view = self.view()?;
        let kept = kept(&view, table)?;
        let mut seen = Vec::new();
        for layout in kept.layouts() {
            let away = opened(&self.engine().dispersed, &view, table, layout)?;
            let there = self.there(layout, &away)?;
            seen.push(Seen { away, there });
        }
        let is_put_back = is_put_back(&view, &kept)?;
        Ok((kept, seen, is_put_back))
    }

    /// Of a database that was put back, whether clouds have any of the rows that it knows of.
    fn check_there(&mut self, table: &Table) -> Result<()> {
        let is_put_back = {
            let view = self.view()?;
            is_put_back(&view, &kept(&view, table)?)?
        };
        if !is_put_back {
            return Ok(());
        }
        let (kept, seen, _) = self.look(table)?;
        let gone: Rows = Lost::of(&kept, &seen)?.into_iter().flat_map(|lost| lost.gone).collect();
        if are_all(&gone, &kept) {
            return Err(all_gone(table));
        }
        let is_shown = seen.iter().flat_map(|of| of.there.iter().flatten()).any(|(rows, _)| !rows.is_empty());
        match seen.iter().flat_map(|of| &of.there).any(Result::is_err) && !is_shown && !kept.live().is_empty() {
            true => Err(none_shown(table)),
            false => Ok(()),
        }
    }

    /// What each cloud says it has, or why it does not say it.
    fn there(&self, layout: &Layout, away: &Away) -> Result<Vec<Result<There, Failure>>> {
        let waiting = Waiting::statement(&self.planner.interrupt);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let at = |cloud: usize| {
            let there = match away.rows_at(asking, cloud) {
                // A table of which a cloud has nothing is none for it.
                Err(Failure::NoTable) => There::default(),
                there => there?,
            };
            // One that is to be given rows must be the one that it is taken for.
            if !layout.state.live.is_subset(&there.0)
                && let Some(other) = away.is_at_the_place_of(asking, cloud)?
            {
                return Err(exchanged(layout, other));
            }
            Ok(there)
        };
        let clouds = (0..layout.declaration.clouds.len()).map(|cloud| match at(cloud) {
            Err(Failure::CalledOff) => Err(waiting.called_off()),
            there => Ok(there),
        });
        clouds.collect()
    }

    /// Lets go of rows that were deleted after the copy was made that this database was put back from; what is kept then.
    fn let_go(
        &mut self,
        table: &Arc<Table>,
        seen: &[Seen],
        (all_show_catalogue, takes_over): (bool, bool),
    ) -> Result<Kept> {
        let (kept, gone) = self.change(|_, change| {
            let mut kept = kept(&*change.lease, table)?;
            let mut gone = Rows::new();
            for lost in Lost::of(&kept, seen)? {
                kept.have_moved(lost.layout, &lost.moved);
                gone |= lost.gone;
            }
            if are_all(&gone, &kept) && !takes_over {
                return Err(all_gone(table));
            }
            kept.gone(&gone);
            if all_show_catalogue && seen.iter().flat_map(|of| &of.there).all(Result::is_ok) {
                kept.incidents = incidents(&*change.lease)?.len() as u64;
            }
            keep(&mut change.lease, table.id, &kept)?;
            Ok((kept, gone.len()))
        })?;
        if gone > 0 {
            let text = "rows that were deleted after this copy of the database was made are gone here, too";
            self.notices.push(format!("table {}: {text}: {gone}", table.name));
        }
        Ok(kept)
    }

    /// Gives a cloud what it lacks, and takes from it what it is not to have, if that is known.
    pub(super) fn repair_at(
        &mut self,
        table: &Arc<Table>,
        (place, removes): (Place<'_>, bool),
        (cloud, (there, others)): (usize, There),
    ) -> Result<Repaired> {
        let (layout, mut repaired) = (place.layout, Repaired::default());
        let given = self.give(table, place, (cloud, &(&layout.state.live - &there)))?;
        repaired.put = given.put.len();
        self.note_arrived(table, layout, (cloud, &(&given.put | &there)))?;
        if let Some(failure) = given.failure {
            repaired.fail(&failure);
            return Ok(repaired);
        }
        repaired.failure = given.unread.text(&table.name);
        // What has moved away is dropped as a whole; and what nobody here knows may be of others, where clouds do not show what they know.
        if !removes {
            return Ok(repaired);
        }
        // What has left and is not live yet is told in its own time, and this cloud may have it when others lack it still.
        let over = (there - &layout.state.live) - layout.on_their_way();
        let away = place.away;
        let removed = away.remove(&layout.state, cloud, &over).and_then(|()| away.remove_places(cloud, &others));
        match removed {
            Ok(()) => repaired.removed = over.len() + others.len() as u64,
            Err(failure) => repaired.fail(&failure),
        }
        Ok(repaired)
    }
}

/// What is said of a cloud at whose address another one answers: nothing is put there.
fn exchanged(layout: &Layout, other: usize) -> Failure {
    let other = &layout.declaration.clouds[other];
    Failure::Unreachable(format!(
        "what lies at its address is what cloud {other} was given: were addresses exchanged? (rows that came since are read and deleted as long as that is so)"
    ))
}

/// Whether these rows are all that is known of a table, and not nothing.
pub(super) fn are_all(gone: &Rows, kept: &Kept) -> bool {
    !gone.is_empty() && *gone == kept.live()
}

/// Nothing is told to clouds of which those that answer have nothing.
fn none_shown(table: &Table) -> Error {
    Error::Misuse(format!(
        "table {0}: some of its clouds do not answer, and the others have none of the rows that this copy of the database knows: \
         REPAIR TABLE {0} when more of them answer (SHOW CLOUDS)",
        table.name
    ))
}

/// Clouds that have nothing of a table may have let go of it after it moved to others: then what it was is not to be forgotten here.
pub(super) fn all_gone(table: &Table) -> Error {
    Error::Misuse(format!(
        "table {0}: its clouds have none of the rows that this copy of the database knows: if it lies at other clouds by now, \
         `counterfoil restore --from URL NEW --key-file SHARES` brings it back from one of them; if all of its rows were deleted, \
         REPAIR TABLE {0} TAKE OVER lets go of them here, too",
        table.name
    ))
}
