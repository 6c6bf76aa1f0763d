//! Sums, extremes and the like of the points of a span, bucket by bucket, from summaries where there are any.
//!
//! ```text
//! span      |----------------------------------------------|
//! buckets   |----------|----------|----------|----------|--|
//! entries [====]..[====] [===]  [=====]  [===]       [tail]
//!          read            |     read      |
//!                       summary         summary
//! ```
//! 1. An entry is read if a bound of the span or of a bucket lies within it, or a change to its points is late; a summary stands
//!    for it otherwise. So k buckets read at most k + 2 entries of each level, and what is late once each.
//! 2. Points of a series come in order, and so do buckets: one is given when the next begins.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::digest::Summarized;
use crate::edge::Entry;
use crate::files::Files;
use crate::merge::read_leaf;
use crate::node;
use crate::points::{Points, Span};
use crate::series::Series;
use crate::state::State;
use crate::summary::Summary;

/// The bucket that a time lies in: its name, and none for times that lie in no bucket. Of two times in one bucket all between them
/// are in it too; times in none may be early and late, with buckets between.
pub type Buckets = Arc<dyn Fn(i64) -> Option<i64> + Send + Sync>;

/// What is asked of the points of a span.
#[derive(Clone)]
pub struct Question {
    /// Points outside of it do not count.
    pub span: Span,
    /// Columns of which summaries are wanted. If one has none in the table, all points are read.
    pub columns: Vec<usize>,
    /// What buckets there are; one without.
    pub buckets: Option<Buckets>,
    /// Whether the first and the last point of each bucket are wanted with all of their columns.
    pub ends: bool,
}

/// The points of a series that lie in one bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The series.
    pub series: u32,
    /// What the bucket is called; none where there are no buckets.
    pub name: Option<i64>,
    /// How many points, at least one.
    pub points: u64,
    /// The times of the first and of the last one.
    pub span: Span,
    /// Summaries of the columns asked for.
    pub columns: Vec<Summary>,
    /// The first point and the last one, if they were asked for.
    pub ends: Option<[Points; 2]>,
}

impl Bucket {
    /// Adds the points of a bucket of another series: how many there are, and of the columns what does not hang on their order
    /// (counts, sums, extremes); everything else means nothing then.
    pub fn join(&mut self, other: &Bucket) {
        self.points += other.points;
        self.span = Span { first: self.span.first.min(other.span.first), last: self.span.last.max(other.span.last) };
        self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.join(other));
    }
}

/// A point at the end of a bucket: itself, or the entry that it lies under, with its level.
#[derive(Clone)]
enum End {
    Point(Points),
    Under(usize, Entry),
}

/// A bucket to which points may still come.
struct Open {
    bucket: Bucket,
    ends: Option<[End; 2]>,
}

/// Buckets of several series, one after another.
pub struct Aggregation<V> {
    view: V,
    files: Arc<Files>,
    state: Arc<State>,
    question: Question,
    /// Where the summaries of the columns stand in an entry; none if one of them has none.
    places: Option<Vec<usize>>,
    /// Series still to be read, the next one last.
    ahead: Vec<u32>,
    current: Option<Current>,
    done: VecDeque<Open>,
}

/// The series being read.
struct Current {
    series: u32,
    /// Entries still to be visited, the next one last, with their level.
    ahead: Vec<(usize, Entry)>,
    /// Everything before this time is counted; if there is none, all of time is.
    from: Option<i64>,
    open: Option<Open>,
}

impl<V: View> Aggregation<V> {
    pub(crate) fn new(
        view: V,
        files: Arc<Files>,
        state: Arc<State>,
        series: Option<Vec<u32>>,
        question: Question,
    ) -> Result<Self, Error> {
        if question.columns.iter().any(|column| !is_number(&state, *column)) {
            return Err(Error::Misuse("a summary of a column that holds no numbers"));
        }
        let mut ahead = series.unwrap_or_else(|| (0..state.series.len() as u32).collect());
        ahead.reverse();
        let summarized = &state.summarized.columns;
        let place = |column: &usize| summarized.iter().position(|other| *other as usize == *column);
        let places = question.columns.iter().map(place).collect();
        // What retention took is gone, whether its pages are yet or not.
        let span = question.span.within(&Span { first: state.oldest, last: i64::MAX });
        let question = Question { span, ..question };
        Ok(Aggregation { view, files, state, question, places, ahead, current: None, done: VecDeque::new() })
    }

    /// The key of a series.
    pub fn key(&self, series: u32) -> Option<&Arc<[u8]>> {
        self.state.names.key(series)
    }

    /// The next bucket in which there are points; none when all were given. Of each series the oldest comes first.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Bucket>, Error> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return self.resolved(done).map(Some);
            }
            if self.current.is_none() {
                let Some(number) = self.ahead.pop() else { return Ok(None) };
                let Some(series) = self.state.series.get(number as usize) else { continue };
                self.current = Some(Current::new(number, series, &self.question.span));
            }
            self.advance()?;
        }
    }

    /// Visits what comes next of the series being read.
    fn advance(&mut self) -> Result<(), Error> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        let series = self.state.series[current.series as usize].clone();
        match current.ahead.pop() {
            Some((level, entry)) => {
                self.visit(&mut current, &series, level, entry)?;
                self.current = Some(current);
            }
            None => {
                self.finish(&mut current, &series);
                self.done.extend(current.open);
            }
        }
        Ok(())
    }

    /// Takes an entry as its summaries say, or looks into it.
    fn visit(&mut self, current: &mut Current, series: &Series, level: usize, entry: Entry) -> Result<(), Error> {
        // What is between two entries, changes that are late among it, belongs to the older one.
        let next = current.ahead.last().map(|(_, next)| next.first.saturating_sub(1));
        let last = next.map_or(self.question.span.last, |next| next.min(self.question.span.last));
        let Some(first) = current.from else { return Ok(()) };
        let part = Span { first, last };
        let is_settled = series.late.points.within(&part).is_empty();
        if is_settled && let Some(whole) = self.whole(current.series, level, &entry) {
            self.add(current, whole);
        } else if level > 0 {
            let under = node::read(&self.view, &self.files, (current.series, level), &entry)?;
            let within = under.into_iter().rev().filter(|entry| entry.span().meets(&self.question.span));
            current.ahead.extend(within.map(|entry| (level - 1, entry)));
            return Ok(());
        } else {
            let leaf = read_leaf(&self.view, &self.files, &self.state.kinds, current.series, &entry)?;
            if is_settled {
                self.add_range(current, &leaf, leaf.within(&part));
            } else {
                let mut points = Points::new(&self.state.kinds);
                points.append(&leaf, leaf.within(&part));
                self.add_points(current, &series.late.merged(points, &part));
            }
        }
        current.from = last.checked_add(1);
        Ok(())
    }

    /// What an entry is, if its summaries say that and it lies in one bucket.
    fn whole(&self, series: u32, level: usize, entry: &Entry) -> Option<Open> {
        let (places, span) = (self.places.as_ref()?, &self.question.span);
        let name = self.name(entry.first);
        let in_none = self.question.buckets.is_some() && name.is_none();
        if in_none || !span.contains(entry.first) || !span.contains(entry.last) || self.name(entry.last) != name {
            return None;
        }
        let columns = places.iter().map(|place| entry.summaries.as_deref()?.get(*place).copied());
        let columns = columns.collect::<Option<_>>()?;
        let end = || End::Under(level, entry.clone());
        let bucket = Bucket { series, name, points: entry.points, span: entry.span(), columns, ends: None };
        Some(Open { bucket, ends: self.question.ends.then(|| [end(), end()]) })
    }

    fn name(&self, time: i64) -> Option<i64> {
        self.question.buckets.as_ref().and_then(|buckets| buckets(time))
    }

    /// Takes what is left of a series when all its entries were visited.
    fn finish(&mut self, current: &mut Current, series: &Series) {
        let span = self.question.span;
        if let Some(first) = current.from {
            let none = Points::new(&self.state.kinds);
            let part = Span { first, last: span.last };
            if !series.late.points.within(&part).is_empty() {
                self.add_points(current, &series.late.merged(none, &part));
            }
        }
        let mut open = Points::new(&self.state.kinds);
        series.tail.read(&span, &mut open);
        self.add_points(current, &open);
    }

    fn add_points(&mut self, current: &mut Current, points: &Points) {
        self.add_range(current, points, 0..points.len());
    }

    /// Takes points, each into its bucket.
    fn add_range(&mut self, current: &mut Current, points: &Points, range: core::ops::Range<usize>) {
        let mut from = range.start;
        while from < range.end {
            let name = self.name(points.times[from]);
            let until = match &self.question.buckets {
                None => range.end,
                Some(buckets) => {
                    let times = &points.times[from..range.end];
                    let same = match name {
                        Some(_) => times.partition_point(|time| buckets(*time) == name),
                        None => times.iter().take_while(|time| buckets(**time).is_none()).count(),
                    };
                    from + same.max(1)
                }
            };
            let times = &points.times[from..until];
            let asked = Summarized {
                columns: self.question.columns.iter().map(|column| *column as u32).collect(),
                quality: self.state.summarized.quality,
            };
            let bucket = Bucket {
                series: current.series,
                name,
                points: times.len() as u64,
                span: Span { first: times[0], last: times[times.len() - 1] },
                columns: asked.of(points, from..until).map(|columns| columns.to_vec()).unwrap_or_default(),
                ends: None,
            };
            let end = |at: usize| {
                let mut end = Points::new(&self.state.kinds);
                end.append(points, at..at + 1);
                End::Point(end)
            };
            let ends = self.question.ends.then(|| [end(from), end(until - 1)]);
            self.add(current, Open { bucket, ends });
            from = until;
        }
    }

    /// Adds what comes after all that came before, to the same bucket or to a new one.
    fn add(&mut self, current: &mut Current, next: Open) {
        match &mut current.open {
            Some(open) if open.bucket.name == next.bucket.name => open.append(next),
            open => self.done.extend(open.replace(next)),
        }
    }

    /// A bucket with its ends looked up.
    fn resolved(&self, open: Open) -> Result<Bucket, Error> {
        let Open { mut bucket, ends, .. } = open;
        if let Some([first, last]) = ends {
            bucket.ends = Some([self.end(bucket.series, first, true)?, self.end(bucket.series, last, false)?]);
        }
        Ok(bucket)
    }

    /// The first or the last point under an entry.
    fn end(&self, series: u32, end: End, is_first: bool) -> Result<Points, Error> {
        let (mut level, mut entry) = match end {
            End::Point(point) => return Ok(point),
            End::Under(level, entry) => (level, entry),
        };
        while level > 0 {
            let mut under = node::read(&self.view, &self.files, (series, level), &entry)?;
            let next = if is_first { under.drain(..).next() } else { under.pop() };
            (level, entry) = (level - 1, next.ok_or(Error::Corrupt { what: "node" })?);
        }
        let leaf = read_leaf(&self.view, &self.files, &self.state.kinds, series, &entry)?;
        let at = if is_first { 0 } else { leaf.len() - 1 };
        let mut point = Points::new(&self.state.kinds);
        point.append(&leaf, at..at + 1);
        Ok(point)
    }
}

fn is_number(state: &State, column: usize) -> bool {
    state.kinds.get(column).is_some_and(|kind| *kind != crate::column::Kind::Text)
}

impl Current {
    fn new(number: u32, series: &Series, span: &Span) -> Current {
        let mut ahead: Vec<_> = series.edge.entries().map(|(level, _, entry)| (level, entry)).collect();
        ahead.retain(|(_, entry)| entry.span().meets(span));
        ahead.reverse();
        Current { series: number, ahead, from: Some(span.first), open: None }
    }
}

impl Open {
    /// Adds what comes after.
    fn append(&mut self, next: Open) {
        let (span, other) = (&mut self.bucket.span, next.bucket.span);
        let apart = |later: i64, earlier: i64| later.wrapping_sub(earlier) as u64;
        let (from_first, from_last) = (apart(other.first, span.first), apart(other.first, span.last));
        let long = apart(other.last, other.first);
        let pairs = self.bucket.columns.iter_mut().zip(&next.bucket.columns);
        pairs.for_each(|(column, next)| column.append(next, from_first, from_last, long));
        span.last = other.last;
        self.bucket.points += next.bucket.points;
        if let (Some([_, last]), Some([_, newest])) = (&mut self.ends, next.ends) {
            *last = newest;
        }
    }
}
