//! What a mirror says to the bytes of a question, of whichever kind.

use std::fmt;

use counterfoil_proof::{Malformed, Points, Question, TotalsQuestion};

use crate::find::find;
use crate::prove::AnswerError;
use crate::prove_bytes::answer_bytes;
use crate::prove_totals::totals;
use crate::shelf::Shelf;

/// Why a question in bytes has no answer.
#[derive(Debug)]
pub enum Unanswered<E> {
    /// It is no question about this table.
    Question(Malformed),
    /// The shelf could not answer it.
    Answer(AnswerError<E>),
}

impl<E: fmt::Display> fmt::Display for Unanswered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question(what) | Self::Answer(AnswerError::Shelved(what)) => what.fmt(f),
            Self::Answer(AnswerError::Shelf(error)) => error.fmt(f),
        }
    }
}

/// The bytes of the answer to a question in bytes: for rows or totals of intervals, or about values.
///
/// # Errors
/// [`Unanswered`].
pub fn reply<S: Shelf>(shelf: &mut S, question: &[u8]) -> Result<Vec<u8>, Unanswered<S::Error>> {
    let definition = shelf.definition().clone();
    let shelved = |what| Unanswered::Answer(AnswerError::Shelved(what));
    if Points::are(question) {
        let points = Points::from_bytes(question, &definition).map_err(Unanswered::Question)?;
        let found = find(shelf, &points).map_err(Unanswered::Answer)?;
        return found.to_bytes(&definition, &points).map_err(shelved);
    }
    if TotalsQuestion::is_one(question) {
        let question = TotalsQuestion::from_bytes(question, &definition).map_err(Unanswered::Question)?;
        let answer = totals(shelf, &question).map_err(Unanswered::Answer)?;
        return answer.to_bytes(&definition, &question).map_err(shelved);
    }
    let question = Question::from_bytes(question, &definition).map_err(Unanswered::Question)?;
    answer_bytes(shelf, &question).map_err(Unanswered::Answer)
}
