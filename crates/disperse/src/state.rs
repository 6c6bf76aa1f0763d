//! What the owner remembers of a dispersed table: which rows there are, and what each cloud has not been told yet.
//!
//! ```text
//! a row comes     local  -> noted as lacking everywhere -> put at clouds -> lacking nowhere: dispersed, and no longer local
//! a row goes      not live any more, noted as kept everywhere -> removed at clouds -> forgotten
//! ```
//! 1. A row is noted before the first of its fragments leaves: from then on its number belongs to its values, whatever is cut.
//! 2. It stays here, sealed, until every cloud has said that it has it. A cloud that is down keeps rows here, and loses none.
//! 3. What a cloud shows that is not live is not there: it may not have been told yet.
//! 4. Each step is one commit of the database that keeps this. After a cut everything that is noted is told again, which does
//!    nothing where it was told before.
//! 5. A row that another client told, and that a cloud lacks, is live and *owed* to that cloud: it is asked for elsewhere, and put there
//!    from what the others have by whoever tells clouds next. `owed` is a part of `live`, and never of `lacks`.

use roaring::RoaringTreemap;

use crate::coder::Epochs;

/// A set of row numbers.
pub type Rows = RoaringTreemap;

/// What one cloud has not been told yet, as far as is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Untold {
    /// Rows that it may lack.
    pub lacks: Rows,
    /// Rows that are gone, and that it may still have.
    pub keeps: Rows,
    /// Live rows that other clouds have, and that it may lack.
    pub owed: Rows,
}

/// What is remembered of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Who wrote which rows.
    pub epochs: Epochs,
    /// Rows that all clouds have.
    pub live: Rows,
    /// What each cloud has not been told, in the order of the clouds.
    pub untold: Vec<Untold>,
    /// How many more rows clouds have of which nothing is said here: where `live` is of some of a table's rows.
    pub others: u64,
}

impl State {
    /// The same of some of its rows alone.
    #[must_use]
    pub fn of_some(&self, rows: &Rows) -> Self {
        let live = rows & &self.live;
        let others = self.others + self.live.len() - live.len();
        Self { live, others, epochs: self.epochs.clone(), untold: self.untold.clone() }
    }

    /// The same where clouds say which rows they have, those that say it: of the others that are live they are owed all.
    #[must_use]
    pub fn as_shown<'a>(&self, there: impl IntoIterator<Item = Option<&'a Rows>>) -> Self {
        let mut state = self.clone();
        for (untold, there) in state.untold.iter_mut().zip(there) {
            untold.owed |= there.map_or_else(Rows::new, |there| &self.live - there);
        }
        state
    }

    /// That of a table without rows.
    #[must_use]
    pub fn new(clouds: usize) -> Self {
        Self { untold: vec![Untold::default(); clouds], ..Self::default() }
    }

    /// Rows are about to be put at all clouds: to be durable before they are.
    pub fn leaving(&mut self, rows: impl Iterator<Item = u64> + Clone) {
        self.untold.iter_mut().for_each(|untold| untold.lacks.extend(rows.clone()));
    }

    /// A cloud has these rows now.
    pub fn arrived(&mut self, cloud: usize, rows: &Rows) {
        self.untold[cloud].lacks -= rows;
        self.untold[cloud].owed -= rows;
    }

    /// Rows that were on their way are live, as another client told them: clouds that lack some are owed them.
    pub fn owe(&mut self, rows: &Rows) {
        self.live |= rows;
        for untold in &mut self.untold {
            untold.owed |= &untold.lacks & rows;
            untold.lacks -= rows;
        }
    }

    /// Rows do not lie here any more, but elsewhere.
    pub fn leave(&mut self, rows: &Rows) {
        self.live -= rows;
        self.untold.iter_mut().for_each(|untold| untold.owed -= rows);
    }

    /// The rows that some cloud is owed.
    #[must_use]
    pub fn owed(&self) -> Rows {
        self.untold.iter().fold(Rows::new(), |all, untold| all | &untold.owed)
    }

    /// Of rows that left, those that every cloud has: they are live from now on, and need not be here any more.
    pub fn settle(&mut self, left: &Rows) -> Rows {
        let mut settled = left.clone();
        self.untold.iter().for_each(|untold| settled -= &untold.lacks);
        self.live |= &settled;
        settled
    }

    /// Of these rows, those that were on their way still: every cloud has them now, and they are live.
    pub fn all_have(&mut self, rows: &Rows) -> Rows {
        let mut arrived = Rows::new();
        for untold in &mut self.untold {
            arrived |= &untold.lacks & rows;
            untold.lacks -= rows;
        }
        self.live |= &arrived;
        arrived
    }

    /// Of these rows, those that no cloud lacks but some of which it is told now that they have them.
    #[must_use]
    pub fn would_settle(&self, rows: &Rows, has: impl Fn(usize) -> bool) -> Rows {
        let others = self.untold.iter().enumerate().filter(|(cloud, _)| !has(*cloud));
        others.fold(rows.clone(), |left, (_, untold)| left - &untold.lacks)
    }

    /// Rows that are not to be there any more, dispersed ones or such as have left and not arrived everywhere.
    pub fn gone(&mut self, rows: &Rows) {
        let mut out = &self.live & rows;
        self.untold.iter().for_each(|untold| out |= &untold.lacks & rows);
        self.live -= rows;
        for untold in &mut self.untold {
            untold.lacks -= rows;
            untold.owed -= rows;
            untold.keeps |= &out;
        }
    }

    /// Whether a cloud can be asked for these rows, which are live.
    #[must_use]
    pub(crate) fn has(&self, cloud: usize, rows: &Rows) -> bool {
        self.untold[cloud].owed.is_disjoint(rows)
    }

    /// Whether it is no fault of a cloud that it has nothing: it is owed all live rows.
    pub(crate) fn may_have_nothing(&self, cloud: usize) -> bool {
        self.live.is_subset(&self.untold[cloud].owed)
    }

    /// Live rows in parts, of each of which the same clouds are owed all rows, and others none.
    #[must_use]
    pub fn parts(&self, rows: &Rows) -> Vec<Rows> {
        let mut parts = vec![rows.clone()];
        for Untold { owed, .. } in self.untold.iter().filter(|untold| !untold.owed.is_disjoint(rows)) {
            parts = parts.iter().flat_map(|part| [part - owed, part & owed]).filter(|part| !part.is_empty()).collect();
        }
        parts
    }

    /// A cloud has let go of these rows.
    pub fn removed(&mut self, cloud: usize, rows: &Rows) {
        self.untold[cloud].keeps -= rows;
    }

    /// Whether a cloud has exactly what is live: nothing that is gone, nothing that is on its way, which it may have before others, and all
    /// that it is owed.
    #[must_use]
    pub fn is_told(&self, cloud: usize) -> bool {
        let Untold { keeps, owed, .. } = &self.untold[cloud];
        keeps.is_empty() && owed.is_empty() && self.untold.iter().all(|untold| untold.lacks.is_empty())
    }

    /// A number behind those of all rows that any cloud may have, and behind the row with which the last epoch began: whoever goes on has
    /// another one, and what that sealed may have gone since.
    #[must_use]
    pub fn after_all(&self) -> u64 {
        let untold = self.untold.iter().flat_map(|untold| [untold.lacks.max(), untold.keeps.max()]);
        let began = self.epochs.iter().last().map(|(first, _)| first).filter(|first| *first > 0);
        untold.chain([self.live.max(), began]).flatten().max().map_or(0, |last| last + 1)
    }

    /// Whether a row's fragments have left, wherever they are.
    #[must_use]
    pub fn has_left(&self, row: u64) -> bool {
        self.live.contains(row) || self.untold.iter().any(|untold| untold.lacks.contains(row))
    }
}

#[cfg(test)]
mod tests {
    use super::{Rows, State};

    fn rows(rows: &[u64]) -> Rows {
        rows.iter().copied().collect()
    }

    #[test]
    fn a_row_is_live_when_every_cloud_has_it() {
        let mut state = State::new(2);
        state.leaving(10..14);
        state.arrived(0, &rows(&[10, 11, 12, 13]));
        state.arrived(1, &rows(&[11, 13]));
        assert_eq!(state.settle(&rows(&[10, 11, 12, 13])), rows(&[11, 13]));
        assert_eq!(state.live, rows(&[11, 13]));
        // The first has 10 and 12 as well, which are not live yet.
        assert!(!state.is_told(0) && !state.is_told(1));
        assert!(state.has_left(10) && !state.has_left(14));
    }

    #[test]
    fn what_goes_is_told_to_whoever_may_have_it() {
        let mut state = State::new(2);
        state.leaving(10..13);
        (0..2).for_each(|cloud| state.arrived(cloud, &rows(&[10])));
        state.settle(&rows(&[10, 11, 12]));
        // 10 is everywhere, 11 may be anywhere, 99 has never left.
        state.gone(&rows(&[10, 11, 99]));
        assert_eq!(state.live, rows(&[]));
        for untold in &state.untold {
            assert_eq!((&untold.lacks, &untold.keeps), (&rows(&[12]), &rows(&[10, 11])));
        }
        state.removed(0, &rows(&[10, 11]));
        assert_eq!(state.untold[0].keeps, rows(&[]));
    }

    #[test]
    fn what_a_cloud_is_owed_is_live_until_it_goes_or_arrives() {
        let mut state = State::new(2);
        state.leaving(10..14);
        state.arrived(0, &rows(&[10, 11, 12, 13]));
        state.owe(&rows(&[10, 11, 12]));
        assert_eq!((&state.live, &state.owed()), (&rows(&[10, 11, 12]), &rows(&[10, 11, 12])));
        assert_eq!(state.untold[1].lacks, rows(&[13]));
        state.settle(&rows(&[13]));
        state.all_have(&rows(&[13]));
        assert!(state.is_told(0) && !state.is_told(1));
        state.gone(&rows(&[10]));
        state.leave(&rows(&[11]));
        assert_eq!((&state.live, &state.owed()), (&rows(&[12, 13]), &rows(&[12])));
        state.arrived(1, &rows(&[12]));
        assert_eq!((&state.live, &state.owed()), (&rows(&[12, 13]), &rows(&[])));
    }
}
