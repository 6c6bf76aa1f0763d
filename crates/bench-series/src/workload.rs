//! What is stored: tuples of series that are measured at the same time, as the paper's generator makes them (section 4.2).
//!
//! All series of a sort are measured once in each round, in the order of their numbers, so tuples come in by time as the
//! streams of section 2.1 do. Times are milliseconds. Everything follows from a seed.

/// Series of each sort.
pub const SERIES: u32 = 100;
/// Milliseconds from one value of a series to the next, before they jitter.
pub const PERIOD: i64 = 1000;
/// When everything begins: 2026-01-01.
pub const BEGIN: i64 = 1_767_225_600_000;
/// Milliseconds that a measurement comes later than its period says, at most.
const JITTER: u64 = 16;
/// Bytes of a tuple in the paper: number of the series 4, time 8, value 4 (a boolean: 1), quality 1.
pub const TUPLE_BYTES: u64 = 17;
/// OPC's words for a value that is good and for one that is not.
const GOOD: u8 = 192;
const BAD: u8 = 64;

/// What kind of values a series has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Analog,
    Boolean,
}

impl Sort {
    pub const BOTH: [Sort; 2] = [Sort::Analog, Sort::Boolean];
}

/// A value that was measured. A boolean is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuple {
    pub series: u32,
    pub time: i64,
    pub value: f64,
    pub quality: u8,
}

/// How analog values go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Steps of up to 0.16 either way, two decimals.
    Walk,
    /// 21 bits of chance.
    Noise,
    /// A tenth more now and then: every hundredth value.
    Slow,
}

/// When values are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Every second.
    Regular,
    /// Every second, and up to 15 ms later.
    Jitter,
}

/// Chance: splitmix64.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(bound.max(1))) >> 64) as u64
    }
}

/// The stream of tuples of one sort.
pub struct Stream {
    sort: Sort,
    signal: Signal,
    clock: Clock,
    series: u32,
    dice: Dice,
    /// Tuples made so far.
    made: u64,
    /// Where each series stands, in hundredths or as a truth.
    levels: Vec<i64>,
    /// Of a hundred tuples, so many are held back.
    late_percent: u64,
    /// Those that are, and how many tuples have to come before them.
    held: Vec<(u64, Tuple)>,
}

impl Stream {
    pub fn new(sort: Sort, series: u32) -> Stream {
        Stream::with(sort, series, Signal::Walk, Clock::Jitter)
    }

    pub fn with(sort: Sort, series: u32, signal: Signal, clock: Clock) -> Stream {
        let mut dice = Dice::new(7 + sort as u64);
        let levels = (0..series).map(|_| if sort == Sort::Analog { dice.below(20_000) as i64 + 10_000 } else { 0 });
        let levels = levels.collect();
        Stream { sort, signal, clock, series, dice, made: 0, levels, late_percent: 0, held: Vec::new() }
    }

    /// From now on so many of a hundred tuples come late, by up to 50 rounds.
    pub fn be_late(&mut self, percent: u64) {
        self.late_percent = percent;
    }

    /// Goes on as if so many tuples had been made.
    pub fn skip(&mut self, tuples: u64) {
        self.made += tuples;
    }

    /// The next tuples, in the place of those that are in `tuples`.
    pub fn fill(&mut self, tuples: &mut Vec<Tuple>, count: usize) {
        tuples.clear();
        while tuples.len() < count {
            let tuple = self.next();
            if self.late_percent > 0 && self.dice.below(100) < self.late_percent {
                let due = self.made + self.dice.below(50 * u64::from(self.series)) + 1;
                self.held.push((due, tuple));
            } else {
                tuples.push(tuple);
            }
            if self.late_percent > 0 || !self.held.is_empty() {
                self.give_held(tuples, count);
            }
        }
    }

    fn give_held(&mut self, tuples: &mut Vec<Tuple>, count: usize) {
        let mut at = 0;
        while at < self.held.len() && tuples.len() < count {
            if self.held[at].0 <= self.made {
                tuples.push(self.held.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
    }

    fn next(&mut self) -> Tuple {
        let series = (self.made % u64::from(self.series)) as u32;
        let round = self.made / u64::from(self.series);
        let chance = self.dice.roll();
        let late = if self.clock == Clock::Jitter { (chance % JITTER) as i64 } else { 0 };
        let time = BEGIN + round as i64 * PERIOD + late;
        let quality = if (chance >> 8).is_multiple_of(1009) { BAD } else { GOOD };
        self.made += 1;
        Tuple { series, time, value: self.value(series, round, chance >> 20), quality }
    }

    fn value(&mut self, series: u32, round: u64, chance: u64) -> f64 {
        let level = &mut self.levels[series as usize];
        match (self.sort, self.signal) {
            (Sort::Boolean, _) => {
                *level ^= i64::from(chance.is_multiple_of(64));
                *level as f64
            }
            (Sort::Analog, Signal::Walk) => {
                *level += (chance % 33) as i64 - 16;
                *level as f64 / 100.0
            }
            (Sort::Analog, Signal::Noise) => (chance % (1 << 21)) as f64 / 4096.0,
            (Sort::Analog, Signal::Slow) => (*level / 10 + (round / 100) as i64) as f64 / 10.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_tuples_are_the_same_tuples_in_another_order() {
        let mut stream = Stream::new(Sort::Analog, 10);
        stream.be_late(20);
        let mut found = Vec::new();
        stream.fill(&mut found, 50_000);
        let behind = found.windows(11).filter(|pair| pair[10].time < pair[0].time).count();
        assert!((5_000..20_000).contains(&behind), "{behind}");
        let mut keys: Vec<_> = found.iter().map(|tuple| (tuple.series, tuple.time)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 50_000, "each is there once");
    }

    #[test]
    fn a_seed_gives_the_same_tuples_however_they_are_taken() {
        let (mut one, mut all, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        Stream::new(Sort::Boolean, 7).fill(&mut all, 5000);
        let mut stream = Stream::new(Sort::Boolean, 7);
        for part in [1, 999, 4000] {
            stream.fill(&mut one, part);
            taken.extend_from_slice(&one);
        }
        assert!(taken == all);
    }
}
