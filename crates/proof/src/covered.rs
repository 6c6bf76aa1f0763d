//! What signatures cover of a record in an answer, by the table's scheme.
//!
//! ```text
//! PER RECORD      own = message(links, values' root)
//! PER ATTRIBUTE   own = message(links, zeros)           and a message for each value that is shown
//! GROUP           own = member(links, values' root)     which is not signed itself, but in its group
//! ```
//! A record of an answer has one stamp, and all of its messages are made with it: values of one version beside others, or
//! beside neighbours, of another version cannot be written down.

use alloc::vec::Vec;

use crate::answer::{Row, Salts};
use crate::attributes::{leaf, root_of, salt};
use crate::definition::{Definition, Scheme};
use crate::digest::Digest;
use crate::members::member;
use crate::record::{Kind, Stamp, message, value_message};
use crate::signature::Message;

/// What signatures cover of a record.
pub(crate) struct Covered {
    /// Of its place, and of its values if they are under it.
    pub own: Message,
    /// Of values by themselves, by column.
    pub values: Vec<(u16, Message)>,
}

impl Covered {
    /// Of a row; none if it does not bring all that it takes.
    pub fn of_row(
        definition: &Definition,
        digest: &Digest,
        columns: &[u16],
        row: &Row,
        links: &[Digest],
    ) -> Option<Self> {
        if definition.scheme != Scheme::PerAttribute {
            let root = row_root(definition, columns, row)?;
            return Self::of_mark(definition, digest, &row.stamp, links, Some(&root));
        }
        let mut values = Vec::with_capacity(columns.len());
        let mut encoded = Vec::new();
        for (column, value) in columns.iter().zip(&row.values) {
            encoded.clear();
            definition.columns.get(usize::from(*column))?.kind.encode(value, &mut encoded).ok()?;
            values.push((*column, value_message(digest, &row.stamp, *column, &encoded)));
        }
        let own = Self::of_mark(definition, digest, &row.stamp, links, None)?.own;
        Some(Self { own, values })
    }

    /// Of a record of which no value is shown.
    pub fn of_mark(
        definition: &Definition,
        digest: &Digest,
        stamp: &Stamp,
        links: &[Digest],
        root: Option<&Digest>,
    ) -> Option<Self> {
        let own = match definition.scheme {
            Scheme::PerRecord => message(digest, Kind::Record, stamp, links, root?),
            Scheme::PerAttribute => message(digest, Kind::Record, stamp, links, &[0; 32]),
            Scheme::Group(_) => Message(member(digest, stamp.rid, links, root?)),
        };
        Some(Self { own, values: Vec::new() })
    }
}

fn row_root(definition: &Definition, columns: &[u16], row: &Row) -> Option<Digest> {
    let mut encoded = Vec::new();
    let mut leaves = Vec::with_capacity(row.values.len());
    for (at, (column, value)) in columns.iter().zip(&row.values).enumerate() {
        encoded.clear();
        definition.columns[usize::from(*column)].kind.encode(value, &mut encoded).ok()?;
        let salt = match &row.salts {
            Salts::Seed(seed) => salt(seed, *column),
            Salts::Each(salts) => *salts.get(at)?,
            Salts::None => return None,
        };
        leaves.push(leaf(*column, &salt, &encoded));
    }
    root_of(definition.columns.len(), columns, &leaves, &row.hidden)
}
