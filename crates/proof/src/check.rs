//! From an answer to rows that are the owner's, complete and fresh.
//!
//! The order of the steps: the bytes, the question, what was asked for against what the runs reach around, when each thing
//! was signed, and the signature over all of it last. No row leaves before the last step.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::answer::{Answer, Boundary, End, Row, Run};
use crate::covered::Covered;
use crate::curve::spread;
use crate::definition::{Definition, FIRST_RID, Scheme};
use crate::digest::Digest;
use crate::error::Malformed;
use crate::manifest::TrustedManifest;
use crate::members::{FIRST_GROUP, Member, Members, group_message};
use crate::position::{Interval, Position};
use crate::question::{Direction, Question};
use crate::record::{Kind, Stamp, head_rid, link, message, tail_rid};
use crate::refusal::Refusal;
use crate::signature::{Group, Hint, Message, Signature, SignatureError, verify_groups};
use crate::summary::{Chain, key_of};
use crate::value::Value;

/// As many rows are hashed at a time by one thread: a tenth of a millisecond's work or more.
const ROWS_AT_ONCE: usize = 128;

/// What a reader holds against an answer.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// The owner's word on the table.
    pub manifest: &'a TrustedManifest,
    /// What changed when, up to the last period that the reader knows of.
    pub chain: &'a Chain,
    /// Milliseconds since 1970 (UTC) by the reader's clock.
    pub now: u64,
    /// Milliseconds by which both clocks together may be wrong.
    pub clock_error: u64,
    /// Milliseconds that an answer may be old at most; `u64::MAX`: the verdict says how old it is.
    pub max_age: u64,
}

/// Rows that the owner signed: all that were asked for, and none that was changed before the time that is told.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The values of the question's columns, in the order that was asked for.
    pub rows: Vec<Vec<Value>>,
    /// Milliseconds since 1970 (UTC) at the end of the owner's last period: no row is older than that.
    pub as_of: u64,
    /// Milliseconds since then at most, clock errors included.
    pub age: u64,
    /// Whether the limit ended the answer, so that there are more rows.
    pub is_cut: bool,
    /// How many signatures the answer's one stands for.
    pub signatures: usize,
}

/// Checks an answer.
///
/// # Errors
/// [`Refusal`]: why it is not to be trusted.
pub fn check(trust: &Trust<'_>, question: &Question, answer: &[u8]) -> Result<Verified, Refusal> {
    let definition = &trust.manifest.manifest().definition;
    let (as_of, age) = grounds(trust, question.definition())?;
    let answer = Answer::from_bytes(answer, definition, question)?;
    if answer.question != question.digest() {
        return Err(Refusal::OtherQuestion);
    }
    let is_cut = reaches(question, &answer)?;
    let mut signed = SignedThings::default();
    for (run, interval) in answer.runs.iter().zip(asked(question, &answer)) {
        signed.take_run(definition, question, run, interval)?;
    }
    signed.take_groups(question.definition(), &answer.groups)?;
    signed.are_fresh(trust)?;
    signed.verify(trust, &answer.signature, answer.hints.as_deref())?;
    let signatures = signed.count();
    Ok(Verified { rows: rows(question, answer), as_of, age, is_cut, signatures })
}

/// Whether what a reader holds is about the table and in force; as of when its answers are, and how old that is.
pub(crate) fn grounds(trust: &Trust<'_>, definition: &Digest) -> Result<(u64, u64), Refusal> {
    if *definition != trust.manifest.manifest().definition.digest() {
        return Err(Refusal::NotProvable("the question is about another table than the manifest"));
    }
    if trust.chain.manifest() != trust.manifest.digest() {
        return Err(Refusal::NotProvable("the summaries of changes were checked under another manifest"));
    }
    if key_of(trust.manifest, trust.chain.last())?.expires <= trust.now {
        return Err(Refusal::Stale("the owner's last summary was signed with a key that has expired since"));
    }
    age(trust)
}

fn age(trust: &Trust<'_>) -> Result<(u64, u64), Refusal> {
    let as_of = trust.chain.ended(trust.chain.last()).unwrap_or(0);
    if as_of > trust.now.saturating_add(trust.clock_error) {
        return Err(Refusal::Clock("the owner's last summary is of a time to come: one of the clocks is wrong"));
    }
    let age = trust.now.saturating_sub(as_of).saturating_add(trust.clock_error);
    if age > trust.max_age {
        return Err(Refusal::Stale("the owner's last summary is older than was asked for"));
    }
    Ok((as_of, age))
}

/// The intervals that the runs are of: the first ones, or the last ones where a limit counts from behind.
fn asked<'a>(question: &'a Question, answer: &Answer) -> &'a [Interval] {
    let intervals = question.intervals();
    match question.direction() {
        Direction::Ascending => &intervals[..answer.runs.len()],
        Direction::Descending => &intervals[intervals.len() - answer.runs.len()..],
    }
}

/// Whether there is a run for each interval, or for as many as the limit reaches; whether the limit ended the answer.
fn reaches(question: &Question, answer: &Answer) -> Result<bool, Refusal> {
    let count: u64 = answer.runs.iter().map(|run| run.rows.len() as u64).sum();
    let is_full = question.limit() == Some(count);
    if question.limit().is_some_and(|limit| count > limit) {
        return Err(Refusal::Malformed("more rows than the limit"));
    }
    let (runs, intervals) = (answer.runs.len(), question.intervals().len());
    if runs > intervals || (runs == 0) {
        return Err(Refusal::Malformed("rows of intervals that were not asked for"));
    }
    let mut is_cut = runs < intervals;
    for (at, run) in answer.runs.iter().enumerate() {
        let (cut_left, cut_right) = (matches!(run.left, End::Cut(_)), matches!(run.right, End::Cut(_)));
        let may_cut_right = question.direction() == Direction::Ascending && at + 1 == runs;
        let may_cut_left = question.direction() == Direction::Descending && at == 0;
        if (cut_left && !may_cut_left)
            || (cut_right && !may_cut_right)
            || ((cut_left || cut_right) && run.rows.is_empty())
        {
            return Err(Refusal::Incomplete("the rows of an interval end in its middle"));
        }
        is_cut |= cut_left || cut_right;
    }
    if is_cut && !is_full {
        return Err(Refusal::Incomplete("fewer rows than the limit, and no proof that there are no more"));
    }
    Ok(is_cut)
}

fn rows(question: &Question, answer: Answer) -> Vec<Vec<Value>> {
    let mut rows: Vec<Vec<Value>> = answer.runs.into_iter().flat_map(|run| run.rows).map(|row| row.values).collect();
    if question.direction() == Direction::Descending {
        rows.reverse();
    }
    rows
}

/// Everything whose signature is in the sum, each once, in the order in which it comes first.
#[derive(Default)]
pub(crate) struct SignedThings {
    things: Vec<(Stamp, Message)>,
    /// By number, and 0 or one more than a column of it whose value is signed by itself.
    by_part: BTreeMap<(u64, u32), usize>,
    /// Records that groups have signatures for, by their numbers.
    members: BTreeMap<u64, Message>,
}

const TWICE: Refusal = Refusal::Forged("one record in two versions, or with two pairs of neighbours");

impl SignedThings {
    pub(crate) fn count(&self) -> usize {
        self.things.len()
    }

    /// When each was signed.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = &Stamp> {
        self.things.iter().map(|(stamp, _)| stamp)
    }

    pub(crate) fn take(&mut self, stamp: Stamp, message: Message) -> Result<(), Refusal> {
        self.take_part(stamp, 0, message)
    }

    fn take_part(&mut self, stamp: Stamp, part: u32, message: Message) -> Result<(), Refusal> {
        if let Some(at) = self.by_part.get(&(stamp.rid, part)) {
            // It stands on the edge of two intervals: the same thing, or not one of one time.
            return if self.things[*at] == (stamp, message) { Ok(()) } else { Err(TWICE) };
        }
        self.by_part.insert((stamp.rid, part), self.things.len());
        self.things.push((stamp, message));
        Ok(())
    }

    /// Takes all of a record that signatures cover.
    pub(crate) fn take_record(&mut self, scheme: Scheme, stamp: Stamp, covered: Covered) -> Result<(), Refusal> {
        if matches!(scheme, Scheme::Group(_)) {
            let known = *self.members.entry(stamp.rid).or_insert(covered.own);
            return if known == covered.own { Ok(()) } else { Err(TWICE) };
        }
        self.take(stamp, covered.own)?;
        covered
            .values
            .into_iter()
            .try_for_each(|(column, message)| self.take_part(stamp, u32::from(column) + 1, message))
    }

    /// Takes the groups of all records that were taken, when no other one comes.
    pub(crate) fn take_groups(&mut self, definition: &Digest, groups: &[Members]) -> Result<(), Refusal> {
        let mut left = core::mem::take(&mut self.members);
        for Members { stamp, list } in groups {
            let before = left.len();
            let mut digests = Vec::with_capacity(list.len());
            for member in list {
                digests.push(match member {
                    Member::Hidden(digest) => *digest,
                    Member::Shown(rid) => {
                        let missing = Refusal::Malformed("a group with a record that is not there, or in two groups");
                        left.remove(rid).ok_or(missing)?.0
                    }
                });
            }
            if left.len() == before {
                return Err(Refusal::Malformed("a group of which no record is there"));
            }
            self.take(*stamp, group_message(definition, stamp, &digests))?;
        }
        if left.is_empty() { Ok(()) } else { Err(Refusal::Malformed("a record without its group")) }
    }

    pub(crate) fn take_run(
        &mut self,
        definition: &Definition,
        question: &Question,
        run: &Run,
        interval: &Interval,
    ) -> Result<(), Refusal> {
        let places = places(definition, question, run, interval)?;
        let digest = question.definition();
        let order = question.order();
        if let End::Boundary(boundary) = &run.left {
            let own = link(order, &boundary.position, boundary.outer.as_ref(), places.get(1));
            self.take_boundary(definition, digest, order, boundary, own)?;
        }
        for (row, covered) in run.rows.iter().zip(rows_covered(definition, question, &run.rows, &places)?) {
            self.take_record(definition.scheme, row.stamp, covered)?;
        }
        if let End::Boundary(boundary) = &run.right {
            let left = places.len().checked_sub(2).and_then(|at| places.get(at));
            let own = link(order, &boundary.position, left, boundary.outer.as_ref());
            self.take_boundary(definition, digest, order, boundary, own)?;
        }
        Ok(())
    }

    fn take_boundary(
        &mut self,
        definition: &Definition,
        digest: &Digest,
        order: u8,
        boundary: &Boundary,
        own: Digest,
    ) -> Result<(), Refusal> {
        let Boundary { position, stamp, root, links, .. } = boundary;
        if position.key().is_none() {
            return self.take(*stamp, end_message(digest, position, stamp, own));
        }
        let links = with_own(order, own, links);
        let covered = Covered::of_mark(definition, digest, stamp, &links, root.as_ref()).ok_or(NOT_ALL)?;
        self.take_record(definition.scheme, *stamp, covered)
    }

    pub(crate) fn are_fresh(&self, trust: &Trust<'_>) -> Result<(), Refusal> {
        let manifest = trust.manifest.manifest();
        for (stamp, _) in &self.things {
            trust.chain.accepts(stamp)?;
            if let Some(ended) = trust.chain.ended(stamp.period) {
                let age = trust.now.saturating_sub(ended);
                if manifest.max_age < u64::MAX && age > manifest.max_age.saturating_add(trust.clock_error) {
                    return Err(Refusal::Stale("a signature is older than the owner lets signatures become"));
                }
            }
        }
        Ok(())
    }

    /// One sum of hashes for each key that signed, and one signature over all.
    pub(crate) fn verify(
        &self,
        trust: &Trust<'_>,
        signature: &Signature,
        hints_of_all: Option<&[Hint]>,
    ) -> Result<(), Refusal> {
        if hints_of_all.is_some_and(|hints| hints.len() != self.things.len()) {
            return Err(Refusal::Malformed("not one hint for each signature"));
        }
        let mut keys: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, (stamp, _)) in self.things.iter().enumerate() {
            let key = key_of(trust.manifest, stamp.period)?;
            if key.expires <= trust.now {
                return Err(Refusal::Stale("signed with a key that has expired since"));
            }
            keys.entry(key.from_period).or_default().push(at);
        }
        let mut sorted: Vec<(u64, Vec<Message>, Vec<Hint>)> = Vec::new();
        for (period, mut things) in keys {
            things.sort_unstable_by_key(|at| self.things[*at].1);
            let messages = things.iter().map(|at| self.things[*at].1).collect();
            let hints = hints_of_all.iter().flat_map(|hints| things.iter().map(|at| hints[*at])).collect();
            sorted.push((period, messages, hints));
        }
        let mut groups = Vec::new();
        for (period, messages, hints) in &sorted {
            let key = &key_of(trust.manifest, *period)?.key;
            groups.push(Group { key, messages, hints: hints_of_all.is_some().then_some(hints) });
        }
        verify_groups(&groups, signature).map_err(|error| match error {
            SignatureError::Malformed(what) => Refusal::Malformed(what),
            _ => Refusal::Forged(
                "the owner did not sign these rows beside each other: one was changed, left out or added",
            ),
        })
    }
}

/// Where everything of a run stands, in order: end, rows, end. Strictly rising, rows within the interval, ends without.
fn places(
    definition: &Definition,
    question: &Question,
    run: &Run,
    interval: &Interval,
) -> Result<Vec<Position>, Refusal> {
    let mut places = Vec::with_capacity(run.rows.len() + 2);
    places.push(end_place(question.order(), &run.left, interval, true)?);
    for row in &run.rows {
        if !(FIRST_RID..FIRST_GROUP).contains(&row.stamp.rid) {
            return Err(Refusal::Malformed("a row with a number that is no row's"));
        }
        let value = |column| {
            let at = question.columns().binary_search(&column).unwrap_or(0);
            &row.values[at]
        };
        let position = definition.position(usize::from(question.order()), value, row.stamp.rid)?;
        if !interval.contains(&position) {
            return Err(Refusal::Malformed("a row outside of what was asked for"));
        }
        places.push(position);
    }
    places.push(end_place(question.order(), &run.right, interval, false)?);
    if places.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(places)
    } else {
        Err(Refusal::Malformed("rows that are not in their order, or one of them twice"))
    }
}

fn end_place(order: u8, end: &End, interval: &Interval, is_left: bool) -> Result<Position, Refusal> {
    let boundary = match end {
        End::Cut(position) => return Ok(position.clone()),
        End::Boundary(boundary) => boundary,
    };
    let bytes = boundary.position.bytes();
    let is_outside = if is_left { bytes < interval.start() } else { bytes >= interval.end() };
    if !is_outside {
        return Err(Refusal::Incomplete("the rows end before the interval that was asked for does"));
    }
    let is_end = boundary.position.key().is_none();
    let rid = boundary.stamp.rid;
    let fits = match (is_end, is_left) {
        (false, _) => (FIRST_RID..FIRST_GROUP).contains(&rid),
        (true, true) => rid == head_rid(order),
        (true, false) => rid == tail_rid(order),
    };
    // A tail lies outside of each interval's right side, a head outside of each left side, and never the other way round.
    if fits {
        Ok(boundary.position.clone())
    } else {
        Err(Refusal::Malformed("a boundary with a number that is not its own"))
    }
}

pub(crate) const NOT_ALL: Malformed = Malformed("a row without all it takes to check it");

/// What is signed of a head or tail with its one link.
pub(crate) fn end_message(definition: &Digest, position: &Position, stamp: &Stamp, own: Digest) -> Message {
    let kind = if *position == Position::head() { Kind::Head } else { Kind::Tail };
    message(definition, kind, stamp, &[own], &[0; 32])
}

pub(crate) fn with_own(order: u8, own: Digest, others: &[Digest]) -> Vec<Digest> {
    let mut links = others.to_vec();
    links.insert(usize::from(order), own);
    links
}

/// What signatures cover of rows that stand beside each other, on all cores; `places` has one more on each side.
fn rows_covered(
    definition: &Definition,
    question: &Question,
    rows: &[Row],
    places: &[Position],
) -> Result<Vec<Covered>, Malformed> {
    let order = question.order();
    let one = |at: usize| {
        let (row, around) = (&rows[at], &places[at..at + 3]);
        let own = link(order, &around[1], Some(&around[0]), Some(&around[2]));
        let links = with_own(order, own, &row.links);
        Covered::of_row(definition, question.definition(), question.columns(), row, &links).ok_or(NOT_ALL)
    };
    let part = |part: usize| {
        let from = part * ROWS_AT_ONCE;
        (from..rows.len().min(from + ROWS_AT_ONCE)).map(one).collect::<Result<Vec<_>, _>>()
    };
    let parts = spread(rows.len().div_ceil(ROWS_AT_ONCE), part);
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
