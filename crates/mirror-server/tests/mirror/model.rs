//! Random questions in SQL about a plain list of rows, and what they come to.

use std::collections::BTreeMap;

use counterfoil_proof::Value;

use crate::world::Dice;

/// A row of the owner's table; no two prices are alike, so that an order by price is one order.
#[derive(Clone, PartialEq)]
pub struct Price {
    pub symbol: u64,
    pub day: i64,
    pub price: i64,
}

impl Price {
    pub fn random(dice: &mut Dice, price: i64) -> Self {
        Self { symbol: dice.below(12), day: dice.below(6) as i64, price }
    }

    pub fn values(&self) -> Vec<Value> {
        let note = Value::Text(format!("note {}", self.price));
        vec![Value::Text(name(self.symbol)), Value::Integer(self.day), Value::Integer(self.price), note]
    }

    pub fn of(values: &[Value]) -> Self {
        match values {
            [Value::Text(symbol), Value::Integer(day), Value::Integer(price), _] => {
                Self { symbol: symbol[1..].parse().expect("a symbol"), day: *day, price: *price }
            }
            _ => panic!("a row of another table"),
        }
    }

    fn told(&self) -> Vec<String> {
        vec![name(self.symbol), self.day.to_string(), self.price.to_string(), format!("note {}", self.price)]
    }
}

fn name(symbol: u64) -> String {
    format!("S{symbol:02}")
}

/// Symbols of a second table that never changes: those of no price are told in a join, too.
pub const FIRMS: std::ops::Range<u64> = 4..30;

/// What a question comes to for some rows, as texts.
type Expected = dyn Fn(&[Price]) -> Vec<Vec<String>> + Send;

/// A question, and what it comes to.
pub struct Asked {
    pub kind: &'static str,
    pub sql: String,
    expected: Box<Expected>,
    is_sorted: bool,
}

impl Asked {
    fn new(kind: &'static str, sql: String, expected: impl Fn(&[Price]) -> Vec<Vec<String>> + Send + 'static) -> Self {
        Self { kind, sql, expected: Box::new(expected), is_sorted: false }
    }

    pub fn random(dice: &mut Dice) -> Self {
        let (a, b) = (dice.below(14), dice.below(14));
        let (low, high, day) = (a.min(b), a.max(b), dice.below(7) as i64);
        match dice.below(10) {
            0 => Self::new(
                "one record",
                format!("SELECT * FROM prices WHERE symbol = '{}' AND day = {day}", name(a)),
                move |rows| told(rows, |row| row.symbol == a && row.day == day),
            ),
            1 => Self::new(
                "a range",
                format!("SELECT * FROM prices WHERE symbol BETWEEN '{}' AND '{}'", name(low), name(high)),
                move |rows| told(rows, |row| (low..=high).contains(&row.symbol)),
            ),
            2 => Self::new(
                "many intervals",
                format!("SELECT * FROM prices WHERE symbol IN ('{}', '{}', 'X') AND day <> {day}", name(a), name(b)),
                move |rows| told(rows, |row| (row.symbol == a || row.symbol == b) && row.day != day),
            ),
            3 => limited(dice),
            4 => joined(FIRMS.start + low % 9),
            5 => joined_by_price(day),
            6 => totals(low, high),
            7 => groups(),
            8 => Self::new("no rows", "SELECT * FROM prices WHERE symbol = 'S05x'".into(), |_| Vec::new()),
            _ => Self::new("an empty table", "SELECT * FROM nothing".into(), |_| Vec::new()),
        }
    }

    /// Whether rows are what it comes to.
    pub fn is(&self, rows: &[Vec<Value>], prices: &[Price]) -> bool {
        let mut told: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
        let mut expected = (self.expected)(prices);
        if !self.is_sorted {
            told.sort();
            expected.sort();
        }
        told == expected
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Integer(value) => value.to_string(),
        Value::Numeric(value) => value.to_string(),
        Value::Text(value) => value.clone(),
        _ => panic!("a value of another type"),
    }
}

fn told(rows: &[Price], condition: impl Fn(&Price) -> bool) -> Vec<Vec<String>> {
    rows.iter().filter(|row| condition(row)).map(Price::told).collect()
}

fn limited(dice: &mut Dice) -> Asked {
    let (limit, is_down) = (1 + dice.below(9) as usize, dice.below(2) == 0);
    let sql = format!("SELECT * FROM prices ORDER BY price {} LIMIT {limit}", if is_down { "DESC" } else { "ASC" });
    let expected = move |rows: &[Price]| {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| if is_down { -row.price } else { row.price });
        rows.truncate(limit);
        told(&rows, |_| true)
    };
    Asked { is_sorted: true, ..Asked::new("a limit", sql, expected) }
}

fn joined(from: u64) -> Asked {
    let sql = format!(
        "SELECT f.symbol, p.price FROM firms f LEFT JOIN prices p ON f.symbol = p.symbol WHERE f.symbol >= '{}'",
        name(from)
    );
    Asked::new("a join by filters", sql, move |rows| {
        let of = |symbol: u64| rows.iter().filter(move |row| row.symbol == symbol);
        let pairs = |symbol: u64| {
            let none = of(symbol).next().is_none().then(|| vec![name(symbol), "NULL".into()]);
            of(symbol).map(move |row| vec![name(symbol), row.price.to_string()]).chain(none).collect::<Vec<_>>()
        };
        (from..FIRMS.end).flat_map(pairs).collect()
    })
}

/// Each firm's rank is its number, and so are the first prices.
fn joined_by_price(least: i64) -> Asked {
    let sql = format!("SELECT f.symbol, p.note FROM firms f JOIN prices p ON f.rank = p.price WHERE p.day >= {least}");
    Asked::new("a join by boundaries", sql, move |rows| {
        let is_one = |row: &&Price| row.day >= least && FIRMS.contains(&(row.price as u64));
        rows.iter().filter(is_one).map(|row| vec![name(row.price as u64), format!("note {}", row.price)]).collect()
    })
}

fn totals(low: u64, high: u64) -> Asked {
    let sql = format!(
        "SELECT count(*), sum(price), min(day), max(price) FROM prices WHERE symbol BETWEEN '{}' AND '{}'",
        name(low),
        name(high)
    );
    Asked::new("totals", sql, move |rows| {
        let rows: Vec<&Price> = rows.iter().filter(|row| (low..=high).contains(&row.symbol)).collect();
        let known = |value: Option<i64>| value.map_or("NULL".into(), |value| value.to_string());
        let sum = (!rows.is_empty()).then(|| rows.iter().map(|row| row.price).sum());
        let (day, price) = (rows.iter().map(|row| row.day).min(), rows.iter().map(|row| row.price).max());
        vec![vec![rows.len().to_string(), known(sum), known(day), known(price)]]
    })
}

fn groups() -> Asked {
    Asked::new("groups", "SELECT symbol, count(*), sum(price) FROM prices GROUP BY symbol".into(), |rows| {
        let mut groups: BTreeMap<u64, (u64, i64)> = BTreeMap::new();
        for row in rows {
            let group = groups.entry(row.symbol).or_default();
            *group = (group.0 + 1, group.1 + row.price);
        }
        let told = |(symbol, (count, sum)): (u64, (u64, i64))| vec![name(symbol), count.to_string(), sum.to_string()];
        groups.into_iter().map(told).collect()
    })
}
