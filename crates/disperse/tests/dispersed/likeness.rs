//! What views have in common that nobody tells apart: everything in them but the bits of what is noise.
//!
//! Names, tags and all other strings become numbers by when they came first, anywhere in the view of a coalition: so it shows what is equal
//! to what, in which place and at which cloud. Places become the labels of their rows, which whoever made the view knows; with them views
//! are compared row by row, which is more than clouds can do. What order codes and questions say when they are compared is compared.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use counterfoil_disperse::fragments::{Data, Fragments, Name, Question, Test};
use sha2::{Digest as _, Sha256};

use crate::owner::Labels;
use crate::watching::Event;

/// What a label hides a comparison with, under a nonce.
pub fn trit(label: &[u8], nonce: &[u8]) -> u8 {
    let hash = Sha256::new().chain_update(label).chain_update(nonce).finalize();
    let number = hash[..7].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    (number % 3) as u8
}

/// In which block what is asked for and what is stored differ first, and how.
pub fn compared(asked: &[u8], stored: &[u8]) -> (usize, Ordering) {
    let (nonce, trits) = stored.split_at(16);
    for (block, own) in asked.chunks_exact(17).enumerate() {
        let at = block * 16 + usize::from(own[0]) % 16;
        let found = trits[at / 4] >> (6 - 2 * (at % 4)) & 3;
        match (found + 3 - trit(&own[1..], nonce)) % 3 {
            0 => {}
            1 => return (block, Ordering::Less),
            _ => return (block, Ordering::Greater),
        }
    }
    (16, Ordering::Equal)
}

/// Numbers of what came, by when it came first.
#[derive(Default)]
struct Known(HashMap<Vec<u8>, usize>);

impl Known {
    fn number(&mut self, what: &[u8]) -> usize {
        let next = self.0.len();
        *self.0.entry(what.to_vec()).or_insert(next)
    }
}

struct Likeness<'a> {
    labels: &'a Labels,
    catalogue: &'a Name,
    names: Known,
    strings: Known,
    /// Where something stands in what is asked of an order, behind the same labels.
    stands: Known,
    /// Codes that are in order by themselves, of each column.
    codes: BTreeMap<Name, BTreeSet<Vec<u8>>>,
    /// Codes that questions are compared with: by cloud and column, those of rows.
    stored: BTreeMap<(String, Name), BTreeMap<u64, Vec<u8>>>,
}

/// What a coalition sees, line by line.
pub fn lines(views: &BTreeMap<String, Vec<Event>>, labels: &Labels, catalogue: &Name) -> Vec<String> {
    let mut likeness = Likeness {
        labels,
        catalogue,
        names: Known::default(),
        strings: Known::default(),
        stands: Known::default(),
        codes: codes(views),
        stored: BTreeMap::new(),
    };
    let line = |(cloud, event): (&String, &Event)| format!("{cloud}: {}", likeness.event(cloud, event));
    views.iter().flat_map(|(cloud, events)| events.iter().map(move |event| (cloud, event))).map(line).collect()
}

/// All strings and bounds of twelve bytes: only codes that are in order have so many.
fn codes(views: &BTreeMap<String, Vec<Event>>) -> BTreeMap<Name, BTreeSet<Vec<u8>>> {
    let mut codes: BTreeMap<Name, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for event in views.values().flatten() {
        match event {
            Event::Put(_, put) => put.columns.iter().for_each(|(name, data)| {
                let Data::Strings(strings) = data else { return };
                let own = strings.iter().filter(|string| string.len() == 12).map(<[u8]>::to_vec);
                codes.entry(name.clone()).or_default().extend(own);
            }),
            Event::Asked(_, question) => question.tests.iter().for_each(|test| {
                let Test::Between { column, least, greatest } = test else { return };
                codes.entry(column.clone()).or_default().extend([least.to_vec(), greatest.to_vec()]);
            }),
            Event::Removed(..) | Event::Dropped(_) => {}
        }
    }
    codes
}

/// Whether numbers ascend, without which their order would say something.
fn ascends(places: &[u64]) -> &'static str {
    if places.windows(2).all(|pair| pair[0] < pair[1]) { "ascending" } else { "in an order" }
}

impl Likeness<'_> {
    fn event(&mut self, cloud: &str, event: &Event) -> String {
        let table = self.names.number(event.table().as_str().as_bytes());
        let labels = self.labels.get(&(cloud.to_owned(), event.table().clone())).cloned().unwrap_or_default();
        match event {
            // Its entries come in the order of the owner's records, by which their lengths are known anyway.
            Event::Put(name, put) if name == self.catalogue => format!("tell {table}{}", self.put(cloud, put, &labels)),
            Event::Put(_, put) => {
                format!("put in {table} {}{}", named(&put.places, &labels), self.put(cloud, put, &labels))
            }
            Event::Removed(_, places) => format!("remove from {table} {}", named(places, &labels)),
            Event::Asked(_, question) => format!("asked of {table} {}", self.asked(cloud, question, &labels)),
            Event::Dropped(_) => format!("drop {table}"),
        }
    }

    fn put(&mut self, cloud: &str, put: &Fragments, labels: &HashMap<u64, u64>) -> String {
        let mut order: Vec<usize> = (0..put.places.len()).collect();
        order.sort_by_key(|at| labels[&put.places[*at]]);
        let mut told = String::new();
        for (name, data) in &put.columns {
            told.push_str(&format!("\n  column {}:", self.names.number(name.as_str().as_bytes())));
            match data {
                Data::Shares(shares) => {
                    for at in &order {
                        assert!(shares[*at] < (1 << 61) - 1, "a share is a number of the field");
                        told.push_str(&format!(" share {}", self.strings.number(&shares[*at].to_be_bytes())));
                    }
                }
                Data::Strings(strings) => {
                    for at in &order {
                        let (string, label) = (strings.get(*at), labels[&put.places[*at]]);
                        told.push_str(&self.string(name, string));
                        if string.len() == 80 {
                            let stored = self.stored.entry((cloud.to_owned(), name.clone())).or_default();
                            stored.insert(label, string.to_vec());
                        }
                    }
                }
            }
        }
        told
    }

    /// A string: how long it is, and which it is, as a whole and in each block of a cipher.
    fn string(&mut self, column: &Name, string: &[u8]) -> String {
        let blocks: Vec<usize> = string.as_chunks::<16>().0.iter().map(|block| self.strings.number(block)).collect();
        let whole = self.strings.number(string);
        let code = if string.len() == 12 { self.rank(column, string) } else { String::new() };
        // How long a cell is stands in front of its piece.
        let fits = |of: &u32| (1..=8).any(|needed| string.len() == 4 + 2 * (*of as usize).div_ceil(2 * needed));
        let length = string.first_chunk::<4>().map(|length| u32::from_be_bytes(*length)).filter(fits);
        let length = length.map_or(String::new(), |length| format!(" says {length}"));
        format!(" {}:{whole}{blocks:?}{code}{length}", string.len())
    }

    fn rank(&self, column: &Name, code: &[u8]) -> String {
        let ends = match code {
            code if code.iter().all(|byte| *byte == 0) => " first",
            code if code.iter().all(|byte| *byte == 0xFF) => " last",
            _ => "",
        };
        format!(" rank {}{ends}", self.codes[column].iter().position(|own| own == code).expect("it was seen"))
    }

    fn asked(&mut self, cloud: &str, question: &Question, labels: &HashMap<u64, u64>) -> String {
        let mut name = |name: &Name| self.names.number(name.as_str().as_bytes());
        let columns: Vec<usize> = question.columns.iter().map(&mut name).collect();
        let sums: Vec<usize> = question.sums.iter().map(&mut name).collect();
        let places = question.places.as_ref().map(|places| named(places, labels));
        let tests: Vec<String> = question.tests.iter().map(|test| self.test(cloud, test)).collect();
        format!("columns {columns:?} sums {sums:?} places {places:?}{}", tests.concat())
    }

    fn test(&mut self, cloud: &str, test: &Test) -> String {
        let column = self.names.number(test.column().as_str().as_bytes());
        match test {
            Test::Tagged { at, tags, .. } => {
                assert!(tags.is_sorted(), "tags are in an order of their own");
                let mut tags: Vec<usize> = tags.iter().map(|tag| self.strings.number(tag)).collect();
                tags.sort_unstable();
                format!("\n  {column} from {at} is one of {tags:?}")
            }
            Test::Compared { column: name, asked, allowed } => {
                let blocks = self.blocks(name, &asked[..]);
                let stored = self.stored.get(&(cloud.to_owned(), name.clone())).cloned().unwrap_or_default();
                let rows: Vec<_> = stored.iter().map(|(row, stored)| (row, compared(&asked[..], stored))).collect();
                format!("\n  {column} is {allowed:?} to {blocks:?}, which is {rows:?}")
            }
            Test::Between { column: name, least, greatest } => {
                format!("\n  {column} is from{} to{}", self.rank(name, least), self.rank(name, greatest))
            }
        }
    }

    /// Of each block its label, and where it stands among those behind the same labels.
    fn blocks(&mut self, column: &Name, asked: &[u8]) -> Vec<(usize, usize)> {
        let mut before = column.as_str().as_bytes().to_vec();
        let mut blocks = Vec::new();
        for block in asked.chunks_exact(17) {
            assert!(block[0] < 16, "a place among sixteen");
            blocks.push((self.strings.number(&block[1..]), self.stands.number(&[&before[..], &block[..1]].concat())));
            before.extend_from_slice(&block[1..]);
        }
        blocks
    }
}

/// Rows by their labels, and whether the order of their places says something.
fn named(places: &[u64], labels: &HashMap<u64, u64>) -> String {
    let mut rows: Vec<u64> = places.iter().map(|place| labels[place]).collect();
    rows.sort_unstable();
    format!("{} {rows:?}", ascends(places))
}
