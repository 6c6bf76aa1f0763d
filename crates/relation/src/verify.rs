//! Checking tables: every row, rows against indexes, indexes against rows, references.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::careful::{Careful, Piece};
use crate::index::{IndexReader, Place};
use crate::join::Joined;
use crate::key::{Keys, split_entry, stored};
use crate::read::Wanted;
use crate::run::{Cursor, Run};
use crate::state::DELETE_BYTES;
use crate::{Cause, Error, IndexDef, RowBlock, RowId, TableId, path};
use counterfoil_log::Map;

const PIECE_ROWS: usize = 4096;
/// Problems named one by one for each table; of more it is said that there are more.
const PROBLEMS_MAX: usize = 1000;

/// How far a verification has come.
#[derive(Clone, Copy, Debug)]
pub struct VerifyProgress<'a> {
    /// The table under way.
    pub table: &'a str,
    /// Rows and index entries checked, in this table.
    pub done: u64,
    /// Rows and index entries to check, in this table.
    pub total: u64,
}

/// Something that is not as it must be. What has one cause is one problem, however many rows it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The table; empty for the catalog.
    pub table: String,
    /// What is wrong and where (page, index); never row values.
    pub what: String,
    /// The rows that it takes, if it is about rows.
    pub rows: Option<LostRows>,
}

/// Rows that share a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRows {
    /// The number of the first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows {
            None => f.write_str(&self.what),
            Some(LostRows { first, count: 1 }) => write!(f, "row {first}: {}", self.what),
            Some(LostRows { first, count }) => write!(f, "{count} rows from row {first} on: {}", self.what),
        }
    }
}

/// What was checked in one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub table: String,
    /// Rows that were read and are there.
    pub rows: u64,
    /// Entries of index runs that were read, and those of rows in no run yet, which are worked out from the rows.
    pub entries: u64,
    /// References that were followed.
    pub references: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// What was checked, by table.
    pub tables: Vec<TableReport>,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}

/// The verification of one table.
struct Verifier<'a> {
    shared: &'a Shared,
    view: &'a dyn View,
    access: &'a Access,
    progress: &'a mut dyn FnMut(&VerifyProgress<'_>),
    report: TableReport,
    problems: Vec<Problem>,
    /// Where each of them stands, by what it is.
    known: Map<String, usize>,
    more: u64,
    done: u64,
    total: u64,
}

/// Checks every table.
pub(crate) fn verify(
    shared: &Shared,
    view: &dyn View,
    progress: &mut dyn FnMut(&VerifyProgress<'_>),
) -> Result<VerifyReport, Error> {
    let mut report = VerifyReport::default();
    for id in crate::catalog::table_ids(view)? {
        match verify_table(shared, view, id, progress, &mut report) {
            Err(error) if error.is_damage() => {
                let table = match error.cause() {
                    Cause::Corrupt { table, .. } | Cause::Log { table, .. } => table.clone(),
                    _ => String::new(),
                };
                let what = cause(&error, &table);
                report.problems.push(Problem { table, what, rows: None });
            }
            other => other?,
        }
    }
    Ok(report)
}

fn verify_table(
    shared: &Shared,
    view: &dyn View,
    id: TableId,
    progress: &mut dyn FnMut(&VerifyProgress<'_>),
    report: &mut VerifyReport,
) -> Result<(), Error> {
    let access = shared.access(view, id)?;
    let rows: u64 = access.parts.iter().map(|part| part.count).sum();
    // What cannot be read of an index is told when it is its turn.
    let files = access.table.indexes.iter().filter_map(|index| shared.index_files(view, &access, index.id).ok());
    let total = files.map(|files| files.entries()).fold(rows, u64::saturating_add);
    let table = TableReport { table: access.table.name.clone(), ..TableReport::default() };
    let (problems, known) = (Vec::new(), Map::new());
    let mut verifier =
        Verifier { shared, view, access: &access, progress, report: table, problems, known, more: 0, done: 0, total };
    let outcome = verifier.run();
    let Verifier { report: table, mut problems, more, .. } = verifier;
    if more > 0 {
        problems.push(Problem { table: table.table.clone(), what: format!("and {more} more"), rows: None });
    }
    report.tables.push(table);
    report.problems.append(&mut problems);
    outcome
}

impl Verifier<'_> {
    fn run(&mut self) -> Result<(), Error> {
        if let Err(error) = self.check_logs() {
            self.damage(error, "map of row numbers")?;
        }
        let access = self.access;
        let mut readers = Vec::new();
        for index in &access.table.indexes {
            match self.shared.index(self.view, access, index, false) {
                Ok(reader) => readers.push(reader),
                Err(error) => self.damage(error, &format!("index {}", index.name))?,
            }
        }
        self.check_rows(&readers)?;
        for reader in &readers {
            for run in reader.runs() {
                self.check_run(reader.definition(), run)?;
            }
        }
        Ok(())
    }

    fn problem(&mut self, what: String) {
        self.add(what, None);
    }

    /// A problem that takes a row.
    fn problem_of(&mut self, row: u64, what: String) {
        self.add(what, Some(LostRows { first: row, count: 1 }));
    }

    /// A page that is lost is met at every row and index block in it: it is said once, and its rows are counted.
    fn add(&mut self, what: String, rows: Option<LostRows>) {
        if let Some(place) = self.known.get(&what) {
            if let (Some(all), Some(more)) = (&mut self.problems[*place].rows, rows) {
                *all = LostRows { first: all.first.min(more.first), count: all.count + more.count };
            }
        } else if self.problems.len() < PROBLEMS_MAX {
            self.known.insert(what.clone(), self.problems.len());
            self.problems.push(Problem { table: self.report.table.clone(), what, rows });
        } else {
            self.more += 1;
        }
    }

    /// Notes damage and goes on; anything else ends the verification.
    fn damage(&mut self, error: Error, place: &str) -> Result<(), Error> {
        if !error.is_damage() {
            return Err(error);
        }
        self.problem(format!("{place}: {}", cause(&error, &self.report.table)));
        Ok(())
    }

    fn advance(&mut self, count: u64) {
        self.done += count;
        (self.progress)(&VerifyProgress { table: &self.report.table, done: self.done, total: self.total });
    }

    /// A row is deleted once, and only rows that are there are updated.
    fn check_logs(&mut self) -> Result<(), Error> {
        for part in &self.access.parts {
            part.check_maps(self.view)?;
            let deleted = part.state.read(|state| state.deleted(0, u64::MAX, part.lengths).count() as u64);
            if deleted != part.lengths.deletes / DELETE_BYTES as u64 {
                self.problem(format!("the delete log of rows from {} on names rows twice", part.segment.first));
            }
            let named: Vec<u64> = part.state.read(|state| {
                let updated = state.updated(0, u64::MAX, part.lengths).into_iter().map(|update| update.row);
                state.deleted(0, u64::MAX, part.lengths).chain(updated).collect()
            });
            let mut strange = 0;
            for row in named {
                strange += u64::from(part.position_of(self.view, RowId(row))?.is_none());
            }
            if strange > 0 {
                let what = "the delete and update logs of rows from";
                self.problem(format!("{what} {} on name {strange} rows that never were", part.segment.first));
            }
        }
        Ok(())
    }

    fn check_rows(&mut self, readers: &[IndexReader<'_>]) -> Result<(), Error> {
        let mut careful = Careful::new(self.access);
        while let Some(piece) = careful.next(self.view, self.access, PIECE_ROWS)? {
            match piece {
                Piece::Rows(block) => {
                    self.check_block(&block, readers)?;
                    self.report.rows += block.visible_count() as u64;
                    self.advance(block.count() as u64);
                }
                Piece::Damaged { part, positions, error } => {
                    // Where a map is damaged, too, the numbers of its rows are lost.
                    let first = self.access.parts[part].row_at(self.view, positions.start).ok().flatten();
                    self.problem_of(first.map_or(0, |row| row.0), cause(&error, &self.report.table));
                    self.advance(positions.end - positions.start);
                }
            }
        }
        Ok(())
    }

    fn check_block(&mut self, block: &RowBlock, readers: &[IndexReader<'_>]) -> Result<(), Error> {
        let mut sound = crate::RowBatch::new(block.rows.layout().clone(), 0);
        let mut ids = Vec::new();
        for row in block.visible_rows() {
            match check_image(block, row) {
                Ok(()) => {
                    sound.push_from(&block.rows, row)?;
                    ids.push(block.id(row));
                }
                Err(error) => self.problem_of(block.id(row).0, cause(&error, &self.report.table)),
            }
        }
        if let Err(error) = self.access.table.check(&sound) {
            self.problem(error.to_string());
        }
        for reader in readers {
            if let Err(error) = self.check_entries(reader, &sound, &ids) {
                self.damage(error, &format!("index {}", reader.definition().name))?;
            }
        }
        self.check_joins(&sound, &ids)
    }

    /// Every row has its entry in an index, and a unique key no other row.
    fn check_entries(&mut self, reader: &IndexReader<'_>, rows: &crate::RowBatch, ids: &[RowId]) -> Result<(), Error> {
        let index = reader.definition();
        let keys = Keys::of_parts(rows, &self.access.key_parts(index)?)?;
        for (row, id) in ids.iter().enumerate() {
            match reader.place_of(keys.key(row), *id)? {
                None => self.problem(format!("index {} lacks row {}", index.name, id.0)),
                Some(Place::Fresh) => self.report.entries += 1,
                // Counted where its run is read.
                Some(Place::Run) => {}
            }
        }
        if index.unique {
            let sorted = keys.sorted();
            let found = reader.matches(&keys, &sorted)?;
            for (place, row) in found {
                if ids[sorted[place]] != row {
                    self.problem(format!("rows {} and {} share a key of {}", ids[sorted[place]].0, row.0, index.name));
                }
            }
        }
        Ok(())
    }

    /// Every reference that is enforced leads to a row, and every row joins the rows to which its references lead.
    fn check_joins(&mut self, rows: &crate::RowBatch, ids: &[RowId]) -> Result<(), Error> {
        let table = self.access.table.clone();
        let joined = match Joined::find(self.shared, self.view, self.access, rows, false) {
            Ok(joined) => joined,
            Err(error) => return self.damage(error, "foreign keys"),
        };
        let enforced = table.foreign_keys.iter().zip(&joined.references).filter(|(key, _)| key.enforced);
        for (key, references) in enforced {
            self.report.references += references.count;
            if !references.dangling.is_empty() {
                let count = references.dangling.len();
                self.problem(format!("{count} rows reference rows that do not exist: foreign key {}", key.name));
            }
        }
        for (place, join) in table.joins.iter().enumerate() {
            if let Some((first, count)) = joined.wrong(rows, place) {
                let what = format!(
                    "path {} leads elsewhere than it says",
                    path::name_of(self.shared, self.view, &table, join)?
                );
                self.add(what, Some(LostRows { first: ids[first].0, count: count as u64 }));
            }
        }
        Ok(())
    }

    /// Every entry of a run is in its place, and belongs to a row that has or had this key.
    fn check_run(&mut self, index: &IndexDef, run: &Run) -> Result<(), Error> {
        let mut cursor = Cursor::careful(run);
        let mut last: Vec<u8> = Vec::new();
        let (mut count, mut skipped) = (0, false);
        let mut piece: Vec<(Vec<u8>, RowId)> = Vec::new();
        loop {
            match cursor.advance(self.view) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.damage(error, &format!("index {}", index.name))?;
                    skipped = true;
                    if !cursor.skip_block() {
                        break;
                    }
                    continue;
                }
            }
            let Some((key, row)) = cursor.current().and_then(split_entry) else { continue };
            if cursor.current().is_some_and(|entry| entry <= last.as_slice()) {
                self.problem(format!("the entries of index {} are out of order", index.name));
            }
            piece.push((key.to_vec(), row));
            last = cursor.current().unwrap_or_default().to_vec();
            count += 1;
            if piece.len() == PIECE_ROWS {
                self.check_piece(index, run, &mut piece)?;
            }
        }
        self.check_piece(index, run, &mut piece)?;
        if !skipped && count != run.entries {
            self.problem(format!("a run of index {} has {count} entries instead of {}", index.name, run.entries));
        }
        Ok(())
    }

    fn check_piece(&mut self, index: &IndexDef, run: &Run, piece: &mut Vec<(Vec<u8>, RowId)>) -> Result<(), Error> {
        let count = piece.len() as u64;
        self.report.entries += count;
        piece.order_by_key(|(_, row)| *row);
        if let Err(error) = self.compare_piece(index, run, piece) {
            self.damage(error, &format!("rows of index {}", index.name))?;
        }
        piece.clear();
        self.advance(count);
        Ok(())
    }

    fn compare_piece(&mut self, index: &IndexDef, run: &Run, piece: &[(Vec<u8>, RowId)]) -> Result<(), Error> {
        let access = self.access;
        let parts = access.key_parts(index)?;
        let never = piece.iter().filter(|(_, row)| row.0 >= access.next_row()).count();
        if never > 0 {
            self.problem(format!("index {} names {never} rows that never were", index.name));
        }
        let rows: Vec<RowId> = piece.iter().map(|(_, row)| *row).collect();
        let block = access.fetch(self.view, &rows, &Wanted::only(parts.columns()))?;
        let keys = Keys::of_parts(&block.rows, &parts)?;
        for row in block.visible_rows() {
            let (key, id) = &piece[row];
            let updated = match access.locate(self.view, *id)? {
                Some((part, _)) => access.parts[part].may_have_had_other_keys(self.view, *id, run.renewals)?,
                None => false,
            };
            if !updated && stored(keys.key(row)) != key.as_slice() {
                self.problem(format!("index {} has row {} under a key that is not its own", index.name, id.0));
            }
        }
        Ok(())
    }
}

/// What an error says, without the name of the table, which stands beside it.
fn cause(error: &Error, table: &str) -> String {
    let text = error.to_string();
    match text.strip_prefix(&format!("table {table}: ")) {
        Some(rest) => rest.to_string(),
        None => text,
    }
}

/// Every value of a row is one, and NULLs have no bytes.
fn check_image(block: &RowBlock, row: usize) -> Result<(), Error> {
    for column in 0..block.rows.layout().columns().len() {
        block.rows.value(row, column)?;
        if block.rows.is_null(row, column) && block.rows.fixed(row, column).iter().any(|byte| *byte != 0) {
            return Err(Error::corrupt("", "image of a NULL"));
        }
    }
    Ok(())
}
