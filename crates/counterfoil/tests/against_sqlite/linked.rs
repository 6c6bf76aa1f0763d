//! Questions along the foreign keys of real flights, every column of a WHERE indexed: with plans, without them, and after some of
//! the rows have changed and been tidied.

use super::cell::{Ours, Peer, Sqlite, difference};
use super::flights::{TABLES, load_rows};

/// Tables, what they reference, and indexes. Some flights name planes, airports and hours that nobody knows.
const OURS: &str = include_str!("linked-schema.sql");

/// The same for SQLite: it knows no reference that is not enforced, and makes no index of one.
fn theirs() -> String {
    let lines = OURS.lines().filter(|line| !line.contains(" REFERENCES "));
    let mut schema: String = lines.flat_map(|line| [line, "\n"]).collect();
    schema = schema.replace(",\n)", "\n)").replace("DOUBLE PRECISION", "REAL");
    for columns in ["flights (carrier)", "flights (origin)", "flights (dest)", "flights (tailnum)", "weather (origin)"]
    {
        schema += &format!("CREATE INDEX ON {columns};\n");
    }
    schema += "CREATE INDEX ON flights (origin, time_hour);\n";
    // An index has to have a name there.
    let named = schema.split("CREATE INDEX ON").enumerate();
    named
        .map(|(number, text)| if number == 0 { text.into() } else { format!("CREATE INDEX i{number} ON{text}") })
        .collect()
}

/// The questions.
fn questions() -> impl Iterator<Item = &'static str> {
    include_str!("linked.sql").lines().filter(|line| !line.starts_with("--") && !line.is_empty())
}

fn loaded() -> (Ours, Sqlite) {
    let (mut ours, mut sqlite) = (Ours::new(), Sqlite::new());
    ours.run(OURS).unwrap();
    sqlite.0.execute_batch(&theirs()).unwrap();
    for table in &TABLES {
        assert!(load_rows(&mut ours, &mut sqlite, table) > 10);
    }
    (ours, sqlite)
}

fn compare(ours: &mut Ours, sqlite: &mut Sqlite, when: &str) {
    let (mut asked, mut empty, mut wrong) = (0, 0, Vec::new());
    for question in questions() {
        asked += 1;
        let theirs = sqlite.run(question).unwrap_or_else(|error| panic!("{question}: SQLite: {error}"));
        empty += usize::from(theirs.is_empty());
        match ours.run(question) {
            Ok(ours) => wrong.extend(difference(&ours, &theirs).map(|what| format!("{question}\n  {what}"))),
            Err(error) => wrong.push(format!("{question}\n  {error}")),
        }
    }
    assert_eq!(asked, 40);
    assert!(empty <= 8, "{empty} questions have no answer");
    assert!(wrong.is_empty(), "{when}: {} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn questions_along_foreign_keys_are_answered_as_sqlite_answers_them() {
    let (mut ours, mut sqlite) = loaded();
    compare(&mut ours, &mut sqlite, "as loaded");
    for (name, asks) in [("enable_direct_queries", "planned"), ("enable_foreign_key_joins", "by the library alone")] {
        ours.run(&format!("SET {name} = off")).unwrap();
        compare(&mut ours, &mut sqlite, asks);
    }
    ours.run("RESET ALL").unwrap();
    let changes = [
        "UPDATE flights SET tailnum = 'N14228' WHERE tailnum = 'N619AA'",
        "DELETE FROM flights WHERE day > 20",
        "UPDATE planes SET manufacturer = 'CESSNA' WHERE manufacturer = 'GULFSTREAM AEROSPACE'",
        "DELETE FROM planes WHERE year = 2013",
        "INSERT INTO planes (tailnum, year, model) VALUES ('N535MQ', 1960, 'unknown before')",
        "UPDATE flights SET dest = 'ANC' WHERE dest = 'SJU' AND day < 3",
    ];
    for change in changes {
        sqlite.run(change).unwrap();
        ours.run(change).unwrap();
    }
    compare(&mut ours, &mut sqlite, "changed");
    ours.run("VACUUM").unwrap();
    compare(&mut ours, &mut sqlite, "tidied");
}

#[test]
fn little_of_much_is_found_along_foreign_keys_without_a_plan_or_in_one_scan() {
    let (mut ours, _) = loaded();
    let mut by_keys = 0;
    for question in questions() {
        let plan = ours.run(&format!("EXPLAIN {question}")).unwrap();
        let lines: Vec<String> = plan.iter().map(|row| row[0].to_string()).collect();
        let plan = lines.join("\n");
        by_keys += usize::from(
            plan.contains("Join along foreign keys") || plan.contains("Index: ") || plan.contains("indexes: ["),
        );
    }
    assert!(by_keys >= 30, "{by_keys} of 40 by an index");
}
