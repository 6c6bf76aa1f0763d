//! What an answer tells of how its rows were found: which indexes named them, along which paths.
//!
//! Nobody asks a device that (feature `terse`): what is told is empty there, and what makes it is not in the image.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Source;
use crate::{IndexId, Table};

/// What is made where somebody may ask for it.
pub(super) fn told(make: impl FnOnce() -> String) -> String {
    if cfg!(feature = "terse") { String::new() } else { make() }
}

/// The name of an index.
pub(super) fn index_name(table: &Table, index: IndexId) -> String {
    told(|| table.index(index).map(|index| index.name.clone()).unwrap_or_default())
}

/// What names rows of a source, and the path to them.
pub(super) fn along(root: &Source, path: usize, by: &str) -> String {
    told(|| match root.table.joins.get(path) {
        Some(join) => format!("{by} along {}", root.table.path_name(join)),
        None => by.into(),
    })
}

/// What serves alternatives, one after another.
pub(super) fn either(by: &[String]) -> String {
    told(|| by.join(" or "))
}

/// What serves together.
pub(super) fn both(by: &[String]) -> String {
    told(|| by.join(" and "))
}

/// What serves together, as one of alternatives.
pub(super) fn apart(by: &[String]) -> String {
    let apart = |by: &String| if by.contains(" or ") { format!("({by})") } else { by.clone() };
    told(|| match by {
        [one] => one.clone(),
        all => both(&all.iter().map(apart).collect::<Vec<_>>()),
    })
}

/// Names one behind the other, each once.
pub(super) fn names(mut all: String, name: &str) -> String {
    if cfg!(feature = "terse") || name.is_empty() || all.split(", ").any(|known| known == name) {
        return all;
    }
    if !all.is_empty() {
        all.push_str(", ");
    }
    all.push_str(name);
    all
}
