//! What is known of the verified rows that the statements of a session have seen.

use parking_lot::Mutex;

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

/// Rows of a published table that a statement has seen, and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The table.
    pub table: String,
    /// What is known of all of its rows together.
    pub verdict: Verdict,
}

#[derive(Default)]
struct Said {
    verdicts: Vec<Verified>,
    notes: Vec<String>,
    /// Those that were told to people, as they were then.
    told: Vec<Verified>,
}

/// What the statements of the last run had to say of published tables. Scans add to it as they are answered.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<Said>);

impl Verdicts {
    pub(crate) fn clear(&self) {
        *self.0.lock() = Said::default();
    }

    /// A table was asked: once more, perhaps, as of the same period.
    pub(crate) fn add(&self, table: &str, verdict: Verdict) {
        let mut said = self.0.lock();
        match said.verdicts.iter_mut().find(|verified| verified.table == table) {
            Some(Verified { verdict: before, .. }) => {
                before.signatures += verdict.signatures;
                before.age = before.age.max(verdict.age);
                if verdict.as_of < before.as_of {
                    (before.as_of, before.period) = (verdict.as_of, verdict.period);
                }
            }
            None => said.verdicts.push(Verified { table: table.to_owned(), verdict }),
        }
    }

    /// Said once, however often it is found: what is read in turns meets the same cloud in each.
    pub(crate) fn note(&self, note: String) {
        let mut said = self.0.lock();
        if !said.notes.contains(&note) {
            said.notes.push(note);
        }
    }

    pub(crate) fn all(&self) -> Vec<Verified> {
        self.0.lock().verdicts.clone()
    }

    /// What was not told yet: verdicts and notes.
    pub(crate) fn untold(&self) -> (Vec<Verified>, Vec<String>) {
        let mut said = self.0.lock();
        let untold: Vec<Verified> =
            said.verdicts.iter().filter(|verified| !said.told.contains(verified)).cloned().collect();
        said.told = said.verdicts.clone();
        (untold, std::mem::take(&mut said.notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_asked_twice_is_told_of_once() {
        let verdicts = Verdicts::default();
        let verdict = |as_of, age, signatures| Verdict { as_of, age, signatures, period: as_of };
        verdicts.add("a", verdict(7, 3, 2));
        verdicts.add("b", verdict(1, 9, 1));
        verdicts.add("a", verdict(6, 4, 5));
        let of = |table: &str, verdict| Verified { table: table.into(), verdict };
        let both = vec![of("a", verdict(6, 4, 7)), of("b", verdict(1, 9, 1))];
        verdicts.note("n".into());
        assert_eq!(verdicts.untold(), (both.clone(), vec!["n".into()]));
        assert_eq!(verdicts.untold(), (Vec::new(), Vec::new()));
        assert_eq!(verdicts.all(), both);
        verdicts.clear();
        assert_eq!(verdicts.all(), []);
    }
}
