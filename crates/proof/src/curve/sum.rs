//! Sums of many points, a level of a tree at a time: one inversion a level, six multiplications a sum.

use super::expand::Expander;
use super::field::{Fp, invert_all};
use super::isogeny::to_group;
use super::mapping::{A, WrongHint, map_all, map_hinted};
use super::point::{Affine, Jacobian};
use alloc::vec::Vec;

/// As many points are summed at a time: they stay in the nearer caches, and memory stays bounded.
const POINTS_AT_ONCE: usize = 1024;

/// The sum on E' of the mapped points of messages; None at infinity.
pub(crate) fn hash_sum<'a>(messages: impl Iterator<Item = &'a [u8; 32]>) -> Option<Affine> {
    sum(&mut map_all(&field_elements(messages)), &A)
}

/// The same by hints: two roots a message, in order.
pub(crate) fn hinted_sum<'a>(
    messages: impl Iterator<Item = &'a [u8; 32]>,
    hints: impl Iterator<Item = &'a [u8; 48]>,
) -> Result<Option<Affine>, WrongHint> {
    Ok(sum(&mut map_hinted(&field_elements(messages), hints)?, &A))
}

fn field_elements<'a>(messages: impl Iterator<Item = &'a [u8; 32]>) -> Vec<Fp> {
    let expander = Expander::new();
    messages.flat_map(|message| expander.field_elements(message)).collect()
}

/// The hash of messages on G1 from their sums on E', one of each part.
pub(crate) fn to_curve(parts: impl Iterator<Item = Option<Affine>>) -> Option<Affine> {
    let mut parts: Vec<Affine> = parts.flatten().collect();
    to_group(sum(&mut parts, &A)).to_affine()
}

/// The sum of points of E.
pub(crate) fn signature_sum(points: impl Iterator<Item = Affine>) -> Jacobian {
    let (mut total, mut batch) = (Jacobian::INFINITY, Vec::with_capacity(POINTS_AT_ONCE));
    let mut points = points.peekable();
    while points.peek().is_some() {
        batch.extend(points.by_ref().take(POINTS_AT_ONCE));
        if let Some(part) = sum(&mut batch, &Fp::ZERO) {
            total = total.add_affine(&part);
        }
        batch.clear();
    }
    total
}

/// The sum of points of y^2 = x^3 + a x + b; None at infinity. The points are used up.
pub(crate) fn sum(points: &mut Vec<Affine>, a: &Fp) -> Option<Affine> {
    let (mut slopes, mut scratch) = (Vec::with_capacity(points.len() / 2), Vec::with_capacity(points.len() / 2));
    while points.len() > 1 {
        halve(points, a, &mut slopes, &mut scratch);
    }
    points.first().copied()
}

/// How two points are added.
enum Pair {
    Chord,
    Tangent,
    /// They are opposite: the sum is infinity, and leaves the list.
    Opposite,
}

fn pair(left: &Affine, right: &Affine) -> Pair {
    if left.x != right.x {
        Pair::Chord
    } else if left.y == right.y && !left.y.is_zero() {
        Pair::Tangent
    } else {
        Pair::Opposite
    }
}

/// Replaces every two neighbours by their sum.
fn halve(points: &mut Vec<Affine>, a: &Fp, denominators: &mut Vec<Fp>, scratch: &mut Vec<Fp>) {
    denominators.clear();
    denominators.extend(points.chunks_exact(2).map(|two| match pair(&two[0], &two[1]) {
        Pair::Chord => two[1].x.subtract(&two[0].x),
        Pair::Tangent => two[0].y.double(),
        Pair::Opposite => Fp::ONE,
    }));
    invert_all(denominators, scratch);
    let mut kept = 0;
    for (i, inverse) in denominators.iter().enumerate() {
        let (left, right) = (points[2 * i], points[2 * i + 1]);
        let rise = match pair(&left, &right) {
            Pair::Chord => right.y.subtract(&left.y),
            Pair::Tangent => {
                let squared = left.x.square();
                squared.double().add(&squared).add(a)
            }
            Pair::Opposite => continue,
        };
        let slope = rise.multiply(inverse);
        let x = slope.square().subtract(&left.x).subtract(&right.x);
        let y = slope.multiply(&left.x.subtract(&x)).subtract(&left.y);
        points[kept] = Affine { x, y };
        kept += 1;
    }
    if points.len() % 2 == 1 {
        points[kept] = points[points.len() - 1];
        kept += 1;
    }
    points.truncate(kept);
}
