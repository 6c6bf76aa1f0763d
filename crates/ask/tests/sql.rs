//! What a SELECT may say, what it means, and what is refused by name.

use counterfoil_ask::{Asked, Error, Table, text};
use counterfoil_proof::{Column, Definition, Scheme, Type, Value};
use proptest::prelude::*;

fn definition() -> Definition {
    let columns = [
        ("id", Type::Integer),
        ("price", Type::Numeric(10, 2)),
        ("name", Type::Text),
        ("at", Type::Timestamp),
        ("seen", Type::TimestampTz),
        ("total", Type::BigInt),
        ("ratio", Type::Double),
        ("Odd", Type::Boolean),
        ("key", Type::Uuid),
        ("day", Type::Date),
    ];
    Definition {
        table: [3; 16],
        name: "fares".into(),
        columns: columns.map(|(name, kind)| Column { name: name.into(), kind }).to_vec(),
        orders: vec![vec![0], vec![1], vec![3]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: Vec::new(),
    }
}

/// A row with these values by column, and NULL elsewhere.
fn row(values: &[(usize, Value)]) -> Vec<Value> {
    let mut row = vec![Value::Null; definition().columns.len()];
    for (column, value) in values {
        row[*column] = value.clone();
    }
    row
}

fn asked(sql: &str) -> Result<Asked, Error> {
    Asked::parse(sql, &definition())
}

/// The result over the rows that an honest mirror sends.
fn answer(sql: &str, rows: &[Vec<Value>]) -> Result<Table, Error> {
    let asked = asked(sql)?;
    let Some(question) = asked.question() else { return asked.answer(Vec::new()) };
    let order = usize::from(question.order());
    let is_asked = |(rid, row): &(usize, &Vec<Value>)| {
        let position =
            definition().position(order, |column| &row[usize::from(column)], *rid as u64).expect("a short key");
        question.intervals().iter().any(|interval| interval.contains(&position))
    };
    let shown = |row: &Vec<Value>| question.columns().iter().map(|column| row[usize::from(*column)].clone()).collect();
    asked.answer(rows.iter().enumerate().filter(is_asked).map(|(_, row)| shown(row)).collect())
}

fn texts(table: &Table) -> Vec<Vec<Option<String>>> {
    let row = |row: &Vec<Value>| row.iter().zip(&table.kinds).map(|(value, kind)| text(*kind, value)).collect();
    table.rows.iter().map(row).collect()
}

fn first_row(sql: &str, rows: &[Vec<Value>]) -> Vec<String> {
    let table = answer(sql, rows).unwrap_or_else(|error| panic!("{sql}: {error}"));
    texts(&table)[0].iter().map(|value| value.clone().unwrap_or("NULL".into())).collect()
}

#[test]
fn unknown_is_neither_true_nor_false() {
    let rows = [row(&[(2, Value::Text("x".into()))]), row(&[(2, Value::Text("y".into())), (5, Value::Integer(4))])];
    for (condition, count) in [
        ("total = 4", 1),
        ("total <> 4", 0),
        ("NOT (total = 4)", 0),
        ("NOT (total = 5)", 1),
        ("total = 4 OR name = 'x'", 2),
        ("total = 5 AND name = 'z'", 0),
        ("NOT (total = 5 AND name = 'z')", 2),
        ("(total = 4) IS UNKNOWN", 1),
        ("(total = 4) IS NOT TRUE", 1),
        ("total IS NULL", 1),
        ("total IS NOT NULL", 1),
        ("total IN (4, NULL)", 1),
        ("total NOT IN (5, NULL)", 0),
        ("NOT (total IN (5))", 1),
        ("total NOT BETWEEN 5 AND 6", 1),
        ("name LIKE NULL OR name NOT LIKE '_'", 0),
        ("NULL OR name = 'x'", 1),
        ("name <> 'q' AND TRUE", 2),
    ] {
        assert_eq!(
            first_row(&format!("SELECT count(*) FROM fares WHERE {condition}"), &rows),
            [count.to_string()],
            "{condition}"
        );
    }
}

#[test]
fn literals_meet_a_column_exactly() {
    let rows = [row(&[
        (0, Value::Integer(2)),
        (1, Value::Numeric(1000)),
        (3, Value::Integer(86_400_000_000)),
        (4, Value::Integer(0)),
        (6, Value::Double(0.1)),
        (7, Value::Boolean(true)),
        (8, Value::Uuid([0xab; 16])),
        (9, Value::Integer(1)),
    ])];
    for (condition, count) in [
        ("price < 10.005", 1),
        ("price < 10.00", 0),
        ("price = 1e1", 1),
        ("price = '10.000'", 1),
        ("price > -99999999999999999999", 1),
        ("price < 1e50", 1),
        ("2.5 > id", 1),
        ("id >= 2.000", 1),
        ("id < +2.5 AND id > 1.5", 1),
        ("id = '2'", 1),
        ("at = '1970-01-02'", 1),
        ("at = DATE '1970-01-02'", 1),
        ("at > TIMESTAMP '1970-01-01 23:59:59.999999'", 1),
        ("day > TIMESTAMP '1970-01-01 12:00:00' AND day < TIMESTAMP '1970-01-02 00:00:00.1'", 1),
        ("day = '1970-01-02'::date", 1),
        ("seen = TIMESTAMPTZ '1970-01-01 02:00:00+02'", 1),
        ("seen = TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00Z'", 1),
        ("ratio = 0.1", 1),
        ("ratio < 'NaN'", 1),
        ("\"Odd\"", 1),
        ("NOT \"Odd\" = FALSE", 1),
        ("key = 'abababab-abab-abab-abab-abababababab'", 1),
        ("key = UUID 'abababab-abab-abab-abab-abababababab'", 1),
    ] {
        assert_eq!(
            first_row(&format!("SELECT count(*) FROM fares WHERE {condition}"), &rows),
            [count.to_string()],
            "{condition}"
        );
    }
}

#[test]
fn aggregates_are_those_of_postgres() {
    let rows: Vec<Vec<Value>> = [(1, 150), (2, 250), (4, -999)]
        .map(|(n, price)| {
            row(&[
                (0, Value::Integer(n)),
                (1, Value::Numeric(price)),
                (5, Value::Integer(i64::MAX)),
                (6, Value::Double(0.5)),
            ])
        })
        .into_iter()
        .chain([row(&[])])
        .collect();
    assert_eq!(
        first_row(
            "SELECT COUNT(*), count(id), SUM(id), AVG(id), MIN(price), MAX(price), SUM(price), AVG(price), sum(total), avg(ratio) FROM fares",
            &rows
        ),
        [
            "4",
            "3",
            "7",
            "2.3333333333333333",
            "-9.99",
            "2.50",
            "-5.99",
            "-1.9966666666666667",
            "27670116110564327421",
            "0.5"
        ]
    );
    assert_eq!(
        first_row("SELECT SUM(id), MIN(id), AVG(id), COUNT(id) FROM fares WHERE id > 9", &[]),
        ["NULL", "NULL", "NULL", "0"]
    );
    let table = answer("SELECT max(id) AS most FROM fares ORDER BY most LIMIT 5", &rows).expect("an answer");
    assert_eq!((table.names, table.kinds), (vec!["most".to_string()], vec![Type::Integer]));
    let wide = Definition {
        columns: vec![Column { name: "n".into(), kind: Type::Numeric(38, 0) }],
        orders: vec![vec![0]],
        ..definition()
    };
    let most = vec![vec![Value::Numeric(10i128.pow(38) - 1)]; 3];
    for (sql, what) in [("SELECT sum(n) FROM fares", "a sum"), ("SELECT avg(n) FROM fares", "a sum")] {
        let asked = Asked::parse(sql, &wide).expect("a SELECT");
        assert_eq!(asked.answer(most.clone()), Err(Error::Overflow(what)));
    }
    assert_eq!(
        Asked::parse("SELECT avg(n) FROM fares", &wide).expect("a SELECT").answer(vec![most[0].clone()]),
        Err(Error::Overflow("a mean"))
    );
}

#[test]
fn results_are_named_sorted_and_distinct() {
    let rows: Vec<Vec<Value>> = [3, 1, 3, 2].map(|n| row(&[(0, Value::Integer(n)), (5, Value::Integer(-n))])).to_vec();
    let shown = |sql: &str| -> Vec<String> {
        let table = answer(sql, &rows).unwrap_or_else(|error| panic!("{sql}: {error}"));
        texts(&table).into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        shown("SELECT id AS total, f.total AS id FROM fares AS f ORDER BY id"),
        ["3 -3", "3 -3", "2 -2", "1 -1"]
    );
    assert_eq!(shown("SELECT DISTINCT id FROM fares ORDER BY 1 DESC LIMIT 2;"), ["3", "2"]);
    assert_eq!(shown("SELECT ID FROM Fares ORDER BY fares.total OFFSET 1 ROWS"), ["3", "2", "1"]);
    assert_eq!(shown("SELECT id FROM fares ORDER BY id LIMIT 0"), [""; 0]);
    assert_eq!(shown("SELECT id FROM fares ORDER BY id LIMIT ALL").len(), 4);
    assert_eq!(answer("SELECT f.* FROM fares f", &rows).expect("an answer").names.len(), 10);
    assert_eq!(Asked::table_of("SELECT x FROM \"Weird Name\" WHERE y = 1"), Ok("Weird Name".into()));
}

#[test]
fn the_rest_is_refused_by_name() {
    for (sql, what) in [
        ("SELECT id, count(*) FROM fares", "GROUP BY"),
        ("SELECT id, name FROM fares GROUP BY id", "GROUP BY does not name"),
        ("SELECT id FROM fares GROUP BY id + 1", "GROUP BY"),
        ("SELECT count(*) FROM fares GROUP BY 1", "GROUP BY"),
        ("SELECT id FROM fares GROUP BY id HAVING id > 1", "HAVING"),
        ("SELECT DISTINCT id FROM fares GROUP BY id", "DISTINCT"),
        ("SELECT id FROM fares GROUP BY ROLLUP (id)", "GROUP BY"),
        ("SELECT id FROM fares GROUP BY ALL", "GROUP BY"),
        ("SELECT id FROM fares GROUP BY id ORDER BY count(*)", "ORDER BY"),
        ("SELECT id, count(*) FROM fares", "columns beside aggregates"),
        ("SELECT count(*) FROM fares HAVING count(*) > 1", "HAVING"),
        ("SELECT count(DISTINCT id) FROM fares", "functions with DISTINCT"),
        ("SELECT sum(id) FILTER (WHERE id > 1) FROM fares", "functions with DISTINCT"),
        ("SELECT sum(id) OVER () FROM fares", "functions with DISTINCT"),
        ("SELECT sum(id + 1) FROM fares", "sum of anything but a column"),
        ("SELECT lower(name) FROM fares", "the function lower"),
        ("SELECT id + 1 FROM fares", "operators"),
        ("SELECT 1 FROM fares", "this expression"),
        ("SELECT id FROM fares, other", "tables in FROM without JOIN"),
        ("SELECT id FROM fares JOIN other USING (id)", "a join without ON"),
        ("SELECT id FROM fares CROSS JOIN other", "joins but JOIN and LEFT JOIN"),
        ("SELECT id FROM fares JOIN other ON fares.id = other.id", "one table"),
        ("SELECT id FROM (SELECT id FROM fares) AS f", "a table in FROM"),
        ("SELECT id FROM public.fares", "several parts"),
        ("SELECT id FROM fares TABLESAMPLE BERNOULLI (10)", "a table in FROM"),
        ("SELECT id FROM fares UNION SELECT id FROM fares", "one SELECT"),
        ("WITH x AS (SELECT 1) SELECT id FROM fares", "one SELECT"),
        ("DELETE FROM fares", "one SELECT"),
        ("SELECT id FROM fares FOR UPDATE", "FOR UPDATE"),
        ("SELECT id FROM fares FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ("SELECT DISTINCT ON (id) id FROM fares", "DISTINCT ON"),
        ("SELECT DISTINCT id FROM fares ORDER BY total", "DISTINCT with ORDER BY"),
        ("SELECT id FROM fares ORDER BY id + 1", "ORDER BY anything but columns"),
        ("SELECT id FROM fares ORDER BY 7", "ORDER BY a number"),
        ("SELECT id FROM fares LIMIT 1 + 1", "LIMIT"),
        ("SELECT id FROM fares WHERE id IN (SELECT 1)", "subqueries"),
        ("SELECT id FROM fares WHERE name ILIKE 'a%'", "ILIKE"),
        ("SELECT id FROM fares WHERE id = total", "columns of two types"),
        ("SELECT id FROM fares WHERE 1 = 1", "literals alone"),
        ("SELECT id FROM fares WHERE id = $1", "parameters"),
        ("SELECT id FROM fares WHERE id = ARRAY[1]", "ARRAY"),
        ("SELECT id FROM fares WHERE id % 2 = 0", "operators"),
        ("SELECT id INTO x FROM fares", "SELECT INTO"),
    ] {
        match asked(sql).err() {
            Some(error @ Error::NotSupported(_)) => {
                let shown = error.to_string();
                assert!(shown.starts_with("not supported: ") && shown.contains(what), "{sql}: {shown}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert!(matches!(asked("SELECT id FROM fares; SELECT id FROM fares"), Err(Error::Syntax(_))));
    assert!(matches!(asked("SELECT FROM WHERE"), Err(Error::Syntax(_) | Error::NotSupported(_))));
}

#[test]
fn wrong_names_and_types_are_told() {
    let columns: Vec<String> = definition().columns.iter().map(|column| column.name.clone()).collect();
    assert_eq!(
        asked("SELECT prize FROM fares").err(),
        Some(Error::UnknownColumn { name: "prize".into(), columns: columns.clone() })
    );
    assert_eq!(asked("SELECT odd FROM fares").err(), Some(Error::UnknownColumn { name: "odd".into(), columns }));
    for table in
        ["SELECT id FROM fare", "SELECT g.id FROM fares f", "SELECT fares.id FROM fares f", "SELECT g.* FROM fares f"]
    {
        assert!(matches!(asked(table), Err(Error::UnknownTable { .. })), "{table}");
    }
    for condition in [
        "id = TRUE",
        "name = 5",
        "price = DATE '2024-01-01'",
        "name",
        "at LIKE '2024%'",
        "\"Odd\" = 1",
        "at = TIME '10:00'",
    ] {
        let error = asked(&format!("SELECT id FROM fares WHERE {condition}")).err();
        assert!(matches!(error, Some(Error::TypeMismatch { .. })), "{condition}: {error:?}");
    }
    for condition in ["id = 'x'", "at = 'yesterday'", "ratio = 1e999", "day = DATE '2023-02-30'", "id = '99999999999'"]
    {
        let error = asked(&format!("SELECT id FROM fares WHERE {condition}")).err();
        assert!(matches!(error, Some(Error::NoValue(_))), "{condition}: {error:?}");
    }
    for list in ["sum(name)", "avg(at)", "min(\"Odd\")"] {
        assert!(matches!(asked(&format!("SELECT {list} FROM fares")), Err(Error::TypeMismatch { .. })), "{list}");
    }
}

#[test]
fn rows_of_another_question_are_refused() {
    let asked = asked("SELECT name FROM fares WHERE id > 1 AND name LIKE '%x'").expect("a SELECT");
    for row in [vec![], vec![Value::Null], vec![Value::Text("x".into()), Value::Integer(4)], vec![Value::Null; 3]] {
        assert!(matches!(asked.answer(vec![row]), Err(Error::OtherRows(_))));
    }
    let nobody = Asked::parse("SELECT id FROM fares WHERE FALSE", &definition()).expect("a SELECT");
    assert!(matches!(nobody.answer(vec![vec![]]), Err(Error::OtherRows(_))));
}

/// Runs on a stack as small as one in a browser.
fn on_a_small_stack(sql: String) -> Result<(), Error> {
    let run = move || Asked::parse(&sql, &definition()).map(|_| ());
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread").join().expect("no panic")
}

#[test]
fn depth_is_bounded() {
    let select = |condition: String| format!("SELECT id FROM fares WHERE {condition}");
    let began = std::time::Instant::now();
    for condition in [
        "(".repeat(10_000),
        format!("{}id = 1{}", "(".repeat(60), ")".repeat(60)),
        "NOT ".repeat(10_000),
        format!("{}id = 1", "NOT ".repeat(2000)),
        format!("id = {}1", "- ".repeat(5000)),
        format!("id = 1{}", " + 1".repeat(4000)),
        format!("id = 1{}", " + 1".repeat(9000)),
        format!("id{}", " IS NULL".repeat(2000)),
        format!("id = 1{}", "!".repeat(4000)),
        format!("id = x{}", "::int".repeat(2000)),
        format!("id = CAST(1 AS {}INT", "ARRAY<".repeat(2000)),
        format!("id = 1::int{}", "[]".repeat(9000)),
        format!("id = {}", "CASE WHEN ".repeat(3000)),
        format!("id = {}", "INTERVAL ".repeat(3000)),
        format!("id IN {}", "(1, (".repeat(9)),
        format!("id{}", "[1".repeat(4000)),
        format!("id = 1 UNION {}", "SELECT id FROM fares UNION ".repeat(800)),
        format!("id = {}", "f(".repeat(4000)),
    ] {
        let what: String = condition.chars().take(40).collect();
        assert!(on_a_small_stack(select(condition)).is_err(), "{what}");
    }
    assert_eq!(on_a_small_stack(select(format!("id = 1{}", " OR id = 2".repeat(1300)))), Ok(()));
    assert_eq!(on_a_small_stack(select(format!("{}id = 1{}", "(".repeat(10), ")".repeat(10)))), Ok(()));
    for from in ["(".repeat(10), format!("{}fares{}", "(".repeat(11), ")".repeat(11))] {
        assert!(on_a_small_stack(format!("SELECT id FROM {from}")).is_err());
    }
    assert_eq!(on_a_small_stack(" ".repeat(70_000)), Err(Error::TooLong("64 KiB at most")));
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_panics(noise in "\\PC{0,60}") {
        let _ = asked(&noise);
        let _ = asked(&format!("SELECT {noise} FROM fares"));
        let _ = asked(&format!("SELECT id FROM fares WHERE {noise}"));
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "*", "FROM", "fares", "WHERE", "id", "price", "name", "at", "\"Odd\"", "=", "<", ">=", "<>", "AND", "OR", "NOT",
        "IN", "(", ")", ",", "BETWEEN", "IS", "NULL", "TRUE", "LIKE", "'a%'", "ESCAPE", "1", "-2.5", "1e99", "DATE", "'2024-01-01'",
        "ORDER", "BY", "LIMIT", "OFFSET", "DESC", "NULLS", "FIRST", "DISTINCT", "count", "sum", "AS", "JOIN", "::", "[", "]", "CASE", ";",
    ]), 0..24)) {
        let text = words.join(" ");
        let _ = asked(&text);
        let _ = asked(&format!("SELECT id FROM fares WHERE {text}"));
        let _ = asked(&format!("SELECT {text} FROM fares {text}"));
    }
}
