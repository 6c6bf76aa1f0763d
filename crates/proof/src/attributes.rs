//! The values of a row under one hash, of which any part can be shown without the rest.
//!
//! ```text
//!            root            leaf = H(column, salt, value)      salt = H(seed of the row, column), 16 bytes
//!          /      \          node = H(left, right)
//!       node      node       n leaves are split at the largest power of two below n, as in RFC 6962
//!      /    \     /   \
//!     0      1   2     3
//! ```
//! The salts keep a reader from trying values against the hash of a column that it was not shown.

use alloc::vec::Vec;

use crate::digest::{Digest, digest};

/// A salt, and a row's seed of salts.
pub type Salt = [u8; 16];

/// The salt of a column of the row with this seed.
#[must_use]
pub fn salt(seed: &Salt, column: u16) -> Salt {
    let mut salt = [0; 16];
    salt.copy_from_slice(&digest("counterfoil/salt/1", &[seed, &column.to_be_bytes()])[..16]);
    salt
}

/// The leaf of a column with this encoded value.
#[must_use]
pub fn leaf(column: u16, salt: &Salt, value: &[u8]) -> Digest {
    digest("counterfoil/value/1", &[&column.to_be_bytes(), salt, value])
}

/// The root over all leaves.
#[must_use]
pub fn root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => digest("counterfoil/nothing/1", &[]),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            node(&root(left), &root(right))
        }
    }
}

/// The hashes that stand for the columns that are not in `shown` (sorted): of the largest parts without a shown column,
/// from left to right.
#[must_use]
pub fn hidden(leaves: &[Digest], shown: &[u16]) -> Vec<Digest> {
    let mut hashes = Vec::new();
    collect(leaves, 0, shown, &mut hashes);
    hashes
}

fn collect(leaves: &[Digest], first: usize, shown: &[u16], hashes: &mut Vec<Digest>) {
    if shown.is_empty() {
        hashes.push(root(leaves));
    } else if leaves.len() > 1 {
        let middle = split(leaves.len());
        let (left, right) = parted(shown, first + middle);
        collect(&leaves[..middle], first, left, hashes);
        collect(&leaves[middle..], first + middle, right, hashes);
    }
}

/// How many hashes [`hidden`] gives for `columns` columns of which `shown` (sorted, each below `columns`) are shown.
#[must_use]
pub fn hidden_count(columns: usize, shown: &[u16]) -> usize {
    fn count(first: usize, columns: usize, shown: &[u16]) -> usize {
        match (shown.is_empty(), columns) {
            (true, _) => 1,
            (false, 1) => 0,
            _ => {
                let middle = split(columns);
                let (left, right) = parted(shown, first + middle);
                count(first, middle, left) + count(first + middle, columns - middle, right)
            }
        }
    }
    if columns == 0 { 0 } else { count(0, columns, shown) }
}

/// The root of `columns` columns from the leaves of the shown ones and [`hidden`] hashes; none if there are not as many of
/// either as there have to be.
#[must_use]
pub fn root_of(columns: usize, shown: &[u16], leaves: &[Digest], hashes: &[Digest]) -> Option<Digest> {
    let fits = leaves.len() == shown.len() && hashes.len() == hidden_count(columns, shown);
    if !fits || columns == 0 {
        return None;
    }
    let (mut leaves, mut hashes) = (leaves.iter(), hashes.iter());
    rebuild(0, columns, shown, &mut leaves, &mut hashes)
}

fn rebuild<'a>(
    first: usize,
    columns: usize,
    shown: &[u16],
    leaves: &mut impl Iterator<Item = &'a Digest>,
    hashes: &mut impl Iterator<Item = &'a Digest>,
) -> Option<Digest> {
    if shown.is_empty() {
        return hashes.next().copied();
    }
    if columns == 1 {
        return leaves.next().copied();
    }
    let middle = split(columns);
    let (left, right) = parted(shown, first + middle);
    let left = rebuild(first, middle, left, leaves, hashes)?;
    let right = rebuild(first + middle, columns - middle, right, leaves, hashes)?;
    Some(node(&left, &right))
}

fn node(left: &Digest, right: &Digest) -> Digest {
    digest("counterfoil/node/1", &[left, right])
}

/// The largest power of two below `count`, which is at least 2.
fn split(count: usize) -> usize {
    count.next_power_of_two() / 2
}

fn parted(shown: &[u16], middle: usize) -> (&[u16], &[u16]) {
    shown.split_at(shown.partition_point(|column| usize::from(*column) < middle))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{Digest, hidden, leaf, root, root_of, salt};

    proptest! {
        #[test]
        fn any_part_leads_to_the_root_and_nothing_else_does(columns in 1usize..40, chosen: u64, changed: prop::sample::Index) {
            let leaves: Vec<Digest> = (0..columns as u16).map(|at| leaf(at, &salt(&[7; 16], at), &[1, at as u8])).collect();
            let shown: Vec<u16> = (0..columns as u16).filter(|at| chosen >> at & 1 == 1).collect();
            let mut parts: Vec<Digest> = shown.iter().map(|at| leaves[usize::from(*at)]).collect();
            let hashes = hidden(&leaves, &shown);
            let whole = root(&leaves);
            prop_assert_eq!(root_of(columns, &shown, &parts, &hashes), Some(whole));
            if !parts.is_empty() {
                let at = changed.index(parts.len());
                parts[at][3] ^= 1;
                prop_assert_ne!(root_of(columns, &shown, &parts, &hashes), Some(whole));
                parts.pop();
                prop_assert_eq!(root_of(columns, &shown, &parts, &hashes), None);
            }
        }
    }
}
