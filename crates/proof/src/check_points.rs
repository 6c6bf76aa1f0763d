//! From an answer about values to rows that are the owner's, all that have one of the values, and fresh.
//!
//! Each value lies within a stretch, between items that stand outside of it, or a filter denies it; otherwise rows may be
//! missing. What a filter does not deny, be it there or not, takes a stretch: a false positive costs bytes.

use alloc::vec::Vec;

use crate::check::{NOT_ALL, SignedThings, Trust, Verified, end_message, grounds, with_own};
use crate::covered::Covered;
use crate::definition::{Definition, FIRST_RID};
use crate::found::{Found, Item, Mark, Stretch};
use crate::members::FIRST_GROUP;
use crate::partition::{FIRST_FILTER, Filter};
use crate::points::Points;
use crate::position::{Interval, Position};
use crate::record::{Stamp, head_rid, link, tail_rid};
use crate::refusal::Refusal;

/// Checks an answer about values. Its rows come as the order has them.
///
/// # Errors
/// [`Refusal`]: why it is not to be trusted.
pub fn check_points(trust: &Trust<'_>, points: &Points, answer: &[u8]) -> Result<Verified, Refusal> {
    let definition = &trust.manifest.manifest().definition;
    let (as_of, age) = grounds(trust, points.definition())?;
    let found = Found::from_bytes(answer, definition, points)?;
    if found.question != points.digest() {
        return Err(Refusal::OtherQuestion);
    }
    are_apart(&found.filters)?;
    let placed = found.stretches.iter().map(|stretch| places(definition, points, stretch));
    let places = placed.collect::<Result<Vec<_>, _>>()?;
    tell_of_each(points, &found, &places)?;
    let mut signed = SignedThings::default();
    for (stamp, filter) in &found.filters {
        signed.take(*stamp, filter.message(points.definition(), stamp))?;
    }
    for (stretch, places) in found.stretches.iter().zip(&places) {
        take_stretch(&mut signed, definition, points, stretch, places)?;
    }
    signed.take_groups(points.definition(), &found.groups)?;
    signed.are_fresh(trust)?;
    signed.verify(trust, &found.signature, found.hints.as_deref())?;
    let items = found.stretches.into_iter().flat_map(|stretch| stretch.items);
    let rows = items.filter_map(|item| if let Item::Row(row) = item { Some(row.values) } else { None }).collect();
    Ok(Verified { rows, as_of, age, is_cut: false, signatures: signed.count() })
}

/// Filters of an order tile its domain: of two that overlap, one is not of now, or not of this order.
fn are_apart(filters: &[(Stamp, Filter)]) -> Result<(), Refusal> {
    if filters.iter().any(|(stamp, _)| stamp.rid < FIRST_FILTER) {
        return Err(Refusal::Malformed("a filter with the number of a record"));
    }
    if filters.windows(2).all(|pair| pair[0].1.high() <= pair[1].1.low()) {
        Ok(())
    } else {
        Err(Refusal::Malformed("filters that overlap or are not in their order"))
    }
}

/// Where everything of a stretch stands, strictly rising: what is before it, its items, what is behind it.
fn places(definition: &Definition, points: &Points, stretch: &Stretch) -> Result<Vec<Position>, Refusal> {
    let mut places = Vec::with_capacity(stretch.items.len());
    for item in &stretch.items {
        places.push(match item {
            Item::Mark(mark) => mark_place(points.order(), mark)?,
            Item::Row(row) => {
                if !(FIRST_RID..FIRST_GROUP).contains(&row.stamp.rid) {
                    return Err(Refusal::Malformed("a row with a number that is no row's"));
                }
                let value = |column| &row.values[points.columns().binary_search(&column).unwrap_or(0)];
                definition.position(usize::from(points.order()), value, row.stamp.rid)?
            }
        });
    }
    let all: Vec<&Position> = stretch.before.iter().chain(&places).chain(&stretch.behind).collect();
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return Err(Refusal::Malformed("a stretch of nothing"));
    };
    // Only before a head and behind a tail there is nothing.
    let has_ends = stretch.before.is_none() == (*first == Position::head())
        && stretch.behind.is_none() == (*last == Position::tail());
    if has_ends && all.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(places)
    } else {
        Err(Refusal::Malformed("rows that are not in their order, or one of them twice"))
    }
}

fn mark_place(order: u8, mark: &Mark) -> Result<Position, Refusal> {
    let rid = mark.stamp.rid;
    let fits = match mark.position.key() {
        Some(_) => (FIRST_RID..FIRST_GROUP).contains(&rid),
        None => rid == if mark.position == Position::head() { head_rid(order) } else { tail_rid(order) },
    };
    if fits {
        Ok(mark.position.clone())
    } else {
        Err(Refusal::Malformed("a boundary with a number that is not its own"))
    }
}

/// Whether the answer tells of each value, and of rows with these values alone.
fn tell_of_each(points: &Points, found: &Found, places: &[Vec<Position>]) -> Result<(), Refusal> {
    let apart = |pair: &[Vec<Position>]| pair[0].last() < pair[1].first();
    if !places.windows(2).all(apart) {
        return Err(Refusal::Malformed("stretches of an order that overlap or are not in their order"));
    }
    let mut wanted_rows = 0;
    let mut probed = 0;
    for value in points.values() {
        let interval = Points::interval(value);
        if let Some(rows) = rows_within(&found.stretches, places, &interval)? {
            wanted_rows += rows;
            continue;
        }
        // They ascend, as the values do.
        while found.filters.get(probed).is_some_and(|(_, filter)| filter.high() <= &value[..]) {
            probed += 1;
        }
        if !found.filters.get(probed).is_some_and(|(_, filter)| filter.denies(value)) {
            return Err(Refusal::Incomplete("no row of a value, and no proof that there is none"));
        }
    }
    let is_row = |item: &&Item| matches!(item, Item::Row(_));
    if found.stretches.iter().flat_map(|stretch| &stretch.items).filter(is_row).count() == wanted_rows {
        Ok(())
    } else {
        Err(Refusal::Malformed("a row outside of what was asked for"))
    }
}

/// How many rows stand in an interval; none if no stretch reaches around it.
fn rows_within(stretches: &[Stretch], places: &[Vec<Position>], interval: &Interval) -> Result<Option<usize>, Refusal> {
    let is_before_end = |position: &Position| position.bytes() < interval.end();
    let at = places.partition_point(|places| places.last().is_some_and(is_before_end));
    let (Some(stretch), Some(places)) = (stretches.get(at), places.get(at)) else { return Ok(None) };
    let first = places.partition_point(|position| position.bytes() < interval.start());
    let end = places.partition_point(is_before_end);
    if first == 0 {
        return Ok(None);
    }
    if stretch.items[first..end].iter().any(|item| matches!(item, Item::Mark(_))) {
        return Err(Refusal::Incomplete("a row of a value without what was asked for"));
    }
    Ok(Some(end - first))
}

fn take_stretch(
    signed: &mut SignedThings,
    definition: &Definition,
    points: &Points,
    stretch: &Stretch,
    places: &[Position],
) -> Result<(), Refusal> {
    let order = points.order();
    for (at, (item, own)) in stretch.items.iter().zip(places).enumerate() {
        let left = if at == 0 { stretch.before.as_ref() } else { places.get(at - 1) };
        let right = places.get(at + 1).or(stretch.behind.as_ref());
        let link = link(order, own, left, right);
        let digest = points.definition();
        match item {
            Item::Mark(mark) if mark.position.key().is_none() => {
                signed.take(mark.stamp, end_message(digest, &mark.position, &mark.stamp, link))?;
            }
            Item::Mark(Mark { stamp, root, links, .. }) => {
                let links = with_own(order, link, links);
                let covered = Covered::of_mark(definition, digest, stamp, &links, root.as_ref()).ok_or(NOT_ALL)?;
                signed.take_record(definition.scheme, *stamp, covered)?;
            }
            Item::Row(row) => {
                let links = with_own(order, link, &row.links);
                let covered = Covered::of_row(definition, digest, points.columns(), row, &links).ok_or(NOT_ALL)?;
                signed.take_record(definition.scheme, row.stamp, covered)?;
            }
        }
    }
    Ok(())
}
