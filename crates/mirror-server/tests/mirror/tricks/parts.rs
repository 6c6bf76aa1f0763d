//! Numbers, nodes, filters and groups.

use counterfoil_proof::record::{head_rid, tail_rid};
use counterfoil_proof::{FIRST_FILTER, FIRST_GROUP, FIRST_NODE, Filter, FilterBits, Member, Span};

use crate::part::Part;
use crate::stock::Stock;
use crate::told::Told;

pub fn another_level(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.tiles().into_iter().next()?.level += 1;
    told.to_bytes(&stock.definition)
}

pub fn row_with_a_heads_number(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.rows().into_iter().next()?.stamp.rid = 0;
    told.to_bytes(&stock.definition)
}

/// A row, or whatever stands at the edge, with a number that is none of a record's.
fn with_number(mut told: Told, stock: &Stock, first: u64) -> Option<Vec<u8>> {
    let (before, after) = told.parts().into_iter().find(Part::is_record).map(|part| {
        let stamp = part.into_stamp();
        (stamp.rid, first + stamp.rid)
    })?;
    for part in told.parts() {
        match part {
            Part::Group(group) => group.list.iter_mut().filter(|it| **it == Member::Shown(before)).for_each(|member| {
                *member = Member::Shown(after);
            }),
            part if part.number() == before => part.into_stamp().rid = after,
            _ => {}
        }
    }
    told.to_bytes(&stock.definition)
}

pub fn nodes_number(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_number(told, stock, FIRST_NODE)
}

pub fn filters_number(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_number(told, stock, FIRST_FILTER)
}

pub fn groups_number(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_number(told, stock, FIRST_GROUP)
}

pub fn filter_with_a_rows_number(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Values(_, found) = &mut told else { return None };
    found.filters.first_mut()?.0.rid = 9;
    told.to_bytes(&stock.definition)
}

pub fn head_of_another_order(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let other = 1 - told.order();
    let (head, tail) = (head_rid(told.order()), tail_rid(told.order()));
    let stamp = told.stamps(stock).into_iter().find(|stamp| stamp.rid == head || stamp.rid == tail)?;
    stamp.rid = if stamp.rid == head { head_rid(other) } else { tail_rid(other) };
    told.signed(stock)
}

pub fn filter_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Values(_, found) = &mut told else { return None };
    found.filters.pop()?;
    told.clone().signed(stock).or_else(|| {
        // Nothing else was signed: something that nobody asked for is.
        let Told::Values(_, found) = &mut told else { return None };
        found.hints = found.hints.as_ref().map(|_| Vec::new());
        told.to_bytes(&stock.definition)
    })
}

fn with_filter(mut told: Told, stock: &Stock, change: impl Fn(&Filter) -> Option<Filter>) -> Option<Vec<u8>> {
    let Told::Values(_, found) = &mut told else { return None };
    let (_, filter) = found.filters.first_mut()?;
    *filter = change(filter)?;
    told.to_bytes(&stock.definition)
}

pub fn filter_that_denies_all(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let bits = FilterBits::build(*filter.bits().salt(), &[], 8);
        Filter::new(filter.order(), filter.low().to_vec(), filter.high().to_vec(), bits).ok()
    })
}

pub fn filter_of_another_salt(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let mut salt = *filter.bits().salt();
        salt[0] ^= 1;
        let bits = FilterBits::build(salt, &[], 8);
        Filter::new(filter.order(), filter.low().to_vec(), filter.high().to_vec(), bits).ok()
    })
}

/// It tells of all that it told of, and begins elsewhere.
pub fn filter_of_another_part(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let low = [filter.low(), &[0]].concat();
        Filter::new(filter.order(), low, filter.high().to_vec(), filter.bits().clone()).ok()
    })
}

/// The nodes and rows of one group, as if it were not there: what is behind it begins where it began.
pub fn group_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Totals(question, answer) = &mut told else { return None };
    let spans = answer.intervals.first_mut().filter(|spans| question.grouped() > 0 && spans.len() > 3)?;
    let at = spans.iter().position(|span| matches!(span, Span::Tile(_)))?;
    // The rows before and behind it would be two parts where one would do.
    let is_alone = |span: Option<&Span>| !matches!(span, Some(Span::Rows(..)));
    if !(is_alone(at.checked_sub(1).and_then(|before| spans.get(before))) || is_alone(spans.get(at + 1))) {
        spans.remove(at + 1);
    }
    spans.remove(at);
    told.signed(stock)
}

pub fn rows_beyond_count(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Totals(question, _) = &told else { return None };
    if question.grouped() > 0 || told.tiles().len() < 2 {
        return None;
    }
    told.tiles().into_iter().for_each(|tile| tile.totals.rows = u64::MAX);
    told.to_bytes(&stock.definition)
}

/// Two digests of a group that stand beside each other.
pub fn digests_exchanged(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let list = told.groups().iter_mut().map(|group| &mut group.list).find(|list| list.len() > 1)?;
    list.swap(0, 1);
    told.to_bytes(&stock.definition)
}

pub fn record_without_its_group(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.groups().pop()?;
    told.summed(stock).or_else(|| told.to_bytes(&stock.definition))
}

/// Its digest in the place of its number, as of one that is not in the answer: it is not signed with the group then.
pub fn record_beside_its_group(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let group = told.groups().first_mut()?;
    let kept = stock.now.groups.of_number(group.stamp.rid)?;
    let hidden = kept.members.iter().map(|(_, digest)| Member::Hidden(*digest));
    let at = group.list.iter().position(|member| matches!(member, Member::Shown(_)))?;
    group.list[at] = hidden.collect::<Vec<_>>()[at];
    told.to_bytes(&stock.definition)
}
