//! Closing a database behind work that is done.

use counterfoil::{Database, Kind};

use crate::failure::Result;
use crate::terminal;

/// Closes a database behind commits that stand. Where the disk has no room to leave it in order, that is said and is no failure: whoever
/// heard that the command failed would do it again.
///
/// # Errors
/// Whatever else goes wrong.
pub fn close(database: Database) -> Result<()> {
    match database.close() {
        Err(error) if error.kind() == Kind::Full => {
            let stands = "what was said to be done is stored, but the database could not be closed in order";
            terminal::warning(format_args!("{stands}: {error}"));
            Ok(())
        }
        closed => Ok(closed?),
    }
}
