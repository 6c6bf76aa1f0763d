//! Checking tables against their indexes, and reading past damage.
use alloc::string::String;
use alloc::vec::Vec;

/// How far a verification has come.
#[derive(Clone, Copy, Debug)]
pub struct VerifyProgress<'a> {
    /// The table under way.
    pub table: &'a str,
    /// Rows and index entries checked, in this table.
    pub done: u64,
    /// Rows and index entries to check, in this table.
    pub total: u64,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The table.
    pub table: String,
    /// What is wrong and where (page, row numbers, index); never row values.
    pub what: String,
}

/// What was checked in one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub table: String,
    /// Rows read.
    pub rows: u64,
    /// Index entries read.
    pub entries: u64,
    /// References that were followed.
    pub references: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// What was checked, by table.
    pub tables: Vec<TableReport>,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}
