//! Which order of a table is asked, and which intervals of it.

use counterfoil_proof::{Definition, Direction, Edge, Interval, KEY_BYTES_MAX, Question};

use crate::condition::{Condition, Known};
use crate::error::Error;
use crate::select::SortKey;
use crate::set::{BEHIND_NULL, FIRST, NULL, Range, behind};

/// Intervals of a question at most, as the language of questions has it.
const INTERVALS_MAX: usize = 4096;

/// Values looked at while intervals are made, at most: beyond it the rest of the condition is checked on rows.
const WORK_MAX: usize = 1 << 20;

/// What is asked.
#[derive(Debug)]
pub(crate) struct Plan {
    /// None: no row can match.
    pub(crate) question: Option<Question>,
    /// Whether the rows of the question are those of the condition, so that none needs to be looked at.
    pub(crate) is_exact: bool,
    /// From which side the order that is asked along gives rows as they are wanted; none if they are to be sorted.
    pub(crate) along: Option<Direction>,
}

/// What a plan has to give.
pub(crate) struct Wanted<'a> {
    pub(crate) condition: &'a Condition,
    pub(crate) columns: Vec<u16>,
    pub(crate) sort_keys: &'a [SortKey],
    /// Rows at most, if it is rows of the table that are counted.
    pub(crate) rows: Option<u64>,
}

impl Plan {
    pub(crate) fn nothing() -> Self {
        Self { question: None, is_exact: true, along: Some(Direction::Ascending) }
    }

    /// How it is answered, in words for people.
    pub(crate) fn words(&self, definition: &Definition) -> String {
        let Some(question) = &self.question else { return "nothing can match: nobody is asked".into() };
        let mut plan = along(definition, question.order(), question.intervals().len());
        if let Some(limit) = question.limit() {
            let side = if question.direction() == Direction::Ascending { "first" } else { "last" };
            plan += &format!(", the {side} {limit} rows");
        }
        plan + if self.is_exact { ", exactly" } else { ", then the condition on each row" }
    }

    /// The plan along the order whose leading columns the condition binds best.
    pub(crate) fn of(definition: &Definition, wanted: &Wanted<'_>) -> Result<Self, Error> {
        let mut best: Option<(_, Covered, usize, Option<Direction>)> = None;
        for (number, order) in definition.orders.iter().enumerate() {
            let covered = Covered::of(wanted.condition, order);
            if covered.intervals.is_empty() {
                return Ok(Self::nothing());
            }
            let along = covered.direction(order, wanted.sort_keys);
            let direction = wanted.rows.and(along).filter(|_| covered.is_exact);
            // Of orders that bind it equally well, one that gives rows as they are wanted.
            let rank = (direction.is_some(), covered.tightness, covered.is_exact, along.is_some());
            if best.as_ref().is_none_or(|(best, ..)| rank > *best) {
                best = Some((rank, covered, number, direction));
            }
        }
        let Some((_, covered, number, direction)) = best else { return Ok(Self::nothing()) };
        let intervals = covered.intervals.iter().filter_map(|(start, end)| {
            // Any bytes cut an order: an edge before a prefix is the prefix itself.
            Interval::new(Edge::before(start)..Edge::before(end))
        });
        let along = covered.direction(&definition.orders[number], wanted.sort_keys);
        let number = u8::try_from(number).unwrap_or(u8::MAX);
        let question = Question::new(definition, number, intervals.collect(), &wanted.columns)?;
        let question = match (wanted.rows, direction) {
            (Some(rows), Some(direction)) => question.limited(rows, direction)?,
            _ => question,
        };
        Ok(Self { question: Some(question), is_exact: covered.is_exact, along })
    }
}

/// Along which order so many intervals are asked, in words.
pub(crate) fn along(definition: &Definition, order: u8, intervals: usize) -> String {
    format!("order {order} by ({}), intervals: {intervals}", order_words(definition, order))
}

/// The columns of an order by name.
pub(crate) fn order_words(definition: &Definition, order: u8) -> String {
    let name = |column: &u16| definition.columns[usize::from(*column)].name.as_str();
    let columns: Vec<&str> = definition.orders[usize::from(order)].iter().map(name).collect();
    columns.join(", ")
}

/// The intervals of an order in which a condition is true, if it is true of all that is in them; none if that is not all.
pub(crate) fn exact_intervals(condition: &Condition, order: &[u16]) -> Option<Vec<Interval>> {
    let covered = Covered::of(condition, order);
    let intervals = covered.intervals.into_iter();
    // Where nothing bounds a side, the last node there fits too: it reaches to the end of the order.
    let intervals = intervals.filter_map(|(start, end)| {
        let start = if start[..] <= *FIRST { Edge::first() } else { Edge::before(&start) };
        let end = if end[..] >= *BEHIND_NULL { Edge::last() } else { Edge::before(&end) };
        Interval::new(start..end)
    });
    covered.is_exact.then(|| intervals.collect())
}

/// The part of an order in which a condition can be true.
struct Covered {
    /// Sorted, and no two overlap or touch.
    intervals: Vec<(Vec<u8>, Vec<u8>)>,
    is_exact: bool,
    /// How well the least bound interval is bound: four for each column with one value, one for each bound of the next.
    tightness: usize,
    /// How many leading columns have one value in all intervals.
    fixed: usize,
}

/// Why intervals are made along fewer columns.
struct TooMany;

impl Covered {
    fn of(condition: &Condition, order: &[u16]) -> Self {
        for depth in (1..=order.len()).rev() {
            let mut known = Known { values: Vec::new(), work: WORK_MAX };
            let mut covered = Self { intervals: Vec::new(), is_exact: true, tightness: usize::MAX, fixed: 0 };
            if covered.extend(condition, &order[..depth], &mut Vec::new(), &mut known, depth == 1).is_ok() {
                covered.fixed = fixed(condition, order);
                covered.coarsen();
                return covered;
            }
        }
        // An order by no column holds rows by their numbers alone.
        let intervals = vec![(Vec::new(), vec![0xff; 9])];
        let is_exact = matches!(condition, Condition::Constant(Some(true)));
        Self { intervals, is_exact, tightness: 0, fixed: 0 }
    }

    /// Adds the intervals of all keys that begin with `prefix`, the encodings of the known values.
    fn extend(
        &mut self,
        condition: &Condition,
        order: &[u16],
        prefix: &mut Vec<u8>,
        known: &mut Known,
        is_last_try: bool,
    ) -> Result<(), TooMany> {
        let depth = known.values.len();
        let possible = condition.possible(true, order[depth], known);
        for range in possible.set.ranges() {
            if range.is_point && !possible.is_exact && depth + 1 < order.len() {
                let length = prefix.len();
                prefix.extend_from_slice(&range.start);
                known.values.push((order[depth], range.start.clone()));
                self.extend(condition, order, prefix, known, is_last_try)?;
                known.values.pop();
                prefix.truncate(length);
            } else {
                self.push(prefix, range);
                self.tightness = self.tightness.min(4 * depth + bounds(range));
                self.is_exact &= possible.is_exact;
            }
            if (self.intervals.len() > INTERVALS_MAX || known.work == 0) && !is_last_try {
                return Err(TooMany);
            }
        }
        Ok(())
    }

    /// Adds one interval, joined to the one before if nothing lies between.
    fn push(&mut self, prefix: &[u8], range: &Range) {
        let mut start = [prefix, &range.start].concat();
        let mut end = [prefix, &range.end].concat();
        // No key is longer: what is cut off is checked on rows.
        if start.len() > KEY_BYTES_MAX {
            start.truncate(KEY_BYTES_MAX);
            self.is_exact = false;
        }
        if end.len() > KEY_BYTES_MAX {
            end.truncate(KEY_BYTES_MAX);
            end = behind(&end);
            self.is_exact = false;
        }
        match self.intervals.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(std::mem::take(last)),
            _ => self.intervals.push((start, end)),
        }
    }

    /// Joins neighbours until there are as few as a question takes.
    fn coarsen(&mut self) {
        let count = self.intervals.len();
        if count > INTERVALS_MAX {
            let joined = self.intervals.chunks(count.div_ceil(INTERVALS_MAX));
            self.intervals = joined.map(|chunk| (chunk[0].0.clone(), chunk[chunk.len() - 1].1.clone())).collect();
            self.is_exact = false;
        }
    }

    /// From which side the order gives rows as they are wanted; none if it sorts them in another way.
    fn direction(&self, order: &[u16], keys: &[SortKey]) -> Option<Direction> {
        let (fixed, rest) = order.split_at(self.fixed);
        let keys: Vec<&SortKey> = keys.iter().filter(|key| !fixed.contains(&key.column)).collect();
        let Some(first) = keys.first() else { return Some(Direction::Ascending) };
        let is_along = keys.len() <= rest.len()
            && keys.iter().zip(rest).all(|(key, column)| {
                // NULLs are last in every order.
                key.column == *column
                    && key.is_descending == first.is_descending
                    && key.nulls_first == key.is_descending
            });
        let direction = if first.is_descending { Direction::Descending } else { Direction::Ascending };
        is_along.then_some(direction)
    }
}

/// How many leading columns of an order have one value wherever a condition is true.
fn fixed(condition: &Condition, order: &[u16]) -> usize {
    let mut known = Known { values: Vec::new(), work: WORK_MAX };
    for column in order {
        match condition.possible(true, *column, &mut known).set.ranges() {
            [range] if range.is_point => known.values.push((*column, range.start.clone())),
            _ => break,
        }
    }
    known.values.len()
}

fn bounds(range: &Range) -> usize {
    if range.is_point { 4 } else { usize::from(range.start != FIRST) + usize::from(range.end[..] < *NULL) }
}
