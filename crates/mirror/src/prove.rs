//! The answer to a question, with its proof.

use std::collections::{BTreeMap, HashSet};

use counterfoil_proof::attributes::{hidden, root, salt};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Answer, Boundary, Definition, Digest, Direction, End, Hint, Interval, Malformed, Member, Members, Position,
    Question, Row, Run, Salts, Scheme, Signature, SignatureSum, member_stamp,
};

use crate::entry::{Entry, Record};
use crate::groups::SignedGroup;
use crate::shelf::Shelf;

/// Why there is no answer.
#[derive(Debug)]
pub enum AnswerError<E> {
    /// The shelf could not be read.
    Shelf(E),
    /// What it holds is no whole table: no head, no tail, or values of other types.
    Shelved(Malformed),
}

impl<E> From<Malformed> for AnswerError<E> {
    fn from(malformed: Malformed) -> Self {
        Self::Shelved(malformed)
    }
}

/// Answers `question` from what is on `shelf`.
///
/// # Errors
/// [`AnswerError`].
pub fn answer<S: Shelf>(shelf: &mut S, question: &Question) -> Result<Answer, AnswerError<S::Error>> {
    let mut gathered = Gathered::default();
    let mut runs = Vec::new();
    let mut left = question.limit();
    let mut intervals: Vec<&Interval> = question.intervals().iter().collect();
    if question.direction() == Direction::Descending {
        intervals.reverse();
    }
    let mut found = Vec::new();
    for interval in intervals {
        if left == Some(0) {
            break;
        }
        let part = read(shelf, question, interval, left)?;
        left = left.map(|left| left - part.rows.len() as u64);
        found.push(part);
    }
    if question.direction() == Direction::Descending {
        found.reverse();
    }
    for part in found {
        runs.push(gathered.run(shelf.definition(), question, part)?);
    }
    let Closing { groups, signature, hints } = gathered.close(shelf, question.is_hinted())?;
    Ok(Answer { question: question.digest(), runs, groups, signature, hints })
}

/// What stands in an interval, and around it: the nearest outside and the one behind that.
pub(crate) struct Part<'a> {
    pub interval: &'a Interval,
    pub left: Vec<(Position, Entry)>,
    pub rows: Vec<(Position, Entry)>,
    pub right: Vec<(Position, Entry)>,
    /// The sum of the rows' signatures, if the shelf has it for less than adding them.
    pub sum: Option<SignatureSum>,
}

fn read<'a, S: Shelf>(
    shelf: &mut S,
    question: &Question,
    interval: &'a Interval,
    limit: Option<u64>,
) -> Result<Part<'a>, AnswerError<S::Error>> {
    let order = question.order();
    let mut part = Part { interval, left: Vec::new(), rows: Vec::new(), right: Vec::new(), sum: None };
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let is_full = |rows: &Vec<_>| rows.len() == limit;
    match question.direction() {
        Direction::Ascending => {
            let mut visit = |position: Position, entry| {
                let within = interval.contains(&position) && !is_full(&part.rows);
                if within {
                    part.rows.push((position, entry))
                } else {
                    part.right.push((position, entry))
                }
                part.right.len() < 2
            };
            shelf.upward(order, interval.start(), &mut visit).map_err(AnswerError::Shelf)?;
            part.sum = sum(shelf, order, &part.rows)?;
            part.left = nearest(|visit| shelf.downward(order, interval.start(), visit))?;
        }
        Direction::Descending => {
            let mut visit = |position: Position, entry| {
                let within = interval.contains(&position) && !is_full(&part.rows);
                if within {
                    part.rows.push((position, entry))
                } else {
                    part.left.push((position, entry))
                }
                part.left.len() < 2
            };
            shelf.downward(order, interval.end(), &mut visit).map_err(AnswerError::Shelf)?;
            part.rows.reverse();
            part.sum = sum(shelf, order, &part.rows)?;
            part.right = nearest(|visit| shelf.upward(order, interval.end(), visit))?;
        }
    }
    Ok(part)
}

/// The sum of the signatures of rows that stand beside each other, right behind the walk that found them.
fn sum<S: Shelf>(
    shelf: &mut S,
    order: u8,
    rows: &[(Position, Entry)],
) -> Result<Option<SignatureSum>, AnswerError<S::Error>> {
    let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return Ok(None) };
    shelf.sum(order, first.bytes(), &[last.bytes(), &[0]].concat()).map_err(AnswerError::Shelf)
}

pub(crate) fn nearest<E>(
    walk: impl FnOnce(&mut dyn FnMut(Position, Entry) -> bool) -> Result<(), E>,
) -> Result<Vec<(Position, Entry)>, AnswerError<E>> {
    let mut found = Vec::new();
    walk(&mut |position, entry| {
        found.push((position, entry));
        found.len() < 2
    })
    .map_err(AnswerError::Shelf)?;
    Ok(found)
}

/// The signatures of all that is in an answer.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By number, and which of its entry's signatures.
    seen: HashSet<(u64, usize)>,
    signatures: Vec<((u64, usize), Signature)>,
    pub hints: Vec<Hint>,
    /// Of rows whose signatures are not among these one by one.
    sums: SignatureSum,
    /// Records whose groups are signed, by their places in the first order.
    members: BTreeMap<Vec<u8>, u64>,
}

/// How an answer ends.
pub(crate) struct Closing {
    pub groups: Vec<Members>,
    pub signature: Signature,
    pub hints: Option<Vec<Hint>>,
}

impl Gathered {
    /// Each signature once, in the order in which its entry comes first.
    pub fn sign(&mut self, rid: u64, signature: Signature, hint: Hint) {
        self.sign_part(rid, 0, (signature, hint));
    }

    fn sign_part(&mut self, rid: u64, part: usize, (signature, hint): (Signature, Hint)) {
        if self.seen.insert((rid, part)) {
            self.signatures.push(((rid, part), signature));
            self.hints.push(hint);
        }
    }

    /// Notes a row whose signature is in a sum. No two sums have one row.
    fn cover(&mut self, entry: &Entry) -> Result<(), Malformed> {
        let (_, hint) = entry.signed.first().ok_or(Malformed("a record without a signature"))?;
        let own = (entry.stamp.rid, 0);
        match self.seen.insert(own) {
            true => self.hints.push(*hint),
            // It stood at the end of another interval.
            false => self.signatures.retain(|(signed, _)| *signed != own),
        }
        Ok(())
    }

    /// The sum of all signatures.
    pub fn total(&self) -> SignatureSum {
        let single: Vec<Signature> = self.signatures.iter().map(|(_, signature)| *signature).collect();
        let mut total = SignatureSum::sum_of(&single);
        total.add_sum(&self.sums);
        total
    }

    /// What is signed of an entry of which some columns are shown.
    pub fn sign_entry(&mut self, definition: &Definition, entry: &Entry, columns: &[u16]) -> Result<(), Malformed> {
        let rid = entry.stamp.rid;
        match (&entry.signed[..], &entry.record) {
            ([], Some(_)) => _ = self.members.insert(entry.position(definition, 0)?.bytes().to_vec(), rid),
            ([], None) => return Err(Malformed("a head or tail without a signature")),
            ([own, values @ ..], _) => {
                self.sign_part(rid, 0, *own);
                let shown = columns.iter().filter_map(|column| Some((*column, *values.get(usize::from(*column))?)));
                shown.for_each(|(column, signed)| self.sign_part(rid, 1 + usize::from(column), signed));
            }
        }
        Ok(())
    }

    /// The rows of a part of an order, all of them.
    pub fn rows_of<S: Shelf>(
        &mut self,
        shelf: &mut S,
        question: &Question,
        part: &Interval,
    ) -> Result<Run, AnswerError<S::Error>> {
        let part = read(shelf, question, part, None)?;
        Ok(self.run(shelf.definition(), question, part)?)
    }

    /// The rows of an interval between its ends, each signed thing of them noted.
    pub fn run(&mut self, definition: &Definition, question: &Question, part: Part<'_>) -> Result<Run, Malformed> {
        // What stands next to the rows within the interval is there because the limit was reached.
        let is_cut = |end: &[(Position, Entry)]| end.first().is_some_and(|(at, _)| part.interval.contains(at));
        let (cut_left, cut_right) = (is_cut(&part.left), is_cut(&part.right));
        let left = self.end(definition, question, &part.left, cut_left)?;
        let mut rows = Vec::with_capacity(part.rows.len());
        part.sum.iter().for_each(|sum| self.sums.add_sum(sum));
        for (_, entry) in &part.rows {
            match part.sum {
                Some(_) => self.cover(entry)?,
                None => self.sign_entry(definition, entry, question.columns())?,
            }
            rows.push(row(definition, question.order(), question.columns(), entry)?);
        }
        let right = self.end(definition, question, &part.right, cut_right)?;
        Ok(Run { left, rows, right })
    }

    fn end(
        &mut self,
        definition: &Definition,
        question: &Question,
        around: &[(Position, Entry)],
        is_cut: bool,
    ) -> Result<End, Malformed> {
        let [(position, entry), outer @ ..] = around else {
            return Err(Malformed("a table without a head or tail"));
        };
        if is_cut {
            return Ok(End::Cut(position.clone()));
        }
        self.sign_entry(definition, entry, &[])?;
        let is_end = entry.record.is_none();
        let outer = outer.first().map(|(position, _)| position.clone()).filter(|_| !is_end);
        let root = root_of(definition, entry)?;
        let links = if is_end { Vec::new() } else { others(question.order(), entry) };
        Ok(End::Boundary(Boundary {
            position: position.clone(),
            outer,
            stamp: stamp_of(definition, entry),
            root,
            links,
        }))
    }

    /// The groups, the sum of the signatures, and the hints.
    pub fn close<S: Shelf>(mut self, shelf: &mut S, is_hinted: bool) -> Result<Closing, AnswerError<S::Error>> {
        let groups = self.groups(shelf)?;
        let signature = self.total().finish().ok_or(Malformed("signatures that sum to nothing"))?;
        Ok(Closing { groups, signature, hints: is_hinted.then_some(self.hints) })
    }

    /// The groups of all records in the answer, by their numbers.
    fn groups<S: Shelf>(&mut self, shelf: &mut S) -> Result<Vec<Members>, AnswerError<S::Error>> {
        let members = std::mem::take(&mut self.members);
        let mut groups: BTreeMap<u64, SignedGroup> = BTreeMap::new();
        let mut last: Option<SignedGroup> = None;
        for (place, rid) in &members {
            // They ascend, so that a group's records come one behind the other.
            if !last.as_ref().is_some_and(|group| group.holds(*rid)) {
                let found = shelf.group(place).map_err(AnswerError::Shelf)?.filter(|group| group.holds(*rid));
                let found = found.ok_or(Malformed("a record without its group"))?;
                groups.extend(last.replace(found).map(|group| (group.stamp.rid, group)));
            }
        }
        groups.extend(last.map(|group| (group.stamp.rid, group)));
        let shown: HashSet<u64> = members.into_values().collect();
        let mut listed = Vec::with_capacity(groups.len());
        for SignedGroup { stamp, members, signature, hint, .. } in groups.into_values() {
            self.sign(stamp.rid, signature, hint);
            let member = |(rid, digest): (u64, Digest)| match shown.contains(&rid) {
                true => Member::Shown(rid),
                false => Member::Hidden(digest),
            };
            listed.push(Members { stamp, list: members.into_iter().map(member).collect() });
        }
        Ok(listed)
    }
}

/// The root of a record's values, where signatures hold one.
pub(crate) fn root_of(definition: &Definition, entry: &Entry) -> Result<Option<Digest>, Malformed> {
    let record = entry.record.as_ref().filter(|_| definition.scheme != Scheme::PerAttribute);
    record.map(|record| record.leaves(definition).map(|leaves| root(&leaves))).transpose()
}

/// The stamp of an entry as answers have it.
pub(crate) fn stamp_of(definition: &Definition, entry: &Entry) -> Stamp {
    match definition.scheme {
        Scheme::Group(_) if entry.record.is_some() => member_stamp(entry.stamp.rid),
        _ => entry.stamp,
    }
}

fn others(order: u8, entry: &Entry) -> Vec<Digest> {
    let mut links = entry.links.clone();
    if usize::from(order) < links.len() {
        links.remove(usize::from(order));
    }
    links
}

pub(crate) fn row(definition: &Definition, order: u8, columns: &[u16], entry: &Entry) -> Result<Row, Malformed> {
    let Some(record) = &entry.record else {
        return Err(Malformed("a head or tail between records"));
    };
    if record.values.len() != definition.columns.len() {
        return Err(Malformed("a record with other columns than its table"));
    }
    let values = columns.iter().map(|column| record.values[usize::from(*column)].clone()).collect();
    let (salts, hidden) = shown(definition, columns, record)?;
    Ok(Row { stamp: stamp_of(definition, entry), values, salts, hidden, links: others(order, entry) })
}

fn shown(definition: &Definition, columns: &[u16], record: &Record) -> Result<(Salts, Vec<Digest>), Malformed> {
    if definition.scheme == Scheme::PerAttribute {
        return Ok((Salts::None, Vec::new()));
    }
    if columns.len() == definition.columns.len() {
        return Ok((Salts::Seed(record.seed), Vec::new()));
    }
    let salts = Salts::Each(columns.iter().map(|column| salt(&record.seed, *column)).collect());
    Ok((salts, hidden(&record.leaves(definition)?, columns)))
}
