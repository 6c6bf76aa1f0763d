//! Plans that were compiled on the host, with what they came to there: `crates/relation/examples/compile.rs` writes the file.
//!
//! ```text
//! NAME ROWS DIGEST BYTES \n  bytes of the plan  NAME ROWS DIGEST BYTES \n ...
//! ```

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_firmware::host::File;

/// Bytes of a line at most.
const LINE_BYTES_MAX: usize = 64;

/// The plans, one after another.
pub struct Plans {
    file: File,
    at: usize,
}

/// A question, and how many rows the host's answer has, with a digest of what they say.
pub struct Question {
    pub name: String,
    pub rows: usize,
    pub digest: u64,
    pub plan: Vec<u8>,
}

impl Plans {
    /// From the first one on; none if the host has no such file.
    pub fn open() -> Option<Plans> {
        File::open(c"plans").map(|file| Plans { file, at: 0 })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let mut byte = [0];
        while line.len() < LINE_BYTES_MAX && self.file.read(self.at, &mut byte) {
            self.at += 1;
            match byte[0] {
                b'\n' => return Some(line),
                letter => line.push(char::from(letter)),
            }
        }
        None
    }
}

impl Iterator for Plans {
    type Item = Question;

    fn next(&mut self) -> Option<Question> {
        let line = self.line()?;
        let mut words = line.split(' ');
        let name = words.next()?.to_string();
        let (rows, digest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let bytes = words.next()?.parse().ok()?;
        let mut plan = vec![0; bytes];
        self.file.read(self.at, &mut plan).then_some(())?;
        self.at += bytes;
        Some(Question { name, rows, digest, plan })
    }
}
