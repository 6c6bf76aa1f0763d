//! The answer to a question as bytes, made of the bytes of entries.
//!
//! A row of an answer that shows all columns is how its entry begins: stamp, values, seed of the salts, links; only the link
//! of the answer's own order is left out, and signature and hint behind it. So nothing is decoded on the way, and the
//! signatures of the rows are added where the shelf knows how. Questions of several intervals (which may share a boundary),
//! of some columns, or from behind are answered by [`answer`], and so is all of tables with other schemes than PER RECORD.

use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Definition, Direction, Malformed, Position, Question, Run, Scheme, Signature, SignatureSum};

use crate::entry::Entry;
use crate::prove::{AnswerError, Gathered, Part, answer, nearest};
use crate::shelf::Shelf;

const DIGEST: usize = 32;
const SIGNATURE: usize = 96;
const HINT: usize = 96;

/// Answers `question` from what is on `shelf`: the same bytes as [`answer`] and [`counterfoil_proof::Answer::to_bytes`].
///
/// # Errors
/// [`AnswerError`].
pub fn answer_bytes<S: Shelf>(shelf: &mut S, question: &Question) -> Result<Vec<u8>, AnswerError<S::Error>> {
    let [interval] = question.intervals() else { return by_entries(shelf, question) };
    let definition = shelf.definition();
    let is_plain = definition.scheme == Scheme::PerRecord
        && question.direction() == Direction::Ascending
        && question.columns().len() == definition.columns.len();
    let from = interval.start();
    let has_sums = shelf.sum(question.order(), from, from).map_err(AnswerError::Shelf)?.is_some();
    let mut rows = Rows::new(shelf.definition().orders.len(), question, has_sums);
    let mut behind = Vec::new();
    let mut problem = None;
    let mut visit = |position: &[u8], entry: &[u8]| {
        let is_row = behind.is_empty() && position < interval.end() && !rows.is_full();
        if is_row {
            problem = rows.take(position, entry).err();
        } else {
            behind.push((position.to_vec(), entry.to_vec()));
        }
        problem.is_none() && behind.len() < 2
    };
    if !is_plain || !shelf.upward_bytes(question.order(), from, &mut visit).map_err(AnswerError::Shelf)? {
        return by_entries(shelf, question);
    }
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    let read = |(position, entry): (Vec<u8>, Vec<u8>)| {
        Ok::<_, Malformed>((Position::from_bytes(&position)?, Entry::from_bytes(&entry, shelf.definition())?))
    };
    let right = behind.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let sum = shelf.sum(question.order(), from, rows.end()).map_err(AnswerError::Shelf)?;
    let left = nearest(|visit| shelf.downward(question.order(), from, visit))?;
    let mut ends = Gathered::default();
    let run = ends.run(shelf.definition(), question, Part { interval, left, rows: Vec::new(), right, sum: None })?;
    Ok(rows.finish(shelf.definition(), question, &run, &ends, sum)?)
}

fn by_entries<S: Shelf>(shelf: &mut S, question: &Question) -> Result<Vec<u8>, AnswerError<S::Error>> {
    let answer = answer(shelf, question)?;
    Ok(answer.to_bytes(shelf.definition(), question)?)
}

/// Rows as they will be sent.
struct Rows {
    order: usize,
    links: usize,
    limit: u64,
    is_hinted: bool,
    count: u64,
    bytes: Vec<u8>,
    hints: Vec<u8>,
    /// Where the shelf keeps no sums.
    signatures: Option<Vec<Signature>>,
    /// Just behind the last row: at first, before all.
    end: Vec<u8>,
}

impl Rows {
    fn new(links: usize, question: &Question, has_sums: bool) -> Self {
        Self {
            order: usize::from(question.order()),
            links,
            limit: question.limit().unwrap_or(u64::MAX),
            is_hinted: question.is_hinted(),
            count: 0,
            bytes: Vec::new(),
            hints: Vec::new(),
            signatures: (!has_sums).then(Vec::new),
            end: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.count == self.limit
    }

    fn take(&mut self, position: &[u8], entry: &[u8]) -> Result<(), Malformed> {
        let short = Malformed("an entry that is too short");
        let (rest, hint) = entry.split_at_checked(entry.len().wrapping_sub(HINT)).ok_or(short)?;
        let (rest, signature) = rest.split_at_checked(rest.len().wrapping_sub(SIGNATURE)).ok_or(short)?;
        let (row, links) = rest.split_at_checked(rest.len().wrapping_sub(self.links * DIGEST)).ok_or(short)?;
        self.bytes.extend_from_slice(row);
        self.bytes.extend_from_slice(&links[..self.order * DIGEST]);
        self.bytes.extend_from_slice(&links[(self.order + 1) * DIGEST..]);
        if self.is_hinted {
            self.hints.extend_from_slice(hint);
        }
        if let Some(signatures) = &mut self.signatures {
            let wrong = |_| Malformed("the signature of a record");
            signatures.push(Signature::from_bytes(signature).map_err(wrong)?);
        }
        self.end.clear();
        self.end.extend_from_slice(position);
        self.end.push(0);
        self.count += 1;
        Ok(())
    }

    fn end(&self) -> &[u8] {
        &self.end
    }

    /// The answer around them; `ends` has what was signed of its ends, in their order.
    fn finish(
        self,
        definition: &Definition,
        question: &Question,
        run: &Run,
        ends: &Gathered,
        sum: Option<SignatureSum>,
    ) -> Result<Vec<u8>, Malformed> {
        let mut total = ends.total();
        total.add_sum(&sum.unwrap_or_default());
        total.add_sum(&SignatureSum::sum_of(&self.signatures.unwrap_or_default()));
        let signature = total.finish().ok_or(Malformed("signatures that sum to nothing"))?;
        let mut writer = Writer(Vec::with_capacity(self.bytes.len() + self.hints.len() + 4096));
        writer.byte(1).raw(&question.digest()).number(1);
        run.left.write(&mut writer, definition);
        writer.number(self.count).raw(&self.bytes);
        run.right.write(&mut writer, definition);
        writer.raw(&signature.to_bytes()).byte(u8::from(self.is_hinted));
        if self.is_hinted {
            let (left, right) = ends.hints.split_at(1.min(ends.hints.len()));
            writer.number(self.count + ends.hints.len() as u64);
            left.iter().for_each(|hint| _ = writer.raw(&hint.0));
            writer.raw(&self.hints);
            right.iter().for_each(|hint| _ = writer.raw(&hint.0));
        }
        Ok(writer.0)
    }
}
