//! Rows of a dispersed table in turns: all of them at once, or, where there is no room for that, as many as there is room for.
//!
//! All at once is asked first, since one question for everything takes less than several that name rows. Where it ends for want of memory, it is
//! known which rows are meant, and they are asked for by their places; what was fetched until then, as much as fits, is the price.

use counterfoil_disperse::Rows;

use super::scan::{AtFault, DispersedScan};
use crate::error::{Error, Result};
use crate::published::{Asking, Turn};

/// Rows of a turn at least: if they have no room, nothing has.
pub(super) const ROWS_LEAST: u64 = 256;
/// Into how many turns rows are cut at first.
const TURNS_FIRST: u64 = 4;
/// Rows of a turn that were left out at first, since clouds were believed.
const TURN_LATER: u64 = 1 << 16;

/// Some rows in as many pieces as there are turns at first.
pub(super) fn in_turns(rows: &Rows) -> Vec<Rows> {
    let numbers: Vec<u64> = rows.iter().collect();
    let most = numbers.len().div_ceil(TURNS_FIRST as usize).max(1);
    numbers.chunks(most).map(|some| some.iter().copied().collect()).collect()
}

/// Rows that are still to be asked for.
enum Left {
    /// All, as far as is known.
    All,
    /// These, so many at a time; and those that clouds left out.
    Some(Rows, u64, Rows),
}

/// A scan, and what is left of it.
pub(super) struct Turns {
    scan: DispersedScan,
    left: Left,
    at_fault: AtFault,
}

impl Turns {
    pub(super) fn of(scan: DispersedScan) -> Self {
        Turns { scan, left: Left::All, at_fault: AtFault::default() }
    }

    /// The next rows.
    pub(super) fn next(&mut self, asking: &Asking) -> Result<Turn> {
        if let Left::All = self.left {
            let (all, mut conditions) = self.scan.meant()?;
            let rows = self.first(asking, &all)?;
            if rows.len() < all.len() || self.at_fault.is_beyond_belief {
                // What they say of conditions was asked on the way, or nobody is believed about them any more.
                conditions.clear();
            }
            match self.scan.read(asking, &rows, &conditions, &mut self.at_fault) {
                Err(Error::Memory(_)) if rows.len() > ROWS_LEAST => {}
                batches => {
                    let batches = batches?;
                    // Who said which rows come first may have been wrong.
                    let is_last = rows.len() == all.len() || !self.at_fault.is_beyond_belief;
                    self.left = Left::Some(all - &rows, TURN_LATER, Rows::new());
                    return Ok(Turn { batches, is_last });
                }
            }
            asking.hold(0)?;
            let rows = match conditions.is_empty() || self.at_fault.is_beyond_belief {
                true => rows,
                false => self.scan.matching(asking, &rows, &conditions, &mut self.at_fault)?,
            };
            let most = (rows.len() / TURNS_FIRST).max(ROWS_LEAST);
            let left_out = all - &rows;
            self.left = Left::Some(rows, most, left_out);
        }
        self.some(asking)
    }

    /// The rows that may come first, where that is what is wanted, and there is room to find out.
    fn first(&mut self, asking: &Asking, all: &Rows) -> Result<Rows> {
        // Of a database that was put back clouds do not know all rows.
        let Some(first) = self.scan.first().filter(|_| !self.scan.is_put_back()) else { return Ok(all.clone()) };
        let rows = match self.scan.first_of(asking, all, first, &mut self.at_fault) {
            Err(Error::Memory(_)) => all.clone(),
            rows => rows?,
        };
        asking.hold(0)?;
        Ok(rows)
    }

    fn some(&mut self, asking: &Asking) -> Result<Turn> {
        let Left::Some(left, most, left_out) = &mut self.left else {
            return Err(Error::Bug("a turn before the first one".into()));
        };
        loop {
            let rows: Rows = left.iter().take(usize::try_from(*most).unwrap_or(usize::MAX)).collect();
            match self.scan.read(asking, &rows, &[], &mut self.at_fault) {
                Err(Error::Memory(_)) if *most > ROWS_LEAST => {
                    asking.hold(0)?;
                    *most = (*most / 2).max(ROWS_LEAST);
                }
                batches => {
                    let batches = batches?;
                    *left -= &rows;
                    if self.at_fault.is_beyond_belief {
                        *left |= std::mem::take(left_out);
                    }
                    return Ok(Turn { batches, is_last: left.is_empty() });
                }
            }
        }
    }
}
