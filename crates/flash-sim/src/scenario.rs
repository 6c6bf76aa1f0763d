//! What goes wrong, and when: a value that is printed as an id and read back from it.
//!
//! ```text
//! seed7+cut12-bits-any+lostflush9+rot5-page3-bits2
//! ```
//! Numbers behind a fault's name are numbers of writes: programs of single pages, erases and flushes, from 1.

use std::fmt;
use std::str::FromStr;

use crate::{Part, Programming};

/// How far the operation got during which the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tearing {
    /// It had not begun.
    Untouched,
    /// It was done; only the answer is missing.
    Complete,
    /// So many bytes of the page (or of the block being erased) were done.
    Byte(u32),
    /// Any of the bits that were to change did.
    Bits,
    /// It looks done, and is not: the page reads well once and badly later, the block looks erased and does not keep
    /// what is programmed into it.
    Fickle,
    /// Any of the bits that were to change did, and error correction finds that: the page reads as an error until it is
    /// erased, or programmed anew where that needs no erase. So do the words of write-once flash with error correction.
    Unreadable,
}

/// What becomes of the writes in the cache when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// All of them survive.
    All,
    /// None survives.
    None,
    /// Any of them survive, in any order, also by sectors of 512 bytes.
    Any,
}

/// One thing that goes wrong at one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power fails during the write.
    Cut {
        /// The write.
        at: u64,
        /// How far it got.
        tearing: Tearing,
        /// What survives of those before it.
        survivors: Survivors,
    },
    /// The flush is acknowledged and nothing is flushed.
    LostFlush {
        /// The write.
        at: u64,
    },
    /// The flush fails; any part of what was in the cache reached the medium, the rest never will, and all of it
    /// reads as if it had.
    FailedFlush {
        /// The write.
        at: u64,
    },
    /// The program or erase fails, having changed any of the bits.
    FailedWrite {
        /// The write.
        at: u64,
    },
    /// The program or erase fails, and its block is bad from then on.
    BadBlock {
        /// The write.
        at: u64,
    },
    /// The page programmed reads well once and badly later.
    Fade {
        /// The write.
        at: u64,
    },
    /// After the write some bits of some page turn over.
    Rot {
        /// The write.
        at: u64,
        /// The page.
        page: u64,
        /// How many bits.
        bits: u64,
    },
}

/// Everything that goes wrong, under one seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The id is not one of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    part: String,
}

impl Scenario {
    /// Nothing goes wrong.
    pub fn calm(seed: u64) -> Self {
        Self { seed, faults: Vec::new() }
    }

    /// One thing goes wrong.
    pub fn one(seed: u64, fault: Fault) -> Self {
        Self { seed, faults: vec![fault] }
    }

    /// One cut at each of the first `writes` writes, in each way that a cut can be; `page_bytes` sets where pages are
    /// torn. The seed of each follows from `seed` and its place in the list.
    pub fn every_cut(seed: u64, writes: u64, page_bytes: u32) -> impl Iterator<Item = Self> + use<> {
        let tearings = [
            Tearing::Untouched,
            Tearing::Complete,
            Tearing::Byte(1),
            Tearing::Byte(page_bytes / 2),
            Tearing::Byte(page_bytes - 1),
            Tearing::Bits,
            Tearing::Fickle,
        ];
        Self::cuts(seed, writes, tearings.to_vec(), vec![Survivors::All, Survivors::None, Survivors::Any])
    }

    /// The same with every way that this part knows, and no other: nothing waits where there is no cache, and error
    /// correction finds torn pages only where there is some.
    pub fn every_cut_of(seed: u64, writes: u64, part: &Part) -> impl Iterator<Item = Self> + use<> {
        let page_bytes = part.geometry.page_bytes;
        let mut tearings = vec![Tearing::Untouched, Tearing::Complete];
        tearings.extend([1, 7, page_bytes / 2 + 3, page_bytes - 1].map(Tearing::Byte));
        tearings.extend([Tearing::Bits, Tearing::Fickle]);
        if !matches!(part.programming, Programming::Clears(_)) {
            tearings.push(Tearing::Unreadable);
        }
        let survivors = match part.cached {
            true => vec![Survivors::All, Survivors::None, Survivors::Any],
            false => vec![Survivors::All],
        };
        Self::cuts(seed, writes, tearings, survivors)
    }

    fn cuts(
        seed: u64,
        writes: u64,
        tearings: Vec<Tearing>,
        survivors: Vec<Survivors>,
    ) -> impl Iterator<Item = Self> + use<> {
        let ways: Vec<_> =
            tearings.iter().flat_map(|tearing| survivors.iter().map(|survivors| (*tearing, *survivors))).collect();
        (1..=writes).flat_map(move |at| {
            ways.clone().into_iter().map(move |(tearing, survivors)| {
                Self::one(seed.wrapping_add(at), Fault::Cut { at, tearing, survivors })
            })
        })
    }
}

impl Fault {
    /// The number of the write at which it happens.
    pub fn at(&self) -> u64 {
        match *self {
            Fault::Cut { at, .. }
            | Fault::LostFlush { at }
            | Fault::FailedFlush { at }
            | Fault::FailedWrite { at }
            | Fault::BadBlock { at }
            | Fault::Fade { at }
            | Fault::Rot { at, .. } => at,
        }
    }
}

impl fmt::Display for Tearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tearing::Untouched => f.write_str("untouched"),
            Tearing::Complete => f.write_str("complete"),
            Tearing::Byte(byte) => write!(f, "byte{byte}"),
            Tearing::Bits => f.write_str("bits"),
            Tearing::Fickle => f.write_str("fickle"),
            Tearing::Unreadable => f.write_str("unreadable"),
        }
    }
}

impl fmt::Display for Survivors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Survivors::All => "all",
            Survivors::None => "none",
            Survivors::Any => "any",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Cut { at, tearing, survivors } => write!(f, "cut{at}-{tearing}-{survivors}"),
            Fault::LostFlush { at } => write!(f, "lostflush{at}"),
            Fault::FailedFlush { at } => write!(f, "failedflush{at}"),
            Fault::FailedWrite { at } => write!(f, "failedwrite{at}"),
            Fault::BadBlock { at } => write!(f, "badblock{at}"),
            Fault::Fade { at } => write!(f, "fade{at}"),
            Fault::Rot { at, page, bits } => write!(f, "rot{at}-page{page}-bits{bits}"),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed{}", self.seed)?;
        self.faults.iter().try_for_each(|fault| write!(f, "+{fault}"))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no part of a scenario", self.part)
    }
}

impl std::error::Error for ScenarioError {}

/// The number behind a word.
fn number_after(text: &str, word: &str) -> Option<u64> {
    text.strip_prefix(word)?.parse().ok()
}

fn parse_tearing(text: &str) -> Option<Tearing> {
    match text {
        "untouched" => Some(Tearing::Untouched),
        "complete" => Some(Tearing::Complete),
        "bits" => Some(Tearing::Bits),
        "fickle" => Some(Tearing::Fickle),
        "unreadable" => Some(Tearing::Unreadable),
        _ => Some(Tearing::Byte(number_after(text, "byte")?.try_into().ok()?)),
    }
}

fn parse_survivors(text: &str) -> Option<Survivors> {
    match text {
        "all" => Some(Survivors::All),
        "none" => Some(Survivors::None),
        "any" => Some(Survivors::Any),
        _ => None,
    }
}

fn parse_fault(text: &str) -> Option<Fault> {
    let words: Vec<&str> = text.split('-').collect();
    match words[..] {
        [cut, tearing, survivors] if cut.starts_with("cut") => Some(Fault::Cut {
            at: number_after(cut, "cut")?,
            tearing: parse_tearing(tearing)?,
            survivors: parse_survivors(survivors)?,
        }),
        [rot, page, bits] => Some(Fault::Rot {
            at: number_after(rot, "rot")?,
            page: number_after(page, "page")?,
            bits: number_after(bits, "bits")?,
        }),
        [word] => number_after(word, "lostflush")
            .map(|at| Fault::LostFlush { at })
            .or_else(|| number_after(word, "failedflush").map(|at| Fault::FailedFlush { at }))
            .or_else(|| number_after(word, "failedwrite").map(|at| Fault::FailedWrite { at }))
            .or_else(|| number_after(word, "badblock").map(|at| Fault::BadBlock { at }))
            .or_else(|| number_after(word, "fade").map(|at| Fault::Fade { at })),
        _ => None,
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let unknown = |part: &str| ScenarioError { part: part.to_owned() };
        let mut parts = text.split('+');
        let first = parts.next().unwrap_or_default();
        let seed = number_after(first, "seed").ok_or_else(|| unknown(first))?;
        let faults = parts.map(|part| parse_fault(part).ok_or_else(|| unknown(part))).collect::<Result<_, _>>()?;
        Ok(Self { seed, faults })
    }
}
