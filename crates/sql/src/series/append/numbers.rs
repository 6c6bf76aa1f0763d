//! The numbers of the series that rows belong to.

use std::sync::Arc;

use counterfoil_relation::Table;
use counterfoil_series::{KEY_BYTES_MAX, SERIES_MAX, SeriesTables};

use super::{Appended, NewPoints, Reason};
use crate::error::Result;
use crate::series::{Form, keys, told};
use crate::store::Lease;

/// For each set the number of its series, new ones included; none where no row needs it, or where it cannot be.
pub(super) fn of_sets(
    tables: &SeriesTables,
    lease: &mut Lease,
    table: &Arc<Table>,
    form: &Form,
    points: &NewPoints<'_>,
    appended: &mut Appended,
) -> Result<Vec<Option<u32>>> {
    let mut keys = keys_of(table, form, points, appended);
    let (sets, named): (Vec<usize>, Vec<&[u8]>) = present(&keys).unzip();
    let known = tables.numbers(&**lease, form.number, named).map_err(told(table))?;
    let room = SERIES_MAX.saturating_sub(tables.series(&**lease, form.number).map_err(told(table))?);
    let new = sets.iter().zip(&known).filter(|(_, number)| number.is_none()).map(|(set, _)| *set);
    let beyond: Vec<usize> = new.skip(room).collect();
    beyond.into_iter().for_each(|set| keys[set] = None);
    refuse(points, &keys, appended, Reason::Series(SERIES_MAX));
    let (sets, named): (Vec<usize>, Vec<&[u8]>) = present(&keys).unzip();
    let numbers = tables.number(&mut **lease, form.number, named).map_err(told(table))?;
    let mut series_of = vec![None; points.sets.len()];
    sets.into_iter().zip(numbers).for_each(|(set, number)| series_of[set] = Some(number));
    Ok(series_of)
}

fn present(keys: &[Option<Vec<u8>>]) -> impl Iterator<Item = (usize, &[u8])> {
    keys.iter().enumerate().filter_map(|(set, key)| Some((set, key.as_deref()?)))
}

/// The keys of the sets that rows need which are not refused; rows whose key is too long are refused.
fn keys_of(table: &Table, form: &Form, points: &NewPoints<'_>, appended: &mut Appended) -> Vec<Option<Vec<u8>>> {
    let tag_of = |place: &usize| points.tags.iter().position(|tag| *tag == table.columns[*place].name);
    let tags: Vec<Option<usize>> = form.keys.iter().map(tag_of).collect();
    let mut keys = vec![None; points.sets.len()];
    let mut is_seen = vec![false; points.sets.len()];
    for (row, set) in points.set_of.iter().map(|set| *set as usize).enumerate() {
        if appended.is_refused(row) || std::mem::replace(&mut is_seen[set], true) {
            continue;
        }
        let text = |tag: &Option<usize>| {
            let found = tag.and_then(|tag| points.sets[set].iter().find(|(other, _)| *other == tag));
            found.map_or("", |(_, text)| *text)
        };
        keys[set] = keys::of_texts(tags.iter().map(text)).filter(|key| key.len() <= KEY_BYTES_MAX);
    }
    refuse(points, &keys, appended, Reason::Key(KEY_BYTES_MAX));
    keys
}

/// Refuses the rows whose set has no key.
fn refuse(points: &NewPoints<'_>, keys: &[Option<Vec<u8>>], appended: &mut Appended, reason: Reason) {
    let rows = points.set_of.iter().enumerate().filter(|(_, set)| keys[**set as usize].is_none());
    appended.refuse(rows.map(|(row, _)| row), reason);
}
