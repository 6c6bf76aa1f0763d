//! States of a mirror that its owner never was in: manifests, heads and summaries of different moments.

use crate::court::Moment;
use crate::mixed::Mixed;

/// Made of today's, that moment's, a fork's and another schema's.
pub type Make = fn(&mut Mixed, &Moment, &Moment, &Moment, &Moment);

/// What is told, and what readers say to it.
pub struct State {
    pub name: &'static str,
    /// What a reader says that was there today, and one that comes for the first time; nothing: it takes the rows.
    pub known: Option<&'static str>,
    pub fresh: Option<&'static str>,
    /// Whether there is nothing to notice where the table did not change.
    pub is_change: bool,
    pub make: Make,
}

/// Manifests, heads and summaries of other moments: what is told, by today's, that moment's, a fork of it, and another schema's.
pub const STATES: &[State] = &[
    State {
        name: "all of before",
        known: Some("stale"),
        fresh: None,
        is_change: false,
        make: |told, _, then, _, _| *told = Mixed::of(then),
    },
    State {
        name: "the manifest of before",
        known: Some("stale"),
        fresh: Some("forged"),
        is_change: false,
        make: |told, _, then, _, _| told.manifest = then.manifest.clone(),
    },
    State {
        name: "summaries that end before",
        known: Some("stale"),
        fresh: Some("malformed"),
        is_change: true,
        make: |told, _, then, _, _| (told.summaries, told.standing) = (then.summaries.clone(), then.standing),
    },
    State {
        name: "a summary that is missing",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _, _| {
            told.summaries.remove(2);
            told.standing.last -= 1;
        },
    },
    State {
        name: "a summary told again as the next one",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _, _| told.summaries[3] = told.summaries[2].clone(),
    },
    State {
        name: "two summaries exchanged",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _, _| told.summaries.swap(4, 5),
    },
    State {
        name: "a summary of another history",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: true,
        make: |told, _, _, fork, _| told.summaries[3] = fork.summaries[3].clone(),
    },
    State {
        name: "all of another history",
        known: Some("forged"),
        fresh: None,
        is_change: false,
        make: |told, _, _, fork, _| *told = Mixed::of(fork),
    },
    State {
        name: "a head that begins too late",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _, _| told.standing.first = told.standing.last,
    },
    State {
        name: "the manifest of another schema of this number",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: true,
        make: |told, _, _, _, other| told.manifest = other.manifest.clone(),
    },
    State {
        name: "a summary of another schema of this number",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: true,
        make: |told, _, _, _, other| told.summaries[3] = other.summaries[3].clone(),
    },
    State {
        name: "a byte of a summary",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: false,
        make: |told, _, _, _, _| told.summaries[3][50] ^= 1,
    },
];
