//! Points of E: y^2 = x^3 + 4 and, affine alone, of any curve y^2 = x^3 + a x + b.

use super::field::Fp;

/// A point that is not at infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Affine {
    pub x: Fp,
    pub y: Fp,
}

impl Affine {
    pub(crate) fn negate(&self) -> Affine {
        Affine { x: self.x, y: self.y.negate() }
    }
}

/// A point of E as (x / z^2, y / z^3); z = 0 is infinity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jacobian {
    pub x: Fp,
    pub y: Fp,
    pub z: Fp,
}

impl Jacobian {
    pub(crate) const INFINITY: Jacobian = Jacobian { x: Fp::ONE, y: Fp::ONE, z: Fp::ZERO };

    pub(crate) fn is_infinity(&self) -> bool {
        self.z.is_zero()
    }

    /// None at infinity.
    pub(crate) fn to_affine(self) -> Option<Affine> {
        if self.is_infinity() {
            return None;
        }
        let inverse = self.z.invert();
        let squared = inverse.square();
        Some(Affine { x: self.x.multiply(&squared), y: self.y.multiply(&squared.multiply(&inverse)) })
    }

    /// dbl-2009-l of the Explicit-Formulas Database. No point of E has order two, and infinity stays infinity.
    pub(crate) fn double(&self) -> Jacobian {
        let a = self.x.square();
        let b = self.y.square();
        let c = b.square();
        let d = self.x.add(&b).square().subtract(&a).subtract(&c).double();
        let e = a.double().add(&a);
        let x = e.square().subtract(&d.double());
        let y = e.multiply(&d.subtract(&x)).subtract(&c.double().double().double());
        Jacobian { x, y, z: self.y.multiply(&self.z).double() }
    }

    /// The sum, whatever the points: equal, opposite or at infinity.
    pub(crate) fn add(&self, other: &Jacobian) -> Jacobian {
        if self.is_infinity() {
            return *other;
        }
        if other.is_infinity() {
            return *self;
        }
        let (z1, z2) = (self.z.square(), other.z.square());
        let (u1, u2) = (self.x.multiply(&z2), other.x.multiply(&z1));
        let s1 = self.y.multiply(&z2.multiply(&other.z));
        let s2 = other.y.multiply(&z1.multiply(&self.z));
        let (h, r) = (u2.subtract(&u1), s2.subtract(&s1));
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Jacobian::INFINITY };
        }
        chord(&u1, &s1, &h, &r, &self.z.multiply(&other.z))
    }

    /// The same for a point without denominators.
    pub(crate) fn add_affine(&self, other: &Affine) -> Jacobian {
        if self.is_infinity() {
            return Jacobian::from(*other);
        }
        let z1 = self.z.square();
        let h = other.x.multiply(&z1).subtract(&self.x);
        let r = other.y.multiply(&z1.multiply(&self.z)).subtract(&self.y);
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Jacobian::INFINITY };
        }
        chord(&self.x, &self.y, &h, &r, &self.z)
    }

    pub(crate) fn negate(&self) -> Jacobian {
        Jacobian { y: self.y.negate(), ..*self }
    }
}

/// The third point on a chord: from one point (u1, s1) over the common denominator z, the other being at (h, r) from it.
fn chord(u1: &Fp, s1: &Fp, h: &Fp, r: &Fp, z: &Fp) -> Jacobian {
    let h2 = h.square();
    let h3 = h2.multiply(h);
    let v = u1.multiply(&h2);
    let x = r.square().subtract(&h3).subtract(&v.double());
    let y = r.multiply(&v.subtract(&x)).subtract(&s1.multiply(&h3));
    Jacobian { x, y, z: z.multiply(h) }
}

impl From<Affine> for Jacobian {
    fn from(point: Affine) -> Jacobian {
        Jacobian { x: point.x, y: point.y, z: Fp::ONE }
    }
}
