//! What it takes of this machine to publish a table, before anything is signed.

use std::time::{Duration, Instant};

use counterfoil_proof::{Definition, Message, Scheme, SecretKey};
use counterfoil_publish::Beside;

use crate::error::{Error, Kind, Result};
use crate::key::random;

/// Signatures that are made to see how long one takes.
const TRIED: usize = 64;

/// Rows for each node of totals, all levels together.
const ROWS_PER_NODE: u64 = 11;

/// Lists of changes between two renewals at most: a reader who comes anew fetches them all, each as a file of its own. Of
/// hourly ones that is eleven years.
const LISTS_MAX: f64 = 100_000.0;

/// What settings of a publication imply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub rows: u64,
    /// How long it takes to read them.
    pub reading: Duration,
    pub columns: usize,
    pub orders: usize,
    /// What one signature covers.
    pub scheme: Scheme,
    pub beside: Beside,
    pub every: Duration,
    pub renew: Duration,
    /// On all cores.
    pub signature: Duration,
}

impl Load {
    /// Tries how fast this machine signs; of so many rows that are read in that time.
    pub fn measure(
        (rows, reading): (u64, Duration),
        definition: &Definition,
        every: Duration,
        renew: Duration,
    ) -> Result<Self> {
        let wrong = |_| Error::new(Kind::Bug, "entropy from which no key can be made");
        let key = SecretKey::from_entropy(&random::<32>()?).map_err(wrong)?;
        let messages: Vec<Message> = (0..TRIED).map(|at| Message([at as u8; 32])).collect();
        let began = Instant::now();
        key.sign_all(&messages);
        let signature = began.elapsed() / TRIED as u32;
        let (columns, orders) = (definition.columns.len(), definition.orders.len());
        let (scheme, beside) = (definition.scheme, Beside::of(definition));
        Ok(Self { rows, reading, columns, orders, scheme, beside, every, renew, signature })
    }

    /// Refuses what cannot be read or signed in time, where either would take more than half of the machine; and more lists of
    /// changes than readers fetch.
    pub fn check(&self) -> Result<()> {
        if self.renew < self.every {
            let (renew, every) = (shown(self.renew), shown(self.every));
            let what = format!("signatures are to be renewed within {renew}, and it is looked for them every {every}");
            return Err(Error::new(Kind::NotSupported, what).advise("RENEW as often as EVERY, or more seldom"));
        }
        if self.reading * 2 > self.every {
            let what = format!("this machine takes {} to read the table once", shown(self.reading));
            let least = (self.reading.as_secs_f64() * 4.0).ceil();
            return Err(Error::new(Kind::NotSupported, what).advise(format!("EVERY '{least:.0} s' or more seldom")));
        }
        if self.lists() > LISTS_MAX {
            let what = format!("readers would have to fetch up to {:.0} lists of changes", self.lists());
            let least = shown(Duration::from_secs_f64((self.renew.as_secs_f64() / LISTS_MAX).ceil()));
            let advice = format!("EVERY '{least}' or more seldom, or RENEW more often than {}", shown(self.renew));
            return Err(Error::new(Kind::NotSupported, what).advise(advice));
        }
        if self.all() * 2 > self.renew {
            let what = format!("this machine takes {} to sign all rows once", shown(self.all()));
            let advice = format!("renew them less often than every {}", shown(self.renew));
            return Err(Error::new(Kind::NotSupported, what).advise(advice));
        }
        Ok(())
    }

    /// Of the time, in percent.
    fn share_of_reading(&self) -> f64 {
        100.0 * self.reading.as_secs_f64() / self.every.as_secs_f64()
    }

    /// Lists of changes from one renewal to the next.
    fn lists(&self) -> f64 {
        self.renew.as_secs_f64() / self.every.as_secs_f64()
    }

    fn all(&self) -> Duration {
        self.signature.saturating_mul(u32::try_from(self.signatures()).unwrap_or(u32::MAX))
    }

    /// Filters are a few in a hundred of the rows at most, and not counted.
    fn signatures(&self) -> u64 {
        let nodes = if self.beside.totals { self.rows / ROWS_PER_NODE } else { 0 };
        let rows = match self.scheme {
            Scheme::PerAttribute => self.rows.saturating_mul(1 + self.columns as u64),
            // Groups are three quarters full when they are cut.
            Scheme::Group(rows_max) => self.rows.div_ceil((3 * u64::from(rows_max) / 4).max(1)),
            _ => self.rows,
        };
        rows.saturating_add(nodes)
    }

    /// What a change of a row signs, for people.
    fn of_change(&self) -> String {
        let things = 1 + 2 * self.orders;
        let (what, signatures) = match self.scheme {
            Scheme::PerAttribute => ("the values of the row and of its neighbours", things * (1 + self.columns)),
            // Cut or joined, a group takes two more.
            Scheme::Group(_) => ("the groups of the row and of its neighbours", things + 2),
            _ => ("the row and its neighbours", things),
        };
        format!("a change signs {what}: {signatures} signatures at most")
    }

    /// For people.
    pub fn told(&self) -> Vec<String> {
        let share = 100.0 * self.all().as_secs_f64() / self.renew.as_secs_f64();
        let lists = self.lists();
        let (rows, all, each) = (self.rows, shown(self.all()), per_row(self.signature));
        let mut told = vec![
            format!("signing all {rows} rows takes {all} ({} signatures of {each} ms)", self.signatures()),
            format!("renewing them within {} takes {share:.2} % of this machine", shown(self.renew)),
            self.of_change(),
            format!("reading the table every {} takes {:.2} % of it", shown(self.every), self.share_of_reading()),
            format!(
                "every {} the table is read and a list of changes signed; readers fetch up to {lists:.0} of them",
                shown(self.every)
            ),
        ];
        if self.beside.totals {
            told.push("totals: about five signatures more for a row that changes, when the list is made".into());
        }
        if self.beside.filters {
            told.push("filters: a signature more for each value of an order's first column that comes or goes".into());
        }
        told
    }
}

fn per_row(signature: Duration) -> String {
    format!("{:.2}", signature.as_secs_f64() * 1000.0)
}

/// A duration in its largest unit of which there are two at least, or one exactly.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    for (unit, length) in [("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0)] {
        let count = seconds / length;
        if count >= 2.0 || count == 1.0 {
            let number = if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.1}") };
            return format!("{number} {unit}{}", if count == 1.0 { "" } else { "s" });
        }
    }
    if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rows: u64, renew: u64) -> Load {
        let (every, renew) = (Duration::from_secs(renew.min(3600)), Duration::from_secs(renew));
        let beside = Beside { totals: false, filters: false };
        let (columns, orders, scheme) = (3, 1, Scheme::PerRecord);
        let (reading, signature) = (Duration::from_millis(10), Duration::from_micros(100));
        Load { rows, reading, columns, orders, scheme, beside, every, renew, signature }
    }

    #[test]
    fn each_scheme_has_its_number_of_signatures() {
        let signed = |scheme| Load { scheme, orders: 2, ..load(1000, 86_400) };
        let schemes = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(16), Scheme::Group(2)].map(signed);
        assert_eq!(schemes.map(|load| load.signatures()), [1000, 4000, 84, 1000]);
        let [record, attribute, group, _] = schemes.map(|load| load.of_change());
        assert!(record.contains(" 5 ") && attribute.contains(" 20 ") && group.contains(" 7 "), "{attribute}, {group}");
    }

    #[test]
    fn what_cannot_be_signed_in_time_is_refused() {
        assert!(load(1_000_000, 200).check().is_ok());
        let refused = load(1_000_001, 200).check().expect_err("too slow").to_string();
        assert!(refused.contains("100.0 s") || refused.contains("1.7 minutes"), "{refused}");
        assert!(load(u64::MAX, 86_400).check().is_err());
        // Totals are renewed as well.
        let beside = Beside::default();
        assert!(Load { beside, ..load(1_000_000, 200) }.check().is_err());
    }

    #[test]
    fn more_lists_of_changes_than_readers_fetch_are_refused() {
        let often = |every: u64| Load { every: Duration::from_secs(every), ..load(1000, 90 * 86_400) };
        assert!(often(78).check().is_ok());
        let refused = often(77).check().expect_err("too many").to_string();
        assert!(refused.contains("100987 lists"), "{refused}");
        assert!(often(1).check().is_err());
    }

    #[test]
    fn what_cannot_be_read_in_time_is_refused_and_what_is_not_looked_at() {
        let reading = |milliseconds| Load { reading: Duration::from_millis(milliseconds), ..load(1000, 86_400) };
        let often = |load| Load { every: Duration::from_secs(60), ..load };
        assert!(often(reading(30_000)).check().is_ok());
        let refused = often(reading(30_001)).check().expect_err("too slow").to_string();
        assert!(refused.contains("to read the table once") && refused.contains("EVERY '121 s'"), "{refused}");
        let seldom = Load { every: Duration::from_secs(86_401), ..load(1000, 86_400) };
        assert!(seldom.check().expect_err("nobody looks").to_string().contains("as often as EVERY"));
    }

    #[test]
    fn durations_are_readable() {
        let shown = |seconds: f64| super::shown(Duration::from_secs_f64(seconds));
        assert_eq!([shown(3600.0), shown(7200.0), shown(86_400.0)], ["1 hour", "2 hours", "1 day"]);
        assert_eq!([shown(90.0), shown(1.5), shown(150.0)], ["90 s", "1.5 s", "2.5 minutes"]);
    }
}
