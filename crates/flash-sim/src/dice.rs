//! Chance under a seed.

/// A stream of random numbers that is the same for the same seed, on every machine and for ever (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of one event: it does not depend on how many numbers other events took.
    pub fn of_event(seed: u64, event: u64) -> Self {
        let mut dice = Self::new(seed);
        let mixed = dice.roll() ^ event;
        let mut dice = Self::new(mixed);
        dice.roll();
        dice
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.roll()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `times` throws.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
