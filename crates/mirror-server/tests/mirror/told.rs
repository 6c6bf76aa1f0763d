//! An answer of whichever kind, taken apart, changed, and put together again as far as who has no key can do that.

use std::collections::BTreeSet;

use counterfoil_mirror::{Entry, MemoryShelf, reply};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Answer, Boundary, Definition, Digest, End, Found, Hint, Item, Points, Position, Question, Row, Run, Signature,
    SignatureSum, Span, Tile, TotalsAnswer, TotalsQuestion, attributes,
};

/// A question and what was told.
#[derive(Clone)]
pub enum Told {
    Rows(Question, Answer),
    Values(Points, Found),
    Totals(TotalsQuestion, TotalsAnswer),
}

/// What the owner ever sent of a table, and of another one of the same shape and rows.
pub struct Stock {
    pub definition: Definition,
    pub then: MemoryShelf,
    pub now: MemoryShelf,
    pub twin: MemoryShelf,
}

impl Stock {
    /// What was signed of something in these versions, or failing that of what bears its number.
    fn signed(&self, stamp: &Stamp) -> Option<(Signature, Hint)> {
        let shelves = [&self.now, &self.then];
        let exact = shelves.iter().find_map(|shelf| signed(shelf, stamp.rid).filter(|(known, _)| known == stamp));
        exact.or_else(|| shelves.iter().find_map(|shelf| signed(shelf, stamp.rid))).map(|(_, signed)| signed)
    }

    /// The boundary that an entry makes.
    pub fn boundary(&self, order: u8, entry: &Entry) -> Option<Boundary> {
        let position = entry.position(&self.definition, order).ok()?;
        let Some(record) = &entry.record else {
            return Some(Boundary { position, outer: None, stamp: entry.stamp, root: None, links: Vec::new() });
        };
        let root = Some(attributes::root(&record.leaves(&self.definition).ok()?));
        let mut links = entry.links.clone();
        links.remove(usize::from(order));
        Some(Boundary { position, outer: None, stamp: entry.stamp, root, links })
    }

    /// What stands before a place of an order, or behind it.
    pub fn beside(&self, order: u8, position: &Position, behind: bool) -> Option<&Entry> {
        self.now.entry(self.now.neighbours(order, position)[usize::from(behind)]?)
    }
}

fn signed(shelf: &MemoryShelf, rid: u64) -> Option<(Stamp, (Signature, Hint))> {
    let entry = shelf.entry(rid).and_then(|entry| Some((entry.stamp, *entry.signed.first()?)));
    let filter = || shelf.filter_of_number(rid).map(|signed| (signed.stamp, (signed.signature, signed.hint)));
    let node = || shelf.nodes.entry(rid).map(|node| (node.stamp, (node.signature, node.hint)));
    entry.or_else(filter).or_else(node)
}

impl Told {
    pub fn of(definition: &Definition, question: &[u8], answer: &[u8]) -> Self {
        if Points::are(question) {
            let points = Points::from_bytes(question, definition).expect("a question");
            let found = Found::from_bytes(answer, definition, &points).expect("an answer");
            return Self::Values(points, found);
        }
        if TotalsQuestion::is_one(question) {
            let question = TotalsQuestion::from_bytes(question, definition).expect("a question");
            let answer = TotalsAnswer::from_bytes(answer, definition, &question).expect("an answer");
            return Self::Totals(question, answer);
        }
        let question = Question::from_bytes(question, definition).expect("a question");
        let answer = Answer::from_bytes(answer, definition, &question).expect("an answer");
        Self::Rows(question, answer)
    }

    /// What a shelf says to the question.
    pub fn by(definition: &Definition, question: &[u8], shelf: &MemoryShelf) -> Self {
        Self::of(definition, question, &reply(&mut shelf.clone(), question).expect("an answer"))
    }

    pub fn question(&self) -> Vec<u8> {
        match self {
            Self::Rows(question, _) => question.to_bytes(),
            Self::Values(points, _) => points.to_bytes(),
            Self::Totals(question, _) => question.to_bytes(),
        }
    }

    pub fn order(&self) -> u8 {
        match self {
            Self::Rows(question, _) => question.order(),
            Self::Values(points, _) => points.order(),
            Self::Totals(question, _) => question.order(),
        }
    }

    pub fn to_bytes(&self, definition: &Definition) -> Option<Vec<u8>> {
        match self {
            Self::Rows(question, answer) => answer.to_bytes(definition, question).ok(),
            Self::Values(points, found) => found.to_bytes(definition, points).ok(),
            Self::Totals(question, answer) => answer.to_bytes(definition, question).ok(),
        }
    }

    /// The digest of the question that it says it answers.
    pub fn named(&mut self) -> &mut Digest {
        match self {
            Self::Rows(_, answer) => &mut answer.question,
            Self::Values(_, found) => &mut found.question,
            Self::Totals(_, answer) => &mut answer.question,
        }
    }

    pub fn signature(&mut self) -> &mut Signature {
        match self {
            Self::Rows(_, answer) => &mut answer.signature,
            Self::Values(_, found) => &mut found.signature,
            Self::Totals(_, answer) => &mut answer.signature,
        }
    }

    pub fn hints(&mut self) -> &mut Option<Vec<Hint>> {
        match self {
            Self::Rows(_, answer) => &mut answer.hints,
            Self::Values(_, found) => &mut found.hints,
            Self::Totals(_, answer) => &mut answer.hints,
        }
    }

    pub fn runs(&mut self) -> Vec<&mut Run> {
        match self {
            Self::Rows(_, answer) => answer.runs.iter_mut().collect(),
            Self::Values(..) => Vec::new(),
            Self::Totals(_, answer) => {
                let spans = answer.intervals.iter_mut().flatten();
                spans.filter_map(|span| if let Span::Rows(_, run) = span { Some(&mut **run) } else { None }).collect()
            }
        }
    }

    pub fn tiles(&mut self) -> Vec<&mut Tile> {
        let Self::Totals(_, answer) = self else { return Vec::new() };
        let spans = answer.intervals.iter_mut().flatten();
        spans.filter_map(|span| if let Span::Tile(tile) = span { Some(tile) } else { None }).collect()
    }

    pub fn items(&mut self) -> Vec<&mut Item> {
        let Self::Values(_, found) = self else { return Vec::new() };
        found.stretches.iter_mut().flat_map(|stretch| &mut stretch.items).collect()
    }

    pub fn rows(&mut self) -> Vec<&mut Row> {
        if let Self::Values(..) = self {
            let items = self.items().into_iter();
            return items.filter_map(|item| if let Item::Row(row) = item { Some(row) } else { None }).collect();
        }
        self.runs().into_iter().flat_map(|run| &mut run.rows).collect()
    }

    /// When each thing was signed, in the order in which they come.
    pub fn stamps(&mut self) -> Vec<&mut Stamp> {
        fn of_run(run: &mut Run) -> impl Iterator<Item = &mut Stamp> {
            fn of_end(end: &mut End) -> Option<&mut Stamp> {
                if let End::Boundary(boundary) = end { Some(&mut boundary.stamp) } else { None }
            }
            let rows = run.rows.iter_mut().map(|row| &mut row.stamp);
            of_end(&mut run.left).into_iter().chain(rows).chain(of_end(&mut run.right))
        }
        match self {
            Self::Rows(_, answer) => answer.runs.iter_mut().flat_map(of_run).collect(),
            Self::Values(_, found) => {
                let items = found.stretches.iter_mut().flat_map(|stretch| &mut stretch.items);
                let items = items.map(|item| match item {
                    Item::Mark(mark) => &mut mark.stamp,
                    Item::Row(row) => &mut row.stamp,
                });
                found.filters.iter_mut().map(|(stamp, _)| stamp).chain(items).collect()
            }
            Self::Totals(_, answer) => {
                let mut stamps = Vec::new();
                for span in answer.intervals.iter_mut().flatten() {
                    match span {
                        Span::Rows(_, run) => stamps.extend(of_run(run)),
                        Span::Tile(tile) => stamps.push(&mut tile.stamp),
                    }
                }
                stamps
            }
        }
    }

    /// With the sum of the signatures of what is in it, and their hints: all that it takes is public.
    pub fn signed(mut self, stock: &Stock) -> Option<Vec<u8>> {
        let mut seen = BTreeSet::new();
        let stamps: Vec<Stamp> = self.stamps().into_iter().map(|stamp| *stamp).collect();
        let stamps = stamps.into_iter().filter(|stamp| seen.insert(stamp.rid));
        let (signatures, hints): (Vec<Signature>, Vec<Hint>) =
            stamps.map(|stamp| stock.signed(&stamp)).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        *self.signature() = SignatureSum::sum_of(&signatures).finish()?;
        if let Some(told) = self.hints() {
            *told = hints;
        }
        self.to_bytes(&stock.definition)
    }
}
