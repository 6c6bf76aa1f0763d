//! How much is measured, as asked for on the command line.

use std::path::PathBuf;

use crate::Failure;
use crate::system::System;
use crate::workload::SERIES;

/// What a run is told.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Points of each sort.
    pub points: u64,
    /// Updates of each sort, and deletions.
    pub updates: u64,
    /// How often each query is asked.
    pub queries: u64,
    /// The same of those over all series, current values too.
    pub queries_of_all: u64,
    /// Tuples that each finds in a series.
    pub span: u64,
    pub systems: Vec<System>,
    /// Where databases are made.
    pub folder: PathBuf,
    /// A file that gets the results.
    pub save: Option<PathBuf>,
}

pub const USAGE: &str = "[--points N] [--updates N] [--queries N] [--queries-of-all N] [--span TUPLES] \
                         [--systems NAME,NAME ...] [--folder DIR] [--save FILE]";

impl Default for Sizes {
    /// What takes some ten minutes with all peers; without the feature nobody but us is asked for by default.
    fn default() -> Self {
        Sizes {
            points: 10_000_000,
            updates: 100_000,
            queries: 100,
            queries_of_all: 10,
            span: 20_000,
            systems: if cfg!(feature = "peers") {
                System::ALL.to_vec()
            } else {
                vec![System::Ours, System::OursColumns]
            },
            folder: ".".into(),
            save: None,
        }
    }
}

impl Sizes {
    /// Reads options; whatever is none of them is an error.
    pub fn parse(words: &[&str]) -> Result<Sizes, Failure> {
        let mut sizes = Sizes::default();
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            match *option {
                "--points" => sizes.points = number(value)?,
                "--updates" => sizes.updates = number(value)?,
                "--queries" => sizes.queries = number(value)?,
                "--queries-of-all" => sizes.queries_of_all = number(value)?,
                "--span" => sizes.span = number(value)?,
                "--folder" => sizes.folder = value.into(),
                "--save" => sizes.save = Some(value.into()),
                "--systems" => sizes.systems = value.split(',').map(System::from_word).collect::<Result<_, _>>()?,
                _ => return Err(format!("no option is called {option}: {USAGE}").into()),
            }
        }
        Ok(sizes)
    }

    /// Whether there are spans to be asked for.
    pub fn require_spans(&self) -> Result<(), Failure> {
        if self.span > 0 && self.points >= self.span * u64::from(SERIES) {
            return Ok(());
        }
        Err(format!(
            "{} points are {} for each series: a span of {} is too long",
            self.points,
            self.points / u64::from(SERIES),
            self.span
        )
        .into())
    }
}

/// A number, with _ between digits if one likes.
pub fn number(word: &str) -> Result<u64, Failure> {
    Ok(word.replace('_', "").parse()?)
}
