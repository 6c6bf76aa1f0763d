//! What is wrong with bytes that came from outside.

use core::fmt;

/// Bytes that say nothing, or say it in another way than the one that counts. Holds what was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}
