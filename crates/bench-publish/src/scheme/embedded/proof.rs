//! What a reader gets of an EMB- tree, and how the root is made again of it.

use counterfoil_proof::bytes::Reader as Bytes;
use counterfoil_proof::{Malformed, PublicKey, Signature, verify};
use sha2::{Digest, Sha256};

use super::{Hash, entry_hash, page_hash, pair_hash, root_message};
use crate::scheme::{Keys, Reader, Record, key_of};

/// Parts within parts at most: more than pages of 256 entries on 8 levels have.
const DEPTH_MAX: usize = 128;

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
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.level);
        self.tree.write(bytes);
    }

    fn read(bytes: &mut Bytes<'_>, depth: usize) -> Result<Self, Malformed> {
        Ok(Self { level: bytes.byte()?, tree: Part::read(bytes, depth)? })
    }

    /// The records, where none is missing between the first and the last, and the root that they belong to.
    fn records(&self, keys: &Keys) -> Option<(Vec<Record>, Hash)> {
        let mut walk = Walk::default();
        let root = walk.hash(self);
        let found: Vec<u32> = walk.records.iter().map(key_of).collect();
        let is_closed_before = !walk.is_hidden_before || found.first()? < keys.start();
        let is_closed_behind = !walk.is_hidden_behind || found.last()? > keys.end();
        let is_whole = is_closed_before && is_closed_behind && !walk.is_broken && found.is_sorted_by(|a, b| a < b);
        walk.records.retain(|record| keys.contains(&key_of(record)));
        is_whole.then_some((walk.records, root))
    }
}

impl Part {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Part::Hidden(hash) => {
                bytes.push(0);
                bytes.extend_from_slice(hash);
            }
            Part::Pair(pair) => {
                bytes.push(1);
                pair.iter().for_each(|part| part.write(bytes));
            }
            Part::Below(key, node) => {
                bytes.push(2);
                bytes.extend_from_slice(&key.to_be_bytes());
                node.write(bytes);
            }
            Part::Record(record) => {
                bytes.push(3);
                bytes.extend_from_slice(&**record);
            }
        }
    }

    fn read(bytes: &mut Bytes<'_>, depth: usize) -> Result<Self, Malformed> {
        let below = depth.checked_sub(1).ok_or(bytes.malformed())?;
        Ok(match bytes.byte()? {
            0 => Part::Hidden(bytes.array()?),
            1 => Part::Pair(Box::new([Part::read(bytes, below)?, Part::read(bytes, below)?])),
            2 => Part::Below(u32::from_be_bytes(bytes.array()?), Box::new(Node::read(bytes, below)?)),
            3 => Part::Record(Box::new(bytes.array()?)),
            _ => return Err(bytes.malformed()),
        })
    }
}

/// A reader who knows the owner's key and, by its clock, the period.
pub struct EmbeddedReader {
    pub public: PublicKey,
    pub period: u64,
}

impl Reader for EmbeddedReader {
    fn check(&self, keys: Keys, answer: &[u8]) -> Option<Vec<Record>> {
        let mut bytes = Bytes::new(answer, "an answer of an EMB- tree");
        let signature = Signature::from_bytes(bytes.raw(48).ok()?).ok()?;
        let period = u64::from_be_bytes(bytes.array().ok()?);
        let node = Node::read(&mut bytes, DEPTH_MAX).ok()?;
        bytes.end().ok()?;
        if period < self.period {
            return None;
        }
        let (records, root) = node.records(&keys)?;
        verify(&self.public, &[root_message(&root, period)], None, &signature).ok()?;
        Some(records)
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::bytes::Reader as Bytes;
    use sha2::{Digest, Sha256};

    use super::{DEPTH_MAX, Node, Part, entry_hash};
    use crate::scheme::embedded::Embedded;
    use crate::scheme::{Keys, Reader as _, Scheme as _, key_of};

    const KEYS: Keys = 5000..=5100;

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

    fn refused(tree: &Embedded, change: &dyn Fn(&mut Part)) {
        let (reader, answer) = (tree.reader().expect("a reader"), tree.answer(KEYS).expect("an answer"));
        assert!(reader.check(KEYS, &answer).is_some());
        let (mut seen, mut wanted) = (1, 0);
        while wanted < seen {
            let mut node = Node::read(&mut Bytes::new(&answer[56..], ""), DEPTH_MAX).expect("an honest answer");
            seen = 0;
            each(&mut node.tree, wanted, &mut seen, change);
            let mut changed = answer[..56].to_vec();
            node.write(&mut changed);
            assert!(reader.check(KEYS, &changed).is_none(), "part {wanted} of {seen}");
            wanted += 1;
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn no_part_of_an_answer_can_be_exchanged() {
        let tree = Embedded::load(10_000).expect("a table");
        refused(&tree, &|part| match part {
            Part::Hidden(hash) => hash[0] ^= 1,
            Part::Pair(pair) => pair.swap(0, 1),
            Part::Below(key, _) => *key ^= 1,
            Part::Record(record) => record[511] ^= 1,
        });
        // A record hidden behind its true digest: the root is the owner's, and a row is missing.
        refused(&tree, &|part| match part {
            Part::Record(record) => *part = Part::Hidden(entry_hash(key_of(record), &Sha256::digest(**record).into())),
            Part::Hidden(hash) => hash[7] ^= 1,
            Part::Below(key, _) => *key ^= 2,
            Part::Pair(pair) => pair[0] = Part::Hidden([1; 32]),
        });
        refused(&tree, &|part| match part {
            Part::Hidden(hash) => hash[31] ^= 1,
            Part::Pair(pair) => pair[1] = Part::Hidden([0; 32]),
            Part::Below(_, node) => node.level ^= 1,
            Part::Record(record) => record[0] ^= 1,
        });
    }
}
