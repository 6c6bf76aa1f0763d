//! Which clouds are asked what, for people who look at a plan.

use counterfoil_disperse::{Coding, Condition, First, Kept, Placement};

/// What clouds decide of a condition; none: it is decided here.
pub(super) fn asked_at(kept: &Kept, condition: &Condition) -> Option<String> {
    let (column, codings, what) = match condition {
        // Of orders one value is asked for.
        Condition::Equal { column, values } if values.len() != 1 => (column, &[Coding::Tag][..], "equality"),
        Condition::Equal { column, .. } => (column, &[Coding::Tag, Coding::Order, Coding::DangerOrder][..], "equality"),
        Condition::Range { column, .. } => (column, &[Coding::Order, Coding::DangerOrder][..], "range"),
        Condition::Prefix { column, .. } => (column, &[Coding::Prefix][..], "prefix"),
    };
    let declaration = kept.declaration();
    let placement = Placement::plan(declaration).ok()?;
    let holders = codings.iter().find_map(|coding| placement.fragment(*column, *coding))?;
    let name = &declaration.column(*column)?.name;
    Some(format!("{what} of {name} at {}", names(&declaration.clouds, &holders.holders).join(" and ")))
}

/// What clouds are asked to put in order.
pub(super) fn ordered_at(kept: &Kept, first: &First) -> Option<String> {
    let declaration = kept.declaration();
    let holders = Placement::plan(declaration).ok()?.fragment(first.column, Coding::DangerOrder)?.holders.clone();
    let (name, end) = (&declaration.column(first.column)?.name, if first.is_descending { "greatest" } else { "least" });
    Some(format!("{} {end} of {name} at {}", first.count, names(&declaration.clouds, &holders).join(" and ")))
}

/// Who has the cells of some columns: those that have them whole are asked one after the other, until one answers.
pub(super) fn fetched_from(kept: &Kept, columns: &[u16]) -> Vec<String> {
    let declaration = kept.declaration();
    let Ok(placement) = Placement::plan(declaration) else { return Vec::new() };
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for column in columns.iter().filter_map(|column| declaration.column(*column)) {
        let clouds = names(&declaration.clouds, &placement.cell_holders(column.id));
        let from = match placement.fragment(column.id, Coding::Cell) {
            Some(_) => clouds.join(" or "),
            None => format!("pieces of {}", clouds.join(" and ")),
        };
        match groups.iter_mut().find(|(own, _)| *own == from) {
            Some((_, names)) => names.push(&column.name),
            None => groups.push((from, vec![&column.name])),
        }
    }
    groups.into_iter().map(|(from, names)| format!("{} from {from}", names.join(", "))).collect()
}

fn names<'a>(clouds: &'a [String], holders: &[usize]) -> Vec<&'a str> {
    holders.iter().map(|cloud| clouds[*cloud].as_str()).collect()
}
