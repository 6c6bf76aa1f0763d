//! What a mirror answers from one snapshot of its store. All of it may block.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_mirror::site::{FILE_BYTES_MAX, SUMMARIES_PER_FILE};
use counterfoil_mirror::wire::{Standing, State};
use counterfoil_mirror::{AnswerError, Unanswered, reply};
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Owner, Scheme};

use crate::limits::Limits;
use crate::reply::Problem;
use crate::shelf::BoundedShelf;
use crate::store::{Reading, Store, StoreError, TableName};
use crate::sums::{KeptSums, Moment};
use crate::tables::Definitions;
use crate::walked::Walked;

/// A table as it is asked for.
pub(crate) struct Asked {
    pub(crate) owner: Owner,
    pub(crate) name: String,
}

impl Asked {
    pub(crate) fn table(&self) -> TableName {
        TableName { owner: *self.owner.bytes(), name: self.name.clone() }
    }
}

pub(crate) struct Answering {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) definitions: Definitions,
    pub(crate) sums: KeptSums,
    pub(crate) limits: Limits,
}

impl Answering {
    pub(crate) fn new(store: Arc<dyn Store>, limits: Limits) -> Self {
        Self { store, definitions: Definitions::default(), sums: KeptSums::new(limits.sums_bytes_max), limits }
    }

    fn reading(&self, asked: &Asked) -> Result<Box<dyn Reading>, Problem> {
        self.store.read(&asked.table())?.ok_or(Problem::NotFound("no such table here"))
    }

    /// What readers may ask of: a table of which no part is missing.
    fn whole(&self, asked: &Asked) -> Result<Box<dyn Reading>, Problem> {
        let reading = self.reading(asked)?;
        if reading.kept().state.is_whole { Ok(reading) } else { Err(Problem::Loading) }
    }

    pub(crate) fn manifest(&self, asked: &Asked) -> Result<Vec<u8>, Problem> {
        Ok(self.whole(asked)?.kept().manifest.clone())
    }

    pub(crate) fn head(&self, asked: &Asked) -> Result<Vec<u8>, Problem> {
        let reading = self.whole(asked)?;
        let kept = reading.kept();
        let last = kept.state.progress.periods.checked_sub(1);
        let last = last.ok_or(Problem::NotFound("no period of this table has ended"))?;
        Ok(Standing { last, first: kept.oldest.min(last) }.to_bytes())
    }

    /// What a mirror that runs as a server has: the table need not be there.
    pub(crate) fn state(&self, asked: &Asked) -> Result<Vec<u8>, Problem> {
        let reading = self.store.read(&asked.table())?;
        Ok(reading.map_or(State::default(), |reading| reading.kept().state).to_bytes())
    }

    pub(crate) fn summaries(&self, asked: &Asked, file: u64) -> Result<Vec<u8>, Problem> {
        let mut reading = self.whole(asked)?;
        let periods = reading.kept().state.progress.periods;
        let first = file.checked_mul(SUMMARIES_PER_FILE).filter(|first| *first < periods);
        let first = first.ok_or(Problem::NotFound("no such summaries here"))?;
        let mut writer = Writer::default();
        for period in first..periods.min(first.saturating_add(SUMMARIES_PER_FILE)) {
            let summary = reading.summary(period)?.ok_or(StoreError::Damaged("a summary"))?;
            writer.string(&summary);
            if writer.0.len() > FILE_BYTES_MAX {
                return Err(StoreError::TooMuch.into());
            }
        }
        Ok(writer.0)
    }

    pub(crate) fn answer(&self, asked: &Asked, question: &[u8]) -> Result<Vec<u8>, Problem> {
        let deadline = Instant::now() + self.limits.answer_time_max;
        let mut reading = self.whole(asked)?;
        let definition = self.definitions.of(reading.kept(), &asked.owner)?;
        let bytes_left = self.limits.answer_bytes_max;
        let moment = Moment { table: reading.kept().definition, state: reading.kept().state };
        let keeps = definition.scheme == Scheme::PerRecord && self.limits.sums_bytes_max > 0;
        let walked = keeps.then(|| Walked::new(&self.sums, moment));
        let mut shelf = BoundedShelf { reading: &mut *reading, definition, bytes_left, deadline, walked };
        reply(&mut shelf, question).map_err(|error| match error {
            Unanswered::Question(what) => Problem::Malformed(what.0.into()),
            Unanswered::Answer(AnswerError::Shelf(error)) => error.into(),
            Unanswered::Answer(AnswerError::Shelved(what)) => StoreError::from(what).into(),
        })
    }
}
