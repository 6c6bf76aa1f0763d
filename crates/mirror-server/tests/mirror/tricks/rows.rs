//! Rows that are left out, doubled, moved or changed.

use counterfoil_proof::{Answer, Boundary, End, Item, Mark, Value};

use crate::stock::Stock;
use crate::told::Told;
use crate::tricks::{is_limited, longest};

/// The stretch with a row, and where in it.
fn row_item(told: &mut Told) -> Option<(&mut Vec<Item>, usize)> {
    let Told::Values(_, found) = told else { return None };
    let is_row = |item: &Item| matches!(item, Item::Row(_));
    found.stretches.iter_mut().find_map(|stretch| {
        let at = stretch.items.iter().position(is_row)?;
        Some((&mut stretch.items, at))
    })
}

pub fn row_left_out(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn row_less_than_the_limit(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let rows = is_limited(&told).then(|| longest(&mut told))??;
    rows.remove(rows.len() / 2);
    told.signed(stock)
}

/// The last row as if it stood outside.
pub fn rows_end_early(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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
            let place = stock.place(order, last.stamp.rid)?;
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
pub fn hidden_beyond_the_edge(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let order = told.order();
    if let Told::Values(_, found) = &mut told {
        let stretch = found.stretches.last_mut()?;
        let Item::Mark(mark) = stretch.items.last()? else { return None };
        let next = stock.beside(order, &mark.position, true)?;
        let boundary = stock.boundary(order, next)?;
        let further = stock.beside(order, &boundary.position, true);
        stretch.behind = further.map(|entry| entry.position(&stock.definition, order)).transpose().ok()?;
        let Boundary { position, stamp, root, links, .. } = boundary;
        *stretch.items.last_mut()? = Item::Mark(Mark { position, stamp, root, links });
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
    further.outer = outer.filter(|_| further.position.key().is_some());
    *boundary = further;
    Some(())
}

pub fn row_twice(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn rows_exchanged(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn cut(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if is_limited(&told) {
        return None;
    }
    let order = told.order();
    let run = told.runs().into_iter().rfind(|run| run.rows.len() > 1)?;
    let gone = stock.now.entry(run.rows.pop()?.stamp.rid)?;
    run.right = End::Cut(gone.position(&stock.definition, order).ok()?);
    told.signed(stock)
}

pub fn another_value(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

/// The middle one, or the last, of rows whose keys are equal; where there is a limit, with the row behind it in its place.
pub fn one_of_equal_keys(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if let Told::Rows(question, _) = &told
        && let Some(limit) = question.limit()
    {
        let question = question.clone();
        let more = question.clone().limited(limit + 1, question.direction()).ok()?;
        let Told::Rows(_, answer) = Told::by(&stock.definition, &more.to_bytes(), &stock.now) else { return None };
        told = Told::Rows(question.clone(), Answer { question: question.digest(), ..answer });
    }
    let order = told.order();
    let is_of_equals = |pair: &[u64]| {
        let [first, second] = [pair[0], pair[1]].map(|rid| stock.place(order, rid));
        first.is_some_and(|first| second.is_some_and(|second| first.key() == second.key()))
    };
    let last_of = |rids: Vec<u64>| rids.windows(2).rposition(is_of_equals);
    if let Told::Values(_, found) = &mut told {
        let rid = |item: &Item| if let Item::Row(row) = item { row.stamp.rid } else { 0 };
        let mut stretches = found.stretches.iter_mut().map(|stretch| &mut stretch.items);
        let (items, at) = stretches.find_map(|items| {
            let at = last_of(items.iter().map(rid).collect())?;
            Some((items, at))
        })?;
        items.remove(at);
    } else {
        let mut runs = told.runs().into_iter().map(|run| &mut run.rows);
        let (rows, at) = runs.find_map(|rows| {
            let at = last_of(rows.iter().map(|row| row.stamp.rid).collect())?;
            Some((rows, at))
        })?;
        rows.remove(at);
    }
    told.signed(stock)
}
