//! What a hostile mirror makes of an honest answer, each with the word of the verdict that it earns.

use counterfoil_mirror::reply;
use counterfoil_proof::record::{head_rid, tail_rid};
use counterfoil_proof::{
    Direction, End, FIRST_FILTER, FIRST_RID, Filter, FilterBits, Hint, Interval, Item, Points, Position, Question, Row,
    Signature, SignatureSum, Span, TotalsQuestion, Value,
};

use crate::told::{Stock, Told};

/// A way to lie, or none where the answer has nothing to lie about in this way.
pub type Play = fn(Told, &Stock) -> Option<Vec<u8>>;

/// Name, the word that it earns, and how it is played.
pub const TRICKS: &[(&str, &str, Play)] = &[
    ("a row left out", "forged", row_left_out),
    ("a row less than the limit", "incomplete", row_less_than_the_limit),
    ("rows that end early", "incomplete", rows_end_early),
    ("a row hidden beyond the edge", "forged", hidden_beyond_the_edge),
    ("a row twice", "malformed", row_twice),
    ("two rows exchanged", "malformed", rows_exchanged),
    ("another value", "forged", another_value),
    ("a node of another level", "forged", another_level),
    ("a later version", "forged", later_version),
    ("a later period", "forged", later_period),
    ("a period that has not begun", "malformed", period_to_come),
    ("an answer to another question", "answer to another question", another_question),
    ("an answer to less", "incomplete", less),
    ("an answer to more", "malformed", more),
    ("from the other side", "incomplete", other_side),
    ("cut without a limit", "incomplete", cut),
    ("fewer columns", "malformed", fewer_columns),
    ("no signature", "malformed", infinity),
    ("a signature out of the group", "malformed", out_of_the_group),
    ("a signature more", "forged", signature_more),
    ("a signature of something else", "forged", another_signature),
    ("a hint from p on", "malformed", hint_from_p_on),
    ("a hint of the other sign", "malformed", hint_of_the_other_sign),
    ("a hint less", "malformed", hint_less),
    ("hints exchanged", "malformed", hints_exchanged),
    ("nothing", "malformed", |_, _| Some(Vec::new())),
    ("half of it", "malformed", |told, stock| told.to_bytes(&stock.definition).map(|it| it[..it.len() / 2].to_vec())),
    ("something behind it", "malformed", |told, stock| {
        told.to_bytes(&stock.definition).map(|it| [&it[..], &[0]].concat())
    }),
    ("more than there can be", "malformed", more_than_there_can_be),
    ("a row with a head's number", "malformed", row_with_a_heads_number),
    ("a filter's number", "malformed", filters_number),
    ("the head of another order", "malformed", head_of_another_order),
    ("a filter left out", "incomplete", filter_left_out),
    ("a filter that denies all", "forged", filter_that_denies_all),
    ("a filter of another part", "forged", filter_of_another_part),
    ("a filter of another salt", "forged", filter_of_another_salt),
    ("a group left out", "malformed", group_left_out),
    ("groups together", "malformed", groups_together),
    ("more rows than can be counted", "malformed", rows_beyond_count),
    ("what was said before", "stale", said_before),
    ("a part of what was said before", "stale", part_of_before),
    ("another table of this shape", "forged", twin),
];

/// The longest part of rows.
fn longest(told: &mut Told) -> Option<&mut Vec<Row>> {
    told.runs().into_iter().map(|run| &mut run.rows).max_by_key(|rows| rows.len()).filter(|rows| !rows.is_empty())
}

/// The stretch with a row, and where in it.
fn row_item(told: &mut Told) -> Option<(&mut Vec<Item>, usize)> {
    let Told::Values(_, found) = told else { return None };
    let is_row = |item: &Item| matches!(item, Item::Row(_));
    found.stretches.iter_mut().find_map(|stretch| {
        let at = stretch.items.iter().position(is_row)?;
        Some((&mut stretch.items, at))
    })
}

fn is_limited(told: &Told) -> bool {
    matches!(told, Told::Rows(question, _) if question.limit().is_some())
}

fn row_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if is_limited(&told) {
        return None;
    }
    if let Some((items, at)) = row_item(&mut told) {
        items.remove(at);
    } else {
        let rows = longest(&mut told)?;
        rows.remove(rows.len() / 2);
    }
    told.signed(stock)
}

fn row_less_than_the_limit(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let rows = is_limited(&told).then(|| longest(&mut told))??;
    rows.remove(rows.len() / 2);
    told.signed(stock)
}

/// The last row as if it stood outside.
fn rows_end_early(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let order = told.order();
    match &mut told {
        Told::Rows(_, answer) => {
            let run = answer.runs.last_mut().filter(|run| run.rows.len() > 1)?;
            let gone = stock.now.entry(run.rows.pop()?.stamp.rid)?;
            let mut boundary = stock.boundary(order, gone)?;
            let behind = stock.beside(order, &boundary.position, true)?;
            boundary.outer = Some(behind.position(&stock.definition, order).ok()?);
            run.right = End::Boundary(boundary);
        }
        Told::Values(_, found) => {
            let stretch = found.stretches.last_mut().filter(|stretch| stretch.items.len() > 2)?;
            stretch.items.pop();
            let Item::Row(last) = stretch.items.last()? else { return None };
            let place = stock.now.entry(last.stamp.rid)?.position(&stock.definition, order).ok()?;
            let behind = stock.beside(order, &place, true)?;
            stretch.behind = Some(behind.position(&stock.definition, order).ok()?);
        }
        Told::Totals(_, answer) => {
            let spans = answer.intervals.last_mut().filter(|spans| spans.len() > 1)?;
            spans.pop();
        }
    }
    told.signed(stock)
}

/// The boundary is left out, and the one behind it, or before, is told in its place: a gap in which anything could be.
fn hidden_beyond_the_edge(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let order = told.order();
    if let Told::Values(_, found) = &mut told {
        let stretch = found.stretches.last_mut()?;
        let Item::Mark(mark) = stretch.items.last()? else { return None };
        let next = stock.beside(order, &mark.position, true)?;
        let boundary = stock.boundary(order, next)?;
        let further = stock.beside(order, &boundary.position, true);
        stretch.behind = further.map(|entry| entry.position(&stock.definition, order)).transpose().ok()?;
        let counterfoil_proof::Boundary { position, stamp, root, links, .. } = boundary;
        *stretch.items.last_mut()? = Item::Mark(counterfoil_proof::Mark { position, stamp, root, links });
        return told.signed(stock);
    }
    let is_moved = told.runs().into_iter().any(|run| {
        further(&mut run.right, order, true, stock).or_else(|| further(&mut run.left, order, false, stock)).is_some()
    });
    is_moved.then(|| told.signed(stock))?
}

/// Puts what stands beyond a boundary in its place, if anything does.
fn further(end: &mut End, order: u8, behind: bool, stock: &Stock) -> Option<()> {
    let End::Boundary(boundary) = end else { return None };
    let mut further = stock.boundary(order, stock.beside(order, &boundary.position, behind)?)?;
    let outer = stock.beside(order, &further.position, behind);
    let outer = outer.map(|entry| entry.position(&stock.definition, order)).transpose().ok()?;
    further.outer = outer.filter(|_| further.root.is_some());
    *boundary = further;
    Some(())
}

fn row_twice(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if let Some((items, at)) = row_item(&mut told) {
        items.insert(at, items[at].clone());
    } else if let Some(rows) = longest(&mut told) {
        rows.insert(0, rows[0].clone());
    } else {
        let Told::Totals(_, answer) = &mut told else { return None };
        let spans = answer.intervals.first_mut()?;
        spans.push(spans.last()?.clone());
    }
    told.signed(stock)
}

fn rows_exchanged(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if let Told::Values(_, found) = &mut told {
        found.stretches.iter_mut().map(|stretch| &mut stretch.items).find(|items| items.len() > 1)?.swap(0, 1);
    } else if let Some(rows) = longest(&mut told).filter(|rows| rows.len() > 1) {
        rows.swap(0, 1);
    } else {
        let Told::Totals(_, answer) = &mut told else { return None };
        answer.intervals.iter_mut().find(|spans| spans.len() > 1)?.swap(0, 1);
    }
    told.signed(stock)
}

fn another_value(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if let Some(tile) = told.tiles().into_iter().next() {
        tile.totals.rows += 1;
    } else {
        match told.rows().into_iter().next()?.values.last_mut()? {
            Value::Text(text) => text.push('x'),
            Value::Integer(number) => *number ^= 1,
            _ => return None,
        }
    }
    told.to_bytes(&stock.definition)
}

fn another_level(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.tiles().into_iter().next()?.level += 1;
    told.to_bytes(&stock.definition)
}

fn later_version(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    // Of what was signed more than once in its period the summary says which version was the last.
    told.stamps().into_iter().min_by_key(|stamp| (stamp.rid < FIRST_RID, stamp.period))?.version += 1;
    told.to_bytes(&stock.definition)
}

/// What was signed last, as if it had been signed a period later: of an earlier one it would be stale.
fn later_period(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.stamps().into_iter().max_by_key(|stamp| stamp.period)?.period += 1;
    told.to_bytes(&stock.definition)
}

fn period_to_come(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.stamps().into_iter().next()?.period += 1000;
    told.to_bytes(&stock.definition)
}

fn another_question(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.named()[3] ^= 1;
    told.to_bytes(&stock.definition)
}

/// The honest answer to another question, as if it were to the one that was asked. It has hints, so only where they are asked for.
fn instead(mut told: Told, stock: &Stock, question: &[u8]) -> Option<Vec<u8>> {
    let name = *told.hints().is_some().then(|| told.named())?;
    let mut bytes = reply(&mut stock.now.clone(), question).ok()?;
    bytes[1..33].copy_from_slice(&name);
    (Some(&bytes) != told.to_bytes(&stock.definition).as_ref()).then_some(bytes)
}

/// All but the last interval, or but the second half of the only one.
fn fewer(told: &mut Told, intervals: &[Interval], stock: &Stock) -> Option<Vec<Interval>> {
    if let [rest @ .., _] = intervals
        && !rest.is_empty()
    {
        return Some(rest.to_vec());
    }
    let order = told.order();
    let places: Vec<Position> = told
        .rows()
        .into_iter()
        .filter_map(|row| stock.now.entry(row.stamp.rid)?.position(&stock.definition, order).ok())
        .collect();
    let middle = places.get(places.len() / 2)?;
    let start = intervals.first()?.start();
    Some(vec![Interval::from_bytes(start, counterfoil_proof::Edge::at(middle).bytes()).ok()?])
}

fn less(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let definition = &stock.definition;
    let question = match told.clone() {
        Told::Rows(question, _) => {
            let intervals = fewer(&mut told, question.intervals(), stock)?;
            let less = Question::new(definition, question.order(), intervals, question.columns()).ok()?;
            // A limit is not reached by less.
            (question.limit().is_none()).then(|| less.hinted().to_bytes())?
        }
        Told::Values(points, _) => {
            // Without a value that some row has: of others a filter may tell all the same.
            let column = usize::from(definition.orders[usize::from(points.order())][0]);
            let record = stock.now.entry(told.rows().last()?.stamp.rid)?.record.as_ref()?;
            let mut shown = Vec::new();
            definition.columns[column].kind.encode(&record.values[column], &mut shown).ok()?;
            let values: Vec<Vec<u8>> = points.values().iter().filter(|value| **value != shown).cloned().collect();
            Points::new(definition, points.order(), values, points.columns()).ok()?.hinted().to_bytes()
        }
        Told::Totals(question, _) => {
            let intervals = fewer(&mut told, question.intervals(), stock)?;
            if intervals.len() != question.intervals().len() {
                return None;
            }
            TotalsQuestion::new(definition, question.order(), intervals, question.grouped()).ok()?.hinted().to_bytes()
        }
    };
    instead(told, stock, &question)
}

fn more(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let (definition, all) = (&stock.definition, vec![Interval::all()]);
    let question = match &told {
        Told::Rows(question, _) if question.limit().is_none() && question.intervals().len() == 1 => {
            Question::new(definition, question.order(), all, question.columns()).ok()?.hinted().to_bytes()
        }
        Told::Values(points, _) => {
            let mut values = points.values().to_vec();
            let kind = definition.columns[usize::from(definition.orders[usize::from(points.order())][0])].kind;
            for rid in stock.now.rids(points.order()) {
                let Some(record) = &stock.now.entry(rid)?.record else { continue };
                let column = usize::from(definition.orders[usize::from(points.order())][0]);
                let mut value = Vec::new();
                kind.encode(&record.values[column], &mut value).ok()?;
                values.push(value);
            }
            values.sort();
            values.dedup();
            Points::new(definition, points.order(), values, points.columns()).ok()?.hinted().to_bytes()
        }
        Told::Totals(question, _) => {
            TotalsQuestion::new(definition, question.order(), all, question.grouped()).ok()?.hinted().to_bytes()
        }
        Told::Rows(..) => return None,
    };
    instead(told, stock, &question)
}

fn other_side(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Rows(question, _) = &told else { return None };
    let other = match question.direction() {
        Direction::Ascending => Direction::Descending,
        Direction::Descending => Direction::Ascending,
    };
    let question = question.clone().limited(question.limit()?, other).ok()?.to_bytes();
    instead(told, stock, &question)
}

fn cut(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if is_limited(&told) {
        return None;
    }
    let order = told.order();
    let run = told.runs().into_iter().rfind(|run| run.rows.len() > 1)?;
    let gone = stock.now.entry(run.rows.pop()?.stamp.rid)?;
    run.right = End::Cut(gone.position(&stock.definition, order).ok()?);
    told.signed(stock)
}

fn fewer_columns(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let definition = &stock.definition;
    let question = match &told {
        Told::Rows(question, answer) if answer.runs.iter().any(|run| !run.rows.is_empty()) => {
            let fewer = Question::new(definition, question.order(), question.intervals().to_vec(), &[]).ok()?.hinted();
            match question.limit() {
                Some(limit) => fewer.limited(limit, question.direction()).ok()?.to_bytes(),
                None => fewer.to_bytes(),
            }
        }
        Told::Values(points, found)
            if found.stretches.iter().flat_map(|it| &it.items).any(|it| matches!(it, Item::Row(_))) =>
        {
            Points::new(definition, points.order(), points.values().to_vec(), &[]).ok()?.hinted().to_bytes()
        }
        _ => return None,
    };
    instead(told, stock, &question)
}

/// Puts bytes in the place of the signature's own.
fn with_signature(mut told: Told, stock: &Stock, other: &[u8; 48]) -> Option<Vec<u8>> {
    let own = told.signature().to_bytes();
    let mut bytes = told.to_bytes(&stock.definition)?;
    let at = bytes.windows(48).position(|part| part == own)?;
    bytes[at..at + 48].copy_from_slice(other);
    Some(bytes)
}

fn infinity(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut packed = [0; 48];
    packed[0] = 0xc0;
    with_signature(told, stock, &packed)
}

fn out_of_the_group(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut packed = [0; 48];
    (packed[0], packed[47]) = (0x80, 4);
    Signature::from_bytes(&packed).ok()?;
    with_signature(told, stock, &packed)
}

fn signature_more(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let stranger = stock.now.entry(tail_rid(0))?.signature()?;
    let own = *told.signature();
    *told.signature() = SignatureSum::sum_of(&[own, stranger]).finish()?;
    told.to_bytes(&stock.definition)
}

fn another_signature(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    *told.signature() = stock.twin.entry(head_rid(0))?.signature()?;
    told.to_bytes(&stock.definition)
}

const P: [u8; 48] = [
    0x1a, 0x01, 0x11, 0xea, 0x39, 0x7f, 0xe6, 0x9a, 0x4b, 0x1b, 0xa7, 0xb6, 0x43, 0x4b, 0xac, 0xd7, 0x64, 0x77, 0x4b,
    0x84, 0xf3, 0x85, 0x12, 0xbf, 0x67, 0x30, 0xd2, 0xa0, 0xf6, 0xb0, 0xf6, 0x24, 0x1e, 0xab, 0xff, 0xfe, 0xb1, 0x53,
    0xff, 0xff, 0xb9, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xaa, 0xab,
];

/// A number of 48 bytes plus p, or p less the number; none where that does not fit.
fn beside_p(number: &[u8], is_plus: bool) -> Option<[u8; 48]> {
    let (mut result, mut carry) = ([0; 48], 0i16);
    for i in (0..48).rev() {
        let digit =
            if is_plus { i16::from(number[i]) + i16::from(P[i]) } else { i16::from(P[i]) - i16::from(number[i]) };
        result[i] = (digit + carry) as u8;
        carry = (digit + carry) >> 8;
    }
    (carry == 0 && result[0] < 0x20).then_some(result)
}

fn with_hint(mut told: Told, stock: &Stock, change: impl Fn(&Hint) -> Option<Hint>) -> Option<Vec<u8>> {
    let hints = told.hints().as_mut()?;
    let (at, other) = hints.iter().enumerate().find_map(|(at, hint)| Some((at, change(hint)?)))?;
    hints[at] = other;
    told.to_bytes(&stock.definition)
}

fn hint_from_p_on(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_hint(told, stock, |hint| {
        let mut other = hint.0;
        other[..48].copy_from_slice(&beside_p(&hint.0[..48], true)?);
        Some(Hint(other))
    })
}

fn hint_of_the_other_sign(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_hint(told, stock, |hint| {
        let mut other = hint.0;
        other[..48].copy_from_slice(&beside_p(&hint.0[..48], false)?);
        Some(Hint(other))
    })
}

fn hint_less(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.hints().as_mut()?.pop()?;
    told.to_bytes(&stock.definition)
}

fn hints_exchanged(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.hints().as_mut().filter(|hints| hints.len() > 1)?.swap(0, 1);
    told.to_bytes(&stock.definition)
}

/// In place of the first count, one that no memory holds.
fn more_than_there_can_be(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let bytes = told.to_bytes(&stock.definition)?;
    let rest = bytes[33..].iter().position(|byte| byte & 0x80 == 0)? + 34;
    let count = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    Some([&bytes[..33], &count, &bytes[rest..]].concat())
}

fn row_with_a_heads_number(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.rows().into_iter().next()?.stamp.rid = 0;
    told.to_bytes(&stock.definition)
}

/// A row, or whatever stands at the edge, with the number of a filter; and a filter with that of a row.
fn filters_number(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Values(_, found) = &mut told else { return None };
    if let Some((stamp, _)) = found.filters.first_mut() {
        stamp.rid = 9;
    } else {
        let Some(Item::Row(row)) =
            found.stretches.iter_mut().flat_map(|it| &mut it.items).find(|it| matches!(it, Item::Row(_)))
        else {
            return None;
        };
        row.stamp.rid += FIRST_FILTER;
    }
    told.to_bytes(&stock.definition)
}

fn head_of_another_order(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let other = 1 - told.order();
    let (head, tail) = (head_rid(told.order()), tail_rid(told.order()));
    let stamp = told.stamps().into_iter().find(|stamp| stamp.rid == head || stamp.rid == tail)?;
    stamp.rid = if stamp.rid == head { head_rid(other) } else { tail_rid(other) };
    told.signed(stock)
}

fn filter_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

fn filter_that_denies_all(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let bits = FilterBits::build(*filter.bits().salt(), &[], 8);
        Filter::new(filter.order(), filter.low().to_vec(), filter.high().to_vec(), bits).ok()
    })
}

fn filter_of_another_salt(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let mut salt = *filter.bits().salt();
        salt[0] ^= 1;
        let bits = FilterBits::build(salt, &[], 8);
        Filter::new(filter.order(), filter.low().to_vec(), filter.high().to_vec(), bits).ok()
    })
}

/// It tells of all that it told of, and begins elsewhere.
fn filter_of_another_part(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_filter(told, stock, |filter| {
        let low = [filter.low(), &[0]].concat();
        Filter::new(filter.order(), low, filter.high().to_vec(), filter.bits().clone()).ok()
    })
}

/// The nodes and rows of one group, as if it were not there: what is behind it begins where it began.
fn group_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

fn groups_together(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Totals(question, _) = &told else { return None };
    let intervals = question.intervals().to_vec();
    let question = TotalsQuestion::new(&stock.definition, question.order(), intervals, 0).ok()?.hinted().to_bytes();
    instead(told, stock, &question)
}

fn rows_beyond_count(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Totals(question, _) = &told else { return None };
    if question.grouped() > 0 || told.tiles().len() < 2 {
        return None;
    }
    told.tiles().into_iter().for_each(|tile| tile.totals.rows = u64::MAX);
    told.to_bytes(&stock.definition)
}

fn said_before(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let before = Told::by(&stock.definition, &told.question(), &stock.then).to_bytes(&stock.definition)?;
    (Some(&before) != told.to_bytes(&stock.definition).as_ref()).then_some(before)
}

/// One row, node or filter of before among what is there now.
fn part_of_before(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut before = Told::by(&stock.definition, &told.question(), &stock.then);
    let mut is_mixed = false;
    if let (Told::Values(_, now), Told::Values(_, then)) = (&mut told, &mut before)
        && let (Some(now), Some(then)) = (now.filters.first_mut(), then.filters.first())
        && *now != *then
    {
        *now = then.clone();
        is_mixed = true;
    }
    for tile in told.tiles() {
        if let Some(old) = before.tiles().into_iter().find(|old| old.end == tile.end && old.stamp != tile.stamp)
            && !is_mixed
        {
            *tile = old.clone();
            is_mixed = true;
        }
    }
    for row in told.rows() {
        if let Some(old) =
            before.rows().into_iter().find(|old| old.stamp.rid == row.stamp.rid && old.stamp != row.stamp)
            && !is_mixed
        {
            *row = old.clone();
            is_mixed = true;
        }
    }
    is_mixed.then(|| told.signed(stock))?
}

/// Of a table that lived as this one did: what another one signed at other times would be stale.
fn twin(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if stock.definition.name == "soon" {
        return None;
    }
    let name = *told.named();
    let mut question = told.question();
    question[1..33].copy_from_slice(&counterfoil_mirror::Shelf::definition(&stock.twin).digest());
    let mut bytes = reply(&mut stock.twin.clone(), &question).ok()?;
    bytes[1..33].copy_from_slice(&name);
    Some(bytes)
}
