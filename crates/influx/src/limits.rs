//! What a line may be at most. A line beyond a limit is rejected, the others go on.

/// Bytes of one line, newlines inside its strings included.
pub const LINE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the name of a measurement, a tag or a field: they become names of tables and columns.
pub const NAME_BYTES_MAX: usize = 200;
/// Tags of one line.
pub const TAGS_MAX: usize = 64;
/// Bytes of the value of a tag: they become part of a key.
pub const TAG_VALUE_BYTES_MAX: usize = 1024;
/// Fields of one line.
pub const FIELDS_MAX: usize = 1024;
/// Columns that one measurement may have in one batch: its tags, its fields and its time.
pub const COLUMNS_MAX: usize = 1600;
/// The column of the time; no tag and no field may have this name.
pub const TIME_COLUMN: &str = "time";
/// Rejected lines that a [`Rejects`](crate::Rejects) describes; it counts all of them.
pub const REJECTS_SHOWN_MAX: usize = 10;
