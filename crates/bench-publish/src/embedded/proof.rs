//! What a reader gets of an EMB- tree, and how the root is made again of it.

use counterfoil_proof::{Message, PublicKey, Signature, verify};
use sha2::{Digest, Sha256};

use super::{Hash, Record, entry_hash, key_of, page_hash, pair_hash};

pub struct Node {
    pub level: u8,
    pub tree: Part,
}

/// What stands for an entry of a page, or for some of them.
pub enum Part {
    /// Entries outside the range.
    Hidden(Hash),
    Pair(Box<[Part; 2]>),
    Below(u32, Box<Node>),
    Record(Box<Record>),
}

/// Where a walk from left to right is.
#[derive(Default)]
struct Walk {
    records: Vec<Record>,
    is_hidden_before: bool,
    is_hidden_behind: bool,
    is_broken: bool,
}

impl Walk {
    fn hash(&mut self, node: &Node) -> Hash {
        page_hash(node.level, &self.part(&node.tree, node.level))
    }

    fn part(&mut self, part: &Part, level: u8) -> Hash {
        match part {
            Part::Hidden(hash) => {
                if self.records.is_empty() {
                    self.is_hidden_before = true
                } else {
                    self.is_hidden_behind = true
                }
                *hash
            }
            Part::Pair(pair) => {
                let left = self.part(&pair[0], level);
                pair_hash(&left, &self.part(&pair[1], level))
            }
            Part::Below(key, below) => {
                self.is_broken |= below.level.checked_add(1) != Some(level);
                entry_hash(*key, &self.hash(below))
            }
            Part::Record(record) => {
                // Between two records nothing may be hidden, and records are in leaves.
                self.is_broken |= self.is_hidden_behind || level != 0;
                self.records.push(**record);
                entry_hash(key_of(record), &Sha256::digest(**record).into())
            }
        }
    }
}

impl Node {
    /// Bytes beside the records: keys and digests of what is hidden, keys and levels of pages, and the signature.
    pub fn bytes(&self) -> usize {
        self.inner_bytes() + 48
    }

    fn inner_bytes(&self) -> usize {
        2 + self.tree.bytes()
    }

    /// The records of a range, where nothing is missing and all is the owner's.
    pub fn check(&self, key: &PublicKey, signature: &Signature, from: u32, to: u32) -> Option<Vec<Record>> {
        let mut walk = Walk::default();
        let root = walk.hash(self);
        verify(key, &[Message(root)], None, signature).ok()?;
        let keys: Vec<u32> = walk.records.iter().map(key_of).collect();
        let is_closed_before = !walk.is_hidden_before || keys.first()? < &from;
        let is_closed_behind = !walk.is_hidden_behind || keys.last()? > &to;
        let is_whole = is_closed_before && is_closed_behind && !walk.is_broken && keys.is_sorted_by(|a, b| a < b);
        is_whole.then(|| walk.records.into_iter().filter(|record| (from..=to).contains(&key_of(record))).collect())
    }
}

impl Part {
    /// A byte says which it is.
    fn bytes(&self) -> usize {
        match self {
            Part::Hidden(..) => 33,
            Part::Pair(pair) => 1 + pair[0].bytes() + pair[1].bytes(),
            Part::Below(_, node) => 5 + node.inner_bytes(),
            Part::Record(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::{PublicKey, SecretKey, Signature};

    use sha2::{Digest, Sha256};

    use super::{Part, entry_hash};
    use crate::emb_table::{open, record};
    use crate::embedded::{Embedded, key_of};

    /// Does something to each part in turn; how many there are.
    fn each(part: &mut Part, wanted: usize, seen: &mut usize, change: &dyn Fn(&mut Part)) {
        if *seen == wanted {
            change(part);
        }
        *seen += 1;
        match part {
            Part::Below(_, below) => each(&mut below.tree, wanted, seen, change),
            Part::Pair(pair) => pair.iter_mut().for_each(|part| each(part, wanted, seen, change)),
            Part::Hidden(_) | Part::Record(_) => {}
        }
    }

    fn refused(tree: &Embedded, public: &PublicKey, signature: &Signature, change: &dyn Fn(&mut Part)) {
        let mut seen = 1;
        let mut wanted = 0;
        while wanted < seen {
            let mut node = tree.query(5000, 5100).unwrap();
            seen = 0;
            each(&mut node.tree, wanted, &mut seen, change);
            assert!(node.check(public, signature, 5000, 5100).is_none(), "part {wanted} of {seen}");
            wanted += 1;
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn ranges_come_whole_and_nothing_else_passes() {
        let key = SecretKey::from_entropy(&[3; 32]).unwrap();
        let public = key.public();
        let mut tree = open(key, 10_000).unwrap();
        for (from, to) in
            [(0, 0), (0, 4), (5000, 5100), (5001, 5001), (19_990, 30_000), (30_000, 40_000), (0, u32::MAX)]
        {
            let found = tree.query(from, to).unwrap().check(&public, &tree.signature, from, to).unwrap();
            let wanted: Vec<u32> =
                (0..10_000).map(|number| number * 2).filter(|key| (from..=to).contains(key)).collect();
            assert_eq!(found.iter().map(key_of).collect::<Vec<_>>(), wanted, "{from}..={to}");
        }
        let before = tree.signature;
        let stale = tree.query(5000, 5100).unwrap();
        let mut changed = record(2510);
        changed[100] ^= 1;
        tree.update(&changed).unwrap();
        assert!(stale.check(&public, &tree.signature, 5000, 5100).is_none(), "an old answer");
        assert!(tree.query(5000, 5100).unwrap().check(&public, &before, 5000, 5100).is_none(), "an old root");
        assert!(
            tree.query(5000, 5100).unwrap().check(&public, &tree.signature, 5000, 5100).unwrap().contains(&changed)
        );
        assert!(tree.query(5000, 5090).unwrap().check(&public, &tree.signature, 5000, 5100).is_none(), "a part of it");
        let signature = tree.signature;
        refused(&tree, &public, &signature, &|part| match part {
            Part::Hidden(hash) => hash[0] ^= 1,
            Part::Pair(pair) => pair.swap(0, 1),
            Part::Below(key, _) => *key ^= 1,
            Part::Record(record) => record[511] ^= 1,
        });
        // A record hidden behind its true digest: the root is the owner's, and a row is missing.
        refused(&tree, &public, &signature, &|part| match part {
            Part::Record(record) => *part = Part::Hidden(entry_hash(key_of(record), &Sha256::digest(**record).into())),
            Part::Hidden(hash) => hash[7] ^= 1,
            Part::Below(key, _) => *key ^= 2,
            Part::Pair(pair) => pair[0] = Part::Hidden([1; 32]),
        });
        refused(&tree, &public, &signature, &|part| match part {
            Part::Hidden(hash) => hash[31] ^= 1,
            Part::Pair(pair) => pair[1] = Part::Hidden([0; 32]),
            Part::Below(_, node) => node.level ^= 1,
            Part::Record(record) => record[0] ^= 1,
        });
    }
}
