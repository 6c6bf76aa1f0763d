//! What is known of rows that passed all checks.

use std::fmt;

use counterfoil_ask::text;
use counterfoil_proof::{Type, Value, Verified, VerifiedTotals};

use crate::terms::Terms;

/// What is known of rows that passed all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Milliseconds since 1970 (UTC) at the end of the owner's last period: no row is older than that.
    pub as_of: u64,
    /// Milliseconds since then at most, clock errors included.
    pub age: u64,
    /// How many signatures were checked.
    pub signatures: u64,
    /// The owner's last period.
    pub period: u64,
}

impl Verdict {
    pub(crate) fn of(verified: &Verified, period: u64) -> Self {
        Self { as_of: verified.as_of, age: verified.age, signatures: verified.signatures as u64, period }
    }

    /// Of a table of which nobody was asked anything, since nothing can match.
    pub(crate) fn of_nothing(terms: &Terms, period: u64) -> Self {
        Self { as_of: terms.now, age: 0, signatures: 0, period }
    }

    /// Of an answer from two tables: it is as old as the older one, and took the signatures of both.
    pub(crate) fn of_both(first: &Self, second: &Self) -> Self {
        let older = if second.as_of < first.as_of { second } else { first };
        Self { age: first.age.max(second.age), signatures: first.signatures + second.signatures, ..*older }
    }

    pub(crate) fn of_totals(verified: &VerifiedTotals, period: u64) -> Self {
        Self { as_of: verified.as_of, age: verified.age, signatures: verified.signatures as u64, period }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.as_of / 1000).unwrap_or(i64::MAX);
        let micros = Value::Integer(seconds.saturating_mul(1_000_000));
        let moment = text(Type::TimestampTz, &micros).unwrap_or_default();
        let of = if self.signatures == 1 { "1 signature" } else { &format!("{} signatures", self.signatures) };
        write!(f, "authentic and complete as of {moment}, {} old at most ({of})", span(self.age))
    }
}

/// Milliseconds as people say them, rounded up.
fn span(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        7200..172_800 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_told_as_less_than_it_is() {
        for (milliseconds, told) in [
            (0, "0 s"),
            (1, "1 s"),
            (119_001, "2 min"),
            (7_199_000, "120 min"),
            (7_200_001, "3 h"),
            (172_800_001, "3 days"),
        ] {
            assert_eq!(span(milliseconds), told);
        }
        let verdict = Verdict { as_of: 1_700_000_000_999, age: 6000, signatures: 3, period: 2 };
        let told = verdict.to_string();
        assert_eq!(told, "authentic and complete as of 2023-11-14 22:13:20+00, 6 s old at most (3 signatures)");
    }
}
