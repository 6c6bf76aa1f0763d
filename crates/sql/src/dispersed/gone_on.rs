//! Clouds that do not have what is known here may be right: others have dropped the table or changed the key, or this copy of the database
//! was put back, and they have gone on since. Whoever asks for rows in vain says that, as whoever changes the table does, and blames nobody.

use counterfoil_disperse::{Client, Failure, Fault, Kept, Report, Shown};
use counterfoil_log::View;
use counterfoil_relation::Table;

use super::catalogue::{moved_since, of_another_version};
use super::claiming::{Claiming, Look};
use super::clouds::Cloud;
use super::following::ended;
use super::learning::{self, later, told_by_another};
use super::lease::claiming;
use super::repair::all_gone;
use super::{Dispersed, before, foreign, is_put_back, kept};
use crate::error::{Error, Result};

/// Whether a cloud does not have what it should have.
fn is_lacking(fault: &Fault) -> bool {
    matches!(fault, Fault::Lacks | Fault::Failed(Failure::NoTable))
}

/// What has happened, where more clouds than may fail lack the same rows and are not at fault; `report` blames them no more then.
pub(super) fn why_they_lack_rows(
    (dispersed, view): (&Dispersed, &dyn View),
    table: &Table,
    report: &mut Report,
    are_gone: impl FnOnce(&Report) -> Result<bool>,
) -> Result<Option<Error>> {
    if !report.faults.iter().any(|(_, fault)| is_lacking(fault)) {
        return Ok(None);
    }
    let why = gone_on(dispersed, view, table)?;
    if why.is_none() || !are_gone(report)? {
        return Ok(None);
    }
    report.faults.retain(|(_, fault)| !is_lacking(fault));
    Ok(why)
}

fn gone_on(dispersed: &Dispersed, view: &dyn View, table: &Table) -> Result<Option<Error>> {
    let kept = kept(view, table)?;
    if foreign::is_noted(view, table.id) {
        return Ok(None);
    }
    let Some((claiming, past)) = claiming(dispersed, view, table, &kept)? else {
        // Nothing but the rows themselves says so.
        return Ok(is_put_back(view, &kept)?.then(|| older(table, "")));
    };
    let looks = if past.is_some() { claiming.look() } else { claiming.peek(dispersed) };
    let Some(past) = past else {
        // It may have learned since what another one told that was put back, too.
        let is_older = is_put_back(view, &kept)?.then(|| older(table, ""));
        return Ok(ended(table, &claiming, &kept, &looks).or(is_older));
    };
    if let Some(cloud) = claiming.gone(&looks) {
        return Ok(Some(before::gone(table, cloud)));
    }
    match claiming.are_emptied(&looks, kept.declaration().may_fail) {
        true => Ok(Some(all_gone(table))),
        false => gone_on_since(table, &claiming, (&kept, &past), &looks).map(Some),
    }
}

/// What clouds show to a copy of the database that was put back, as REPAIR TABLE says it.
fn gone_on_since(table: &Table, claiming: &Claiming, (kept, past): (&Kept, &Client), looks: &[Look]) -> Result<Error> {
    if let Some(moved) = moved(table, claiming, kept, looks) {
        return Ok(moved);
    }
    let shown = shown_of(claiming, kept, looks).map(|(cloud, told)| (cloud, told.version));
    let newest = shown.reduce(|one, other| if other.1 > one.1 { other } else { one });
    if let Some(later) = later(table, claiming, (kept, Some(past)), looks)? {
        return Ok(told_by_another(table, &later.cloud, (later.version, later.known)));
    }
    // Once this copy has told something it goes on above what its clouds had, and lacks what they had all the same.
    let newest = newest.filter(|(_, version)| *version > kept.version);
    let versions =
        newest.map(|(cloud, version)| format!(" (version {version} at cloud {}, here {})", cloud.name, kept.version));
    Ok(older(table, &versions.unwrap_or_default()))
}

/// What clouds show of a table, each.
fn shown_of<'l>(
    claiming: &'l Claiming,
    kept: &Kept,
    looks: &'l [Look],
) -> impl Iterator<Item = (&'l Cloud, &'l Shown)> {
    let number = kept.declaration().table;
    claiming.clouds.iter().zip(looks).filter_map(move |(cloud, look)| {
        let all = look.contents().into_iter().flat_map(|contents| &contents.tables);
        let (told, _) = all.into_iter().find(|(told, _)| told.table == number)?;
        Some((cloud, told))
    })
}

/// What is to be said if a cloud shows that the table lies otherwise by now, or what this version cannot read.
fn moved(table: &Table, claiming: &Claiming, kept: &Kept, looks: &[Look]) -> Option<Error> {
    let is_newer = |there: &Kept| there.current().number >= kept.current().number;
    shown_of(claiming, kept, looks).find_map(|(cloud, told)| match learning::shown(&told.parts) {
        Err(_) => Some(of_another_version(table, cloud)),
        Ok(there) => {
            let lies_otherwise = there.as_ref().is_some_and(|there| !there.lies_as(kept) && is_newer(there));
            lies_otherwise.then(|| moved_since(table, cloud))
        }
    })
}

fn older(table: &Table, versions: &str) -> Error {
    Error::Misuse(format!(
        "table {0}: this copy of the database is older than what its clouds have{versions}: they have let go of rows since: \
         REPAIR TABLE {0} lets go of those here, too",
        table.name
    ))
}
