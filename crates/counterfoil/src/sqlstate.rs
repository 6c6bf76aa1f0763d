//! The code of the SQL standard for each kind of error, where nothing finer is known ("PostgreSQL Error Codes").

use crate::error::Kind;

/// The code of a kind.
pub(crate) fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Sql => "42601",
        Kind::Constraint => "23000",
        Kind::NotSupported => "0A000",
        Kind::NotFound => "42704",
        Kind::Misuse => "55000",
        Kind::Input => "22P02",
        Kind::SnapshotTooOld => "72000",
        Kind::Full => "53100",
        Kind::Device => "58030",
        Kind::Network => "08006",
        Kind::Locked => "55P03",
        Kind::Interrupted => "57014",
        Kind::Corrupt | Kind::Tampered | Kind::RolledBack | Kind::CounterLost | Kind::NotVerified => "XX001",
        Kind::WrongKey | Kind::NotADatabase => "58000",
        Kind::Bug => "XX000",
    }
}
