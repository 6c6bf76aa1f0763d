//! Numbers modulo 2^61 - 1, in which shares are.
//!
//! A Mersenne prime: what is above 61 bits is folded down by an addition, and no division is needed. Its numbers fit into a
//! signed 64-bit column of any server, and a server without wide integers may add eight of them before it folds.

/// The modulus, 2^61 - 1.
pub const PRIME: u64 = (1 << 61) - 1;

/// A number below [`PRIME`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element(u64);

impl Element {
    /// The number nought.
    pub const ZERO: Self = Self(0);

    /// The number that is given, if it is below [`PRIME`]: for what others say.
    #[must_use]
    pub fn from_canonical(number: u64) -> Option<Self> {
        (number < PRIME).then_some(Self(number))
    }

    /// What is left of a number.
    #[must_use]
    pub fn reduce(number: u128) -> Self {
        let prime = u128::from(PRIME);
        // 128 bits become 67 and a carry, then 61 and one.
        let folded = (number & prime) + ((number >> 61) & prime) + (number >> 122);
        let folded = (folded & prime) as u64 + (folded >> 61) as u64;
        Self(if folded >= PRIME { folded - PRIME } else { folded })
    }

    /// A number that may be negative; its magnitude is below half the prime, so that [`Element::centred`] gives it back.
    #[must_use]
    pub fn from_signed(number: i64) -> Self {
        let magnitude = number.unsigned_abs();
        debug_assert!(magnitude <= PRIME / 2, "a number that the field cannot hold with its sign");
        if number < 0 { -Self(magnitude) } else { Self(magnitude) }
    }

    /// The number of this class that is nearest to nought.
    #[must_use]
    pub fn centred(self) -> i64 {
        if self.0 > PRIME / 2 { self.0 as i64 - PRIME as i64 } else { self.0 as i64 }
    }

    /// The number itself.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// What times this is one; nought has none.
    #[must_use]
    pub fn inverse(self) -> Option<Self> {
        if self.0 == 0 {
            return None;
        }
        // By Fermat: the power of p - 2. Who waits for it is the owner alone, of numbers that are no secret.
        let (mut power, mut base, mut left) = (Self(1), self, PRIME - 2);
        while left > 0 {
            if left & 1 == 1 {
                power = power * base;
            }
            base = base * base;
            left >>= 1;
        }
        Some(power)
    }
}

impl std::ops::Add for Element {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        Self(if sum >= PRIME { sum - PRIME } else { sum })
    }
}

impl std::ops::AddAssign for Element {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::Neg for Element {
    type Output = Self;

    fn neg(self) -> Self {
        Self(if self.0 == 0 { 0 } else { PRIME - self.0 })
    }
}

impl std::ops::Sub for Element {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl std::ops::Mul for Element {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::reduce(u128::from(self.0) * u128::from(other.0))
    }
}

impl std::iter::Sum for Element {
    fn sum<I: Iterator<Item = Self>>(elements: I) -> Self {
        // Eight numbers of 61 bits fit into 64: with 128, no column is too long.
        Self::reduce(elements.map(|element| u128::from(element.0)).sum())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Element, PRIME};

    fn plain(number: u128) -> u64 {
        (number % u128::from(PRIME)) as u64
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_remainders(one in any::<u128>(), other in any::<u128>()) {
            let (a, b) = (Element::reduce(one), Element::reduce(other));
            prop_assert_eq!(a.number(), plain(one));
            let (x, y) = (u128::from(a.number()), u128::from(b.number()));
            prop_assert_eq!((a + b).number(), plain(x + y));
            prop_assert_eq!((a * b).number(), plain(x * y));
            prop_assert_eq!((a - b).number(), plain(x + u128::from(PRIME) - y));
            prop_assert_eq!(a + -a, Element::ZERO);
            if let Some(inverse) = a.inverse() {
                prop_assert_eq!((a * inverse).number(), 1);
            }
        }

        #[test]
        fn signed_numbers_come_back(number in -((PRIME / 2) as i64)..=(PRIME / 2) as i64) {
            prop_assert_eq!(Element::from_signed(number).centred(), number);
        }
    }

    #[test]
    fn the_ends_of_what_is_reduced_are_right() {
        for number in [0, 1, u128::from(PRIME), u128::from(PRIME) * u128::from(PRIME), u128::MAX, u128::MAX - 1] {
            assert_eq!(Element::reduce(number).number(), plain(number), "{number}");
        }
        assert_eq!(Element::from_canonical(PRIME), None);
        assert_eq!(Element::ZERO.inverse(), None);
        assert_eq!([Element::reduce(u128::from(PRIME) - 1); 9].into_iter().sum::<Element>(), -Element::reduce(9));
    }
}
