//! Rows of one table of which tests may be true, some at a time, where there is no room for the numbers of all: for whoever reads a table by
//! an index and does not answer a question here.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::scratch::NoScratch;
use super::windows::Windows;
use super::{Access, Source, Test};
use crate::found::FoundRows;
use crate::{Error, Relations, RowId, Table};

/// Rows that indexes name, in passes over these.
pub struct Passes {
    source: Source,
    windows: Windows,
    /// What is left of the window that was found last.
    rows: FoundRows,
    /// What names them.
    by: String,
}

impl Relations {
    /// The rows of a table of which all tests may be true, if an index names them, reading all rows is not better, and there is no room for
    /// all of their numbers: else [`Relations::named_within`] has them. `room`: for so many.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn in_passes(
        &self,
        view: &dyn View,
        table: &Arc<Table>,
        tests: &[Test],
        room: usize,
    ) -> Result<Option<Passes>, Error> {
        if tests.is_empty() || room as u64 >= self.count(view, table)? {
            return Ok(None);
        }
        let source = Source { table: table.clone(), path: None, tests: tests.to_vec(), is_optional: false };
        let bounds = (room, Access::Cheaper, false);
        let opened = Windows::open(self, view, (core::slice::from_ref(&source), &[]), vec![None], bounds)?;
        Ok(opened.map(|(windows, rows, by)| Passes { source, windows, rows, by }))
    }
}

impl Passes {
    /// What names the rows.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The next rows, ascending, so many at most; none at the end. The view is that of the beginning.
    ///
    /// # Errors
    /// As of [`Relations::in_passes`].
    pub fn next(&mut self, relations: &Relations, view: &dyn View, count: usize) -> Result<Vec<RowId>, Error> {
        loop {
            let rows: Vec<RowId> = self.rows.by_ref().take(count).collect();
            if !rows.is_empty() || count == 0 {
                return Ok(rows);
            }
            match self.windows.next(relations, view, &self.source, &mut NoScratch)? {
                Some(window) => self.rows = window,
                None => return Ok(rows),
            }
        }
    }
}
