//! The root that a commit page carries: all that is needed to find and to believe everything else.
//!
//! ```text
//!  0 tail u64: no page before it is needed | 8 fold u64: the index copy tells of pages up to this one
//! 16 index first u64: sequence of the copy's first page | 24 index epoch number u64 | 32 index epoch salt [16]
//! 48 index ids u32: positions in the copy | 52 index runs u16: runs in the copy | 54 runs u16
//! 56 counted u64: value of the store's own counter for this commit; zero on a volume, which counts frames instead
//! 64 runs x { first u64, end u64, epoch number u64, epoch salt [16] }: the pages after `fold`
//! ```
//! 1. `tail` begins a block; tail <= first <= version and fold <= version; tail <= fold + 1.
//! 2. The runs cover the pages after `fold` up to the commit page itself, whose epoch is the last run's.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at};
use crate::head::Head;
use crate::index::IndexCopy;
use crate::run::{RUN_BYTES, Run};
use crate::window::Layout;

pub(crate) const ROOT_FIXED_BYTES: usize = 64;

/// Runs that a root holds at most; a commit that would need more writes a new index copy, which holds them all.
pub(crate) const ROOT_RUNS_MAX: usize = 3;

pub(crate) const ROOT_BYTES_MAX: usize = ROOT_FIXED_BYTES + ROOT_RUNS_MAX * RUN_BYTES;

/// See the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) tail: u64,
    pub(crate) fold: u64,
    pub(crate) copy: IndexCopy,
    runs: [Run; ROOT_RUNS_MAX],
    run_count: usize,
}

/// Bytes of a root with so many runs.
pub(crate) fn root_bytes(runs: usize) -> usize {
    ROOT_FIXED_BYTES + runs * RUN_BYTES
}

impl Root {
    /// A root with the runs after `fold`; `None` if they are too many.
    pub(crate) fn new(tail: u64, fold: u64, copy: IndexCopy, after_fold: impl Iterator<Item = Run>) -> Option<Root> {
        let mut root = Root { tail, fold, copy, runs: [Run::EMPTY; ROOT_RUNS_MAX], run_count: 0 };
        for run in after_fold {
            *root.runs.get_mut(root.run_count)? = run;
            root.run_count += 1;
        }
        Some(root)
    }

    /// The runs after `fold`.
    pub(crate) fn runs(&self) -> &[Run] {
        self.runs.get(..self.run_count).unwrap_or_default()
    }

    pub(crate) fn encoded_bytes(&self) -> usize {
        root_bytes(self.run_count)
    }

    pub(crate) fn encode(&self, body: &mut [u8], at: usize) {
        put(body, at, &self.tail.to_le_bytes());
        put(body, at + 8, &self.fold.to_le_bytes());
        put(body, at + 16, &self.copy.first.to_le_bytes());
        put(body, at + 24, &self.copy.epoch.number.to_le_bytes());
        put(body, at + 32, &self.copy.epoch.salt);
        put(body, at + 48, &self.copy.ids.to_le_bytes());
        put(body, at + 52, &self.copy.runs.to_le_bytes());
        put(body, at + 54, &(self.run_count as u16).to_le_bytes());
        for (index, run) in self.runs().iter().enumerate() {
            put(body, at + root_bytes(index), &run.encode());
        }
    }

    /// Takes a root apart; `commit` is the page that holds it and `first` the first page of its commit.
    pub(crate) fn decode(bytes: &[u8], layout: &Layout, commit: &Head, first: u64) -> Result<Root, &'static str> {
        let fixed = bytes.first_chunk::<ROOT_FIXED_BYTES>().ok_or("root length")?;
        let runs = usize::from(u16_at(fixed, 54));
        let encoded = bytes.get(ROOT_FIXED_BYTES..).unwrap_or_default();
        let encoded = encoded.get(..runs.saturating_mul(RUN_BYTES)).ok_or("root length")?;
        if u64_at(fixed, 56) != 0 {
            return Err("root of a store with a counter of its own");
        }
        let copy = IndexCopy {
            first: u64_at(fixed, 16),
            epoch: Epoch { number: u64_at(fixed, 24), salt: array_at(fixed, 32) },
            ids: u32_at(fixed, 48),
            runs: u16_at(fixed, 52),
        };
        let after_fold = encoded.chunks_exact(RUN_BYTES).map(|run| Run::decode(&array_at(run, 0)));
        let root = Root::new(u64_at(fixed, 0), u64_at(fixed, 8), copy, after_fold).ok_or("runs of a root")?;
        root.check(layout, commit, first)?;
        Ok(root)
    }

    fn check(&self, layout: &Layout, commit: &Head, first: u64) -> Result<(), &'static str> {
        let (data, version) = (&layout.data, commit.sequence);
        let ordered = data.pages <= self.tail && self.tail <= first && first <= version && self.fold <= version;
        if !ordered || !self.tail.is_multiple_of(data.block_pages) || self.tail > self.fold + 1 {
            return Err("tails of a root");
        }
        if data.block(version) - data.block(self.tail) >= data.blocks() {
            return Err("tail of a root");
        }
        self.copy.check(layout)?;
        let ends_here = match self.runs().last() {
            Some(last) => last.end == version + 1 && last.epoch == commit.epoch,
            None => self.fold == version && self.copy.epoch == commit.epoch,
        };
        let mut before = self.fold + 1;
        for run in self.runs() {
            if run.first < before || run.end <= run.first || run.end > version + 1 {
                return Err("runs of a root");
            }
            before = run.end;
        }
        if ends_here { Ok(()) } else { Err("runs of a root") }
    }
}
