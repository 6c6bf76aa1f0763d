//! Single points by series and time.

use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::edge::Entry;
use crate::files::Files;
use crate::merge::read_leaf;
use crate::node::Walk;
use crate::points::{Points, Span};
use crate::state::State;

/// Points that were looked for, and which of them were found: the others have NULLs.
pub struct Found {
    /// One for each key, in their order.
    pub points: Points,
    /// Whether it is there.
    pub there: Vec<bool>,
}

/// Looks up points, keeping the leaf that was read last.
pub(crate) struct Finder<'a> {
    view: &'a dyn View,
    files: &'a Files,
    state: &'a State,
    leaf: Option<(u32, Entry, Points)>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(view: &'a dyn View, files: &'a Files, state: &'a State) -> Self {
        Finder { view, files, state, leaf: None }
    }

    /// Looks all of them up.
    pub(crate) fn find(mut self, keys: &[(u32, i64)]) -> Result<Found, Error> {
        let mut found = Found { points: Points::new(&self.state.kinds), there: Vec::with_capacity(keys.len()) };
        for (series, time) in keys {
            let is_there = self.find_one(*series, *time, &mut found.points)?;
            if !is_there {
                found.points.push(*time, []);
            }
            found.there.push(is_there);
        }
        Ok(found)
    }

    fn find_one(&mut self, number: u32, time: i64, found: &mut Points) -> Result<bool, Error> {
        let Some(series) = self.state.series.get(number as usize) else { return Ok(false) };
        if time < self.state.oldest {
            return Ok(false);
        }
        if let Some(is_there) = series.late.knows(time) {
            return Ok(is_there && append(found, &series.late.points, time));
        }
        if series.edge.end().is_none_or(|end| end < time) {
            let before = found.len();
            series.tail.read(&Span { first: time, last: time }, found);
            return Ok(found.len() > before);
        }
        let is_kept = self.leaf.as_ref().is_some_and(|(of, entry, _)| *of == number && entry.span().contains(time));
        if !is_kept {
            let mut walk = Walk::new(number, &series.edge, Span { first: time, last: time });
            let Some(entry) = walk.next(self.view, self.files)? else { return Ok(false) };
            let points = read_leaf(self.view, self.files, &self.state.kinds, number, &entry)?;
            self.leaf = Some((number, entry, points));
        }
        Ok(self.leaf.as_ref().is_some_and(|(_, _, points)| append(found, points, time)))
    }
}

fn append(found: &mut Points, points: &Points, time: i64) -> bool {
    match points.times.binary_search(&time) {
        Ok(at) => {
            found.append_one(points, at);
            true
        }
        Err(_) => false,
    }
}
