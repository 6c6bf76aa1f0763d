//! Lists of values about one column, in any chain of AND, OR and NOT, against three-valued logic by hand.

use crate::database::Database;

/// Numbers that nobody foresees, and everybody has alike.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A row: two values, each perhaps NULL.
type Row = [Option<i64>; 2];
/// TRUE, FALSE or NULL.
type Truth = Option<bool>;

enum Condition {
    /// A column's value is one of these; the last ones are the other column's.
    In {
        column: usize,
        list: Vec<Option<i64>>,
        has_other: bool,
        is_denied: bool,
    },
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    fn drawn(dice: &mut Dice, depth: u32) -> Self {
        let several = |dice: &mut Dice| (0..2 + dice.roll(2)).map(|_| Self::drawn(dice, depth - 1)).collect();
        match dice.roll(if depth == 0 { 1 } else { 5 }) {
            1 => Self::Not(Box::new(Self::drawn(dice, depth - 1))),
            2 => Self::All(several(dice)),
            3 | 4 => Self::Any(several(dice)),
            _ => {
                let item = |dice: &mut Dice| (dice.roll(8) > 0).then(|| dice.roll(5) as i64);
                let list = (0..1 + dice.roll(6)).map(|_| item(dice)).collect();
                let (has_other, is_denied) = (dice.roll(9) == 0, dice.roll(2) == 0);
                Self::In { column: (dice.roll(6) == 0).into(), list, has_other, is_denied }
            }
        }
    }

    fn sql(&self) -> String {
        let joined = |of: &[Condition], word: &str| {
            of.iter().map(|own| format!("({})", own.sql())).collect::<Vec<_>>().join(word)
        };
        match self {
            Self::In { column, list, has_other, is_denied } => {
                let names = ["a", "b"];
                let mut items: Vec<String> =
                    list.iter().map(|item| item.map_or("NULL".to_owned(), |item| item.to_string())).collect();
                items.extend(has_other.then(|| names[1 - column].to_owned()));
                format!("{}{} IN ({})", names[*column], if *is_denied { " NOT" } else { "" }, items.join(", "))
            }
            Self::Not(own) => format!("NOT ({})", own.sql()),
            Self::All(of) => joined(of, " AND "),
            Self::Any(of) => joined(of, " OR "),
        }
    }

    fn truth(&self, row: &Row) -> Truth {
        match self {
            Self::In { column, list, has_other, is_denied } => {
                let own = row[*column];
                let items = list.iter().copied().chain(has_other.then(|| row[1 - column]));
                any(items.map(|item| Some(own? == item?))).map(|is_in| is_in != *is_denied)
            }
            Self::Not(own) => own.truth(row).map(|own| !own),
            Self::All(of) => any(of.iter().map(|own| own.truth(row).map(|own| !own))).map(|none| !none),
            Self::Any(of) => any(of.iter().map(|own| own.truth(row))),
        }
    }
}

/// OR.
fn any(mut of: impl Iterator<Item = Truth>) -> Truth {
    let mut is_known = true;
    let is_true = of.any(|own| {
        is_known &= own.is_some();
        own == Some(true)
    });
    if is_true { Some(true) } else { is_known.then_some(false) }
}

#[test]
fn lists_about_one_column_are_what_they_are_alone() {
    let values = [None, Some(0), Some(1), Some(2), Some(3), Some(4)];
    let rows: Vec<Row> = values.iter().flat_map(|a| values.map(|b| [*a, b])).collect();
    let mut database = Database::after("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)");
    for (id, row) in rows.iter().enumerate() {
        let [a, b] = row.map(|value| value.map_or("NULL".to_owned(), |value| value.to_string()));
        database.ask(&format!("INSERT INTO t VALUES ({id}, {a}, {b})"));
    }
    let mut dice = Dice(7);
    for _ in 0..400 {
        let condition = Condition::drawn(&mut dice, 3);
        let sql = condition.sql();
        let is_true = |row: &&(usize, &Row)| condition.truth(row.1) == Some(true);
        let expected: Vec<String> =
            rows.iter().enumerate().collect::<Vec<_>>().iter().filter(is_true).map(|(id, _)| id.to_string()).collect();
        // As relations answer it themselves, and as the query library does, which a call makes plan it.
        for more in ["", " AND id < length('a string of forty letters, or some more')"] {
            let asked = format!("SELECT id FROM t WHERE ({sql}){more} ORDER BY id");
            assert_eq!(database.ask(&asked), expected.join("\n"), "{asked}");
        }
        let shown = |row: &Row| match condition.truth(row) {
            None => "",
            Some(true) => "t",
            Some(false) => "f",
        };
        let expected: Vec<&str> = rows.iter().map(shown).collect();
        let asked = format!("SELECT CASE WHEN {sql} THEN 't' WHEN NOT ({sql}) THEN 'f' ELSE '' END FROM t ORDER BY id");
        assert_eq!(database.ask(&asked), expected.join("\n"), "{asked}");
    }
}

#[test]
fn integers_beside_real_are_not_rounded() {
    let mut database = Database::after("CREATE TABLE t (id INT, r REAL)");
    database.ask("INSERT INTO t VALUES (1, 16777216), (2, 5)");
    for (condition, expected) in [
        ("r = 16777217", ""),
        ("r < 16777217", "1\n2"),
        ("r <> 16777217", "1\n2"),
        ("r >= 16777217", ""),
        ("r IN (16777217, 5)", "2"),
        ("r BETWEEN 16777217 AND 16777219", ""),
        ("r = CAST(16777217 AS BIGINT)", ""),
        ("r = 16777216", "1"),
    ] {
        for more in ["", " AND id < length('forty')"] {
            let asked = format!("SELECT id FROM t WHERE {condition}{more} ORDER BY id");
            assert_eq!(database.ask(&asked), expected, "{asked}");
        }
    }
}
