//! The databases of clients of InfluxDB: names that say where the tables of their measurements are.
//!
//! ```text
//! record `influx` of space SETTING: format u8 (1) | for each: flags u8 (1: plain) | bytes of the name u8 | name
//! ```
//! 1. One of them at most is *plain*: its measurements are tables of the same name. The first that is made is.
//! 2. Those of another database NAME are tables called `NAME.MEASUREMENT`.
//! 3. A table that was made for a database says so in its option `influx_database`: dropping the database drops it, and
//!    no table that anybody else made.

use counterfoil_log::{self as log, View, Writer, record_space};

use crate::error::{Error, Kind, Result};

const RECORD: &[u8] = b"influx";
const FORMAT: u8 = 1;
const PLAIN: u8 = 1;
const NAME_BYTES_MAX: usize = 128;
const DATABASES_MAX: usize = 1000;

/// The option of tables that were made for a database.
pub(super) const TABLE_OPTION: &str = "influx_database";

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_plain: bool,
}

impl Entry {
    /// The table of a measurement.
    pub(super) fn table(&self, measurement: &str) -> String {
        if self.is_plain { measurement.to_owned() } else { format!("{}.{measurement}", self.name) }
    }
}

/// All databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Databases(Vec<Entry>);

impl Databases {
    /// As a state of the database has them.
    pub(super) fn of(view: &dyn View) -> Result<Self> {
        let Some(value) = view.record(record_space::SETTING, RECORD) else { return Ok(Self::default()) };
        Self::decode(&value).ok_or_else(|| log::Error::corrupt("databases of line protocol").into())
    }

    pub(super) fn find(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.name.as_str())
    }

    /// The one of this name, as it is or would be made.
    pub(super) fn get_or_plan(&self, name: &str) -> Result<Entry> {
        if let Some(entry) = self.find(name) {
            return Ok(entry.clone());
        }
        let refused = |what: String, advice: &'static str| Err(Error::new(Kind::Input, what).advise(advice));
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return refused(format!("the name of a database has 1 to {NAME_BYTES_MAX} bytes"), "use another");
        }
        if name.chars().any(|letter| letter.is_control() || letter == '/') {
            return refused("the name of a database has no slash and no control characters".into(), "use another");
        }
        if self.0.len() >= DATABASES_MAX {
            return refused(format!("there are {DATABASES_MAX} databases already"), "drop one first");
        }
        Ok(Entry { name: name.to_owned(), is_plain: !self.0.iter().any(|entry| entry.is_plain) })
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|entry| entry.name != name);
    }

    /// Keeps them, in the commit under way.
    pub(super) fn store(&self, writer: &mut Writer) -> Result<()> {
        Ok(writer.put_record(record_space::SETTING, RECORD, &self.encode())?)
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        for entry in &self.0 {
            value.extend([if entry.is_plain { PLAIN } else { 0 }, entry.name.len() as u8]);
            value.extend_from_slice(entry.name.as_bytes());
        }
        value
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (&FORMAT, mut rest) = value.split_first()? else { return None };
        let mut all = Self::default();
        while let Some(([flags @ (0 | PLAIN), bytes], after)) = rest.split_first_chunk::<2>() {
            let (name, after) = after.split_at_checked(usize::from(*bytes))?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            let is_new = !name.is_empty() && all.find(&name).is_none();
            let plain_again = *flags == PLAIN && all.0.iter().any(|entry| entry.is_plain);
            if !is_new || plain_again || all.0.len() >= DATABASES_MAX {
                return None;
            }
            all.add(Entry { name, is_plain: *flags == PLAIN });
            rest = after;
        }
        rest.is_empty().then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(names: &[&str]) -> Databases {
        let mut all = Databases::default();
        names.iter().for_each(|name| all.add(all.get_or_plan(name).expect("a name")));
        all
    }

    #[test]
    fn the_first_is_plain_and_when_it_went_the_next_new_one() {
        let mut all = made(&["telegraf", "other"]);
        assert_eq!(all.find("telegraf").unwrap().table("cpu"), "cpu");
        assert_eq!(all.find("other").unwrap().table("cpu"), "other.cpu");
        all.remove("telegraf");
        assert_eq!(all.find("other").unwrap().table("cpu"), "other.cpu", "tables keep their names");
        all.add(all.get_or_plan("third").unwrap());
        assert_eq!(all.find("third").unwrap().table("cpu"), "cpu");
        assert_eq!(all.names().collect::<Vec<_>>(), ["other", "third"]);
    }

    /// SPEC.md, "counterfoil": databases of line protocol.
    #[test]
    fn what_is_kept_is_read_and_nothing_else() {
        let value = [&[1, 1, 1, b'a', 0, 2][..], b"bc"].concat();
        assert_eq!(made(&["a", "bc"]).encode(), value);
        assert_eq!(Databases::decode(&value), Some(made(&["a", "bc"])));
        assert_eq!(Databases::decode(&[1]), Some(Databases::default()));
        for wrong in [&[][..], &[2], &[1, 0], &[1, 2, 1, b'a'], &[1, 0, 2, b'a'], &[1, 0, 0], &[1, 0, 1, 0xFF]] {
            assert_eq!(Databases::decode(wrong), None, "{wrong:?}");
        }
        assert_eq!(Databases::decode(&[1, 1, 1, b'a', 1, 1, b'b']), None, "two that are plain");
        assert_eq!(Databases::decode(&[1, 1, 1, b'a', 0, 1, b'a']), None, "one twice");
    }

    #[test]
    fn names_have_bounds() {
        let all = made(&["a"]);
        for wrong in ["", "a/b", "a\nb", &"x".repeat(129)] {
            assert!(all.get_or_plan(wrong).is_err(), "{wrong}");
        }
        assert!(made(&[]).get_or_plan("Ünder score.1").is_ok());
    }
}
