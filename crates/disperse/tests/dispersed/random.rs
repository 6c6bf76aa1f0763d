//! Numbers that are drawn, the same each time.

use counterfoil_disperse::fragments::Name;

/// Numbers that are drawn: the same for the same seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number() as u8).collect()
    }

    pub fn array<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        std::array::from_fn(|_| self.number() as u8)
    }

    pub fn name(&mut self, letter: char) -> Name {
        Name::parse(&format!("{letter}{:016x}", self.number())).expect("a name")
    }
}
