//! The queries of the paper's benchmark (section 4.2) and what answers them.
//!
//! The paper names the kind of each and leaves the text to its reference 13; what each is here:
//!
//! | query | here |
//! |---|---|
//! | Q0.1, Q0.2 | point inserts in the order of time, analog and boolean |
//! | Q1.1, Q1.2 | point updates of value and quality by series and time, at random |
//! | Q2.1, Q2.2 | all tuples of a series within a span of time |
//! | Q3.1, Q3.2 | how many they are |
//! | Q4, Q5, Q6 | their sum, their average, their least and greatest value |
//! | Q7, Q8 | how many are above a threshold: the series' own, and one that is asked for |
//! | Q9 | the same as Q7 for all analog series |
//! | Q10 | of all analog series, how often the next value came later than it should |
//! | Q11.1, Q11.2 | the newest value of all series |

use crate::workload::{Sort, Tuple};

/// A query of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    Insert(Half),
    Update(Half),
    Raw(Half),
    Count(Half),
    Sum,
    Average,
    Extremes,
    AboveOwn,
    Above,
    AllAbove,
    AllGaps,
    Newest(Half),
}

/// The half of a query behind its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    One,
    Two,
}

impl Half {
    pub const fn sort(self) -> Sort {
        match self {
            Half::One => Sort::Analog,
            Half::Two => Sort::Boolean,
        }
    }
}

/// Queries of one kind: the rows of the paper's Tables 4 and 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Insertions,
    Updates,
    Raw,
    Aggregates,
    Filtering,
    Multiple,
    Current,
}

impl Category {
    pub const ALL: [Category; 7] = [
        Category::Insertions,
        Category::Updates,
        Category::Raw,
        Category::Aggregates,
        Category::Filtering,
        Category::Multiple,
        Category::Current,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::Insertions => "Insertions",
            Category::Updates => "Updates",
            Category::Raw => "Raw data",
            Category::Aggregates => "Aggregates",
            Category::Filtering => "Filtering",
            Category::Multiple => "Multiple series",
            Category::Current => "Current values",
        }
    }
}

impl Query {
    /// All of them, in the order of the paper's tables.
    pub const ALL: [Query; 17] = {
        use Half::{One, Two};
        [
            Query::Insert(One),
            Query::Insert(Two),
            Query::Update(One),
            Query::Update(Two),
            Query::Raw(One),
            Query::Raw(Two),
            Query::Count(One),
            Query::Count(Two),
            Query::Sum,
            Query::Average,
            Query::Extremes,
            Query::AboveOwn,
            Query::Above,
            Query::AllAbove,
            Query::AllGaps,
            Query::Newest(One),
            Query::Newest(Two),
        ]
    };

    pub fn name(self) -> &'static str {
        const NAMES: [&str; 17] = [
            "Q0.1", "Q0.2", "Q1.1", "Q1.2", "Q2.1", "Q2.2", "Q3.1", "Q3.2", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10",
            "Q11.1", "Q11.2",
        ];
        NAMES[self.place()]
    }

    /// Where it stands in the paper's tables.
    pub fn place(self) -> usize {
        Query::ALL.iter().position(|query| *query == self).unwrap_or(0)
    }

    pub fn category(self) -> Category {
        match self {
            Query::Insert(_) => Category::Insertions,
            Query::Update(_) => Category::Updates,
            Query::Raw(_) => Category::Raw,
            Query::Count(_) | Query::Sum | Query::Average | Query::Extremes => Category::Aggregates,
            Query::AboveOwn | Query::Above => Category::Filtering,
            Query::AllAbove | Query::AllGaps => Category::Multiple,
            Query::Newest(_) => Category::Current,
        }
    }

    /// The sort of series that is asked.
    pub fn sort(self) -> Sort {
        match self {
            Query::Insert(half) | Query::Update(half) | Query::Raw(half) | Query::Count(half) | Query::Newest(half) => {
                half.sort()
            }
            _ => Sort::Analog,
        }
    }

    /// What is made of the tuples of a span, where that is the query: with the threshold of a series and the other one.
    pub fn fold(self, own: f64, other: f64) -> Option<Fold> {
        Some(match self {
            Query::Raw(_) => Fold::Raw,
            Query::Count(_) => Fold::Count,
            Query::Sum => Fold::Sum,
            Query::Average => Fold::Average,
            Query::Extremes => Fold::Extremes,
            Query::AboveOwn | Query::AllAbove => Fold::Above(own),
            Query::Above => Fold::Above(other),
            Query::AllGaps => Fold::Gaps(own as i64),
            Query::Insert(_) | Query::Update(_) | Query::Newest(_) => return None,
        })
    }
}

/// What is made of the tuples of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fold {
    Raw,
    Count,
    Sum,
    Average,
    Extremes,
    /// How many values are greater.
    Above(f64),
    /// How often more time passed to the next one.
    Gaps(i64),
}

/// An answer: how many tuples it is of, and what came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    pub tuples: u64,
    pub number: f64,
}

impl Answer {
    /// Both together.
    pub fn and(self, other: Answer) -> Answer {
        Answer { tuples: self.tuples + other.tuples, number: self.number + other.number }
    }

    /// Whether they agree as far as values of four bytes let them.
    pub fn agrees(&self, other: &Answer) -> bool {
        let close = (self.number - other.number).abs() <= 1e-6 * self.number.abs().max(1.0);
        self.tuples == other.tuples && close
    }
}

/// A fold under way, tuple by tuple.
pub struct Folding {
    fold: Fold,
    tuples: u64,
    sum: f64,
    least: f64,
    most: f64,
    last: i64,
}

impl Folding {
    pub fn new(fold: Fold) -> Folding {
        Folding { fold, tuples: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY, last: i64::MAX }
    }

    /// Takes the next tuple.
    #[cfg(any(test, feature = "peers"))]
    #[inline(always)]
    pub fn take(&mut self, time: i64, value: f64, quality: u8) {
        self.tuples += 1;
        match self.fold {
            Fold::Count => {}
            Fold::Raw => self.sum += (time % 1000) as f64 + value + f64::from(quality),
            Fold::Sum | Fold::Average => self.sum += value,
            Fold::Extremes => {
                self.least = self.least.min(value);
                self.most = self.most.max(value);
            }
            Fold::Above(threshold) => self.sum += f64::from(u8::from(value > threshold)),
            Fold::Gaps(most) => {
                self.sum += f64::from(u8::from(time.saturating_sub(self.last) > most));
                self.last = time;
            }
        }
    }

    /// Takes the next tuples, column by column.
    pub fn take_columns(&mut self, times: &[i64], values: impl Iterator<Item = f64>, quality: &[i64]) {
        self.tuples += times.len() as u64;
        match self.fold {
            Fold::Count => {}
            Fold::Raw => {
                let times: i64 = times.iter().map(|time| time % 1000).sum();
                self.sum += (times + quality.iter().sum::<i64>()) as f64 + values.sum::<f64>();
            }
            Fold::Sum | Fold::Average => self.sum += values.sum::<f64>(),
            Fold::Extremes => values.for_each(|value| {
                self.least = self.least.min(value);
                self.most = self.most.max(value);
            }),
            Fold::Above(threshold) => self.sum += values.filter(|value| *value > threshold).count() as f64,
            Fold::Gaps(most) => times.iter().for_each(|time| {
                self.sum += f64::from(u8::from(time.saturating_sub(self.last) > most));
                self.last = *time;
            }),
        }
    }

    /// What came out.
    pub fn answer(&self) -> Answer {
        let number = match self.fold {
            Fold::Count => self.tuples as f64,
            Fold::Average => self.sum / self.tuples.max(1) as f64,
            Fold::Extremes if self.tuples > 0 => self.least + self.most,
            _ => self.sum,
        };
        Answer { tuples: self.tuples, number }
    }
}

/// The newest values as an answer.
pub fn newest(tuples: &[Tuple]) -> Answer {
    let number = tuples.iter().map(|tuple| (tuple.time % 1000) as f64 + tuple.value + f64::from(tuple.quality)).sum();
    Answer { tuples: tuples.len() as u64, number }
}
