//! `publish terms`: how often a table is looked at, when signatures are renewed, and when they do not count any more.

use counterfoil::publishing::{check_load, now};
use counterfoil_publish::Terms;

use super::delivery::Recipients;
use super::keys::{finish_up, print};
use super::{owned, root, told};
use crate::arguments::Owned;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// What was said; the rest stays as it is.
pub struct Asked {
    /// Minutes.
    pub every: Option<u32>,
    /// Days.
    pub renew: Option<u32>,
    /// Days.
    pub max_age: Option<u32>,
}

/// Signs other terms, and tells whoever was named.
pub fn change(context: &Context, owned: &Owned, asked: Asked) -> Result<()> {
    let Asked { every, renew, max_age } = asked;
    if every.is_none() && renew.is_none() && max_age.is_none() {
        return Err(misuse("which terms?").advise("say --every, --renew or --max-age").into());
    }
    let recipients = Recipients::of_owned(owned)?;
    let roots = root::all(context, &owned.root)?;
    let place = &owned.of.state;
    let owner = owned::with(context, &owned.of, &roots, |publication| {
        let before = publication.terms();
        let or = |asked: Option<u32>, unit: u64, before: u64| asked.map_or(before, |count| u64::from(count) * unit);
        let terms = Terms {
            every: or(every, MINUTE, before.every),
            renew: or(renew, DAY, before.renew),
            max_age: or(max_age, DAY, before.max_age),
        };
        check_load(publication, terms)?;
        publication.set_terms(now()?, terms, &roots).map_err(|error| told(error, place))?;
        terminal::done("these are its terms from now on");
        finish_up(publication, &recipients, place)
    })?;
    print(&owner)
}
