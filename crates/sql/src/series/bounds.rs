//! Which points a table leaves out because others say enough of them, and how far off that may be.
//!
//! ```text
//! swinging_door = 'value 0.5'     the line between two stored points passes those between them within 0.5
//! dead_band = 'value 0.5'         a stored point stands for those behind it that differ from it by 0.5 at most
//! ```

use std::collections::HashSet;

use counterfoil_relation::Type;

use super::options::{Named, Told, span};
use crate::error::{Error, Result};

/// A way of leaving points out, by the options that ask for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Columns with their bounds.
    pub(crate) name: &'static str,
    /// The most time between two stored points.
    pub(crate) gap: &'static str,
}

pub(crate) const SWINGING_DOOR: Way = Way { name: "swinging_door", gap: "swinging_door_gap" };
pub(crate) const DEAD_BAND: Way = Way { name: "dead_band", gap: "dead_band_gap" };

/// What a table leaves out.
pub(crate) struct LeftOut {
    pub(crate) way: &'static Way,
    /// Columns, and the bound of each in its unit.
    pub(crate) bounds: Vec<(String, f64)>,
    /// The most time between two stored points, in microseconds.
    pub(crate) gap: Option<i64>,
}

impl LeftOut {
    /// What options say; none where all points are stored.
    ///
    /// # Errors
    /// [`Error::Sql`] for what means nothing.
    pub(crate) fn of(told: &Told<'_>) -> Result<Option<LeftOut>> {
        let one = |way: &'static Way| -> Result<Option<LeftOut>> {
            let Some(text) = given(told, way.name) else { return Ok(None) };
            let gap = given(told, way.gap).map(|text| span(way.gap, text)).transpose()?;
            Ok(Some(LeftOut { way, bounds: read(way, text)?, gap }))
        };
        match (one(&SWINGING_DOOR)?, one(&DEAD_BAND)?) {
            (Some(_), Some(_)) => {
                Err(Error::Sql(format!("{} and {}: a table has one of them", SWINGING_DOOR.name, DEAD_BAND.name)))
            }
            (door, band) => Ok(door.or(band)),
        }
    }

    /// The option's text, with a column renamed; none if it does not name it.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Option<(&'static str, String)> {
        let bound = self.bounds.iter_mut().find(|(name, _)| name == from)?;
        bound.0 = to.to_owned();
        let written = self.bounds.iter().map(|(name, bound)| format!("{} {bound}", crate::show::quoted(name)));
        Some((self.way.name, written.collect::<Vec<_>>().join(", ")))
    }
}

fn given<'t>(told: &Told<'t>, name: &str) -> Option<&'t str> {
    told.text(name).filter(|text| *text != "none")
}

fn read(way: &Way, text: &str) -> Result<Vec<(String, f64)>> {
    let bound = |part: &str| {
        let (name, bound) = part.trim().rsplit_once(' ')?;
        let bound = bound.parse::<f64>().ok().filter(|bound| bound.is_finite() && *bound >= 0.0)?;
        let name = name.trim();
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let name = quoted.map_or_else(|| name.to_lowercase(), |name| name.replace("\"\"", "\""));
        Some((name, bound)).filter(|(name, _)| !name.is_empty())
    };
    text.split(',').map(bound).collect::<Option<Vec<_>>>().ok_or_else(|| {
        Error::Sql(format!("{} = '{text}': columns with their bounds are due, as 'value 0.5, level 2'", way.name))
    })
}

/// Refuses what means nothing for a table of these columns.
///
/// # Errors
/// [`Error::Sql`], [`Error::NotSupported`] and [`Error::NotFound`], with the option's name.
pub(super) fn check(told: &Told<'_>, columns: &[Named<'_>]) -> Result<()> {
    for way in [&SWINGING_DOOR, &DEAD_BAND] {
        if given(told, way.gap).is_some() && given(told, way.name).is_none() {
            return Err(Error::Sql(format!("{} without {}", way.gap, way.name)));
        }
    }
    let Some(left_out) = LeftOut::of(told)? else { return Ok(()) };
    let way = left_out.way.name;
    if told.reorder()? > 0 {
        return Err(Error::NotSupported(format!(
            "{way} with reorder: points that come between others are stored whatever they say"
        )));
    }
    let mut seen = HashSet::new();
    for (name, _) in &left_out.bounds {
        let column = columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| Error::NoColumn(format!("no column {name} ({way})")))?;
        if column.is_key || !is_measured(column.kind) {
            let kind = crate::types::name(column.kind);
            return Err(Error::Sql(format!("{way}: column {name} of type {kind} is no measured number")));
        }
        if !seen.insert(name) {
            return Err(Error::Sql(format!("{way} names column {name} twice")));
        }
    }
    Ok(())
}

/// Whether a line may stand for values of a type.
fn is_measured(kind: &Type) -> bool {
    use Type::{BigInt, Double, Integer, Numeric, Real, SmallInt};
    matches!(kind, Real | Double | SmallInt | Integer | BigInt | Numeric { .. })
}
