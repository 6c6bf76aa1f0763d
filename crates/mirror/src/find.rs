//! The answer to a question about values, with its proof: filters where they are smaller than what stands around values.

use std::collections::BTreeSet;

use counterfoil_proof::{Definition, Digest, Filter, Found, Item, Malformed, Mark, Points, Position, Stretch};

use crate::entry::Entry;
use crate::filters::SignedFilter;
use crate::prove::{AnswerError, Closing, Gathered, nearest, root_of, row, stamp_of};
use crate::shelf::Shelf;

/// Bytes of a signed filter in an answer, beside its bounds and bits: numbers, salt, lengths.
const FILTER_BYTES: usize = 16 + 10 + 6;

/// Bytes of a mark, beside its position and the links of other orders: root, numbers, lengths.
const MARK_BYTES: usize = 32 + 8;

/// Bytes of a hint.
const HINT_BYTES: usize = 96;

/// Answers `points` from what is on `shelf`.
///
/// # Errors
/// [`AnswerError`].
pub fn find<S: Shelf>(shelf: &mut S, points: &Points) -> Result<Found, AnswerError<S::Error>> {
    let hint = if points.is_hinted() { HINT_BYTES } else { 0 };
    find_with(shelf, points, &mut |filter, denied, definition| {
        filter_bytes(filter) + hint < boundary_bytes(filter, denied, definition, hint)
    })
}

/// The same without filters: what the proof would be if there were none.
///
/// # Errors
/// [`AnswerError`].
pub fn find_without_filters<S: Shelf>(shelf: &mut S, points: &Points) -> Result<Found, AnswerError<S::Error>> {
    find_with(shelf, points, &mut |_, _, _| false)
}

/// Whether a filter is sent for so many values that it denies.
type Choose<'a> = dyn FnMut(&Filter, usize, &Definition) -> bool + 'a;

fn find_with<S: Shelf>(
    shelf: &mut S,
    points: &Points,
    choose: &mut Choose<'_>,
) -> Result<Found, AnswerError<S::Error>> {
    let definition = shelf.definition().clone();
    let mut filters = Vec::new();
    let mut walked = Walked::default();
    let mut values = points.values();
    while let Some((first, _)) = values.split_first() {
        let filter = shelf.filter(points.order(), first).map_err(AnswerError::Shelf)?;
        let filter = filter.filter(|signed| signed.filter.covers(first));
        let covered = |value: &Vec<u8>| filter.as_ref().is_some_and(|signed| signed.filter.covers(value));
        let (part, rest) = values.split_at(values.partition_point(covered).max(1));
        values = rest;
        let denied = |value: &&Vec<u8>| filter.as_ref().is_some_and(|signed| signed.filter.denies(value));
        let count = part.iter().filter(denied).count();
        let is_sent = count > 0 && filter.as_ref().is_some_and(|signed| choose(&signed.filter, count, &definition));
        for value in part.iter().filter(|value| !(is_sent && denied(value))) {
            walked.reach(shelf, points, value)?;
        }
        filters.extend(filter.filter(|_| is_sent));
    }
    found(shelf, filters, walked.done, points)
}

fn filter_bytes(filter: &Filter) -> usize {
    FILTER_BYTES + filter.low().len() + filter.high().len() + filter.bits().to_bytes().len()
}

/// About as many bytes as so many denied values take without their filter: of values that lie apart each has another
/// neighbour, of no more than the filter has values. Nobody looks for them to find out: that would be the work that the
/// filter saves.
fn boundary_bytes(filter: &Filter, denied: usize, definition: &Definition, hint: usize) -> usize {
    let marks = denied.min(filter.bits().capacity()) + 1;
    let position = filter.low().len() + 10;
    marks * (MARK_BYTES + hint + position + 32 * (definition.orders.len() - 1)) + 2 * position
}

/// A part of an order without a gap, as it was walked.
struct Part {
    before: Option<Position>,
    entries: Vec<(Position, Entry)>,
    behind: Option<Position>,
}

#[derive(Default)]
struct Walked {
    done: Vec<Part>,
}

impl Walked {
    /// Walks from what stands before a value to what stands behind it. Values come ascending.
    fn reach<S: Shelf>(&mut self, shelf: &mut S, points: &Points, value: &[u8]) -> Result<(), AnswerError<S::Error>> {
        let interval = Points::interval(value);
        // In the gap before the last entry of the part: that was walked already.
        if let Some(Part { entries, .. }) = self.done.last()
            && let [.., (left, _), (right, _)] = &entries[..]
            && left.bytes() < interval.start()
            && right.bytes() >= interval.end()
        {
            return Ok(());
        }
        let order = points.order();
        let (mut entries, mut beyond) = (Vec::new(), 0);
        let visit = &mut |position: Position, entry| {
            beyond += usize::from(!interval.contains(&position));
            entries.push((position, entry));
            beyond < 2
        };
        shelf.upward(order, interval.start(), visit).map_err(AnswerError::Shelf)?;
        let behind = if beyond > 1 { entries.pop().map(|(position, _)| position) } else { None };
        let mut left = nearest(|visit| shelf.downward(order, interval.start(), visit))?.into_iter();
        let nearest = left.next().ok_or(Malformed("a table without a head"))?;
        let before = left.next().map(|(position, _)| position);
        if entries.is_empty() {
            return Err(Malformed("a table without a tail").into());
        }
        entries.insert(0, nearest);
        self.join(Part { before, entries, behind });
        Ok(())
    }

    /// Adds a part to the one before, if they share an entry.
    fn join(&mut self, part: Part) {
        let last = self.done.last_mut().filter(|last| {
            let (end, start) = (last.entries.last(), part.entries.first());
            end.zip(start).is_some_and(|((end, _), (start, _))| end >= start)
        });
        match last {
            None => self.done.push(part),
            Some(last) => {
                let end = last.entries.last().map(|(end, _)| end.clone());
                let known = part.entries.partition_point(|(position, _)| Some(position) <= end.as_ref());
                if known < part.entries.len() {
                    last.entries.extend(part.entries.into_iter().skip(known));
                    last.behind = part.behind;
                }
            }
        }
    }
}

/// The answer of filters and parts.
fn found<S: Shelf>(
    shelf: &mut S,
    signed: Vec<SignedFilter>,
    parts: Vec<Part>,
    points: &Points,
) -> Result<Found, AnswerError<S::Error>> {
    let definition = shelf.definition().clone();
    let mut gathered = Gathered::default();
    let mut filters = Vec::with_capacity(signed.len());
    for SignedFilter { stamp, filter, signature, hint } in signed {
        gathered.sign(stamp.rid, signature, hint);
        filters.push((stamp, filter));
    }
    let asked: BTreeSet<&[u8]> = points.values().iter().map(Vec::as_slice).collect();
    let mut stretches = Vec::with_capacity(parts.len());
    for part in parts {
        let mut items = Vec::with_capacity(part.entries.len());
        for (position, entry) in part.entries {
            let item = item(&definition, points, &asked, position, &entry)?;
            let columns = if matches!(item, Item::Row(_)) { points.columns() } else { &[] };
            gathered.sign_entry(&definition, &entry, columns)?;
            items.push(item);
        }
        stretches.push(Stretch { before: part.before, items, behind: part.behind });
    }
    let Closing { groups, signature, hints } = gathered.close(shelf, points.is_hinted())?;
    Ok(Found { question: points.digest(), filters, stretches, groups, signature, hints })
}

/// A row if its value was asked for, otherwise a mark.
fn item(
    definition: &Definition,
    points: &Points,
    asked: &BTreeSet<&[u8]>,
    position: Position,
    entry: &Entry,
) -> Result<Item, Malformed> {
    let mut links: Vec<Digest> = entry.links.clone();
    if entry.record.is_some() && usize::from(points.order()) < links.len() {
        links.remove(usize::from(points.order()));
    }
    let Some(record) = &entry.record else {
        return Ok(Item::Mark(Mark { position, stamp: entry.stamp, root: None, links: Vec::new() }));
    };
    let column = definition.orders.get(usize::from(points.order())).and_then(|order| order.first());
    let column = usize::from(*column.ok_or(Malformed("an order by no column"))?);
    let mut value = Vec::new();
    let shown = record.values.get(column).zip(definition.columns.get(column));
    let (own, kind) = shown.ok_or(Malformed("a record with other columns than its table"))?;
    kind.kind.encode(own, &mut value).map_err(|_| Malformed("a value of a type that its column has not"))?;
    if asked.contains(&value[..]) {
        return row(definition, points.order(), points.columns(), entry).map(Item::Row);
    }
    let root = root_of(definition, entry)?;
    Ok(Item::Mark(Mark { position, stamp: stamp_of(definition, entry), root, links }))
}
