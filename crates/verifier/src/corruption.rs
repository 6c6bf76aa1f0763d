//! The dishonest mirror: what was fetched is changed and checked once more.
//!
//! A bit of a file is turned as it was fetched. What a row says, and which rows there are, is changed in the answer itself: a
//! mirror that tampers with a page would give it a new name too, and so on up to the head, so that nothing but the
//! signature stands in its way.

use std::collections::HashMap;
use std::fmt;

use counterfoil_ask::{Asked, text};
use counterfoil_mirror::site::{Fetch, SUMMARIES_PER_FILE, Site, SiteError, Unread};
use counterfoil_mirror::wire::Standing;
use counterfoil_mirror::{Entry, NodeEntry, Shelf, SignedGroup, answer};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{
    Answer, Definition, Member, Members, Owner, Position, Question, Run, TrustedManifest, Type, Value,
};
use counterfoil_reader::{Error, Reading, Terms, place_of};

use crate::corrupted_totals::ToldTotals;
use crate::fetched::Altered;
use crate::session::Session;

/// What a dishonest mirror does. Numbers are taken modulo what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// Another value in a row of the answer, or another total of a node.
    Value {
        /// Which row.
        row: u64,
        /// Which of its values, of those that do not say where it stands if there are any.
        column: u64,
    },
    /// A row less, or a node.
    Row {
        /// Which one.
        row: u64,
    },
    /// A bit of the last summary of changes.
    Summary {
        /// Which one.
        bit: u64,
    },
    /// The state of before: the last summary is kept back.
    Yesterday,
    /// A bit of what was fetched.
    Bit {
        /// Of which file; none: of any, as `bit` says.
        path: Option<String>,
        /// Which one.
        bit: u64,
    },
}

/// What came of it.
pub struct Corrupted {
    /// What was changed, in words for people. It may hold values of rows.
    pub what: String,
    /// Whether the rows are the same, where it was not noticed.
    pub outcome: Result<Same, Error>,
}

/// Values of rows never reach a log.
impl fmt::Debug for Corrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corrupted").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

/// Whether rows that were accepted are those of the honest answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    /// They are: what was changed says nothing.
    Rows,
    /// They are not, which must not happen.
    OtherRows,
}

/// Who looks at what stands on a shelf.
type Visit<'a> = &'a mut dyn FnMut(Position, Entry) -> bool;

/// Files under other bytes, and what was changed.
pub(crate) type Change = (HashMap<String, Vec<u8>>, String);

impl Corruption {
    pub(crate) fn play(&self, session: &Session) -> Option<Corrupted> {
        let reading = session.reading.as_ref()?;
        let lie = || Lie::of(session, reading);
        let (changed, what) = match self {
            Self::Value { row, column } => lie()?.value(*row, *column)?,
            Self::Row { row } => lie()?.row(*row)?,
            Self::Summary { bit } => lie()?.summary(*bit)?,
            Self::Yesterday => lie()?.yesterday()?,
            Self::Bit { path, bit } => turned(session, path.as_deref(), *bit)?,
        };
        // Who lies in an answer makes the hints that go with it, or the lie would be refused for the sake of a hint.
        let hints = session.terms().hints && matches!(self, Self::Summary { .. } | Self::Bit { .. });
        let terms = Terms { hints, ..*session.terms() };
        let read = session.again(&mut Altered { fetched: &session.fetched, changed }, &terms);
        let same = |read: Reading| if read.table == reading.table { Same::Rows } else { Same::OtherRows };
        Some(Corrupted { what, outcome: read.map(same) })
    }
}

/// One bit of one file.
fn turned(session: &Session, path: Option<&str>, bit: u64) -> Option<Change> {
    let mut files: Vec<(&str, &[u8])> = session.fetched.used().filter(|(_, bytes)| !bytes.is_empty()).collect();
    files.retain(|(known, _)| path.is_none_or(|path| path == *known));
    let all: u64 = files.iter().map(|(_, bytes)| bits(bytes)).sum();
    let mut at = bit.checked_rem(all)?;
    for (path, bytes) in files {
        if at < bits(bytes) {
            let mut changed = bytes.to_vec();
            let byte = usize::try_from(at / 8).ok()?;
            changed[byte] ^= 1 << (at % 8);
            let what = format!("bit {} of byte {byte} of {} of {path} was turned", at % 8, bytes.len());
            return Some((HashMap::from([(path.into(), changed)]), what));
        }
        at -= bits(bytes);
    }
    None
}

fn bits(bytes: &[u8]) -> u64 {
    bytes.len() as u64 * 8
}

/// An answer that is to be changed, and all that a mirror needs that answers itself.
pub(crate) struct Lie<'a> {
    session: &'a Session,
    pub(crate) reading: &'a Reading,
    prefix: String,
    pub(crate) definition: Definition,
    pub(crate) asked: Asked,
}

impl<'a> Lie<'a> {
    fn of(session: &'a Session, reading: &'a Reading) -> Option<Self> {
        let owner: &Owner = &session.terms().owner;
        let definition = TrustedManifest::check(reading.kept.manifest(), owner, 0).ok()?.manifest().definition.clone();
        let asked = Asked::parse(session.sql(), &definition).ok()?;
        let is_here = session.fetched.used().any(|(path, _)| path == "manifest");
        let prefix = if is_here { String::new() } else { place_of(owner, session.table()) };
        Some(Self { session, reading, prefix, definition, asked })
    }

    /// The question without hints.
    fn question(&self) -> Option<&Question> {
        self.asked.question()
    }

    /// The honest answer to it.
    fn answer(&self) -> Option<Answer> {
        let question = self.question()?;
        let put = if self.session.terms().hints { question.clone().hinted() } else { question.clone() };
        let answer = Answer::from_bytes(self.reading.kept.answer()?, &self.definition, &put).ok()?;
        Some(Answer { question: question.digest(), hints: None, ..answer })
    }

    /// Whether hints were asked for.
    pub(crate) fn is_hinted(&self) -> bool {
        self.session.terms().hints
    }

    /// What was fetched, as a site.
    pub(crate) fn site(&self) -> Option<Site<Below<'_>>> {
        let files = Altered { fetched: &self.session.fetched, changed: HashMap::new() };
        let (unread, _) = Unread::open(Below { files, prefix: &self.prefix }).ok()?;
        Some(unread.of(self.definition.clone()))
    }

    /// Files of a mirror that answers so, whatever the one was that was asked.
    fn told(&self, answer: &Answer, last: u64, what: String) -> Option<Change> {
        self.told_bytes(answer.to_bytes(&self.definition, self.question()?).ok()?, last, what)
    }

    /// The same of an answer in bytes.
    pub(crate) fn told_bytes(&self, bytes: Vec<u8>, last: u64, what: String) -> Option<Change> {
        let head = Standing { last, first: self.site()?.first().min(last) }.to_bytes();
        let file = |name: &str, bytes| (format!("{}{name}", self.prefix), bytes);
        Some((HashMap::from([file("head", head), file("answer", bytes)]), what))
    }

    pub(crate) fn last(&self) -> u64 {
        self.reading.verdict.period
    }

    fn value(&self, row: u64, column: u64) -> Option<Change> {
        if let Some(totals) = ToldTotals::of(self) {
            return totals.value(row, column);
        }
        let mut answer = self.answer()?;
        let question = self.question()?;
        // A value that says where a row stands would be seen out of its place; rather one that says nothing else.
        let order = self.definition.orders.get(usize::from(question.order()))?;
        let (placing, saying): (Vec<usize>, Vec<usize>) =
            (0..question.columns().len()).partition(|at| order.contains(&question.columns()[*at]));
        let columns = if saying.is_empty() { placing } else { saying };
        let at = columns[usize::try_from(column.checked_rem(columns.len() as u64)?).ok()?];
        let column = self.definition.columns.get(usize::from(question.columns()[at]))?;
        let (run, row, number) = place(&answer, row)?;
        let value = &mut answer.runs[run].rows[row].values[at];
        let before = std::mem::replace(value, Value::Null);
        *value = other(column.kind, &before);
        let (before, after) = (shown(column.kind, &before), shown(column.kind, value));
        let what = format!("{} of row {number} of the answer was {before} and became {after}", column.name);
        self.told(&answer, self.last(), what)
    }

    fn row(&self, row: u64) -> Option<Change> {
        if let Some(totals) = ToldTotals::of(self) {
            return totals.part(row);
        }
        let mut answer = self.answer()?;
        let (run, row, number) = place(&answer, row)?;
        let rid = answer.runs[run].rows.remove(row).stamp.rid;
        left_out(&mut answer.groups, rid);
        let what = format!("row {number} of the answer, record {rid}, was left out");
        // Who has the pages has each row's signature too, and adds up those that are left.
        match self.answer_without(rid) {
            Some(answer) => self.told(&answer, self.last(), what + ", and its signature with it"),
            None => self.told(&answer, self.last(), what),
        }
    }

    /// What a mirror would say that never had this record; none where pages that it takes were not fetched.
    fn answer_without(&self, rid: u64) -> Option<Answer> {
        answer(&mut Without { site: self.site()?, rid }, self.question()?).ok()
    }

    /// A bit of the last summary, in the file that holds it.
    fn summary(&self, bit: u64) -> Option<Change> {
        let (last, each) = (self.last(), SUMMARIES_PER_FILE);
        let path = format!("{}summaries/{}", self.prefix, last / each);
        let (_, file) = self.session.fetched.used().find(|(used, _)| *used == path)?;
        let (mut reader, mut writer, mut turned) = (Reader::new(file, ""), Writer::default(), 0);
        for period in last / each * each..=last {
            let mut summary = reader.string().ok()?.to_vec();
            if period == last {
                turned = bit.checked_rem(bits(&summary))?;
                summary[usize::try_from(turned / 8).ok()?] ^= 1 << (turned % 8);
            }
            writer.string(&summary);
        }
        let what = format!("bit {} of byte {} of the summary of period {last} was turned", turned % 8, turned / 8);
        Some((HashMap::from([(path, writer.0)]), what))
    }

    /// A head that ends one period earlier. The rows are those of now: a folder of before would have its own.
    fn yesterday(&self) -> Option<Change> {
        let last = self.last().checked_sub(1)?;
        let what = format!("the summary of period {} was kept back", last + 1);
        match ToldTotals::of(self) {
            Some(totals) => self.told_bytes(totals.bytes()?, last, what),
            None => self.told(&self.answer()?, last, what),
        }
    }
}

/// Files below a place.
pub(crate) struct Below<'a> {
    files: Altered<'a>,
    prefix: &'a str,
}

impl Fetch for Below<'_> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.files.fetch(&format!("{}{path}", self.prefix), most)
    }
}

/// A shelf from which a record was taken. Its nodes count it still.
pub(crate) struct Without<'a> {
    pub site: Site<Below<'a>>,
    pub rid: u64,
}

impl Shelf for Without<'_> {
    type Error = SiteError;

    fn definition(&self) -> &Definition {
        self.site.definition()
    }

    fn upward(&mut self, order: u8, from: &[u8], visit: Visit<'_>) -> Result<(), SiteError> {
        let rid = self.rid;
        self.site.upward(order, from, &mut |position, entry| entry.stamp.rid == rid || visit(position, entry))
    }

    fn downward(&mut self, order: u8, before: &[u8], visit: Visit<'_>) -> Result<(), SiteError> {
        let rid = self.rid;
        self.site.downward(order, before, &mut |position, entry| entry.stamp.rid == rid || visit(position, entry))
    }

    /// Its group's signature holds the record: all that can be left out is that it is shown.
    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, SiteError> {
        self.site.group(place)
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, SiteError> {
        self.site.node(order, level, from)
    }
}

/// A record goes out of its group, and the group where it showed nothing else.
pub(crate) fn left_out(groups: &mut Vec<Members>, rid: u64) {
    groups.iter_mut().for_each(|group| group.list.retain(|member| *member != Member::Shown(rid)));
    groups.retain(|group| group.list.iter().any(|member| matches!(member, Member::Shown(_))));
}

/// Which row of which run, and its number from 1 on; `None`: there are none.
fn place(answer: &Answer, row: u64) -> Option<(usize, usize, u64)> {
    let count: u64 = answer.runs.iter().map(|run: &Run| run.rows.len() as u64).sum();
    let number = row.checked_rem(count)?;
    let mut left = number;
    for (at, run) in answer.runs.iter().enumerate() {
        let rows = run.rows.len() as u64;
        if left < rows {
            return Some((at, usize::try_from(left).ok()?, number + 1));
        }
        left -= rows;
    }
    None
}

/// Another value of the same type.
pub(crate) fn other(kind: Type, value: &Value) -> Value {
    match value {
        Value::Null => some(kind),
        Value::Boolean(value) => Value::Boolean(!value),
        Value::Integer(value) => Value::Integer(value ^ 1),
        Value::Numeric(value) => Value::Numeric(value ^ 1),
        Value::Double(value) => Value::Double(if *value == 1.0 { 2.0 } else { 1.0 }),
        Value::Text(value) if value.is_empty() => Value::Text("x".into()),
        Value::Text(value) => Value::Text(value.chars().rev().chain(['x']).collect()),
        Value::Bytes(value) => Value::Bytes([&value[..], &[0]].concat()),
        Value::Uuid(value) => Value::Uuid(value.map(|byte| !byte)),
    }
}

fn some(kind: Type) -> Value {
    match kind {
        Type::Boolean => Value::Boolean(true),
        Type::Real | Type::Double => Value::Double(1.0),
        Type::Numeric(..) => Value::Numeric(1),
        Type::Text => Value::Text("x".into()),
        Type::Bytea => Value::Bytes(vec![0]),
        Type::Uuid => Value::Uuid([0; 16]),
        _ => Value::Integer(1),
    }
}

pub(crate) fn shown(kind: Type, value: &Value) -> String {
    text(kind, value).unwrap_or_else(|| "NULL".into())
}
