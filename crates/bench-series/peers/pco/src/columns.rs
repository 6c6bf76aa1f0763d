//! Columns as series have them. Everything follows from a seed.

/// A column.
pub struct Column {
    pub name: String,
    pub values: Values,
}

/// Its values.
pub enum Values {
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
}

/// Values of each: a good many leaves.
const COUNT: i64 = 120_000;
/// 2026-01-01 in microseconds.
const BEGIN: i64 = 1_767_225_600_000_000;

/// Chance: splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: i64) -> i64 {
        ((u128::from(self.roll()) * bound as u128) >> 64) as i64
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Spread as a bell with the mean 0 and the deviation 1: the sum of twelve.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }
}

fn integers(name: &str, mut value: impl FnMut(i64, &mut Dice) -> i64) -> Column {
    let mut dice = Dice(1);
    let values = (0..COUNT).map(|at| value(at, &mut dice)).collect();
    Column { name: name.to_owned(), values: Values::Integers(values) }
}

fn doubles(name: &str, mut value: impl FnMut(f64, &mut Dice) -> f64) -> Column {
    let mut dice = Dice(2);
    let values = (0..COUNT).map(|at| value(at as f64, &mut dice)).collect();
    Column { name: name.to_owned(), values: Values::Doubles(values) }
}

/// Times, in microseconds where nothing else is said.
pub fn times() -> Vec<Column> {
    let late = |at: i64, dice: &mut Dice| BEGIN / 1000 + at * 1000 + dice.below(16);
    vec![
        integers("times, regular", |at, _| BEGIN + at * 100_000),
        integers("times, up to 15 ms late, in ms", late),
        integers("times, up to 15 ms late, the same in ns", move |at, dice| late(at, dice) * 1_000_000),
        integers("times, up to 2 ms late", |at, dice| BEGIN + at * 100_000 + dice.below(2000)),
        integers("times, late as a bell", |at, dice| BEGIN + at * 100_000 + (dice.bell() * 150.0) as i64),
    ]
}

/// Integers.
pub fn counts() -> Vec<Column> {
    let (mut state, mut counter, mut queue) = (0, 0, 0_i64);
    vec![
        integers("quality, one in 1009 bad", |_, dice| if dice.below(1009) == 0 { 64 } else { 192 }),
        integers("state, another one in 20", move |_, dice| {
            state = if dice.below(20) == 0 { dice.below(5) } else { state };
            state
        }),
        integers("counter, reset one in 1000", move |_, dice| {
            counter = if dice.below(1000) == 0 { 0 } else { counter + dice.below(50) };
            counter
        }),
        integers("bytes, one in 100 far out", |_, dice| match dice.below(100) {
            0 => dice.below(1 << 30),
            _ => dice.below(256),
        }),
        integers("requests, long tail", move |_, dice| {
            queue = (queue + (dice.bell() * 3.0) as i64).max(0);
            queue + (-dice.part().max(1e-9).ln() * 20.0) as i64
        }),
    ]
}

/// Doubles: decimals, counts of a converter, and what a computation gives.
pub fn measurements() -> Vec<Column> {
    let (mut level, mut bell, mut single) = (20_000.0, 2000.0, 20.0);
    vec![
        doubles("decimal walk", move |_, dice| {
            level += dice.below(33) as f64 - 16.0;
            level / 100.0
        }),
        doubles("decimal walk, steps as a bell", move |_, dice| {
            bell += (dice.bell() * 5.0).round();
            bell / 100.0
        }),
        doubles("sine and a bell, two decimals", |at, dice| {
            ((at / 300.0).sin() * 5000.0 + dice.bell() * 8.0).round() / 100.0
        }),
        doubles("21 bits of noise", |_, dice| dice.below(1 << 21) as f64 / 4096.0),
        doubles("slow signal", |at, _| (at / 100.0).floor() / 10.0),
        doubles("sine times noise", |at, dice| (at / 300.0).sin() * (1.0 + dice.part() / 100.0)),
        doubles("square roots", |_, dice| dice.part().sqrt()),
        doubles("single widened, a walk", move |_, dice| {
            single += dice.bell() / 100.0;
            f64::from(single as f32)
        }),
        doubles("single widened, noise", |_, dice| f64::from((20.0 + dice.bell()) as f32)),
    ]
}
