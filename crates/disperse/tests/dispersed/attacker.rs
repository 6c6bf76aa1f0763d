//! An attacker: what can be made of a coalition's view by whoever has no key, but knows which values there are and how often each comes.
//!
//! It is told what clouds can tell by themselves: of which layout, column and coding a fragment is, and which rows that came to several
//! clouds are the same one. From these it makes *groups* of rows that look equal, *orders* of rows, *guesses* of values, and finds *marks*:
//! bytes and distances that noise has not. What it may find is none of its business (attacked.rs).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use counterfoil_disperse::Coding;
use counterfoil_disperse::coding::field::Element;
use counterfoil_disperse::coding::shares::interpolate;
use counterfoil_disperse::fragments::{Data, Fragments, Name, Question, Test};

use crate::likeness::compared;
use crate::owner::Labels;
use crate::watching::Event;

/// What shares are numbers below.
const PRIME: u64 = (1 << 61) - 1;

pub type Group = BTreeSet<u64>;

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Of {
    pub layout: u32,
    pub column: u16,
    pub coding: Coding,
}

/// What is known of fragments by what they look like: by cloud and name, where they belong.
pub type Known = BTreeMap<(String, Name), Of>;

/// A fragment of all rows, or what is put together from several.
pub struct Held {
    pub of: Of,
    /// Clouds from whose shares it is, by their places; none: it is the same wherever it lies.
    pub clouds: Vec<usize>,
    pub strings: BTreeMap<u64, Vec<u8>>,
}

/// Bytes of rows that stand at the same place.
pub type Part = Vec<(u64, Vec<u8>)>;

#[derive(Default)]
pub struct Attacker {
    pub held: Vec<Held>,
    /// Of each batch that came: the cloud, the layout, and its rows as they stood.
    pub batches: Vec<(String, u32, Vec<u64>)>,
    /// What was asked of orders, by layout and column, in turn.
    pub asked: BTreeMap<(u32, u16), Vec<Vec<u8>>>,
    /// Tags that were asked for, and where they stand.
    tags: Vec<(Of, usize, Vec<u8>)>,
    /// All bytes that there are, message by message.
    bytes: Vec<Vec<u8>>,
}

impl Attacker {
    /// Of a coalition's views: of each cloud its name, its place among those of the table, and what it saw.
    pub fn new(views: &[(String, usize, Vec<Event>)], known: &Known, labels: &Labels) -> Self {
        let mut attacker = Self::default();
        for (cloud, place, events) in views {
            let mut asked = BTreeMap::new();
            for event in events {
                attacker.bytes.push(event.table().as_str().as_bytes().to_vec());
                match event {
                    Event::Put(table, put) => {
                        let labels = &labels[&(cloud.clone(), table.clone())];
                        let rows = put.places.iter().map(|place| labels[place]).collect();
                        attacker.put((cloud, *place), known, rows, put);
                    }
                    Event::Asked(_, question) => attacker.question(cloud, known, question, &mut asked),
                    Event::Removed(..) | Event::Dropped(_) => {}
                }
            }
            // All clouds that have codes are asked the same.
            attacker.asked.extend(asked);
        }
        attacker
    }

    fn put(&mut self, (cloud, place): (&str, usize), known: &Known, rows: Vec<u64>, put: &Fragments) {
        let mut layout = None;
        for (name, data) in &put.columns {
            let strings: Vec<Vec<u8>> = match data {
                Data::Strings(strings) => strings.iter().map(<[u8]>::to_vec).collect(),
                Data::Shares(shares) => shares.iter().map(|share| share.to_be_bytes().to_vec()).collect(),
            };
            self.bytes.push(name.as_str().as_bytes().to_vec());
            self.bytes.extend(strings.iter().cloned());
            let Some(of) = known.get(&(cloud.to_owned(), name.clone())).copied() else { continue };
            layout = Some(of.layout);
            let clouds = if is_share(of.coding) { vec![place] } else { Vec::new() };
            let at = self.held.iter().position(|held| held.of == of && held.clouds == clouds).unwrap_or_else(|| {
                self.held.push(Held { of, clouds, strings: BTreeMap::new() });
                self.held.len() - 1
            });
            self.held[at].strings.extend(rows.iter().copied().zip(strings));
        }
        self.batches.extend(layout.map(|layout| (cloud.to_owned(), layout, rows)));
    }

    fn question(
        &mut self,
        cloud: &str,
        known: &Known,
        question: &Question,
        asked: &mut BTreeMap<(u32, u16), Vec<Vec<u8>>>,
    ) {
        let of = |name: &Name| known[&(cloud.to_owned(), name.clone())];
        for test in &question.tests {
            match test {
                Test::Tagged { column, at, tags } => {
                    self.bytes.extend(tags.iter().map(|tag| tag.to_vec()));
                    self.tags.extend(tags.iter().map(|tag| (of(column), *at, tag.to_vec())));
                }
                Test::Compared { column, asked: own, .. } => {
                    self.bytes.push(own.to_vec());
                    asked.entry((of(column).layout, of(column).column)).or_default().push(own.to_vec());
                }
                Test::Between { least, greatest, .. } => {
                    self.bytes.extend([least.to_vec(), greatest.to_vec()]);
                }
            }
        }
    }

    /// Puts the shares of two clouds and more together, as if these were enough.
    pub fn put_together(&mut self) {
        let mut shares: BTreeMap<Of, Vec<&Held>> = BTreeMap::new();
        self.held.iter().filter(|held| is_share(held.of.coding)).for_each(|held| {
            shares.entry(held.of).or_default().push(held);
        });
        let mut made = Vec::new();
        for (of, own) in shares {
            for mask in (0..1_u32 << own.len()).filter(|mask| mask.count_ones() > 1) {
                let chosen: Vec<&Held> = (0..own.len()).filter(|at| mask >> at & 1 == 1).map(|at| own[at]).collect();
                let strings = chosen[0].strings.keys().map(|row| (*row, at_nought(&chosen, *row))).collect();
                made.push(Held { of, clouds: chosen.iter().flat_map(|held| held.clouds.clone()).collect(), strings });
            }
        }
        self.held.extend(made);
    }

    /// Bytes that stand in two columns, codings, layouts, or at two places of them.
    pub fn in_two(&self) -> Vec<(Of, Of)> {
        let mut first: HashMap<&[u8], (Of, usize)> = HashMap::new();
        let held = self.held.iter().filter(|held| held.clouds.len() < 2);
        let pieces = held.flat_map(|held| held.strings.values().map(|string| (held.of, 0, string)));
        let mut found = Vec::new();
        for (of, from, string) in pieces.chain(self.tags.iter().map(|(of, at, tag)| (*of, *at, tag))) {
            for (at, piece) in string.as_chunks::<8>().0.iter().enumerate() {
                let own = (of, from + 8 * at);
                let other = first.entry(piece).or_insert(own);
                found.extend((*other != own).then_some((other.0, of)));
            }
        }
        found
    }

    /// Which of these are somewhere in what it sees, at any offset.
    pub fn found<'a>(&self, wanted: &'a BTreeSet<Vec<u8>>) -> BTreeSet<&'a Vec<u8>> {
        let lengths: BTreeSet<usize> = wanted.iter().map(Vec::len).collect();
        let put_together = self.held.iter().filter(|held| held.clouds.len() > 1).flat_map(|held| held.strings.values());
        let all: Vec<&Vec<u8>> = self.bytes.iter().chain(put_together).collect();
        let windows = |length: usize| all.iter().flat_map(move |bytes| bytes.windows(length)).collect::<HashSet<_>>();
        let there: HashMap<usize, HashSet<&[u8]>> =
            lengths.into_iter().map(|length| (length, windows(length))).collect();
        wanted.iter().filter(|wanted| there[&wanted.len()].contains(&wanted[..])).collect()
    }

    /// Shares that are as near one another as values are: two that have one pad differ by no more.
    pub fn near(&self, difference_max: u64) -> usize {
        let held = self.held.iter().filter(|held| is_share(held.of.coding) && held.clouds.len() == 1);
        let mut shares: Vec<u64> = held.flat_map(|held| held.strings.values().map(|share| number(share))).collect();
        shares.sort_unstable();
        shares.windows(2).filter(|pair| pair[1] - pair[0] <= difference_max).count()
    }

    /// Of each order that was asked, and each row: in which block they differ first, and how. Rows of one answer to all are a group.
    pub fn intervals(&self, held: &Held) -> Vec<Group> {
        let asked = self.asked.get(&(held.of.layout, held.of.column)).cloned().unwrap_or_default();
        let answers = |stored: &[u8]| asked.iter().map(|asked| compared(asked, stored)).collect::<Vec<_>>();
        let rows = held.strings.iter().filter(|(_, stored)| !stored.is_empty());
        grouped(rows.map(|(row, stored)| (*row, answers(stored))))
    }

    /// How many blocks each two questions of an order have in common.
    pub fn in_common(&self, of: (u32, u16)) -> Vec<Vec<usize>> {
        let asked = self.asked.get(&of).cloned().unwrap_or_default();
        let common = |one: &[u8], other: &[u8]| {
            one.chunks_exact(17).zip(other.chunks_exact(17)).take_while(|(one, other)| one == other).count()
        };
        asked.iter().map(|one| asked.iter().map(|other| common(one, other)).collect()).collect()
    }
}

pub fn is_share(coding: Coding) -> bool {
    matches!(coding, Coding::Share(_) | Coding::Present)
}

fn number(share: &[u8]) -> u64 {
    u64::from_be_bytes(share.try_into().expect("a number of the field"))
}

fn at_nought(chosen: &[&Held], row: u64) -> Vec<u8> {
    let element = |number: u64| Element::reduce(number.into());
    let point = |held: &&Held| (element(held.clouds[0] as u64 + 1), element(number(&held.strings[&row])));
    interpolate(&chosen.iter().map(point).collect::<Vec<_>>()).number().to_be_bytes().to_vec()
}

/// Rows of which something is the same.
pub fn grouped<T: Ord>(rows: impl Iterator<Item = (u64, T)>) -> Vec<Group> {
    let mut groups: BTreeMap<T, Group> = BTreeMap::new();
    rows.for_each(|(row, what)| {
        groups.entry(what).or_default().insert(row);
    });
    groups.into_values().collect()
}

impl Held {
    /// The whole, and each aligned piece of so many bytes.
    pub fn parts(&self, sizes: &[usize]) -> Vec<(String, Part)> {
        // In front of a piece it says how long its cell is.
        let start = if matches!(self.of.coding, Coding::Piece(_)) { 4 } else { 0 };
        let bodies: Vec<(u64, &[u8])> =
            self.strings.iter().map(|(row, string)| (*row, &string[start.min(string.len())..])).collect();
        let longest = bodies.iter().map(|(_, body)| body.len()).max().unwrap_or(0);
        let whole = bodies.iter().map(|(row, body)| (*row, body.to_vec())).collect();
        let mut parts = vec![("the whole".to_owned(), whole)];
        for size in sizes {
            for at in (0..longest).step_by(*size) {
                let part = bodies.iter().filter_map(|(row, body)| Some((*row, body.get(at..at + size)?.to_vec())));
                parts.push((format!("{size} bytes from {at}"), part.collect()));
            }
        }
        parts
    }

    /// Rows that look equal in some part, by what that is.
    pub fn groups(&self) -> Vec<(String, Vec<Group>)> {
        let parts = self.parts(&[8, 16]).into_iter().map(|(what, part)| (what, grouped(part.into_iter())));
        let lengths = grouped(self.strings.iter().map(|(row, string)| (*row, string.len())));
        let heads = grouped(self.strings.iter().filter_map(|(row, string)| Some((*row, *string.first_chunk::<4>()?))));
        let heads =
            matches!(self.of.coding, Coding::Piece(_)).then(|| ("what it says of its length".to_owned(), heads));
        parts.chain([("the length".to_owned(), lengths)]).chain(heads).collect()
    }

    /// Differences between rows' shares that come twice: pads are no line.
    pub fn same_differences(&self) -> usize {
        let shares: Vec<u64> = self.strings.values().map(|share| number(share)).take(200).collect();
        let others = |at: usize| shares[..at].iter().map(move |other| (at, *other));
        let pairs = (0..shares.len()).flat_map(others);
        let mut all: Vec<u64> = pairs.map(|(at, other)| (shares[at] + PRIME - other) % PRIME).collect();
        all.sort_unstable();
        all.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }
}

/// Rows in the order of their bytes, read from the front and from the back; of those that look equal the first.
pub fn orders(part: &Part) -> [Vec<u64>; 2] {
    let backwards = part.iter().map(|(row, bytes)| (*row, bytes.iter().rev().copied().collect())).collect();
    [part.clone(), backwards].map(|mut part: Part| {
        part.sort_by(|one, other| (&one.1, one.0).cmp(&(&other.1, other.0)));
        part.dedup_by(|next, before| next.1 == before.1);
        part.into_iter().map(|(row, _)| row).collect()
    })
}

/// What rows are that look to be in the order of values, of which it is known which there are.
pub fn guessed_by_order<T: Ord + Clone>(part: &Part, values: &[T]) -> BTreeMap<u64, T> {
    let (mut part, mut values) = (part.clone(), values.to_vec());
    part.sort_by(|one, other| (&one.1, one.0).cmp(&(&other.1, other.0)));
    values.sort();
    part.into_iter().map(|(row, _)| row).zip(values).collect()
}

/// What rows are that look equal, of values of which it is known how often each comes: the most frequent is the largest group.
pub fn guessed_by_frequency<T: Ord + Clone>(groups: &[Group], values: &[T]) -> BTreeMap<u64, T> {
    let mut counts: BTreeMap<&T, usize> = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<(usize, &T)> = counts.into_iter().map(|(value, count)| (count, value)).collect();
    counts.sort_by(|one, other| other.cmp(one));
    let mut groups = groups.to_vec();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let guess = |(group, (_, value)): (Group, (usize, &T))| group.into_iter().map(|row| (row, value.clone())).collect();
    groups.into_iter().zip(counts).flat_map(|pair| -> Vec<(u64, T)> { guess(pair) }).collect()
}
