//! Columns of files that were read, as long as there is room: a file never changes, so what was read and checked stays true.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::fragments::{Data, Fragments};

/// What is remembered, of the files that were wanted last.
pub(crate) struct Remembered {
    bytes_max: usize,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    bytes: usize,
    /// Counts what was wanted.
    clock: u64,
    /// By table and name: when it was wanted last, and its columns as far as they are here.
    known: HashMap<(String, String), (u64, Fragments)>,
}

fn bytes_of(rows: &Fragments) -> usize {
    let data = |data: &Data| match data {
        Data::Shares(shares) => shares.len() * size_of::<u64>(),
        Data::Strings(strings) => strings.all().len() + strings.len() * size_of::<usize>(),
    };
    rows.places.len() * size_of::<u64>() + rows.columns.iter().map(|(_, column)| data(column)).sum::<usize>()
}

impl Remembered {
    /// With room for so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, files: Mutex::default() }
    }

    fn files<T>(&self, body: impl FnOnce(&mut Files) -> T) -> T {
        // Whoever panicked while holding it left it as it was, or with less.
        body(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// These columns of a file, if all of them are here.
    pub fn get(&self, table: &str, file: &str, columns: &BTreeSet<&str>) -> Option<Fragments> {
        self.files(|files| {
            files.clock += 1;
            let clock = files.clock;
            let (wanted, known) = files.known.get_mut(&(table.to_owned(), file.to_owned()))?;
            let has = |name: &&str| known.columns.iter().any(|(own, _)| own.as_str() == *name);
            if !columns.iter().all(has) {
                return None;
            }
            *wanted = clock;
            let own = known.columns.iter().filter(|(name, _)| columns.contains(name.as_str())).cloned();
            Some(Fragments { places: known.places.clone(), columns: own.collect() })
        })
    }

    /// Remembers columns of a file beside those that are here.
    pub fn put(&self, table: &str, file: &str, rows: &Fragments) {
        self.files(|files| {
            files.clock += 1;
            let entry = files.known.entry((table.to_owned(), file.to_owned())).or_default();
            files.bytes -= bytes_of(&entry.1);
            entry.0 = files.clock;
            entry.1.places.clone_from(&rows.places);
            for (name, data) in &rows.columns {
                if entry.1.column(name).is_none() {
                    entry.1.columns.push((name.clone(), data.clone()));
                }
            }
            files.bytes += bytes_of(&entry.1);
            while files.bytes > self.bytes_max {
                let oldest = files.known.iter().min_by_key(|(_, (wanted, _))| *wanted).map(|(key, _)| key.clone());
                let Some((_, gone)) = oldest.and_then(|oldest| files.known.remove(&oldest)) else { break };
                files.bytes -= bytes_of(&gone);
            }
        });
    }

    /// Forgets a file that is gone.
    pub fn forget(&self, table: &str, file: &str) {
        self.files(|files| {
            if let Some((_, gone)) = files.known.remove(&(table.to_owned(), file.to_owned())) {
                files.bytes -= bytes_of(&gone);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Remembered;
    use crate::fragments::{Data, Fragments, Name};

    fn rows(column: &str, rows: u64) -> Fragments {
        let name = Name::parse(column).expect("a name");
        Fragments { places: (0..rows).collect(), columns: vec![(name, Data::Shares((0..rows).collect()))] }
    }

    const ONE: &str = "c0000000000000001";
    const OTHER: &str = "c0000000000000002";

    #[test]
    fn what_was_read_is_there_until_room_is_wanted() {
        // Of 100 rows a file takes 1600 bytes with one column, 2400 with two.
        let (remembered, one) = (Remembered::new(4000), BTreeSet::from([ONE]));
        remembered.put("t", "a", &rows(ONE, 100));
        assert_eq!(remembered.get("t", "a", &one), Some(rows(ONE, 100)));
        assert_eq!(remembered.get("t", "a", &BTreeSet::from([ONE, OTHER])), None);
        assert_eq!(remembered.get("u", "a", &one), None);
        remembered.put("t", "a", &rows(OTHER, 100));
        assert!(remembered.get("t", "a", &BTreeSet::from([ONE, OTHER])).is_some());
        remembered.put("t", "b", &rows(ONE, 100));
        assert!(remembered.get("t", "a", &one).is_some() && remembered.get("t", "b", &one).is_some());
        // The one that was wanted longest ago makes room.
        remembered.put("t", "c", &rows(ONE, 100));
        assert!(remembered.get("t", "a", &one).is_none() && remembered.get("t", "b", &one).is_some());
        remembered.forget("t", "b");
        assert!(remembered.get("t", "b", &one).is_none() && remembered.get("t", "c", &one).is_some());
        // What is larger than all the room is not kept, and nothing is lost track of.
        remembered.put("t", "d", &rows(ONE, 1000));
        assert!(remembered.get("t", "d", &one).is_none());
        remembered.put("t", "e", &rows(ONE, 200));
        assert!(remembered.get("t", "e", &one).is_some());
    }
}
