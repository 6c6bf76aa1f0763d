//! The curve BLS12-381 as far as readers and owners need it.
//!
//! A check of n messages under one key is e(signature, g2) = e(sum of H(m), key): two pairings and n hashes to the
//! curve, and the hashes are what takes the time. This module makes them cheap without changing a bit of the result:
//!
//! 1. Messages are hashed to the field (`expand`) and mapped to the curve E' (`mapping`), by roots that an untrusted
//!    server sends as hints, or by computing them.
//! 2. The points are summed on E' (`sum`), a level of a tree at a time, one inversion a level.
//! 3. The isogeny to E and the cofactor are applied once, to the sum (`isogeny`): both are homomorphisms.
//!
//! Everything here is public, and nothing takes constant time. What needs a secret key is done by blst, and so are
//! pairings, tests of the subgroup and compressed points (`pairing`).

mod expand;
mod field;
mod inverse;
mod isogeny;
mod mapping;
mod pairing;
mod point;
mod sum;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use expand::DOMAIN;
pub(crate) use mapping::{WrongHint, roots};
pub(crate) use pairing::{Pair, signature_side, verifies};
pub(crate) use point::{Affine, Jacobian};
pub(crate) use sum::{hash_sum, hinted_sum, signature_sum, to_curve};
pub(crate) use work::spread;
