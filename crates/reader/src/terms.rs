//! On which terms a reader takes an answer.

use std::borrow::Cow;

use counterfoil_proof::{Chain, Owner, Points, Question, TotalsQuestion, Trust, TrustedManifest};

/// On which terms a reader takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whose table it is to be.
    pub owner: Owner,
    /// Milliseconds since 1970 (UTC) by the reader's clock.
    pub now: u64,
    /// Milliseconds by which the owner's and the reader's clock together may be wrong.
    pub clock_error: u64,
    /// Milliseconds that an answer may be old at most; `u64::MAX`: the verdict says how old it is.
    pub max_age: u64,
    /// Whether proofs come with hints: 96 bytes a signature more, and checked in a tenth of the time. A folder has them anyway.
    pub hints: bool,
}

impl Terms {
    /// A question as it is asked on these terms.
    pub(crate) fn put<'a>(&self, question: &'a Question) -> Cow<'a, Question> {
        if self.hints { Cow::Owned(question.clone().hinted()) } else { Cow::Borrowed(question) }
    }

    /// The same of a question about values.
    pub(crate) fn put_points(&self, points: Points) -> Points {
        if self.hints { points.hinted() } else { points }
    }

    /// The same of a question for totals.
    pub(crate) fn put_totals<'a>(&self, question: &'a TotalsQuestion) -> Cow<'a, TotalsQuestion> {
        if self.hints { Cow::Owned(question.clone().hinted()) } else { Cow::Borrowed(question) }
    }

    pub(crate) fn trust<'a>(&self, manifest: &'a TrustedManifest, chain: &'a Chain) -> Trust<'a> {
        Trust { manifest, chain, now: self.now, clock_error: self.clock_error, max_age: self.max_age }
    }
}
