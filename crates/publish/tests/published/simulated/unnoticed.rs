//! The same owner, put back from a copy without a word to anybody.

use counterfoil_proof::{Refusal, Scheme, TrustedManifest};
use counterfoil_publish::{MemoryLedger, Publication};

use super::{Accepted, Faulty, History, Reader, Simulation, note_of};

/// What came of a ledger that was put back and nobody noticed.
#[derive(Debug, Default)]
struct Unnoticed {
    /// Who had seen more was told something of before, and another story.
    stale: u64,
    forged: u64,
    /// Answers to those who had seen nothing: honest ones, and what a mirror put together of both stories.
    honest: u64,
    combined: u64,
    refused: u64,
}

impl Simulation {
    /// One thing that the owner does without changing keys.
    fn act_plainly(&mut self) {
        self.step += 1;
        self.time += 20 + self.dice.below(400);
        let now = self.now();
        match self.dice.below(3) {
            0 => drop(self.owner().close_period(now).expect("a summary")),
            1 => drop(self.owner().renew(now, 6).expect("signatures")),
            _ => {
                let edit = self.edit();
                self.owner().edit(edit).expect("an edit");
            }
        }
        self.note();
        self.send();
    }

    /// The ledger as it is, and what its owner has.
    fn copied(&mut self) -> (MemoryLedger, History) {
        let ledger = self.publication.take().expect("an owner").into_ledger();
        let copy = (ledger.inner.clone(), self.histories.last().expect("a history").clone());
        self.publication = Some(Publication::open(ledger).expect("the same"));
        copy
    }

    /// Goes on with a copy as if nothing had been.
    fn put_back_unnoticed(&mut self, (inner, history): (MemoryLedger, History)) {
        let ledger = Faulty { inner, fault: self.fault.clone() };
        self.publication = Some(Publication::open(ledger).expect("the copy"));
        self.histories.push(history);
        // The manifest is the one of before, and so are its signatures: nothing in it tells the two stories apart.
        let manifest = self.owner().manifest().to_vec();
        let digest = *TrustedManifest::check(&manifest, &self.first_owner, 0).expect("it").digest();
        let story = self.histories.len() - 1;
        self.history_of.insert(digest, story);
        self.note();
    }

    /// Whoever saw the story that was lost takes nothing of this one.
    fn tell_those_who_saw_more(&mut self, told: &mut Unnoticed) {
        for reader in &self.readers {
            let mut again = Reader { owner: reader.owner, skew: reader.skew, seen: reader.seen, known: None };
            match again.follow(&self.honest) {
                Err(Refusal::Stale(_)) => told.stale += 1,
                Err(Refusal::Forged(_)) => told.forged += 1,
                other => panic!("step {}: {other:?} to who saw more", self.step),
            }
        }
    }

    /// Whoever saw nothing is told this story by an honest mirror; by another one rows of both, each of which the owner had in
    /// one of them.
    fn tell_strangers(&mut self, told: &mut Unnoticed) {
        let stranger = || Reader { owner: self.first_owner, skew: 0, seen: None, known: None };
        let (mut honest, mut other) = (stranger(), stranger());
        let asked = self.question();
        match honest.ask(self.honest.clone(), &asked.question, self.time, u64::MAX) {
            Ok(accepted) => {
                let (manifest, chain) = honest.known.as_ref().expect("what was checked");
                self.judge(&asked, manifest, chain, &accepted);
                told.honest += 1;
            }
            // Totals of the open period.
            Err(Refusal::NotProvable(_)) => {}
            Err(refusal) => panic!("step {}: honest, and {refusal}", self.step),
        }
        let (mut base, more) = (self.any_sent(), self.any_sent());
        for rid in more.shelf.rids(0).filter(|_| self.dice.below(3) == 0).collect::<Vec<_>>() {
            base.shelf.put(more.shelf.entry(rid).expect("an entry").clone()).expect("an entry");
        }
        match other.ask(base, &asked.question, self.time, u64::MAX) {
            Ok(Accepted::Rows(verified)) => {
                assert!(verified.rows.iter().all(|row| *row == self.rows[note_of(row)]), "a row that never was");
                told.combined += 1;
            }
            Ok(Accepted::Totals(_)) => told.combined += 1,
            Err(_) => told.refused += 1,
        }
    }
}

/// A ledger is put back from a copy, and nobody tells its owner: who saw more is told so for as long as it goes on, and who did not
/// see more is shown no row that the owner never had. Once the owner has learnt of it and withdrawn the key, all is as it was.
#[test]
fn a_ledger_put_back_unnoticed_is_noticed_by_all_who_saw_more() {
    for (seed, scheme) in [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(3)].into_iter().enumerate() {
        let (mut simulation, mut told) = (Simulation::new(70 + seed as u64, scheme), Unnoticed::default());
        (0..25).for_each(|_| simulation.act_plainly());
        let copy = simulation.copied();
        (0..15).for_each(|_| simulation.act_plainly());
        let now = simulation.now();
        simulation.owner().close_period(now).expect("a summary");
        simulation.note();
        simulation.send();
        simulation.readers_follow();
        simulation.put_back_unnoticed(copy);
        for _ in 0..60 {
            simulation.act_plainly();
            simulation.tell_those_who_saw_more(&mut told);
            simulation.tell_strangers(&mut told);
        }
        println!("{scheme:?}: {told:?}");
        assert!([told.stale, told.forged, told.honest, told.combined, told.refused].iter().all(|count| *count > 0));
        // It is noticed. The key has told two stories, of periods that have ended: it is withdrawn as if somebody else had it.
        let (now, new) = (simulation.now(), simulation.new_key());
        let told_two = simulation.owner().status().keys[0].0.key;
        simulation.owner().revoke(now, &told_two, new, &[]).expect("a new key");
        simulation.note();
        simulation.send();
        simulation.readers_follow();
        for _ in 0..20 {
            simulation.act_plainly();
            simulation.readers_follow();
            (0..4).for_each(|_| simulation.ask_honestly());
            simulation.ask_for_old_rows();
        }
    }
}
