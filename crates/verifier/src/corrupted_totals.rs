//! The dishonest mirror where totals were asked for: a node says something else, or is left out, or a row beside it is.

use counterfoil_mirror::{Shelf as _, totals};
use counterfoil_proof::{Row, SignatureSum, Span, Tile, TotalsAnswer, TotalsQuestion};

use crate::corruption::{Change, Lie, Without, left_out, other, shown};

/// Totals that are to be changed.
pub(crate) struct ToldTotals<'a> {
    lie: &'a Lie<'a>,
    /// Without hints, as the answer is.
    question: TotalsQuestion,
    answer: TotalsAnswer,
}

/// Something in such an answer: which interval, which span, and which row of it if it is one of rows.
#[derive(Clone, Copy)]
struct Place {
    interval: usize,
    span: usize,
    row: Option<usize>,
}

impl<'a> ToldTotals<'a> {
    /// The honest answer; none where rows were shown.
    pub(crate) fn of(lie: &'a Lie<'a>) -> Option<Self> {
        let question = lie.asked.totals()?.clone();
        let bytes = lie.reading.kept.answer().filter(|bytes| TotalsQuestion::is_one(bytes))?;
        let put = if lie.is_hinted() { question.clone().hinted() } else { question.clone() };
        let answer = TotalsAnswer::from_bytes(bytes, &lie.definition, &put).ok()?;
        let answer = TotalsAnswer { question: question.digest(), hints: None, ..answer };
        Some(Self { lie, question, answer })
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        self.answer.to_bytes(&self.lie.definition, &self.question).ok()
    }

    /// Another total, or another value of a row beside the nodes.
    pub(crate) fn value(mut self, number: u64, column: u64) -> Option<Change> {
        let place = self.place(number)?;
        let what = match place.row {
            Some(_) => self.row_value(place, column)?,
            None => self.total(place, column)?,
        };
        self.told(what)
    }

    /// A node less, or a row.
    pub(crate) fn part(mut self, number: u64) -> Option<Change> {
        let place = self.place(number)?;
        let what = match place.row {
            Some(_) => self.without_row(place)?,
            None => self.without_node(place)?,
        };
        self.told(what)
    }

    fn told(&self, what: String) -> Option<Change> {
        self.lie.told_bytes(self.bytes()?, self.lie.last(), what)
    }

    /// Nodes and rows, counted as they come.
    fn place(&self, number: u64) -> Option<Place> {
        let mut places = Vec::new();
        for (interval, spans) in self.answer.intervals.iter().enumerate() {
            for (span, told) in spans.iter().enumerate() {
                match told {
                    Span::Tile(_) => places.push(Place { interval, span, row: None }),
                    Span::Rows(_, run) => {
                        places.extend((0..run.rows.len()).map(|row| Place { interval, span, row: Some(row) }));
                    }
                }
            }
        }
        let at = number.checked_rem(places.len() as u64)?;
        places.get(usize::try_from(at).ok()?).copied()
    }

    fn tile(&mut self, place: Place) -> Option<&mut Tile> {
        match self.answer.intervals.get_mut(place.interval)?.get_mut(place.span)? {
            Span::Tile(tile) => Some(tile),
            Span::Rows(..) => None,
        }
    }

    fn row(&mut self, place: Place) -> Option<&mut Row> {
        match self.answer.intervals.get_mut(place.interval)?.get_mut(place.span)? {
            Span::Rows(_, run) => run.rows.get_mut(place.row?),
            Span::Tile(_) => None,
        }
    }

    /// A sum where there is one, and otherwise how many rows there are.
    fn total(&mut self, place: Place, column: u64) -> Option<String> {
        let columns = self.lie.definition.node_columns(self.question.order())?.to_vec();
        let kinds = self.lie.definition.node_kinds(self.question.order())?;
        let chosen = column.checked_rem(columns.len() as u64).and_then(|at| usize::try_from(at).ok());
        let chosen = chosen.filter(|at| kinds[*at].is_summed());
        let name = chosen.and_then(|at| self.lie.definition.columns.get(usize::from(columns[at])));
        let name = name.map(|column| column.name.clone());
        let tile = self.tile(place)?;
        let rows = tile.totals.rows;
        let summed = chosen.and_then(|at| tile.totals.columns.get_mut(at)).filter(|totals| totals.count > 0);
        let Some((totals, name)) = summed.zip(name) else {
            tile.totals.rows = rows.checked_add(1)?;
            return Some(format!("a node of {rows} rows was made one of {}", rows + 1));
        };
        totals.sum = totals.sum.checked_add(1.into())?;
        Some(format!("the sum of {name} in a node of {rows} rows was made larger by the least there is"))
    }

    fn row_value(&mut self, place: Place, column: u64) -> Option<String> {
        let columns = self.question.rows().columns().to_vec();
        let at = usize::try_from(column.checked_rem(columns.len() as u64)?).ok()?;
        let column = self.lie.definition.columns.get(usize::from(columns[at]))?.clone();
        let value = self.row(place)?.values.get_mut(at)?;
        let before = std::mem::replace(value, counterfoil_proof::Value::Null);
        *value = other(column.kind, &before);
        let (before, after) = (shown(column.kind, &before), shown(column.kind, value));
        Some(format!("{} of a row at the edge was {before} and became {after}", column.name))
    }

    /// What a mirror would say that never had the row, where the pages are here that it takes; its nodes count it still.
    fn without_row(&mut self, place: Place) -> Option<String> {
        let rid = self.row(place)?.stamp.rid;
        let what = format!("a row at the edge, record {rid}, was left out");
        let made = self.lie.site().and_then(|site| totals(&mut Without { site, rid }, &self.question).ok());
        if let Some(answer) = made {
            self.answer = answer;
            return Some(what + ", and its signature with it");
        }
        match self.answer.intervals.get_mut(place.interval)?.get_mut(place.span)? {
            Span::Rows(_, run) => _ = run.rows.remove(place.row?),
            Span::Tile(_) => return None,
        }
        left_out(&mut self.answer.groups, rid);
        Some(what)
    }

    /// The node goes, and its signature with it where the page is here that has it.
    fn without_node(&mut self, place: Place) -> Option<String> {
        let Tile { stamp, level, totals, .. } = self.tile(place)?.clone();
        let what = format!("a node of {} rows was left out", totals.rows);
        let signature = self.begin_of(place).and_then(|begin| self.signature_of(stamp.rid, level, &begin));
        self.answer.intervals.get_mut(place.interval)?.remove(place.span);
        let Some(signature) = signature else { return Some(what) };
        let mut sum = SignatureSum::sum_of(&[self.answer.signature]);
        sum.subtract(&signature);
        // Nothing is left where it was the only one, and no signature says that.
        let Some(rest) = sum.finish() else { return Some(what + ", and nothing is left") };
        self.answer.signature = rest;
        Some(what + ", and its signature with it")
    }

    /// Where a span begins: where the one before it ends, or the interval begins.
    fn begin_of(&self, place: Place) -> Option<Vec<u8>> {
        let interval = self.question.intervals().get(place.interval)?;
        match place.span.checked_sub(1).map(|before| self.answer.intervals.get(place.interval)?.get(before)) {
            None => Some(interval.start().to_vec()),
            Some(before) => Some(match before? {
                Span::Rows(end, _) => end.clone(),
                Span::Tile(tile) => tile.end.clone(),
            }),
        }
    }

    fn signature_of(&self, rid: u64, level: u8, begin: &[u8]) -> Option<counterfoil_proof::Signature> {
        let node = self.lie.site()?.node(self.question.order(), level, begin).ok()??;
        (node.stamp.rid == rid).then_some(node.signature)
    }
}
