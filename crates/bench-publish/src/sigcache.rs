//! Sums of signatures kept in memory (the paper's section 4): which of them ([`choice`]), how an answer and an update use
//! them ([`cache`]), one that learns ([`adaptive`]), and beside it a tree that keeps all ([`tree`]).

pub mod adaptive;
pub mod cache;
pub mod choice;
pub mod tree;

use counterfoil_proof::{Signature, SignatureSum};

/// A node of the signature tree: its level, 0 for a record, and its place in the level.
pub type Node = (u32, usize);

/// What is added up.
pub trait Sum: Copy {
    type Leaf: Copy;
    fn zero() -> Self;
    fn add(&mut self, other: &Self);
    fn add_leaf(&mut self, leaf: &Self::Leaf);
    fn subtract_leaf(&mut self, leaf: &Self::Leaf);
}

/// Signatures.
impl Sum for SignatureSum {
    type Leaf = Signature;

    fn zero() -> Self {
        SignatureSum::new()
    }

    fn add(&mut self, other: &Self) {
        self.add_sum(other);
    }

    fn add_leaf(&mut self, leaf: &Signature) {
        SignatureSum::add(self, leaf);
    }

    fn subtract_leaf(&mut self, leaf: &Signature) {
        self.subtract(leaf);
    }
}

/// Numbers, where additions are counted and not timed.
impl Sum for u64 {
    type Leaf = u64;

    fn zero() -> Self {
        0
    }

    fn add(&mut self, other: &Self) {
        *self = self.wrapping_add(*other);
    }

    fn add_leaf(&mut self, leaf: &u64) {
        *self = self.wrapping_add(*leaf);
    }

    fn subtract_leaf(&mut self, leaf: &u64) {
        *self = self.wrapping_sub(*leaf);
    }
}
