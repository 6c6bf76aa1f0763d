//! That two clouds are two: one that is reached in two ways would have what each of them is not to know, and fail as both.
//!
//! ```text
//! CREATE CLOUD   the new one gets an entry that nobody foresees; who else shows it is the same      refused
//! each claim     every cloud gets one of its own (claiming.rs); who shows another's is that one     both are told nothing
//! ```
//! An address says little of it: a server has many names, a folder may be mounted twice, and a link set anew tomorrow.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil_disperse::{Catalogue, Claim, Failure, Patient, Secret};

use super::Dispersed;
use super::clouds::{self, Cloud};
use super::define::random;
use super::push::each;
use crate::error::{Error, Result};

/// So long a cloud is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Refuses a cloud that is another one by another name, as far as addresses say it.
pub(super) fn by_address(all: &[Cloud], new: &Cloud) -> Result<()> {
    match all.iter().find(|cloud| who(&cloud.url) == who(&new.url)) {
        Some(Cloud { name, url, .. }) => {
            let pin = if *url == new.url { "" } else { ", of the same pin," };
            Err(Error::Misuse(format!("cloud {name} is at {url}{pin} already: {AS_A_WHOLE}")))
        }
        None => Ok(()),
    }
}

const AS_A_WHOLE: &str = "a cloud that fails, or looks, does so as a whole";

/// Who is at an address: of a provider whoever has the key to which it is pinned, by whatever name it is reached.
fn who(url: &str) -> &str {
    let provider = url.strip_prefix("provider://").and_then(|rest| rest.rsplit_once("?pin="));
    provider.map_or(url, |(_, pin)| pin)
}

/// Refuses a cloud that is another one by another name, if both answer. A cut leaves an entry in a table of its own, which says nothing.
pub(super) fn by_what_they_show(dispersed: &Dispersed, all: &[Cloud], new: &Cloud) -> Result<()> {
    let own = Arc::new(Catalogue::new(Secret::new(random()?)));
    let entry = own.code_claim(random()?, Claim { client: random()?, version: 0, still: 0 }, random()?);
    let (name, place, errands) = (own.name(), entry.places[0], dispersed.errands(&new.url));
    let reached = clouds::reach_or_closed(dispersed, new, own.files_key())?;
    let reach = |cloud: &Cloud| clouds::reach_or_closed(dispersed, cloud, own.files_key());
    let others = all.iter().map(reach).collect::<Result<Vec<_>>>()?;
    let (given, called) = (reached.clone(), name.clone());
    if errands.run(None, PATIENCE, move || given.put(&called, &entry)).is_err() {
        // Whoever greets it tells why; and each claim compares it with others.
        return Ok(());
    }
    let shows: Vec<_> = all.iter().map(|_| Arc::new(AtomicBool::new(false))).collect();
    drop(each(all.len(), |cloud| {
        let (own, other, shows) = (own.clone(), others[cloud].clone(), shows[cloud].clone());
        dispersed.errands(&all[cloud].url).aside(PATIENCE, move || {
            shows.store(own.places(&*other, &Patient)?.contains(&place), Ordering::Relaxed);
            Ok(())
        })
    }));
    drop(errands.run(None, PATIENCE, move || reached.drop_table(&name)));
    match all.iter().zip(&shows).find(|(_, shows)| shows.load(Ordering::Relaxed)) {
        Some((Cloud { name, .. }, _)) => Err(Error::Misuse(format!(
            "what cloud {} is given cloud {name} shows: they are one place, and {AS_A_WHOLE}",
            new.name
        ))),
        None => Ok(()),
    }
}

/// What a cloud shows of what was given to it and to others; nothing of one that did not answer, or shows what is known of it.
pub(super) struct Given<'a> {
    /// The place of its entry of a moment ago.
    pub now: u64,
    /// Those of what it was told before.
    pub before: BTreeSet<u64>,
    pub shown: Option<&'a BTreeSet<u64>>,
}

impl Given<'_> {
    fn shows(&self, other: &Self) -> bool {
        self.shown.is_some_and(|shown| shown.contains(&other.now))
    }

    /// Whether what lies at its address is what another one was told, and not what it was. Others may have told it more since, in the place
    /// of some of that.
    fn is_at_the_place_of(&self, other: &Self) -> bool {
        let has = |told: &BTreeSet<u64>| self.shown.is_some_and(|shown| !told.is_disjoint(shown));
        has(&other.before) && !self.before.is_empty() && !has(&self.before)
    }
}

/// For each address the cloud that answers there: its own, unless it shows what another one was told and nothing of what its own was.
pub(super) fn who_answers(given: &[Given<'_>]) -> Vec<usize> {
    let others = |at: usize| (0..given.len()).filter(move |other| *other != at);
    let who = |at: usize| others(at).find(|other| given[at].is_at_the_place_of(&given[*other])).unwrap_or(at);
    (0..given.len()).map(who).collect()
}

/// What is to be said where more clouds than may fail stand at others' addresses: conditions would be true of no row there.
pub(super) fn displaced(table: &str, names: &[&str], who: &[usize], may_fail: usize) -> Option<Error> {
    let displaced = who.iter().enumerate().filter(|(at, who)| at != *who);
    let told: Vec<String> = displaced
        .map(|(at, who)| {
            format!("what lies at the address of cloud {} is what cloud {} was given", names[at], names[*who])
        })
        .collect();
    (told.len() > may_fail).then(|| {
        Error::Network(format!(
            "table {table}: {}: were addresses exchanged? ALTER CLOUD ... OPTIONS (url '...') says where a cloud is by now",
            told.join(", ")
        ))
    })
}

/// What speaks against telling each cloud something: it is another one. One that shows what another was told stands in its place, and is at fault
/// alone; of two that show each other's, and what they were told, nobody knows which is at its own address.
pub(super) fn at_fault(given: &[Given<'_>], names: &[&str]) -> Vec<Option<Failure>> {
    let others = |at: usize| (0..given.len()).filter(move |other| *other != at);
    let out_of_place: Vec<Option<usize>> =
        who_answers(given).into_iter().enumerate().map(|(at, who)| (at != who).then_some(who)).collect();
    let is_one = |at: usize, other: usize| given[at].shows(&given[other]) || given[other].shows(&given[at]);
    let fault = |at: usize| {
        match out_of_place[at] {
        Some(other) => Some(Failure::Unreachable(format!(
            "what lies at its address is what cloud {} was given: were addresses exchanged?",
            names[other]
        ))),
        None => others(at).find(|other| out_of_place[*other].is_none() && is_one(at, *other)).map(|other| {
            Failure::Unreachable(format!(
                "it shows what cloud {} was given a moment ago: they are one place, which would have what each is not to know",
                names[other]
            ))
        }),
    }
    };
    (0..given.len()).map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_in_whose_place_is_at_fault() {
        type Shown<'a> = (u64, &'a [u64], Option<&'a [u64]>);
        let fault = |all: &[Shown<'_>]| -> String {
            let shown: Vec<_> =
                all.iter().map(|(.., shown)| shown.map(|it| BTreeSet::from_iter(it.iter().copied()))).collect();
            let given = all.iter().zip(&shown).map(|((now, before, _), shown)| Given {
                now: *now,
                before: before.iter().copied().collect(),
                shown: shown.as_ref(),
            });
            let at_fault = at_fault(&given.collect::<Vec<_>>(), &["a", "b", "c"]);
            at_fault
                .iter()
                .map(|fault| match fault {
                    None => '-',
                    Some(fault) if fault.to_string().contains("exchanged") => 'x',
                    Some(_) => '1',
                })
                .collect()
        };
        assert_eq!(fault(&[(1, &[10], Some(&[1, 10])), (2, &[20], Some(&[2, 20])), (3, &[30], None)]), "---");
        // New ones at one place: the one whose look came first has not seen the other's yet.
        assert_eq!(fault(&[(1, &[], Some(&[1])), (2, &[], Some(&[1, 2])), (3, &[], Some(&[3]))]), "11-");
        // The address of the second leads to the first.
        assert_eq!(fault(&[(1, &[10], Some(&[1, 2, 10])), (2, &[20], Some(&[1, 2, 10])), (3, &[30], None)]), "-x-");
        // Exchanged; and two of which both had been told at one place.
        assert_eq!(fault(&[(1, &[10], Some(&[1, 20])), (2, &[20], Some(&[2, 10])), (3, &[30], None)]), "xx-");
        assert_eq!(fault(&[(1, &[10], Some(&[1, 2, 10, 20])), (2, &[20], None), (3, &[30], None)]), "11-");
        // Exchanged, and others have told both something since in the place of some of it.
        assert_eq!(
            fault(&[(1, &[10, 11], Some(&[1, 21, 29])), (2, &[20, 21], Some(&[2, 10, 19])), (3, &[30], None)]),
            "xx-"
        );
        // What others have told since is nobody's here; and one that was emptied stands in nobody's place.
        assert_eq!(fault(&[(1, &[10], Some(&[1, 11])), (2, &[20], Some(&[2])), (3, &[30], Some(&[3, 31]))]), "---");
    }
}
