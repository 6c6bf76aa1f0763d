//! The benchmark of section 4.2, with one store after the other.
//!
//! Tuples are made in rounds while no clock runs; a store is given them in slices, and commits whenever 100 ms of its own time
//! have passed since it last did, and at the end of each round.

use std::time::{Duration, Instant};

use crate::Failure;
use crate::ours::Pace;
use crate::query::{Answer, Fold, Query, newest};
use crate::results::{Line, Results, extra};
use crate::sizes::Sizes;
use crate::store::{Span, Store, bytes_in};
use crate::system::System;
use crate::workload::{BEGIN, Dice, PERIOD, SERIES, Sort, Stream, Tuple};

/// What is acknowledged together.
const WINDOW: Duration = Duration::from_millis(100);
/// Tuples between two looks at the clock, and those made at once.
const SLICE: usize = 1 << 14;
/// The same where columns are taken: stores of columns want long ones.
const COLUMN_SLICE: usize = 1 << 17;
const ROUND: usize = 1 << 20;
/// Of a hundred tuples of the late ones.
const LATE_PERCENT: u64 = 5;
/// Milliseconds between two values from which on Q10 counts.
const GAP: f64 = (PERIOD + 10) as f64;
/// The threshold of Q8. Between two values that there can be, as all thresholds.
const THRESHOLD: f64 = 200.005;

/// Measures all systems that are asked for and there.
pub fn run(sizes: &Sizes) -> Result<Results, Failure> {
    sizes.require_spans()?;
    let mut results = Results::default();
    for system in &sizes.systems {
        let folder = tempfile::tempdir_in(&sizes.folder)?;
        let Some(store) = system.create(folder.path(), Pace::Wall)? else {
            eprintln!("{}: not there ({})", system.name(), system.how_to_get());
            continue;
        };
        eprintln!("{} ...", system.name());
        let mut bench = Bench { system: *system, store, sizes, folder: folder.path(), lines: Vec::new() };
        match (bench.all(), system) {
            (Err(error), System::Ours | System::OursColumns) => return Err(error),
            // What it did until then is told.
            (Err(error), _) => eprintln!("{}: {error}", system.name()),
            (Ok(()), _) => {}
        }
        results.0.append(&mut bench.lines);
        if let Some(file) = &sizes.save {
            std::fs::write(file, results.text())?;
        }
    }
    Ok(results)
}

/// One store under measurement.
struct Bench<'a> {
    system: System,
    store: Box<dyn Store>,
    sizes: &'a Sizes,
    folder: &'a std::path::Path,
    lines: Vec<Line>,
}

/// A clock that runs only while a store works.
#[derive(Default)]
struct Stopwatch {
    spent: Duration,
    committed: Duration,
}

impl Stopwatch {
    fn time<T>(&mut self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let begun = Instant::now();
        let done = work();
        self.spent += begun.elapsed();
        done
    }

    /// Commits when a window has passed, or at any rate.
    fn commit(&mut self, store: &mut dyn Store, at_any_rate: bool) -> Result<(), Failure> {
        if at_any_rate || self.spent - self.committed >= WINDOW {
            self.time(|| store.commit())?;
            self.committed = self.spent;
        }
        Ok(())
    }
}

/// Tuples that were stored, by chance: so many of so many.
struct Sample {
    tuples: Vec<Tuple>,
    wanted: u64,
    of: u64,
    dice: Dice,
}

impl Sample {
    fn new(wanted: u64, of: u64) -> Sample {
        Sample { tuples: Vec::new(), wanted, of, dice: Dice::new(99) }
    }

    fn look_at(&mut self, tuples: &[Tuple]) {
        for tuple in tuples {
            // Each is taken with the chance that the number still wanted has among those still to come.
            if self.dice.below(self.of) < self.wanted {
                self.tuples.push(*tuple);
                self.wanted -= 1;
            }
            self.of -= 1;
        }
    }

    fn shuffled(mut self) -> Vec<Tuple> {
        for at in (1..self.tuples.len()).rev() {
            self.tuples.swap(at, self.dice.below(at as u64 + 1) as usize);
        }
        self.tuples
    }
}

impl Bench<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        let [analog, boolean] = [Query::ALL[0], Query::ALL[1]].map(|query| (query, Stream::new(query.sort(), SERIES)));
        let mut samples = Vec::new();
        let mut streams = Vec::new();
        for (query, mut stream) in [analog, boolean] {
            // Half of what is sampled is updated, the other half deleted.
            let mut sample = Sample::new((2 * self.sizes.updates).min(self.sizes.points / 2), self.sizes.points);
            let seconds = self.insert(query.sort(), &mut stream, self.sizes.points, &mut sample)?;
            self.note(query.name(), self.sizes.points, seconds, counted(self.sizes.points));
            samples.push(sample.shuffled());
            streams.push(stream);
        }
        self.note(extra::BYTES, 1, 0.0, counted(bytes_in(self.folder)?));
        if self.system == System::OursColumns {
            return Ok(());
        }
        for (query, sample) in [Query::ALL[2], Query::ALL[3]].into_iter().zip(&samples) {
            let (changed, _) = sample.split_at(sample.len() / 2);
            self.update(query, changed)?;
        }
        for query in Query::ALL {
            self.ask(query)?;
        }
        self.late(&mut streams[0])?;
        let (_, gone) = samples[0].split_at(samples[0].len() / 2);
        let gone = &gone[..gone.len().min(self.store.deletions_max())];
        let seconds = self.change(gone, |store, tuples| store.delete(Sort::Analog, tuples))?;
        self.note(extra::DELETE, gone.len() as u64, seconds, counted(gone.len() as u64));
        let mut watch = Stopwatch::default();
        watch.time(|| self.store.settle())?;
        self.note(extra::SETTLE, 1, watch.spent.as_secs_f64(), counted(bytes_in(self.folder)?));
        Ok(())
    }

    fn note(&mut self, what: &str, executions: u64, seconds: f64, answer: Answer) {
        let (system, what) = (self.system.name().to_owned(), what.to_owned());
        self.lines.push(Line { system, what, executions, seconds, answer });
    }

    /// Inserts tuples; the seconds that takes.
    fn insert(&mut self, sort: Sort, stream: &mut Stream, count: u64, sample: &mut Sample) -> Result<f64, Failure> {
        let (mut watch, mut left) = (Stopwatch::default(), count as usize);
        let mut round = Vec::with_capacity(ROUND);
        while left > 0 {
            stream.fill(&mut round, left.min(ROUND));
            sample.look_at(&round);
            left -= round.len();
            let slice = if self.system.takes_columns() { COLUMN_SLICE } else { SLICE };
            for tuples in round.chunks(slice) {
                watch.time(|| self.store.insert(sort, tuples))?;
                watch.commit(&mut *self.store, false)?;
            }
            watch.commit(&mut *self.store, true)?;
        }
        Ok(watch.spent.as_secs_f64())
    }

    /// Changes single tuples; the seconds that takes.
    fn change(
        &mut self,
        tuples: &[Tuple],
        mut change: impl FnMut(&mut dyn Store, &[Tuple]) -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let mut watch = Stopwatch::default();
        // Fewer at a time: random places take longer.
        for tuples in tuples.chunks(SLICE / 16) {
            watch.time(|| change(&mut *self.store, tuples))?;
            watch.commit(&mut *self.store, false)?;
        }
        watch.commit(&mut *self.store, true)?;
        Ok(watch.spent.as_secs_f64())
    }

    fn update(&mut self, query: Query, sample: &[Tuple]) -> Result<(), Failure> {
        let other = |tuple: &Tuple| Tuple {
            value: if query.sort() == Sort::Boolean { 1.0 - tuple.value } else { tuple.value + 1.0 },
            quality: 0,
            ..*tuple
        };
        let tuples: Vec<Tuple> = sample.iter().map(other).collect();
        let seconds = self.change(&tuples, |store, tuples| store.update(query.sort(), tuples))?;
        self.note(query.name(), tuples.len() as u64, seconds, counted(tuples.len() as u64));
        Ok(())
    }

    fn late(&mut self, stream: &mut Stream) -> Result<(), Failure> {
        stream.be_late(LATE_PERCENT);
        let count = self.sizes.points / 4;
        let seconds = self.insert(Sort::Analog, stream, count, &mut Sample::new(0, count))?;
        self.note(extra::LATE, count, seconds, counted(count));
        Ok(())
    }

    /// Asks a query as often as it is wanted, of other series and other times each.
    fn ask(&mut self, query: Query) -> Result<(), Failure> {
        let of_all = matches!(query, Query::AllAbove | Query::AllGaps);
        let is_wide = of_all || matches!(query, Query::Newest(_));
        let executions = if is_wide { self.sizes.queries_of_all } else { self.sizes.queries };
        let mut dice = Dice::new(query.place() as u64);
        let (mut watch, mut all) = (Stopwatch::default(), Answer::default());
        for _ in 0..executions {
            let (series, span) = (dice.below(u64::from(SERIES)) as u32, self.span(&mut dice));
            let answer = match (query, of_all) {
                (Query::Insert(_) | Query::Update(_), _) => return Ok(()),
                (Query::Newest(half), _) => newest(&watch.time(|| self.store.newest(half.sort()))?),
                (_, true) => {
                    let folds: Vec<Fold> = (0..SERIES).filter_map(|series| fold(query, series)).collect();
                    watch.time(|| self.store.fold_all(query.sort(), span, &folds))?
                }
                _ => {
                    let fold = fold(query, series).ok_or("a query that is none")?;
                    watch.time(|| self.store.fold(query.sort(), series, span, fold))?
                }
            };
            all = all.and(answer);
        }
        self.note(query.name(), executions, watch.spent.as_secs_f64(), all);
        Ok(())
    }

    fn span(&self, dice: &mut Dice) -> Span {
        let rounds = self.sizes.points / u64::from(SERIES);
        let first = BEGIN + dice.below(rounds - self.sizes.span + 1) as i64 * PERIOD;
        Span { first, last: first + self.sizes.span as i64 * PERIOD - 1 }
    }
}

/// What a query makes of the tuples of a series.
fn fold(query: Query, series: u32) -> Option<Fold> {
    let own = if query == Query::AllGaps { GAP } else { 150.005 + f64::from(series) };
    query.fold(own, THRESHOLD)
}

fn counted(tuples: u64) -> Answer {
    Answer { tuples, number: tuples as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(systems: &[System]) -> Sizes {
        Sizes {
            points: 60_000,
            updates: 3000,
            queries: 7,
            queries_of_all: 2,
            span: 200,
            systems: systems.to_vec(),
            ..Sizes::default()
        }
    }

    /// Tuples in a map: what all others are held against.
    #[derive(Default)]
    struct Model([std::collections::BTreeMap<(u32, i64), Tuple>; 2]);

    impl Store for Model {
        fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
            self.0[sort as usize].extend(tuples.iter().map(|tuple| ((tuple.series, tuple.time), *tuple)));
            Ok(())
        }

        fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
            for tuple in tuples {
                self.0[sort as usize].remove(&(tuple.series, tuple.time));
            }
            Ok(())
        }

        fn commit(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
            let mut folding = crate::query::Folding::new(fold);
            let within = self.0[sort as usize].range((series, span.first)..=(series, span.last));
            within.for_each(|(_, tuple)| folding.take(tuple.time, tuple.value, tuple.quality));
            Ok(folding.answer())
        }

        fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
            let last = |series| self.0[sort as usize].range((series, 0)..(series + 1, 0)).next_back();
            Ok((0..SERIES).filter_map(last).map(|(_, tuple)| *tuple).collect())
        }

        fn settle(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    fn measured(
        system: System,
        store: Box<dyn Store>,
        folder: &std::path::Path,
    ) -> Result<(Vec<Line>, Answer), Failure> {
        let sizes = small(&[]);
        let mut bench = Bench { system, store, sizes: &sizes, folder, lines: Vec::new() };
        bench.all()?;
        // What late tuples and deletions left behind is asked for once more.
        let all = Span { first: 0, last: i64::MAX };
        let folds = vec![Fold::Raw; SERIES as usize];
        let after = bench.store.fold_all(Sort::Analog, all, &folds)?;
        Ok((bench.lines, after))
    }

    #[test]
    fn every_system_answers_as_a_map_does() -> Result<(), Failure> {
        let folder = tempfile::tempdir()?;
        let (lines, after) = measured(System::Ours, Box::new(Model::default()), folder.path())?;
        assert_eq!(after.tuples, 60_000 + 15_000 - 3000);
        // Peers are asked where the feature is on, however many are on the machine.
        let systems = System::ALL.into_iter().filter(|system| cfg!(feature = "peers") || *system == System::Ours);
        for system in systems {
            let folder = tempfile::tempdir()?;
            let Some(store) = system.create(folder.path(), Pace::Wall)? else { continue };
            if system == System::OursColumns {
                continue;
            }
            let is_slow = store.deletions_max() < 3000;
            let (found, found_after) = measured(system, store, folder.path())?;
            for (line, model) in found.iter().zip(&lines) {
                let other = if is_slow { extra::DELETE } else { extra::BYTES };
                let is_other = [extra::BYTES, extra::SETTLE, other].contains(&line.what.as_str());
                assert!(is_other || line.answer.agrees(&model.answer), "{}: {line:?}, not {model:?}", system.name());
            }
            assert_eq!(found.len(), lines.len());
            assert!(is_slow || found_after.agrees(&after), "{}: {found_after:?}, not {after:?}", system.name());
        }
        Ok(())
    }
}
