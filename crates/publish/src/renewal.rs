//! Signatures that became old are made again (Scalable Verification, section 3.1, "Active Signature Renewal").
//!
//! Readers take summaries from the oldest signature on, so that renewing bounds how many. The paper marks what it renews as
//! changed. Here it is not: its version stays, so both signatures say the same of the same contents, and either may be
//! shown. Should the record change in the period of its renewal, the period's summary names the version that counts.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::ledger::Ledger;
use crate::publication::Publication;

/// Milliseconds before a replaced key expires from which on what it signed is signed again, if the plan renews later.
const AHEAD: u64 = 86_400_000;

/// What a step of renewing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Signatures made.
    pub signed: u64,
    /// Whether nothing else is due.
    pub is_done: bool,
}

/// What a step renews, and whether that is all.
struct Due {
    rids: BTreeSet<u64>,
    is_done: bool,
}

impl Due {
    fn take(mut due: impl Iterator<Item = u64>, at_most: usize) -> Self {
        let rids = due.by_ref().take(at_most).collect();
        Self { rids, is_done: due.next().is_none() }
    }
}

impl<L: Ledger> Publication<L> {
    /// Signs again, oldest first, at most `at_most` of what was signed longer ago than the plan's `renew`, and of what a
    /// key signed that was replaced and expires soon. Heads and tails are renewed like records. One commit.
    ///
    /// # Errors
    /// Those of the ledger: then the publication is to be opened anew.
    pub fn renew(&mut self, now: u64, at_most: usize) -> Result<Renewed, Error> {
        let (open, renew) = (self.period.number, self.manifest.renew);
        let soon = now.saturating_add(renew.max(AHEAD));
        let replaced = self.manifest.keys.iter().filter(|key| key.until_period <= open && key.expires <= soon);
        // A key's last period may be the open one: what it signed there is renewed when the next one has begun.
        let leaving = replaced.map(|key| key.until_period).max().unwrap_or(0);
        let is_old = |period| {
            let ended = self.ended.get(&period).copied().unwrap_or(0);
            renew > 0 && ended.saturating_add(renew) <= now
        };
        let due = self.ages.due(|period| period < open && (period < leaving || is_old(period)));
        let due = Due::take(due, at_most);
        self.renew_those(&due)
    }

    /// Signs again, oldest first, at most `at_most` of what was signed before `period`, however old it is. One commit.
    ///
    /// # Errors
    /// Those of the ledger: then the publication is to be opened anew.
    pub fn renew_before(&mut self, period: u64, at_most: usize) -> Result<Renewed, Error> {
        let before = period.min(self.period.number);
        let due = Due::take(self.ages.due(|period| period < before), at_most);
        self.renew_those(&due)
    }

    fn renew_those(&mut self, due: &Due) -> Result<Renewed, Error> {
        self.is_whole()?;
        let mut signed = 0;
        if !due.rids.is_empty() {
            self.begin_change()?;
            let mut changes = Vec::new();
            signed = self.sign(&due.rids, false, &mut changes)? as u64;
            changes.push(self.state());
            self.commit(changes)?;
        }
        Ok(Renewed { signed, is_done: due.is_done })
    }

    /// The first period whose summary readers need: that of the oldest signature, or the last one that ended. What is
    /// shown from [`Publication::shelf`] can be checked with [`Publication::summaries_from`] there.
    #[must_use]
    pub fn oldest_period(&self) -> u64 {
        let last = self.period.number.saturating_sub(1);
        self.ages.oldest().map_or(last, |oldest| oldest.min(last))
    }

    /// The summaries of `period` and all behind it, as mirrors serve them.
    ///
    /// # Errors
    /// Those of the ledger.
    pub fn summaries_from(&mut self, period: u64) -> Result<Vec<Vec<u8>>, Error> {
        let mut summaries = Vec::new();
        for period in period..self.period.number {
            let key = crate::publication::summary_key(period);
            summaries.push(self.ledger.get(&key)?.ok_or(Error::Corrupt("a summary"))?);
        }
        Ok(summaries)
    }
}
