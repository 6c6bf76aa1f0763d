//! The map of RFC 9380 (simplified SWU, 6.6.2) from the field to E': y^2 = x^3 + A x + B, by roots or by hints.
//!
//! With t = Z u^2 there are two candidates, x1 = -B/A (1 + 1 / (t^2 + t)) and x2 = t x1, and g(x2) = t^3 g(x1). Z is no
//! square, so t^3 is none for u != 0 and exactly one of g(x1), g(x2) is a square: the map takes its root y, with the
//! sign of u. So a y with y^2 = g(x1) or y^2 = g(x2) and the sign of u *is* the map's y, whoever brought it: a hint.
//!
//! Where t^2 + t = 0 (u = 0 and u = +-root(-1/Z)) the map takes x1 = B / (Z A), always; there g(x2) could be a square
//! too, so a hint is compared with what the map computes.

use super::field::{Fp, invert_all};
use super::point::Affine;
use alloc::vec::Vec;

/// A and B of E'.
pub(crate) const A: Fp = Fp([
    0x2f65aa0e9af5aa51,
    0x86464c2d1e8416c3,
    0xb85ce591b7bd31e2,
    0x27e11c91b5f24e7c,
    0x28376eda6bfc1835,
    0x155455c3e5071d85,
]);
pub(crate) const B: Fp = Fp([
    0xfb996971fe22a1e0,
    0x9aa93eb35b742d6f,
    0x8c476013de99c5c4,
    0x873e27c3a221e571,
    0xca72b5e45a52d888,
    0x06824061418a386b,
]);
/// Z, which is 11.
#[cfg(test)]
pub(crate) const Z: Fp = Fp([
    0x886c00000023ffdc,
    0x0f70008d3090001d,
    0x77672417ed5828c3,
    0x9dac23e943dc1740,
    0x50553f1b9c131521,
    0x078c712fbe0ab6e8,
]);
/// -B / A.
pub(crate) const MINUS_B_OVER_A: Fp = Fp([
    0x052583c93555a7fe,
    0x3b40d72430f93c82,
    0x1b75faa0105ec983,
    0x2527e7dc63851767,
    0x99fffd1f34fc181d,
    0x097cab54770ca0d3,
]);
/// B / (Z A): x1 where the denominator is zero.
pub(crate) const X_WITHOUT_DENOMINATOR: Fp = Fp([
    0xaefbc579583dc22f,
    0x70cca69e8ca26edc,
    0xaf05f2a3b113ce57,
    0x4ed257417860c764,
    0xbb16a0c0d526ff96,
    0x1469e7cf3b7ec553,
]);
/// A root of -Z.
pub(crate) const ROOT_OF_MINUS_Z: Fp = Fp([
    0xf37b0ced8fb71e24,
    0xf02dc8a4535a8779,
    0x732ed835f7eb14ea,
    0x524ca41ecb2bce0d,
    0x095e3801e90b5fc1,
    0x0252ad055472a90e,
]);

/// Why a hint is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WrongHint {
    /// Not below p.
    NotCanonical,
    /// sgn0(y) is not sgn0(u).
    Sign,
    /// y^2 is neither g(x1) nor g(x2).
    NotARoot,
}

/// The candidates of one field element.
struct Candidates {
    /// Z u^2.
    t: Fp,
    x1: Fp,
    /// t^2 + t is zero: x1 it is.
    only_first: bool,
}

impl Candidates {
    /// Of all field elements, with one inversion.
    fn of_all(elements: &[Fp]) -> Vec<Candidates> {
        let mut denominators = Vec::with_capacity(elements.len());
        let mut all: Vec<Candidates> = Vec::with_capacity(elements.len());
        for u in elements {
            let t = times_z(&u.square());
            let denominator = t.square().add(&t);
            let only_first = denominator.is_zero();
            denominators.push(if only_first { Fp::ONE } else { denominator });
            all.push(Candidates { t, x1: X_WITHOUT_DENOMINATOR, only_first });
        }
        invert_all(&mut denominators, &mut Vec::with_capacity(elements.len()));
        for (candidates, inverse) in all.iter_mut().zip(&denominators) {
            if !candidates.only_first {
                candidates.x1 = MINUS_B_OVER_A.multiply(&inverse.add(&Fp::ONE));
            }
        }
        all
    }

    /// The map of u, computed.
    fn by_root(&self, u: &Fp) -> Affine {
        let g1 = curve_equation(&self.x1);
        let root = g1.inverse_root().multiply(&g1);
        // root^2 is g1 or -g1, and in the latter case root * root(-Z) squares to Z g1.
        let (x, y) = if root.square() == g1 {
            (self.x1, root)
        } else {
            (self.t.multiply(&self.x1), root.multiply(&ROOT_OF_MINUS_Z).multiply(&self.t).multiply(u))
        };
        Affine { x, y: if y.is_odd() == u.is_odd() { y } else { y.negate() } }
    }

    /// The map of u, given its root.
    fn by_hint(&self, u: &Fp, hint: &[u8; 48]) -> Result<Affine, WrongHint> {
        let y = Fp::from_bytes(hint).ok_or(WrongHint::NotCanonical)?;
        if u.is_odd() != (hint[47] & 1 == 1) {
            return Err(WrongHint::Sign);
        }
        if self.only_first {
            let point = self.by_root(u);
            return if point.y == y { Ok(point) } else { Err(WrongHint::NotARoot) };
        }
        let squared = y.square();
        if squared == curve_equation(&self.x1) {
            return Ok(Affine { x: self.x1, y });
        }
        let x2 = self.t.multiply(&self.x1);
        if squared == curve_equation(&x2) { Ok(Affine { x: x2, y }) } else { Err(WrongHint::NotARoot) }
    }
}

/// The points of all field elements, computed.
pub(crate) fn map_all(elements: &[Fp]) -> Vec<Affine> {
    Candidates::of_all(elements).iter().zip(elements).map(|(candidates, u)| candidates.by_root(u)).collect()
}

/// The points of all field elements, given the root of each.
pub(crate) fn map_hinted<'a>(
    elements: &[Fp],
    hints: impl Iterator<Item = &'a [u8; 48]>,
) -> Result<Vec<Affine>, WrongHint> {
    let all = Candidates::of_all(elements);
    all.iter().zip(elements).zip(hints).map(|((candidates, u), hint)| candidates.by_hint(u, hint)).collect()
}

/// The two roots of a message: what a hint says.
pub(crate) fn roots(message: &[u8; 32]) -> [[u8; 48]; 2] {
    let elements = super::expand::Expander::new().field_elements(message);
    let points = map_all(&elements);
    core::array::from_fn(|i| points[i].y.to_bytes())
}

/// x^3 + A x + B.
fn curve_equation(x: &Fp) -> Fp {
    x.square().add(&A).multiply(x).add(&B)
}

/// 11 x.
fn times_z(x: &Fp) -> Fp {
    let two = x.double();
    let three = two.add(x);
    three.add(&two.double().double())
}
