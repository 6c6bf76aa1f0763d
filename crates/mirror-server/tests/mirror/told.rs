//! An answer of whichever kind, taken apart, changed, and put together again as far as who has no key can do that.

use std::collections::BTreeSet;

use counterfoil_mirror::{MemoryShelf, reply};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Answer, Definition, Digest, End, Found, Hint, Item, Member, Members, Points, Question, Row, Run, Scheme, Signature,
    SignatureSum, Span, Tile, TotalsAnswer, TotalsQuestion,
};

use crate::part::Part;
use crate::stock::Stock;

/// A question and what was told.
#[derive(Clone)]
pub enum Told {
    Rows(Question, Answer),
    Values(Points, Found),
    Totals(TotalsQuestion, TotalsAnswer),
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

    /// The columns of its rows.
    pub fn columns(&self) -> &[u16] {
        match self {
            Self::Rows(question, _) => question.columns(),
            Self::Values(points, _) => points.columns(),
            Self::Totals(question, _) => question.rows().columns(),
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

    pub fn groups(&mut self) -> &mut Vec<Members> {
        match self {
            Self::Rows(_, answer) => &mut answer.groups,
            Self::Values(_, found) => &mut found.groups,
            Self::Totals(_, answer) => &mut answer.groups,
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
        self.parts()
            .into_iter()
            .filter_map(|part| if let Part::Tile(tile) = part { Some(tile) } else { None })
            .collect()
    }

    pub fn rows(&mut self) -> Vec<&mut Row> {
        self.parts().into_iter().filter_map(|part| if let Part::Row(row) = part { Some(row) } else { None }).collect()
    }

    /// All that is in it, in the order in which hints come.
    pub fn parts(&mut self) -> Vec<Part<'_>> {
        fn of_run(run: &mut Run) -> impl Iterator<Item = Part<'_>> {
            fn of_end(end: &mut End) -> Option<Part<'_>> {
                if let End::Boundary(boundary) = end { Some(Part::Boundary(boundary)) } else { None }
            }
            let rows = run.rows.iter_mut().map(Part::Row);
            of_end(&mut run.left).into_iter().chain(rows).chain(of_end(&mut run.right))
        }
        let (mut parts, groups) = match self {
            Self::Rows(_, answer) => (answer.runs.iter_mut().flat_map(of_run).collect(), &mut answer.groups),
            Self::Values(_, found) => {
                let items = found.stretches.iter_mut().flat_map(|stretch| &mut stretch.items);
                let items = items.map(|item| match item {
                    Item::Mark(mark) => Part::Mark(mark),
                    Item::Row(row) => Part::Row(row),
                });
                (found.filters.iter_mut().map(Part::Filter).chain(items).collect(), &mut found.groups)
            }
            Self::Totals(_, answer) => {
                let mut parts = Vec::new();
                for span in answer.intervals.iter_mut().flatten() {
                    match span {
                        Span::Rows(_, run) => parts.extend(of_run(run)),
                        Span::Tile(tile) => parts.push(Part::Tile(tile)),
                    }
                }
                (parts, &mut answer.groups)
            }
        };
        parts.extend(groups.iter_mut().map(Part::Group));
        parts
    }

    /// When each thing was signed that has a signature, in the order in which hints come.
    pub fn stamps(&mut self, stock: &Stock) -> Vec<&mut Stamp> {
        let parts = self.parts().into_iter().filter(|part| !(stock.is_grouped() && part.is_record()));
        parts.map(Part::into_stamp).collect()
    }

    /// With the groups of its records, the sum of the signatures of what is in it, and their hints: all that it takes is public.
    pub fn signed(mut self, stock: &Stock) -> Option<Vec<u8>> {
        if stock.is_grouped() {
            let records: BTreeSet<u64> =
                self.parts().into_iter().filter(Part::is_record).map(|part| part.number()).collect();
            let shown = |(rid, digest): &(u64, Digest)| {
                if records.contains(rid) { Member::Shown(*rid) } else { Member::Hidden(*digest) }
            };
            let groups =
                stock.now.groups.from(&[]).filter(|group| group.members.iter().any(|it| records.contains(&it.0)));
            let listed =
                groups.map(|group| Members { stamp: group.stamp, list: group.members.iter().map(shown).collect() });
            *self.groups() = listed.collect();
            self.groups().sort_by_key(|group| group.stamp.rid);
        }
        self.summed(stock)
    }

    /// The same with the groups that are in it.
    pub fn summed(&mut self, stock: &Stock) -> Option<Vec<u8>> {
        let columns: Vec<usize> = self.columns().iter().map(|column| usize::from(*column)).collect();
        let (mut seen, mut signed) = (BTreeSet::new(), Vec::new());
        for part in self.parts() {
            let parts = match (stock.definition.scheme, &part) {
                (Scheme::Group(_), part) if part.is_record() => Vec::new(),
                (Scheme::PerAttribute, Part::Row(_)) => {
                    [0].into_iter().chain(columns.iter().map(|at| at + 1)).collect()
                }
                _ => vec![0],
            };
            let stamp = part.into_stamp();
            for part in parts.into_iter().filter(|part| seen.insert((stamp.rid, *part))) {
                signed.push(stock.signed(stamp, part)?);
            }
        }
        let (signatures, hints): (Vec<Signature>, Vec<Hint>) = signed.into_iter().unzip();
        *self.signature() = SignatureSum::sum_of(&signatures).finish()?;
        if let Some(told) = self.hints() {
            *told = hints;
        }
        self.to_bytes(&stock.definition)
    }
}
