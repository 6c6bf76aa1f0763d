//! Bringing a mirror up to date: it says what it has, and gets the rest, part by part.
//!
//! A cut leaves the mirror with some of the parts; the next time it says so, and the rest is sent.

use counterfoil_mirror::site::Fetch as _;
use counterfoil_mirror::wire::{Progress, State as Standing};
use counterfoil_publish::{Ledger, Publication};

use super::{Authorities, Http, told};
use crate::error::{Error, Kind, Result};

/// What a mirror says that keeps tables of others alone.
pub(super) const NOT_KEPT: &str = "this mirror does not keep tables of this owner";

/// Bytes of a part: sent and stored within a few seconds.
const PART_BYTES: usize = 4 << 20;
/// Bytes of what a mirror says of itself, or to a part, at most.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// Sends a mirror what it lacks, if `authorities` vouch for it where it has TLS; gives the number of parts and bytes.
///
/// # Errors
/// [`Kind::Network`]; [`Kind::Interrupted`]: called off between two parts; those of the owner's state.
pub(super) fn push<L: Ledger>(
    publication: &mut Publication<L>,
    mirror: &str,
    authorities: &Authorities,
    is_called_off: &dyn Fn() -> bool,
) -> Result<(u64, u64)> {
    let owner = publication.owner();
    let wrong = |what: String| {
        let advice = match what.contains(NOT_KEPT) {
            true => format!("whoever runs it lets it: `counterfoil mirror serve --allow {owner}`; then publish again"),
            false => "publish again to send the rest".into(),
        };
        Error::new(Kind::Network, what).at(mirror).advise(advice)
    };
    let mut http = Http::vouched_for(mirror, authorities)?;
    let folder = counterfoil_reader::place_of(&publication.owner(), &publication.definition().name);
    let (mut parts, mut bytes) = (0, 0);
    let mut steps = Steps::default();
    loop {
        if is_called_off() {
            return Err(Error::new(Kind::Interrupted, "interrupted: a mirror has a part of it".to_owned()).at(mirror));
        }
        let state = http.fetch(&format!("{folder}state"), REPLY_BYTES_MAX).map_err(wrong)?;
        let state = match state {
            None => Standing::default(),
            Some(state) => Standing::from_bytes(&state).map_err(|what| wrong(what.to_string()))?,
        };
        if !steps.goes_on(state.progress) {
            return Err(wrong("the mirror does not keep what it is sent".into()));
        }
        let Some(update) = publication.update_for(&state, PART_BYTES).map_err(told)? else {
            return Ok((parts, bytes));
        };
        let taken = http.ask(&format!("{folder}update"), &update, REPLY_BYTES_MAX).map_err(wrong)?;
        if taken.is_none() {
            return Err(wrong("no mirror is here, or it takes no tables".into()));
        }
        parts += 1;
        bytes += update.len() as u64;
    }
}

/// How a mirror gets on: what it has only grows, and it begins anew once at most. One that says something else each time, or that goes on
/// beginning, would be sent the same for ever.
#[derive(Default)]
struct Steps {
    /// How often it had begun when it was asked first, and how far it has come.
    come: Option<(u64, Progress)>,
}

impl Steps {
    fn goes_on(&mut self, now: Progress) -> bool {
        let (first, before) = match self.come {
            None => (now.generation, None),
            Some((first, before)) => (first, Some(before)),
        };
        self.come = Some((first, now));
        before.is_none_or(|before| now > before) && now.generation.saturating_sub(first) <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Steps};

    fn progress(generation: u64, number: u64) -> Progress {
        Progress { generation, number, ..Progress::default() }
    }

    #[test]
    fn a_mirror_that_gets_on_is_sent_the_rest_and_no_other() {
        let goes_on = |all: &[Progress]| {
            let mut steps = Steps::default();
            all.iter().map(|now| steps.goes_on(*now)).collect::<Vec<_>>()
        };
        // One that had something of somebody else begins anew, once.
        assert_eq!(goes_on(&[progress(4, 900), progress(5, 1), progress(5, 7)]), [true, true, true]);
        assert_eq!(goes_on(&[progress(0, 0), progress(1, 3), progress(1, 3)]), [true, true, false]);
        assert_eq!(goes_on(&[progress(0, 0), progress(1, 3), progress(1, 2)]), [true, true, false]);
        assert_eq!(goes_on(&[progress(0, 0), progress(1, 3), progress(2, 0)]), [true, true, false]);
        assert_eq!(goes_on(&[progress(0, 0), progress(u64::MAX, 0)]), [true, false]);
    }
}
