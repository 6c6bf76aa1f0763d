//! Dispersed tables answer as relations do, whatever they are asked, and whatever becomes of one of their clouds.

use std::path::{Path, PathBuf};

use crate::database::{Database, ask};

/// Three folders as clouds, and a database that knows them.
pub struct World {
    folder: tempfile::TempDir,
    pub database: Database,
}

impl World {
    pub fn new() -> Self {
        let mut world = Self::without_clouds();
        ["a", "b", "c"].into_iter().for_each(|cloud| world.add_folder(cloud));
        world
    }

    pub fn without_clouds() -> Self {
        Self::of(Database::new())
    }

    /// A database that knows no clouds yet.
    pub fn of(database: Database) -> Self {
        World { folder: tempfile::tempdir().expect("a folder"), database }
    }

    /// One cloud more, in a folder.
    pub fn add_folder(&mut self, cloud: &str) {
        std::fs::create_dir(self.path(cloud)).expect("a cloud");
        let url = format!("dir:{}", self.path(cloud).display());
        self.add(cloud, &url);
    }

    pub fn add(&mut self, cloud: &str, url: &str) {
        assert_eq!(self.database.ask(&format!("CREATE CLOUD {cloud} OPTIONS (url '{url}')")), "CREATE CLOUD");
    }

    pub fn path(&self, cloud: &str) -> PathBuf {
        self.folder.path().join(cloud)
    }

    /// A cloud goes away, or comes back.
    pub fn set_there(&self, cloud: &str, is_there: bool) {
        let (path, gone) = (self.path(cloud), self.path(&format!("{cloud}.gone")));
        let (from, to) = if is_there { (gone, path) } else { (path, gone) };
        std::fs::rename(from, to).expect("the cloud");
    }

    /// Bytes that came from clouds for a query, as its plan tells it: `a_bytes=400`, `a_bytes=93.7 K`.
    pub fn bytes(&mut self, sql: &str) -> f64 {
        let told = self.database.ask(&format!("EXPLAIN ANALYZE {sql}"));
        let of_clouds = ["a_bytes=", "b_bytes=", "c_bytes="].into_iter().filter_map(|name| told.split_once(name));
        let all = of_clouds.map(|(_, rest)| {
            let end = rest.find(|of: char| !of.is_ascii_digit() && of != '.').unwrap_or(rest.len());
            let times = match &rest[end..].trim_start().get(..1) {
                Some("K") => 1000.0,
                Some("M") => 1e6,
                _ => 1.0,
            };
            rest[..end].parse::<f64>().expect("a number") * times
        });
        all.sum()
    }

    pub fn waiting(&mut self) -> String {
        self.database
            .ask("SHOW CLOUDS")
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split('|').collect();
                format!("{} {} {}", fields[0], fields[3], fields[4])
            })
            .collect::<Vec<_>>()
            .join(", ")
    }
}

pub fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

const COLUMNS: &str = "id BIGINT PRIMARY KEY, name TEXT{e}, salary NUMERIC(10,2){s}, born DATE{r}, note VARCHAR(40), \
    small SMALLINT{s}, big BIGINT{s}, wide NUMERIC(38,4), real REAL, weight DOUBLE PRECISION{r}, is_in BOOLEAN, blob BYTEA, \
    at TIMESTAMP{r}, zoned TIMESTAMPTZ, clock TIME, key UUID";

/// The same table twice: `people` at clouds, `plain` here.
pub fn both() -> World {
    let mut world = World::new();
    let uses = [" FOR (equality, prefix)", " FOR (sum, range)", " FOR (range)"];
    create_both(&mut world, uses, "clouds = 'a, b, c'");
    world
}

/// The same where columns of three kinds, texts, numbers and others, are for this, and the table is told that.
pub fn create_both(world: &mut World, uses: [&str; 3], told: &str) {
    let (mut dispersed, mut plain) = (COLUMNS.to_owned(), COLUMNS.to_owned());
    for (mark, said) in ["{e}", "{s}", "{r}"].into_iter().zip(uses) {
        dispersed = dispersed.replace(mark, said);
        plain = plain.replace(mark, "");
    }
    let sql = format!("CREATE TABLE people ({dispersed}) WITH (engine = 'dispersed', {told})");
    assert_eq!(world.database.ask(&sql), "CREATE TABLE", "{sql}");
    assert_eq!(world.database.ask(&format!("CREATE TABLE plain ({plain})")), "CREATE TABLE");
}

/// Runs a statement on both, and compares what they answer. `TABLE` stands for the table.
#[track_caller]
pub fn same(world: &mut World, sql: &str) {
    let [dispersed, plain] = ["people", "plain"].map(|table| {
        let answer = world.database.ask(&sql.replace("TABLE", table));
        answer.replace("people", "plain")
    });
    assert_eq!(dispersed, plain, "{sql}");
}

pub const ROWS: &str = "
    (1, 'Ada', 1000.50, '1815-12-10', 'first', 1, 9223372036854775807, 12345678901234567890123456789012.3456, 1.5, 2.5, true,
     '\\x00ff', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56+02', '23:59:59.999999', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
    (2, 'Ädä', -1000.50, '0001-01-01', '', -32768, -9223372036854775808, -12345678901234567890123456789012.3456, -1.5, -0.0, false,
     '\\x', '1677-09-22 00:00:00', '1969-12-31 23:59:59.999999+00', '00:00', '00000000-0000-0000-0000-000000000000'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 'Adalbert', 99999999.99, '9999-12-31', 'fourth', 32767, 0, 0.0001, 3.4e38, 1.7e308, true,
     '\\x0102', '2024-02-29 12:34:56.789012', '2024-03-01 00:00:00+00', '12:00', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    (5, '数据库', 0.00, '2000-02-29', 'ünï', 0, -1, 0, 0, 1e-300, false,
     '\\xdeadbeef', '2000-01-01 00:00:00', '2000-01-01 00:00:00+00', '06:30', '12345678-1234-1234-1234-123456789abc')";

pub const QUESTIONS: &[&str] = &[
    "SELECT * FROM TABLE ORDER BY id",
    "SELECT count(*), count(name), count(salary) FROM TABLE",
    "SELECT sum(salary), avg(salary), min(salary), max(salary), sum(small), sum(wide) FROM TABLE",
    "SELECT sum(salary), count(*), avg(salary), sum(small), count(salary), avg(small), count(small) FROM TABLE",
    "SELECT sum(small) + 1, count(id) FROM TABLE WHERE id > 1",
    "SELECT id FROM TABLE WHERE name = 'Ada'",
    "SELECT id FROM TABLE WHERE name IN ('Ädä', '数据库', 'nobody') ORDER BY id",
    "SELECT id FROM TABLE WHERE name <> 'Ada' ORDER BY id",
    "SELECT id FROM TABLE WHERE name LIKE 'Ada%' ORDER BY id",
    "SELECT id FROM TABLE WHERE name LIKE 'Adalbert%' ORDER BY id",
    "SELECT id FROM TABLE WHERE name LIKE 'A_a%' OR name LIKE '数%' ORDER BY id",
    "SELECT id FROM TABLE WHERE name LIKE '数据%' AND id > 2 ORDER BY id",
    "SELECT id FROM TABLE WHERE name NOT LIKE 'Ada%' ORDER BY id",
    "SELECT id FROM TABLE WHERE name LIKE '%a%' ORDER BY id",
    "SELECT id FROM TABLE WHERE name IS NULL",
    "SELECT id FROM TABLE WHERE salary > 0 ORDER BY id",
    "SELECT id FROM TABLE WHERE salary BETWEEN -1000.50 AND 1000.50 ORDER BY id",
    "SELECT id FROM TABLE WHERE salary = 1000.50",
    "SELECT id FROM TABLE WHERE big >= 9223372036854775807 OR big < -5 ORDER BY id",
    "SELECT id FROM TABLE WHERE small < 0 AND big < 0",
    "SELECT id FROM TABLE WHERE born >= '2000-02-29' ORDER BY id",
    "SELECT id FROM TABLE WHERE at <= '2000-01-01' ORDER BY id",
    "SELECT id FROM TABLE WHERE weight > 1 ORDER BY id",
    "SELECT id FROM TABLE WHERE weight = 0 ORDER BY id",
    "SELECT id FROM TABLE WHERE salary < 99999999999999999999999999999.99 ORDER BY id",
    "SELECT id FROM TABLE WHERE salary > -1e30 AND small < 100000 ORDER BY id",
    "SELECT id, CAST(weight AS TEXT), CAST(real AS TEXT) FROM TABLE WHERE weight >= 0 ORDER BY id",
    "SELECT id FROM TABLE WHERE weight = 'NaN' OR weight > 1e307 ORDER BY id",
    "SELECT id FROM TABLE WHERE is_in ORDER BY id",
    "SELECT id FROM TABLE WHERE blob = '\\xdeadbeef'",
    "SELECT id FROM TABLE WHERE key = '12345678-1234-1234-1234-123456789abc'",
    "SELECT upper(name), length(name) FROM TABLE WHERE id < 3 ORDER BY 1",
    "SELECT is_in, count(*), sum(salary) FROM TABLE GROUP BY is_in ORDER BY is_in",
    "SELECT id FROM TABLE ORDER BY salary DESC NULLS LAST, id LIMIT 2",
    "SELECT a.id, b.id FROM TABLE a JOIN TABLE b ON a.at = b.at ORDER BY 1, 2",
    "SELECT sum(salary), count(*), avg(salary), count(salary) FROM TABLE WHERE name = 'Ada'",
    "SELECT sum(salary), count(*) FROM TABLE WHERE name IN ('Ada', 'Ädä', 'nobody') AND salary < 5000",
    "SELECT count(*), sum(small) FROM TABLE WHERE salary BETWEEN -1000.50 AND 1000.50",
    "SELECT count(*), sum(small) FROM TABLE WHERE small >= 0 AND 30000 > small",
    "SELECT sum(salary), count(*) FROM TABLE WHERE name LIKE 'Ad%'",
    "SELECT sum(salary), count(*) FROM TABLE WHERE name LIKE 'Adalber%'",
    "SELECT sum(salary), count(*) FROM TABLE WHERE name LIKE 'A_a%'",
    "SELECT sum(small), count(*) FROM TABLE WHERE born >= '2000-02-29' AND id IN (1, 4, 5, 77)",
    "SELECT sum(small), count(*) FROM TABLE WHERE name = 'nobody'",
    "SELECT sum(small), count(*) FROM TABLE WHERE weight > 1 AND name = 'Ada'",
    "SELECT sum(small), count(*) FROM TABLE WHERE name = 'Ada' OR small < 0",
    "SELECT sum(small) FILTER (WHERE name = 'Ada'), count(*) FROM TABLE WHERE salary > 0",
    "SELECT sum(big) FROM TABLE WHERE id IN (1, 4)",
    "SELECT sum(big), count(big) FROM TABLE",
    "SELECT sum(big) FROM TABLE WHERE big < 0",
    "SELECT id, round(salary, 1), floor(weight), ceil(weight), abs(small) FROM TABLE WHERE weight < 1e9 ORDER BY id",
    "SELECT id, sin(weight), cos(weight), tan(weight), sqrt(abs(weight)), weight * weight FROM TABLE WHERE abs(weight) < 1e9 ORDER BY id",
    "SELECT median(small), min(name), max(born), lower(name) FROM TABLE WHERE id < 3 GROUP BY name ORDER BY 2",
    "SELECT count(*) FROM (SELECT id FROM TABLE LIMIT 3) AS some",
    "SELECT id FROM TABLE WHERE id = 4",
    "SELECT id FROM TABLE WHERE id IN (SELECT id + 1 FROM TABLE WHERE name = 'Ada')",
];

pub const FLOATS: &str = "
    (20, '-0'::DOUBLE PRECISION, '-0'::REAL), (21, 'NaN'::DOUBLE PRECISION, 'NaN'::REAL), (22, 'Infinity'::DOUBLE PRECISION, 0.1),
    (23, '-Infinity'::DOUBLE PRECISION, -0.1)";

pub fn ask_all(world: &mut World) {
    QUESTIONS.iter().for_each(|sql| same(world, sql));
}

#[test]
fn every_type_and_operator_answers_as_a_relation_does() {
    let mut world = both();
    ask_all(&mut world);
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, &format!("INSERT INTO TABLE (id, weight, real) VALUES {FLOATS}"));
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0", "all clouds have them");
    ask_all(&mut world);
    for (cloud, is_there) in [("a", false), ("a", true), ("b", false), ("b", true), ("c", false)] {
        world.set_there(cloud, is_there);
        ask_all(&mut world);
    }
}

#[test]
fn a_sum_of_parts_may_leave_its_range_on_its_way_and_come_back() {
    let mut world = both();
    same(
        &mut world,
        "INSERT INTO TABLE (id, is_in, big) VALUES (1, true, 9223372036854775807), (2, true, 3), (3, false, 1), (4, false, NULL)",
    );
    // What follows is here until all clouds have it.
    world.set_there("c", false);
    same(&mut world, "INSERT INTO TABLE (id, is_in, big) VALUES (5, true, -5), (6, NULL, NULL)");
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 2 0");
    for is_there in [false, true] {
        assert_eq!(world.database.ask("SELECT sum(big) FROM people WHERE id <> 3"), "9223372036854775805");
        for sql in [
            "SELECT sum(big), count(*) FROM TABLE",
            "SELECT sum(big) FROM TABLE WHERE id IN (1, 2, 5)",
            "SELECT is_in, sum(big), avg(big) FROM TABLE GROUP BY is_in ORDER BY is_in",
            "SELECT is_in, sum(big) FROM TABLE WHERE id < 3 GROUP BY is_in",
            "SELECT sum(big) FROM TABLE WHERE id < 3",
            "SELECT sum(big), sum(DISTINCT big) FROM TABLE WHERE id <> 3",
        ] {
            same(&mut world, sql);
        }
        if !is_there {
            world.set_there("c", true);
            same(&mut world, "INSERT INTO TABLE (id, is_in, big) VALUES (7, true, NULL)");
        }
    }
}

#[test]
fn clouds_add_up_the_rows_that_they_know_to_match() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let mut plan = |sql: &str| world.database.ask(&format!("EXPLAIN {sql}"));
    for (sql, known) in [
        ("SELECT sum(salary) FROM people", "added up at clouds: [sum of salary]"),
        ("SELECT count(*) FROM people WHERE name = 'Ada'", "of rows that clouds know: [equality of name at "),
        ("SELECT sum(small) FROM people WHERE salary > 1 AND 'Ad' = name", "[range of salary at "),
        (
            "SELECT sum(small), avg(salary) FROM people WHERE name LIKE 'Ad%' AND born < '2000-01-01'",
            "prefix of name at a and b]",
        ),
    ] {
        let told = plan(sql);
        assert!(told.contains("DispersedSums") && told.contains(known), "{told}");
    }
    for sql in [
        "SELECT sum(small) FROM people WHERE name <> 'Ada'",
        "SELECT sum(small) FROM people WHERE name LIKE '%a'",
        "SELECT sum(small) FROM people WHERE name = 'Ada' OR small = 1",
        "SELECT sum(small) FROM people WHERE weight > 1",
        "SELECT sum(small) FROM people WHERE name > 'A'",
        "SELECT sum(wide) FROM people WHERE name = 'Ada'",
        "SELECT min(small) FROM people WHERE name = 'Ada'",
    ] {
        let told = plan(sql);
        assert!(!told.contains("DispersedSums"), "{told}");
    }
    let told = world.database.ask("EXPLAIN ANALYZE SELECT note FROM people WHERE name = 'Ada'");
    assert!(told.contains("_questions=1") && told.contains("_bytes=") && told.contains("_time="), "{told}");
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT sum(small) FROM people WHERE name = 'Ada'");
    assert!(told.contains("from this query|which rows are added up"), "{told}");
    assert!(told.contains("name: which rows have one of 1 values"), "{told}");
    assert!(!told.contains("are fetched") && !told.contains("Ada"), "{told}");
    let told = world.database.ask("EXPLAIN SELECT note, small FROM people WHERE name = 'Ada'");
    assert!(told.contains("asked at clouds: [equality of name at ") && told.contains("fetched from: ["), "{told}");
    for (change, learns) in [
        ("UPDATE people SET note = 'x' WHERE name = 'Ada'", "which rows go, together, and the fragments of as many"),
        ("DELETE FROM people WHERE name = 'Ada'", "which rows go, together"),
        ("INSERT INTO people (id) VALUES (7)", "how many rows come"),
    ] {
        assert!(world.database.ask(&format!("EXPLAIN {change}")).contains(" on people"));
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE {change}"));
        let cloud_learns = |cloud: &str| told.contains(&format!("people|{cloud}|from this query|{learns}"));
        assert!(["a", "b", "c"].into_iter().all(cloud_learns), "{told}");
        assert_eq!(told.contains("name: which rows have one of 1 values"), change.contains("WHERE"), "{told}");
        // Whether a key is there is asked where its tags are, two clouds of three, before anything comes.
        let asked = told.lines().filter(|line| line.contains("id: which rows have the key of a row that comes"));
        let who: Vec<&str> = asked.filter_map(|line| line.split('|').nth(1)).collect();
        let alone = who.iter().filter(|who| !who.contains(" and ")).count();
        assert_eq!((alone, who.len()), if change.starts_with("DELETE") { (0, 0) } else { (2, 5) }, "{change}: {who:?}");
        assert!(told.contains("people|a and b (more than may_collude)|at rest|"), "{told}");
    }
    assert_eq!(world.database.ask("SELECT count(*) FROM people WHERE note = 'x'"), "0", "nothing was changed");
}

#[test]
fn what_clouds_hold_shows_no_value_and_no_name() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let mut bytes = 0;
    for cloud in ["a", "b", "c"] {
        let files = files(&world.path(cloud));
        assert!(!files.is_empty());
        for file in files {
            let file = std::fs::read(file).expect("a file");
            bytes += file.len();
            for text in ["Adalbert", "people", "salary", "name", "fourth", "数据库"] {
                assert!(!file.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
            }
        }
    }
    assert!(bytes > 1000);
}

#[test]
fn changes_do_what_they_do_to_a_relation() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    for sql in [
        "INSERT INTO TABLE (id, name) VALUES (4, 'again')",
        "INSERT INTO TABLE (id, name) VALUES (6, 'six'), (6, 'six')",
        "INSERT INTO TABLE (id, name) VALUES (6, 'six'), (7, 'seven')",
        "INSERT INTO TABLE (id, name) VALUES (6, 'other'), (8, 'eight') ON CONFLICT DO NOTHING",
        "INSERT INTO TABLE (id, name) VALUES (7, 'other'), (9, 'nine') ON CONFLICT (id) DO UPDATE SET name = excluded.name, small = 3",
        "UPDATE TABLE SET salary = salary + 1 WHERE salary IS NOT NULL",
        "UPDATE TABLE SET id = 1 WHERE id = 2",
        "UPDATE TABLE SET id = id + 100 WHERE id > 7 RETURNING id, name",
        "DELETE FROM TABLE WHERE name = 'Ada' RETURNING id, salary, blob",
        "DELETE FROM TABLE WHERE name = 'Ada'",
        "INSERT INTO TABLE (id, name) VALUES (1, 'back') RETURNING *",
        "INSERT INTO TABLE (id, name) SELECT id + 1000, name FROM TABLE",
        "BEGIN; UPDATE TABLE SET name = 'gone'; ROLLBACK",
        "BEGIN; DELETE FROM TABLE WHERE id > 3; SAVEPOINT s; DELETE FROM TABLE; ROLLBACK TO s; SELECT count(*) FROM TABLE; COMMIT",
    ] {
        same(&mut world, sql);
        ask_all(&mut world);
        assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0", "{sql}");
    }
    same(&mut world, "TRUNCATE TABLE");
}

#[test]
fn copied_rows_leave_as_others_do() {
    let mut world = both();
    let mut read = std::io::Cursor::new(b"1,Ada\n2,Bob\n".to_vec());
    world.database.session.copy_in("COPY people (id, name) FROM STDIN (FORMAT csv)", &mut read).expect("rows");
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    assert_eq!(world.database.ask("SELECT id, name FROM people ORDER BY id"), "1|Ada\n2|Bob");
    assert!(!files(&world.path("a")).is_empty(), "they have left");
}

#[test]
fn create_says_what_each_cloud_learns() {
    let mut world = World::new();
    let sql =
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT FOR (equality), salary NUMERIC(10,2) FOR (sum), note TEXT)
               WITH (engine = 'dispersed', clouds = 'a, b, c', may_fail = 1, may_collude = 1)";
    assert_eq!(world.database.ask(sql), "CREATE TABLE");
    assert_eq!(
        world.database.session.take_notices(),
        [
            "id: a learns nothing; b and c each learn which are equal (and how often each comes)",
            "name: a learns which are equal (and how often each comes); b learns lengths, in classes; c learns lengths, in classes and which are \
             equal (and how often each comes)",
            "salary: a, b and c each learn nothing; 2 together learn the values",
            "note: a and b each learn lengths, in classes; c learns nothing",
        ]
    );
}

#[test]
fn so_many_rows_are_fetched_as_are_wanted() {
    let mut world = both();
    same(
        &mut world,
        "INSERT INTO TABLE (id, name) SELECT value, 'name ' || value FROM generate_series(1, 2000) AS t(value)",
    );
    let told = world.database.ask("EXPLAIN SELECT name FROM people LIMIT 10");
    assert!(told.contains("Dispersed: people, columns: [name], rows at most: 10"), "{told}");
    let some = world.bytes("SELECT name FROM people LIMIT 10");
    let all = world.bytes("SELECT name FROM people");
    assert!(some > 0.0 && some * 10.0 < all, "{some} of {all}");
    // And a row that is changed is fetched without the others.
    let before = world.database.ask("SELECT count(*) FROM people");
    same(&mut world, "UPDATE TABLE SET name = 'another' WHERE id = 7");
    same(&mut world, "SELECT id, name FROM TABLE WHERE id BETWEEN 6 AND 8 ORDER BY id");
    assert_eq!(world.database.ask("SELECT count(*) FROM people"), before);
}

#[test]
fn what_is_out_of_range_leaves_no_fragment() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let all = |world: &World| ["a", "b", "c"].map(|cloud| files(&world.path(cloud)));
    let before = all(&world);
    for values in ["(id, salary) VALUES (70, 100000000.00)", "(id, small) VALUES (70, 40000)"] {
        let told = world.database.ask(&format!("INSERT INTO people {values}"));
        assert!(told.starts_with("error: ") && told.contains("out of range"), "{told}");
    }
    assert_eq!(all(&world), before);
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    same(&mut world, "SELECT count(*) FROM TABLE");
}

#[test]
fn whoever_says_danger_hears_of_what_and_has_ranges_added_up_there() {
    let mut world = World::new();
    let sql = "CREATE TABLE t (id INT, name TEXT FOR (danger order), born DATE NOT NULL FOR (Danger Order), salary NUMERIC(10,2) FOR (sum))
               WITH (engine = 'dispersed', clouds = 'a, b, c')";
    assert_eq!(world.database.ask(sql), "CREATE TABLE");
    let told = world.database.session.take_notices();
    assert!(told[1].contains("the order of all of them") && told[1].contains("first letters"), "{told:?}");
    assert!(told[2].contains("nearly how large each is (danger)") && !told[2].contains("NULL"), "{told:?}");
    let created = world.database.ask("SHOW CREATE TABLE t");
    assert!(created.contains("born date FOR (danger order) NOT NULL"), "{created}");
    world.database.ask("INSERT INTO t SELECT value, 'n' || value, DATE '1990-01-01' + CAST(value AS INT), value FROM generate_series(1, 100) AS t(value)");
    let sum = "SELECT sum(salary) FROM t WHERE born > DATE '1990-01-05' AND born <= DATE '1990-01-08'";
    assert_eq!(world.database.ask(sum), "18.00");
    let told = world.database.ask(&format!("EXPLAIN {sum}"));
    assert!(told.contains("of rows that clouds know: [range of born"), "{told}");
    // Of a text eight bytes are known: the rest is decided here. Several values are not asked for at all.
    assert_eq!(world.database.ask("SELECT id FROM t WHERE name > 'n98' ORDER BY id"), "99");
    let told = world.database.ask("EXPLAIN SELECT id FROM t WHERE name IN ('n1', 'n2')");
    assert!(!told.contains("asked at clouds"), "{told}");
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT id FROM t WHERE name > 'n98'");
    assert!(told.contains("name: their first letters, about four"), "{told}");
    let refused = world.database.ask("ALTER TABLE t ALTER COLUMN born FOR (range, danger order)");
    assert!(refused.contains("declare one of them"), "{refused}");
    assert_eq!(world.database.ask("ALTER TABLE t ALTER COLUMN born FOR (range)"), "ALTER TABLE");
    assert_eq!(world.database.ask(sum), "18.00");
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT id FROM t WHERE born > DATE '1990-01-05'");
    assert!(!told.contains("born: the order of all of them"), "{told}");
}

#[test]
fn what_cannot_be_is_told() {
    let mut world = World::new();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c')";
    for (sql, part) in [
        ("CREATE CLOUD a OPTIONS (url 'memory:x')", "there is a cloud a already"),
        ("CREATE CLOUD d OPTIONS (url 'ftp://example.com')", "'dir:PATH' or 'memory:NAME'"),
        ("CREATE CLOUD d OPTIONS (url 'dir:/nowhere/at/all')", "no such folder"),
        ("DROP CLOUD d", "no cloud d"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed')", "at which clouds"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a, x')", "no cloud x: CREATE CLOUD x"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a, a')", "named twice"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a,,b')", "a cloud has a name"),
        (
            "CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a, b, c', clouds = 'a')",
            "clouds is said twice",
        ),
        (&format!("CREATE TABLE t (a INT FOR (equality) FOR (range)) {with}"), "FOR of column a is said twice"),
        (
            "CREATE TABLE t (a INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a, b', may_fail = 1, may_collude = 1)",
            "takes 3",
        ),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a', may_fail = 'x')", "a number is due"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a', may_fail = -1)", "wants a whole number"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a', max_rows = 0)", "without room for a row"),
        ("CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a', bogus = 1)", "the table option bogus"),
        (
            "CREATE TABLE t (a INT FOR ()) WITH (engine = 'dispersed', clouds = 'a')",
            "equality, prefix, sum, range or danger order",
        ),
        ("CREATE TABLE t (a INT FOR (danger)) WITH (engine = 'dispersed', clouds = 'a')", "FOR (danger ): equality"),
        ("SELECT a FROM t OPTIMIZE FOR RELIABILITY QUORUM", "how many clouds are to show the same?"),
        (&format!("CREATE TABLE t (a DOUBLE PRECISION FOR (sum)) {with}"), "declare it NUMERIC"),
        (&format!("CREATE TABLE t (a TEXT FOR (like)) {with}"), "FOR (prefix)"),
        (&format!("CREATE TABLE t (a TEXT FOR (speed)) {with}"), "equality, range, sum, prefix"),
        (&format!("CREATE TABLE t (a INT REFERENCES u (a)) {with}"), "REFERENCES"),
        (&format!("CREATE TABLE t {with} AS SELECT 1"), "CREATE it, then INSERT"),
        ("CREATE TABLE t (a TEXT FOR (equality))", "FOR of column a: the table lies here; WITH (engine = 'dispersed'"),
    ] {
        let answer = world.database.ask(sql);
        assert!(answer.starts_with("error: ") && answer.contains(part), "{sql}: {answer}");
    }
    let sql = format!(
        "CREATE TABLE t (a INT UNIQUE, b SMALLINT FOR (sum)) {}",
        "WITH (engine = 'dispersed', clouds = 'a, b, c', max_rows = 2)"
    );
    assert_eq!(world.database.ask(&sql), "CREATE TABLE");
    for (sql, part) in [
        ("DROP CLOUD a", "table t lies at cloud a"),
        ("CREATE INDEX ON t (a)", "dispersed"),
        ("ALTER TABLE t ADD COLUMN c INT", "dispersed"),
        ("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "at most 2 rows"),
    ] {
        let answer = world.database.ask(sql);
        assert!(answer.starts_with("error: ") && answer.contains(part), "{sql}: {answer}");
    }
    world.database.expect(&[("INSERT INTO t VALUES (NULL, 1), (NULL, 2)", "INSERT 2"), ("DROP TABLE t", "DROP TABLE")]);
    assert!(["a", "b", "c"].iter().all(|cloud| files(&world.path(cloud)).is_empty()), "clouds have let go of it");
    world.database.expect(&[("DROP CLOUD a", "DROP CLOUD"), ("DROP CLOUD IF EXISTS a", "DROP CLOUD")]);
}

#[test]
fn queries_say_what_their_answers_are_to_be_above_all() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    for sql in QUESTIONS {
        let plain = world.database.ask(&sql.replace("TABLE", "plain"));
        for goal in ["RELIABILITY", "RELIABILITY QUORUM 2", "PERFORMANCE"] {
            let asked = format!("{} OPTIMIZE FOR {goal}", sql.replace("TABLE", "people"));
            assert_eq!(world.database.ask(&asked), plain, "{asked}");
        }
    }
    world.database.session.take_notices();
    assert_eq!(world.database.ask("SELECT note FROM people WHERE name = 'Ada' OPTIMIZE FOR PERFORMANCE"), "first");
    assert!(world.database.session.take_notices().join("\n").contains("unverified"));
    // Of whoever has a key there is one row, and it is there.
    assert_eq!(world.database.ask("SELECT note FROM people WHERE id = 1 OPTIMIZE FOR PERFORMANCE"), "first");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    let sql = "SELECT note FROM people WHERE id = 1 OPTIMIZE FOR RELIABILITY";
    assert_eq!(world.database.ask(sql), "first");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    // One of the two clouds with the notes is gone: others do not notice, who wants both does.
    world.set_there("a", false);
    assert_eq!(world.database.ask("SELECT note FROM people WHERE id = 1"), "first");
    let answers = ["note", "name", "blob"].map(|column| {
        world
            .database
            .ask(&format!("SELECT {column} FROM people WHERE note = 'first' OPTIMIZE FOR RELIABILITY QUORUM 2"))
    });
    assert!(answers.iter().any(|answer| answer.contains("1 of the 2 clouds")), "{answers:?}");
    let sums = "SELECT sum(salary) FROM people OPTIMIZE FOR RELIABILITY";
    assert_eq!(world.database.ask(&format!("{sums} QUORUM 2")), world.database.ask("SELECT sum(salary) FROM plain"));
    assert!(world.database.ask(&format!("{sums} QUORUM 3")).contains("2 of the 3 clouds"));
    assert!(
        world
            .database
            .ask("INSERT INTO plain SELECT * FROM people OPTIMIZE FOR PERFORMANCE")
            .contains("behind a query")
    );
}

#[test]
fn uuids_are_found_however_they_are_written() {
    let mut world = World::new();
    let columns = "(id INT, u UUID, v UUID FOR (equality))";
    world.database.ask(&format!("CREATE TABLE people {columns} WITH (engine = 'dispersed', clouds = 'a, b, c')"));
    let text = "FFFFFFFF-00aa-FFFF-ffff-ffffffffffFF";
    world.database.ask(&format!("INSERT INTO people VALUES (1, '{text}', '{text}'), (2, NULL, NULL)"));
    let bare = text.replace('-', "");
    for column in ["u", "v"] {
        for text in [text, &text.to_lowercase(), &bare, &format!("{{{text}}}")] {
            for condition in [
                format!("{column} = '{text}'"),
                format!("'{text}' = {column}"),
                format!("{column} IN ('{text}', '00000000-0000-0000-0000-000000000000')"),
                format!("{column} BETWEEN '{text}' AND '{text}'"),
                format!("NOT {column} <> '{text}'"),
                format!("{column} IS NOT DISTINCT FROM '{text}'"),
                format!("CASE {column} WHEN '{text}' THEN true END"),
            ] {
                assert_eq!(world.database.ask(&format!("SELECT id FROM people WHERE {condition}")), "1", "{condition}");
            }
        }
    }
    assert_eq!(world.database.ask(&format!("DELETE FROM people WHERE u = '{bare}'")), "DELETE 1");
}

#[test]
fn a_table_is_read_in_the_transaction_that_makes_it() {
    let mut world = World::new();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c')";
    world.database.expect(&[
        ("BEGIN", "BEGIN"),
        (&format!("CREATE TABLE h (id INT PRIMARY KEY, n INT FOR (sum)) {with}"), "CREATE TABLE"),
        ("SELECT * FROM h", ""),
        ("INSERT INTO h VALUES (1, 10), (2, 20)", "INSERT 2"),
        ("UPDATE h SET n = n + 1 WHERE id = 2", "UPDATE 1"),
        ("SELECT sum(n), count(*) FROM h", "31|2"),
        ("COMMIT", "COMMIT"),
        ("SELECT id, n FROM h ORDER BY id", "1|10\n2|21"),
        (&format!("CREATE TABLE w (v NUMERIC(28,2) FOR (sum), x NUMERIC(38,4) FOR (sum)) {with}"), "CREATE TABLE"),
        ("SELECT avg(v) FROM w", "NULL"),
        ("INSERT INTO w VALUES (1.50, 2.5), (2.00, 3.5)", "INSERT 2"),
        ("SELECT avg(v), sum(x) FROM w", "1.750000000000|6.0000"),
    ]);
}

#[test]
fn a_table_is_made_again_from_what_show_create_says() {
    let mut world = both();
    let created = world.database.ask("SHOW CREATE TABLE people");
    assert!(
        created.contains("salary numeric(10,2) FOR (sum, range)") && created.contains("clouds = 'a, b, c'"),
        "{created}"
    );
    let sql = created.split_once("CREATE TABLE people").map(|(_, rest)| format!("CREATE TABLE others{rest}"));
    let sql = sql.expect("a statement").replace("people_pkey", "others_pkey");
    assert_eq!(world.database.ask(&sql), "CREATE TABLE");
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    assert_eq!(world.database.ask("INSERT INTO others SELECT * FROM people"), "INSERT 5");
    let [one, other] =
        ["people", "others"].map(|table| world.database.ask(&format!("SELECT * FROM {table} ORDER BY id")));
    assert_eq!(one, other);
}

#[test]
fn rows_that_were_deleted_while_they_are_read_are_no_fault_of_clouds() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let mut other = world.database.connect();
    assert_eq!(ask(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM people", &[]), "BEGIN\n5");
    same(&mut world, "DELETE FROM TABLE WHERE id = 1");
    for sql in ["SELECT name FROM people", "SELECT sum(salary) FROM people"] {
        let answer = ask(&mut other, sql, &[]);
        assert!(answer.contains("were deleted at its clouds while they were read: ask again"), "{answer}");
        assert_eq!(other.take_notices(), Vec::<String>::new());
        assert_eq!(
            ask(&mut other, "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM people", &[]),
            "ROLLBACK\nBEGIN\n4"
        );
        same(&mut world, "INSERT INTO TABLE (id, salary) VALUES (1, 5)");
        same(&mut world, "DELETE FROM TABLE WHERE id IN (1, 2)");
        same(&mut world, "INSERT INTO TABLE (id) VALUES (2)");
    }
}

/// The paper's Listings 1 and 2 (section III.A), with texts in single quotes.
#[test]
fn the_papers_listings_run() {
    let mut world = World::new();
    let shares = [
        ("USE CLOUDS 'cloud://a' AND 'cloud://b' WITH 'encryption, dispersion'", "USE CLOUDS"),
        ("DROP TABLE IF EXISTS medrecord", "DROP TABLE"),
        ("CREATE TABLE medrecord (id INT, personname TEXT, weight REAL)", "CREATE TABLE"),
        ("INSERT INTO medrecord (id, personname, weight) VALUES (23, 'Alice', 63.0)", "INSERT 1"),
        ("SELECT * FROM medrecord WHERE personname = 'Alice'", "23|Alice|63"),
        ("SELECT avg(weight) FROM medrecord", "63"),
        (
            "ALTER TABLE medrecord ALTER COLUMN weight USE CLOUDS 'b' AND 'c' WITH 'encryption, replication'",
            "ALTER TABLE",
        ),
        ("SELECT * FROM medrecord WHERE personname = 'Alice'", "23|Alice|63"),
        ("USE CLOUDS 'auto'", "USE CLOUDS"),
        ("CREATE TABLE everywhere (id INT)", "CREATE TABLE"),
        ("CREATE TABLE filled (id INT) WITH (fillfactor = 100)", "CREATE TABLE"),
        ("CREATE TABLE relation (id INT) WITH (engine = 'relation')", "CREATE TABLE"),
        ("USE CLOUDS NONE", "USE CLOUDS"),
        ("CREATE TABLE here (id INT)", "CREATE TABLE"),
    ];
    world.database.expect(&shares);
    for (table, is_there) in [("everywhere", true), ("filled", true), ("relation", false), ("here", false)] {
        let created = world.database.ask(&format!("SHOW CREATE TABLE {table}"));
        assert_eq!(created.contains("clouds = 'a, b, c'"), is_there, "{created}");
    }
    // Folders by their addresses, as Listing 2 has them, become clouds.
    for folder in ["Secure Folder", "secureshare"] {
        std::fs::create_dir(world.path(folder)).expect("a folder");
    }
    let [folder, share] = ["Secure Folder", "secureshare"].map(|name| format!("file://{}", world.path(name).display()));
    world.database.session.take_notices();
    let to_disks = format!(
        "ALTER TABLE medrecord ALTER COLUMN weight USE CLOUDS '{folder}' AND '{share}' WITH 'encryption, replication'"
    );
    assert_eq!(world.database.ask(&to_disks), "ALTER TABLE");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("cloud secure_folder is declared, at dir:/"), "{notices}");
    assert!(!files(&world.path("secureshare")).is_empty());
    assert_eq!(world.database.ask("SELECT * FROM medrecord WHERE personname = 'Alice'"), "23|Alice|63");
    let create = format!(
        "CREATE TABLE beside (id INT, note TEXT USE CLOUDS '{share}' AND 'a') WITH (engine = 'dispersed', clouds = 'a, b, secureshare')"
    );
    assert_eq!(world.database.ask(&create), "CREATE TABLE");
    assert!(!world.database.session.take_notices().join("\n").contains("is declared"), "it has a name already");
    // What cannot be done declares nothing.
    std::fs::create_dir(world.path("third")).expect("a folder");
    let third = format!("file://{}", world.path("third").display());
    for sql in [
        format!("USE CLOUDS '{third}' AND 'nobody'"),
        format!("ALTER TABLE nothing ALTER COLUMN weight USE CLOUDS '{third}'"),
        format!("ALTER TABLE medrecord ALTER COLUMN nothing USE CLOUDS '{third}'"),
        format!(
            "CREATE TABLE IF NOT EXISTS medrecord (id INT USE CLOUDS '{third}' AND 'a') WITH (engine = 'dispersed', clouds = 'a, b')"
        ),
    ] {
        world.database.ask(&sql);
        assert!(!world.database.ask("SHOW CLOUDS").contains("third"), "{sql}");
    }
    let missing = world.database.ask(&format!("USE CLOUDS '{folder}/nowhere'"));
    assert!(missing.starts_with("error: "), "{missing}");
    let told = world.database.ask("USE CLOUDS 'a' WITH 'plain'");
    assert!(told.starts_with("error: ") && told.contains("USE CLOUDS WITH 'plain'"), "{told}");
    let told = world.database.ask("USE CLOUDS 'a' AND 'zzz'");
    assert!(told.contains("no cloud zzz: CREATE CLOUD zzz"), "{told}");
    // One piece of two is no cell, and none of either cloud's files has one.
    world.set_there("a", false);
    assert!(world.database.ask("SELECT personname FROM medrecord").starts_with("error: "));
    assert_eq!(world.database.ask("SELECT weight FROM medrecord"), "63");
    world.set_there("a", true);
    assert_eq!(world.database.ask("SELECT personname FROM medrecord"), "Alice");
}
