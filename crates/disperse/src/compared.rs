//! What lies at a cloud beside what it was given, fragment for fragment.
//!
//! All fragments of a row follow from its values, its number and the keys: whoever has the values from clouds that show them as they were
//! sealed codes them anew and knows what every other cloud must show.

use std::sync::atomic::AtomicBool;

use crate::asked::{self, Progress};
use crate::fragments::{Answer, Data, Fragments, Name, Question};
use crate::provider::Failure;
use crate::state::{Rows, State};
use crate::table::{Asking, Coded, Table};

/// What a cloud shows of rows beside what it was given.
#[derive(Debug, Default)]
pub struct Compared {
    /// Rows that it shows otherwise.
    pub changed: Rows,
    /// Rows that it does not show.
    pub hidden: Rows,
    /// What it said behind all that it could show.
    pub damage: Option<Failure>,
}

/// What is known of a row while an answer comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Not,
    AsGiven,
    Changed,
}

impl Table {
    /// All live rows, in pieces of so many at most of which a cloud has neighbours: what it is asked about together says nothing more
    /// about them than that.
    #[must_use]
    pub fn neighbours(&self, state: &State, cloud: usize, most: usize) -> Vec<Rows> {
        let places = self.coder().sorted_places(&state.epochs, cloud, &state.live);
        let pieces = places.chunks(most.max(1));
        pieces.map(|some| self.coder().rows(&state.epochs, cloud, some.to_vec()).flatten().collect()).collect()
    }

    /// Compares coded rows with what a cloud shows of them.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn compared_at(&self, asking: Asking<'_>, cloud: usize, coded: &Coded<'_>) -> Result<Compared, Failure> {
        let given = self.fragments(asking.state, cloud, coded)?;
        let columns = given.columns.iter().map(|(name, _)| name.clone()).collect();
        let question = Question { columns, places: Some(given.places.clone()), ..Question::default() };
        let (is_enough, progress) = (AtomicBool::new(false), Progress::default());
        let wait = self.wait(asking.watch, &is_enough, &progress);
        // A place for each row, however often a cloud shows one.
        let mut seen = vec![Seen::Not; given.places.len()];
        let asked = (self.coder().table_name(cloud), question);
        let (_, damage) = asked::ask_for_rows(&self.clouds()[cloud], asked, wait, &mut |answer: Answer| {
            asking.watch.part(0)?;
            note_seen(&given, &answer.rows, &mut seen)
        })?;
        let rows = |wanted: Seen| -> Rows {
            let places = given.places.iter().zip(&seen).filter(|(_, seen)| **seen == wanted).map(|(place, _)| *place);
            self.coder().rows(&asking.state.epochs, cloud, places.collect()).flatten().collect()
        };
        Ok(Compared { changed: rows(Seen::Changed), hidden: rows(Seen::Not), damage })
    }
}

/// Notes which rows are shown, and of which other fragments than were given.
fn note_seen(given: &Fragments, shown: &Fragments, seen: &mut [Seen]) -> Result<(), Failure> {
    if !shown.is_even() {
        return Err(Failure::Malformed("columns of different lengths".into()));
    }
    for (row, place) in shown.places.iter().enumerate() {
        let Ok(at) = given.places.binary_search(place) else { continue };
        let is_as_given =
            |(name, own): &(Name, Data)| shown.column(name).is_some_and(|data| is_same(own, at, data, row));
        // One that it shows twice is as given if it is each time.
        let is_as_given = seen[at] != Seen::Changed && given.columns.iter().all(is_as_given);
        seen[at] = if is_as_given { Seen::AsGiven } else { Seen::Changed };
    }
    Ok(())
}

fn is_same(one: &Data, at: usize, other: &Data, row: usize) -> bool {
    match (one, other) {
        (Data::Shares(one), Data::Shares(other)) => one[at] == other[row],
        (Data::Strings(one), Data::Strings(other)) => one.get(at) == other.get(row),
        _ => false,
    }
}
