//! Honest answers to questions that nobody put.

use counterfoil_mirror::reply;
use counterfoil_proof::{Direction, Edge, Interval, Item, Points, Position, Question, TotalsQuestion};

use crate::stock::Stock;
use crate::told::Told;

pub fn another_question(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.named()[3] ^= 1;
    told.to_bytes(&stock.definition)
}

/// The honest answer to another question, as if it were to the one that was asked. It has hints, so only where they are asked for.
pub fn instead(mut told: Told, stock: &Stock, question: &[u8]) -> Option<Vec<u8>> {
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
    let places: Vec<Position> = told.rows().into_iter().filter_map(|row| stock.place(order, row.stamp.rid)).collect();
    let middle = places.get(places.len() / 2)?;
    let start = intervals.first()?.start();
    Some(vec![Interval::from_bytes(start, Edge::at(middle).bytes()).ok()?])
}

pub fn less(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn more(told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn other_side(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Rows(question, _) = &told else { return None };
    let other = match question.direction() {
        Direction::Ascending => Direction::Descending,
        Direction::Descending => Direction::Ascending,
    };
    let question = question.clone().limited(question.limit()?, other).ok()?.to_bytes();
    instead(told, stock, &question)
}

pub fn fewer_columns(told: Told, stock: &Stock) -> Option<Vec<u8>> {
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

pub fn groups_together(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Totals(question, _) = &told else { return None };
    let intervals = question.intervals().to_vec();
    let question = TotalsQuestion::new(&stock.definition, question.order(), intervals, 0).ok()?.hinted().to_bytes();
    instead(told, stock, &question)
}

/// One row more than the limit.
pub fn beyond_the_limit(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let Told::Rows(question, _) = &told else { return None };
    let question = question.clone().limited(question.limit()? + 1, question.direction()).ok()?.hinted().to_bytes();
    instead(told, stock, &question)
}
