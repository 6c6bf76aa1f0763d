//! Keeping house: what may be done at leisure, and what is asked for.

use counterfoil_relation::Vacuum;

use crate::database::Database;
use crate::error::Result;
use crate::options::Place;

/// Whether what was deleted is gone from the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// It is.
    Done,
    /// The medium keeps copies that nobody can reach or erase for certain.
    NotGuaranteed,
}

impl Database {
    /// Lets go of what series tables keep no longer (`retention`), and merges what has become many small pieces, as commits do
    /// by and by. Every step is a commit of its own, so it may be interrupted at any time and goes on where it was.
    ///
    /// # Errors
    /// Those of writing.
    pub fn reorganize(&self) -> Result<()> {
        let relations = self.inner.engine.relations().clone();
        let series = self.inner.engine.series().clone();
        relations.note_all(&self.snapshot()?)?;
        let mut is_first = true;
        while self.change(|writer| Ok(self.inner.engine.retain(writer, std::mem::take(&mut is_first))?))? {}
        while self.change(|writer| Ok(relations.maintain(writer)?))? {}
        while self.change(|writer| Ok(series.maintain(writer).map_err(counterfoil_sql::series_error)?))? {}
        Ok(())
    }

    /// Renews what was deleted from or updated in all tables, and merges their indexes; the space that becomes free is used again.
    /// Each step is a commit of its own, so it may be interrupted at any time.
    ///
    /// # Errors
    /// Those of writing.
    pub fn compact(&self) -> Result<()> {
        let relations = self.inner.engine.relations().clone();
        // A snapshot that lived on would keep what the steps free.
        let tables = self.tables(&self.snapshot()?)?;
        for table in tables {
            let mut vacuum = Vacuum::of(table.id);
            while self.change_to_free(|writer| Ok(relations.vacuum_step(writer, &mut vacuum)?))? {}
        }
        Ok(())
    }

    /// Compacts, and says whether what was deleted before is gone from the medium. Copies taken earlier are out of reach.
    ///
    /// # Errors
    /// Those of writing.
    pub fn purge(&self) -> Result<Purged> {
        self.compact()?;
        // A file lies on a file system on a drive that keep copies of their own; only memory of ours is surely
        // overwritten, and a database in memory ends with its key.
        Ok(if *self.place() == Place::Memory { Purged::Done } else { Purged::NotGuaranteed })
    }
}
