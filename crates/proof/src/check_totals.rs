//! From nodes and rows to totals that are the owner's, of all rows that were asked for, as of the end of the last period.
//!
//! Nodes are signed when a period ends. Beside one of then, a row of the open period could be one that was counted elsewhere
//! before, so nothing of the open period takes part: what is taken is exactly what the owner had when the last period ended.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::answer::{End, Row, Run};
use crate::bytes::Reader;
use crate::check::{SignedThings, Trust, grounds};
use crate::definition::Definition;
use crate::node::{NO_NODES, Node};
use crate::position::Interval;
use crate::refusal::Refusal;
use crate::totals::Totals;
use crate::totals_answer::{Span, Tile, TotalsAnswer};
use crate::totals_question::TotalsQuestion;
use crate::value::{Type, Value};

/// The totals of a group of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalsOf {
    /// The values of the columns that make the group.
    pub group: Vec<Value>,
    /// The totals of its rows.
    pub totals: Totals,
}

/// Totals that the owner signed: of all rows that were asked for, at one time.
#[derive(Clone, Debug)]
pub struct VerifiedTotals {
    /// For each group that has rows, in the order's order; one of all rows, even of none, if there are no groups.
    pub groups: Vec<TotalsOf>,
    /// Milliseconds since 1970 (UTC) at the end of the owner's last period: that is when the rows were such.
    pub as_of: u64,
    /// Milliseconds since then at most, clock errors included.
    pub age: u64,
    /// How many signatures the answer's one stands for.
    pub signatures: usize,
    /// How many nodes are among them.
    pub nodes: usize,
}

/// Checks an answer of totals.
///
/// # Errors
/// [`Refusal`]: why it is not to be trusted; [`Refusal::NotProvable`]: something was signed in the period that has not ended
/// yet, so that a mirror that keeps no older state can only show rows.
pub fn check_totals(trust: &Trust<'_>, question: &TotalsQuestion, answer: &[u8]) -> Result<VerifiedTotals, Refusal> {
    let definition = &trust.manifest.manifest().definition;
    let (as_of, age) = grounds(trust, question.definition())?;
    let answer = TotalsAnswer::from_bytes(answer, definition, question)?;
    if answer.question != question.digest() {
        return Err(Refusal::OtherQuestion);
    }
    let mut gathered = Gathered::new(definition, question)?;
    for (spans, interval) in answer.intervals.iter().zip(question.intervals()) {
        gathered.take_interval(spans, interval)?;
    }
    gathered.signed.take_groups(question.definition(), &answer.groups)?;
    let Gathered { signed, nodes, .. } = &gathered;
    if signed.stamps().any(|stamp| stamp.period > trust.chain.last()) {
        return Err(Refusal::NotProvable("a row at the edge was signed in the period that has not ended yet"));
    }
    signed.are_fresh(trust)?;
    signed.verify(trust, &answer.signature, answer.hints.as_deref())?;
    let (signatures, nodes) = (signed.count(), *nodes);
    Ok(VerifiedTotals { groups: gathered.groups()?, as_of, age, signatures, nodes })
}

/// What an answer says, as long as it is not known to be signed.
struct Gathered<'a> {
    definition: &'a Definition,
    question: &'a TotalsQuestion,
    kinds: Vec<Type>,
    signed: SignedThings,
    nodes: usize,
    /// By the encodings of the group's columns.
    totals: BTreeMap<Vec<u8>, Totals>,
}

impl<'a> Gathered<'a> {
    fn new(definition: &'a Definition, question: &'a TotalsQuestion) -> Result<Self, Refusal> {
        let kinds = definition.node_kinds(question.order()).ok_or(NO_NODES)?;
        let signed = SignedThings::default();
        Ok(Self { definition, question, kinds, signed, nodes: 0, totals: BTreeMap::new() })
    }

    /// Takes what tiles an interval: each span begins where the one before ended, and the last one ends where it does.
    fn take_interval(&mut self, spans: &[Span], interval: &Interval) -> Result<(), Refusal> {
        let mut at = interval.start();
        let mut rows_before = false;
        for span in spans {
            let end = match span {
                Span::Rows(end, _) => end,
                Span::Tile(tile) => &tile.end,
            };
            let part = Interval::from_bytes(at, end)?;
            if part.end() > interval.end() {
                return Err(Refusal::Malformed("totals of more than was asked for"));
            }
            match span {
                Span::Rows(_, run) if !rows_before => self.take_rows(run, &part)?,
                Span::Rows(..) => return Err(Refusal::Malformed("rows in two parts where one would do")),
                Span::Tile(tile) => self.take_tile(tile, part)?,
            }
            rows_before = matches!(span, Span::Rows(..));
            at = end;
        }
        if at == interval.end() {
            Ok(())
        } else {
            Err(Refusal::Incomplete("the totals end before the interval that was asked for does"))
        }
    }

    fn take_tile(&mut self, tile: &Tile, part: Interval) -> Result<(), Refusal> {
        let group = match self.question.grouped() {
            0 => &[][..],
            _ => (self.question.group_of(self.definition, &part))
                .ok_or(Refusal::Malformed("totals of several groups together"))?,
        };
        let totals = self.totals.entry(group.to_vec()).or_insert_with(|| Totals::none(&self.kinds));
        totals.add(&self.kinds, &tile.totals)?;
        let node = Node { order: self.question.order(), level: tile.level, part, totals: tile.totals.clone() };
        let message = node.message_of(&self.kinds, self.question.definition(), &tile.stamp)?;
        self.nodes += 1;
        self.signed.take(tile.stamp, message)
    }

    fn take_rows(&mut self, run: &Run, part: &Interval) -> Result<(), Refusal> {
        if [&run.left, &run.right].iter().any(|end| matches!(end, End::Cut(_))) {
            return Err(Refusal::Incomplete("the rows of a part end in its middle"));
        }
        self.signed.take_run(self.definition, self.question.rows(), run, part)?;
        run.rows.iter().try_for_each(|row| self.take_row(row))
    }

    fn take_row(&mut self, row: &Row) -> Result<(), Refusal> {
        let missing = Refusal::Malformed("a row without the values that were asked for");
        let value = |column: &u16| {
            let at = self.question.rows().columns().binary_search(column).ok();
            at.and_then(|at| row.values.get(at)).ok_or(missing)
        };
        let mut group = Vec::new();
        for column in &self.definition.orders[usize::from(self.question.order())][..self.question.grouped()] {
            let kind = self.definition.columns[usize::from(*column)].kind;
            kind.encode(value(column)?, &mut group).map_err(|_| missing)?;
        }
        let columns = self.definition.node_columns(self.question.order()).ok_or(NO_NODES)?;
        let values = columns.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let totals = self.totals.entry(group).or_insert_with(|| Totals::none(&self.kinds));
        Ok(totals.add_row(&self.kinds, values)?)
    }

    fn groups(mut self) -> Result<Vec<TotalsOf>, Refusal> {
        if self.question.grouped() == 0 {
            let totals = self.totals.remove(&[][..]).unwrap_or_else(|| Totals::none(&self.kinds));
            return Ok(alloc::vec![TotalsOf { group: Vec::new(), totals }]);
        }
        let columns = &self.definition.orders[usize::from(self.question.order())][..self.question.grouped()];
        let mut groups = Vec::new();
        for (encoded, totals) in self.totals.into_iter().filter(|(_, totals)| totals.rows > 0) {
            let mut reader = Reader::new(&encoded, "the values of a group");
            let kinds = columns.iter().map(|column| self.definition.columns[usize::from(*column)].kind);
            let group = kinds.map(|kind| kind.decode(&mut reader)).collect::<Result<_, _>>()?;
            groups.push(TotalsOf { group, totals });
        }
        Ok(groups)
    }
}
