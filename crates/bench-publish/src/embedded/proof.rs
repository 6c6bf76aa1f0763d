//! What a reader gets of an EMB- tree, and how the root is made again of it.

use counterfoil_proof::{Message, PublicKey, Signature, verify};
use sha2::{Digest, Sha256};

use super::{Hash, Record, key_of, page_hash};

pub struct Node {
    pub level: u8,
    pub parts: Vec<Part>,
}

/// What stands for an entry of a page.
pub enum Part {
    Hidden(u32, Hash),
    Below(u32, Node),
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
        let entry = |part: &Part| match part {
            Part::Hidden(key, hash) => {
                if self.records.is_empty() {
                    self.is_hidden_before = true
                } else {
                    self.is_hidden_behind = true
                }
                (*key, *hash)
            }
            Part::Below(key, below) => {
                self.is_broken |= below.level + 1 != node.level;
                (*key, self.hash(below))
            }
            Part::Record(record) => {
                // Between two records nothing may be hidden, and records are in leaves.
                self.is_broken |= self.is_hidden_behind || node.level != 0;
                self.records.push(**record);
                (key_of(record), Sha256::digest(**record).into())
            }
        };
        let entries: Vec<(u32, Hash)> = node.parts.iter().map(entry).collect();
        page_hash(node.level, entries.into_iter())
    }
}

impl Node {
    /// Bytes beside the records: keys and digests of what is hidden, keys and levels of pages, and the signature.
    pub fn bytes(&self) -> usize {
        self.inner_bytes() + 48
    }

    fn inner_bytes(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Hidden(..) => 36,
            Part::Below(_, node) => 4 + node.inner_bytes(),
            Part::Record(_) => 0,
        };
        2 + self.parts.iter().map(part).sum::<usize>()
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

#[cfg(test)]
mod tests {
    use counterfoil_proof::{PublicKey, SecretKey, Signature};

    use super::{Node, Part};
    use crate::emb_table::{open, record};
    use crate::embedded::{Embedded, key_of};

    /// Does something to each part in turn; how many there are.
    fn each(node: &mut Node, wanted: usize, seen: &mut usize, change: &dyn Fn(&mut Part)) {
        for part in &mut node.parts {
            if *seen == wanted {
                change(part);
            }
            *seen += 1;
            if let Part::Below(_, below) = part {
                each(below, wanted, seen, change);
            }
        }
    }

    fn refused(tree: &Embedded, public: &PublicKey, signature: &Signature, change: &dyn Fn(&mut Part)) {
        let mut seen = 1;
        let mut wanted = 0;
        while wanted < seen {
            let mut node = tree.query(5000, 5100).unwrap();
            seen = 0;
            each(&mut node, wanted, &mut seen, change);
            assert!(node.check(public, signature, 5000, 5100).is_none(), "part {wanted} of {seen}");
            wanted += 1;
        }
        assert!(seen > 150, "{seen}");
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
            Part::Hidden(key, _) => *key ^= 1,
            Part::Below(key, _) => *key ^= 1,
            Part::Record(record) => record[511] ^= 1,
        });
        refused(&tree, &public, &signature, &|part| match part {
            Part::Hidden(_, hash) => hash[31] ^= 1,
            Part::Below(_, node) => node.level ^= 1,
            Part::Record(record) => record[0] ^= 1,
        });
    }
}
