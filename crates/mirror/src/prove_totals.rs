//! The answer to a question for totals: the largest nodes that fit, and rows where none does.

use counterfoil_proof::{Interval, Malformed, Span, Tile, TotalsAnswer, TotalsQuestion};

use crate::node_entry::NodeEntry;
use crate::prove::{AnswerError, Closing, Gathered};
use crate::shelf::Shelf;

/// Answers `question` from what is on `shelf`.
///
/// # Errors
/// [`AnswerError`].
pub fn totals<S: Shelf>(shelf: &mut S, question: &TotalsQuestion) -> Result<TotalsAnswer, AnswerError<S::Error>> {
    let mut gathered = Gathered::default();
    let mut intervals = Vec::with_capacity(question.intervals().len());
    for interval in question.intervals() {
        intervals.push(tile(shelf, question, interval, &mut gathered)?);
    }
    let Closing { groups, signature, hints } = gathered.close(shelf, question.rows().is_hinted())?;
    Ok(TotalsAnswer { question: question.digest(), intervals, groups, signature, hints })
}

fn tile<S: Shelf>(
    shelf: &mut S,
    question: &TotalsQuestion,
    interval: &Interval,
    gathered: &mut Gathered,
) -> Result<Vec<Span>, AnswerError<S::Error>> {
    let mut spans = Vec::new();
    let mut at = interval.start().to_vec();
    while at[..] < *interval.end() {
        let next = next(shelf, question, interval, &at)?;
        let until = next.as_ref().map_or(interval.end(), |next| next.node.part.start()).to_vec();
        if at < until {
            let part = Interval::from_bytes(&at, &until)?;
            let run = gathered.rows_of(shelf, question.rows(), &part)?;
            spans.push(Span::Rows(until.clone(), Box::new(run)));
        }
        at = until;
        if let Some(NodeEntry { stamp, node, signature, hint }) = next {
            gathered.sign(stamp.rid, signature, hint);
            at = node.part.end().to_vec();
            spans.push(Span::Tile(Tile { stamp, level: node.level, end: at.clone(), totals: node.totals }));
        }
    }
    Ok(spans)
}

/// The first node at `at` or behind it that fits into the interval, and into one group: the largest one that begins there.
fn next<S: Shelf>(
    shelf: &mut S,
    question: &TotalsQuestion,
    interval: &Interval,
    at: &[u8],
) -> Result<Option<NodeEntry>, AnswerError<S::Error>> {
    let mut from = at.to_vec();
    loop {
        let Some(found) = node(shelf, question, 1, &from)? else { return Ok(None) };
        if found.node.part.end() > interval.end() {
            return Ok(None);
        }
        if question.is_one_group(shelf.definition(), &found.node.part) {
            return climb(shelf, question, interval, found).map(Some);
        }
        from = found.node.part.end().to_vec();
    }
}

/// Levels are nested: what does not fit on one does not fit on the next.
fn climb<S: Shelf>(
    shelf: &mut S,
    question: &TotalsQuestion,
    interval: &Interval,
    mut best: NodeEntry,
) -> Result<NodeEntry, AnswerError<S::Error>> {
    while let Some(level) = best.node.level.checked_add(1) {
        let low = best.node.part.start();
        match node(shelf, question, level, low)? {
            Some(above)
                if above.node.part.start() == low
                    && above.node.part.end() <= interval.end()
                    && question.is_one_group(shelf.definition(), &above.node.part) =>
            {
                best = above;
            }
            _ => break,
        }
    }
    Ok(best)
}

/// What a shelf says is first; pages of strangers may say anything, and must lead on.
fn node<S: Shelf>(
    shelf: &mut S,
    question: &TotalsQuestion,
    level: u8,
    from: &[u8],
) -> Result<Option<NodeEntry>, AnswerError<S::Error>> {
    let found = shelf.node(question.order(), level, from).map_err(AnswerError::Shelf)?;
    match &found {
        Some(NodeEntry { node, .. })
            if node.order != question.order() || node.level != level || node.part.start() < from =>
        {
            Err(Malformed("a node that is not where it belongs").into())
        }
        _ => Ok(found),
    }
}
