//! A question from beginning to end: what is to be fetched, then rows with a verdict or a refusal.

use counterfoil_ask::Asked;
use counterfoil_mirror::site::Fetch;
use counterfoil_proof::Malformed;
use counterfoil_reader::{Error, Memory, Reading, Terms, read};

use crate::corruption::{Corrupted, Corruption};
use crate::fetched::{Brought, Fetched, Wanted};

/// Times that a page fetches for a question at most.
pub const ROUNDS_MAX: usize = 4096;

/// A question, and all that is known of its answer.
pub struct Session {
    sql: String,
    table: String,
    terms: Terms,
    /// What was remembered when it began: a walk is the same walk each time.
    before: Option<Memory>,
    memory: Option<Memory>,
    pub(crate) fetched: Fetched,
    rounds: usize,
    /// Whether all was fetched once more, since what came does not fit together.
    is_again: bool,
    pub(crate) reading: Option<Reading>,
}

/// How far a question is.
#[derive(Debug)]
pub enum Step<'a> {
    /// These are to be fetched, and then comes the next step.
    Wanted(&'a [Wanted]),
    /// The rows are the owner's.
    Read(&'a Reading),
    /// There are no rows, and why.
    Refused(Error),
}

impl Session {
    /// Begins a question of `sql`; `memory` is what [`Session::memory`] gave for the last one about this owner's table.
    ///
    /// # Errors
    /// [`Error::Sql`].
    pub fn begin(sql: &str, terms: Terms, memory: Option<Memory>) -> Result<Self, Error> {
        let table = Asked::table_of(sql)?;
        let (fetched, sql) = (Fetched::default(), sql.into());
        Ok(Self {
            sql,
            table,
            terms,
            before: memory.clone(),
            memory,
            fetched,
            rounds: 0,
            is_again: false,
            reading: None,
        })
    }

    /// The table that is asked.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Goes on as far as what was fetched leads.
    pub fn step(&mut self) -> Step<'_> {
        if self.reading.is_none()
            && let Err(error) = self.advance()
        {
            return Step::Refused(error);
        }
        match &self.reading {
            Some(reading) => Step::Read(reading),
            None => Step::Wanted(self.fetched.wanted()),
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        loop {
            self.fetched.begin();
            let mut memory = self.before.clone();
            let read = read(&mut self.fetched, &self.sql, &self.terms, &mut memory);
            if memory != self.before {
                self.memory = memory;
            }
            if !self.fetched.wanted().is_empty() {
                self.rounds += 1;
                if self.rounds > ROUNDS_MAX {
                    return Err(Error::Unreachable(format!("the mirror leads on: fetched {ROUNDS_MAX} times")));
                }
                return Ok(());
            }
            match read {
                // It may have been brought up to date meanwhile, so that a page of before is gone, or a manifest of before was
                // fetched with rows of now.
                Err(error) if error.may_pass() && !self.is_again => {
                    self.is_again = true;
                    self.fetched.forget();
                }
                read => {
                    self.reading = Some(read?);
                    return Ok(());
                }
            }
        }
    }

    /// Takes what came of something that [`Step::Wanted`] named.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: more than a page takes.
    pub fn bring(&mut self, path: &str, brought: Brought) -> Result<(), Error> {
        self.fetched.bring(path, brought).map_err(Error::Unreachable)
    }

    /// What is to be remembered, whatever became of the rows.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// The newer of what was seen here and what was remembered elsewhere meanwhile.
    ///
    /// # Errors
    /// [`Malformed`]: that is none.
    pub fn newer(&self, elsewhere: Option<&[u8]>) -> Result<Option<Memory>, Malformed> {
        let elsewhere = elsewhere.map(Memory::from_bytes).transpose()?;
        Ok(match (&self.memory, elsewhere) {
            (Some(seen), Some(elsewhere)) if !seen.is_as_new_as(&elsewhere) => Some(elsewhere),
            (seen, elsewhere) => seen.clone().or(elsewhere),
        })
    }

    /// What was fetched, in numbers.
    #[must_use]
    pub fn effort(&self) -> Effort {
        let (bytes, files) = self.fetched.counts();
        Effort { bytes, files, rounds: self.rounds }
    }

    /// Plays a mirror that changes what was fetched; the rows and what is remembered stay as they are. None: there is no
    /// answer yet, or nothing of this kind in it.
    #[must_use]
    pub fn corrupt(&self, corruption: &Corruption) -> Option<Corrupted> {
        corruption.play(self)
    }

    /// Asks again, from other bytes.
    pub(crate) fn again(&self, fetch: &mut dyn Fetch, terms: &Terms) -> Result<Reading, Error> {
        read(fetch, &self.sql, terms, &mut self.memory.clone())
    }

    /// The rows, where there are any.
    pub(crate) fn reading(&self) -> Result<&Reading, Malformed> {
        self.reading.as_ref().ok_or(Malformed("there is no answer yet"))
    }

    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }
}

/// What was fetched, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bytes of all files and answers.
    pub bytes: usize,
    /// Files and answers.
    pub files: usize,
    /// Times that something was fetched.
    pub rounds: usize,
}
