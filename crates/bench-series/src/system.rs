//! The stores that can be measured, and how each is made in an empty folder.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::influxdb::InfluxDb;
use crate::ours::{Ours, Pace, Way};
use crate::remote::{Habits, Remote, programs};
use crate::store::Store;

/// A store that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Ours,
    OursColumns,
    Lmdb,
    Redb,
    Fjall,
    Sqlite,
    RocksDb,
    BerkeleyDb,
    DuckDb,
    Chronix,
    InfluxDb,
}

impl System {
    pub const ALL: [System; 11] = [
        System::Ours,
        System::OursColumns,
        System::Lmdb,
        System::Redb,
        System::Fjall,
        System::Sqlite,
        System::RocksDb,
        System::BerkeleyDb,
        System::DuckDb,
        System::Chronix,
        System::InfluxDb,
    ];

    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            System::Ours => "ours",
            System::OursColumns => "ours, columns",
            System::Lmdb => "LMDB",
            System::Redb => "redb",
            System::Fjall => "fjall",
            System::Sqlite => "SQLite",
            System::RocksDb => "RocksDB",
            System::BerkeleyDb => "Berkeley DB",
            System::DuckDb => "DuckDB",
            System::Chronix => "Chronix",
            System::InfluxDb => "InfluxDB",
        }
    }

    /// As it is asked for.
    pub fn word(self) -> &'static str {
        match self {
            System::Ours => "ours",
            System::OursColumns => "ours-columns",
            System::Lmdb => "lmdb",
            System::Redb => "redb",
            System::Fjall => "fjall",
            System::Sqlite => "sqlite",
            System::RocksDb => "rocksdb",
            System::BerkeleyDb => "berkeleydb",
            System::DuckDb => "duckdb",
            System::Chronix => "chronix",
            System::InfluxDb => "influxdb",
        }
    }

    pub fn from_word(word: &str) -> Result<System, Failure> {
        let found = System::ALL.into_iter().find(|system| system.word() == word);
        found.ok_or_else(|| format!("no system is called {word}").into())
    }

    /// Whether it takes whole columns rather than points.
    pub fn takes_columns(self) -> bool {
        matches!(self, System::OursColumns | System::DuckDb)
    }

    /// Makes an empty one; none if it is not there. Only ours hang on what tells the time.
    pub fn create(self, folder: &Path, pace: Pace) -> Result<Option<Box<dyn Store>>, Failure> {
        match self {
            System::Ours => Ok(Some(Box::new(Ours::create(folder, Way::Points, pace)?))),
            System::OursColumns => Ok(Some(Box::new(Ours::create(folder, Way::Columns, pace)?))),
            System::Lmdb | System::RocksDb | System::BerkeleyDb => {
                remote(&[programs()?.join(self.word())], folder, Habits { is_sorted: true, ..Habits::default() })
            }
            System::DuckDb => {
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/duckdb-peer.py");
                remote(&[programs()?.join("venv/bin/python"), script], folder, Habits::default())
            }
            // Each deletion writes its memory tables out, reads the segments of that hour, and syncs its catalog.
            System::Chronix => {
                let habits = Habits { is_sorted: true, deletions_max: 50 };
                remote(&[programs()?.join(self.word())], folder, habits)
            }
            System::InfluxDb => Ok(InfluxDb::start(folder)?.map(|server| Box::new(server) as Box<dyn Store>)),
            System::Redb | System::Fjall | System::Sqlite => self.create_here(folder),
        }
    }

    #[cfg(feature = "peers")]
    fn create_here(self, folder: &Path) -> Result<Option<Box<dyn Store>>, Failure> {
        use crate::peers::{Fjall, Plain, Redb, Sqlite};
        Ok(match self {
            System::Redb => Some(Box::new(Plain(Redb::create(folder)?))),
            System::Fjall => Some(Box::new(Plain(Fjall::create(folder)?))),
            System::Sqlite => Some(Box::new(Sqlite::create(folder)?)),
            _ => None,
        })
    }

    #[cfg(not(feature = "peers"))]
    fn create_here(self, _folder: &Path) -> Result<Option<Box<dyn Store>>, Failure> {
        Ok(None)
    }

    /// How one gets it.
    pub fn how_to_get(self) -> &'static str {
        match self {
            System::Redb | System::Fjall | System::Sqlite => "build with --features peers",
            System::InfluxDb => "Debian: influxdb",
            _ => "scripts/bench-peers",
        }
    }
}

fn remote(program: &[PathBuf], folder: &Path, habits: Habits) -> Result<Option<Box<dyn Store>>, Failure> {
    Ok(Remote::start(program, folder, habits)?.map(|remote| Box::new(remote) as Box<dyn Store>))
}
