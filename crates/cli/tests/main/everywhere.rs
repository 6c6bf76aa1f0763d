//! StealthDB's systematic suite (section III.A) over processes: PostgreSQL, two providers, two folders. The same statements over combinations
//! of coding, distribution and how many clouds may fail, each held against the same table here, while clouds are killed and while one lies.
//!
//! `COUNTERFOIL_PROOF=full` tries all of them; otherwise every seventh. `sql`'s `systematic.rs` has more of them, in one process.

use std::fs;
use std::process::Command;

use counterfoil_test_servers::PostgresServer;

use super::providers::Running;
use super::stage::Stage;

/// Clouds, and how many of them may fail and collude.
const SHAPES: [(usize, usize, usize); 3] = [(3, 1, 1), (5, 2, 2), (2, 0, 0)];
pub const DISTRIBUTIONS: [&str; 3] = ["encryption", "encryption, replication", "encryption, dispersion"];
/// What texts, numbers, and times are for.
pub const USES: [[&str; 3]; 5] = [
    ["", "", ""],
    [" FOR (equality)", " FOR (sum)", ""],
    [" FOR (prefix)", " FOR (range)", " FOR (range)"],
    [" FOR (equality, prefix, range)", " FOR (sum, range, equality)", " FOR (range)"],
    [" FOR (danger order)", " FOR (sum, danger order)", " FOR (danger order)"],
];
const CLOUDS: [&str; 5] = ["a", "b", "c", "d", "e"];

const COLUMNS: &str = "id BIGINT PRIMARY KEY, name TEXT{t}, salary NUMERIC(10,2){n}, born DATE{d}, big BIGINT{n}, photo BYTEA, \
    at TIMESTAMP{d}, is_in BOOLEAN, note VARCHAR(40), small SMALLINT{n}, wide NUMERIC(38,4), real REAL, weight DOUBLE PRECISION{d}, \
    zoned TIMESTAMPTZ, clock TIME, key UUID";
pub const FILL: &str = "INSERT INTO TABLE VALUES \
    (1, 'Ada', 1000.50, '1815-12-10', 9223372036854775807, '\\x00ff', '2024-02-29 12:34:56.789012', true, 'first', 1, \
     12345678901234567890123456789012.3456, 1.5, 2.5, '2024-02-29 12:34:56+02', '23:59:59.999999', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), \
    (2, 'Ädä', -1000.50, '0001-01-01', -9223372036854775808, '\\x', '1677-09-22 00:00:00', false, '', -32768, \
     -12345678901234567890123456789012.3456, -1.5, -0.0, '1969-12-31 23:59:59.999999+00', '00:00', '00000000-0000-0000-0000-000000000000'), \
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
    (4, 'Adalbert', 99999999.99, '9999-12-31', 0, '\\x0102', '2024-02-29 12:34:56.789012', true, 'fourth', 32767, 0.0001, 3.4e38, 1.7e308, \
     '2024-03-01 00:00:00+00', '12:00', 'ffffffff-ffff-ffff-ffff-ffffffffffff'), \
    (5, '数据库', 0.00, '2000-02-29', -1, '\\xdeadbeef', '2000-01-01 00:00:00', false, 'ünï', 0, 0, 0, 1e-300, \
     '2000-01-01 00:00:00+00', '06:30', '12345678-1234-1234-1234-123456789abc'), \
    (6, '', 1, '1969-12-31', 7, '\\x00', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL); \
    UPDATE TABLE SET salary = salary - 1, name = name || 'x' WHERE is_in; DELETE FROM TABLE WHERE id IN (3, 99)";
pub const CHANGE: &str = "INSERT INTO TABLE (id, name, salary) VALUES (50, 'late', 5); DELETE FROM TABLE WHERE id = 1; \
                      UPDATE TABLE SET born = '2001-01-01' WHERE name = 'late'";
pub const QUESTIONS: &str = "SELECT * FROM TABLE ORDER BY id; SELECT sum(salary) AS s, count(*) AS c, avg(big) AS a, max(name) AS m FROM TABLE; \
    SELECT id FROM TABLE WHERE name = 'Ädä' OR born < '1900-01-01' ORDER BY id; SELECT id FROM TABLE WHERE name LIKE 'Ad%' ORDER BY id; \
    SELECT id FROM TABLE WHERE salary BETWEEN -2000 AND 5 AND at <= '2000-01-01' ORDER BY id; \
    SELECT sum(salary) AS s, count(*) AS c FROM TABLE WHERE name LIKE 'Ad%'; SELECT id FROM TABLE WHERE big IN (0, -1) ORDER BY id; \
    SELECT sum(small) AS s, sum(wide) AS w, max(real) AS r, min(clock) AS c, count(zoned) AS z FROM TABLE; \
    SELECT id FROM TABLE WHERE weight > 1 OR small < 0 ORDER BY id; SELECT id FROM TABLE WHERE zoned < '2000-01-01 00:00:01+00' ORDER BY id; \
    SELECT id FROM TABLE WHERE key = '12345678-1234-1234-1234-123456789abc' OR note = 'first' OR clock = '12:00' ORDER BY id";
/// Every fragment becomes another one, as a cloud that lies would have it.
const LIE: &str = "DO $$ DECLARE one record; BEGIN FOR one IN SELECT attrelid::regclass AS t, attname AS c, atttypid::regtype::text AS k \
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relkind = 'r' AND relname ~ '^t[0-9a-f]{16}$' AND attname ~ '^c[0-9a-f]{16}$' LOOP \
    IF one.k = 'bigint' THEN EXECUTE format('UPDATE %s SET %I = (%I + 1) %% 2305843009213693951', one.t, one.c, one.c); \
    ELSE EXECUTE format('UPDATE %s SET %I = set_byte(%I, 0, get_byte(%I, 0) # 1) WHERE length(%I) > 0', one.t, one.c, one.c, one.c, one.c); \
    END IF; END LOOP; END $$";

pub fn is_full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// Runs a script on both tables, which answer alike; what was noted of the dispersed one.
#[track_caller]
pub fn same(stage: &Stage, script: &str, of: &str) -> String {
    let [people, plain] = ["people", "plain"].map(|table| stage.run(&["db", &script.replace("TABLE", table)]));
    assert_eq!((plain.code, people.code), (0, 0), "{of}: {}{}", plain.err, people.err);
    assert_eq!(people.out, plain.out, "{of}: {script}");
    people.err
}

/// Clouds `a` to `e`: PostgreSQL, a provider, a folder, a provider, a folder.
struct Everywhere {
    stage: Stage,
    server: PostgresServer,
    providers: Vec<(&'static str, Running)>,
}

impl Everywhere {
    fn start() -> Option<Self> {
        let server = PostgresServer::start()?;
        let (stage, mut providers) = (Stage::with_database(), Vec::new());
        let add = |name: &str, options: String| {
            stage.good(&["db", &format!("CREATE CLOUD {name} OPTIONS ({options})")]);
        };
        add("a", format!("url '{}'", server.url(server.port)));
        for name in ["b", "d"] {
            let token = stage.good(&["provider", "token", &format!("at-{name}"), "ada", "--days", "2"]);
            stage.write(&format!("{name}.token"), token);
            let running = Running::start(&stage, name, "0");
            add(name, format!("url '{}', secret_file '{name}.token'", running.url));
            providers.push((name, running));
        }
        for name in ["c", "e"] {
            fs::create_dir(stage.path(name)).expect("a cloud");
            add(name, format!("url 'dir:{name}'"));
        }
        stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
        Some(Self { stage, server, providers })
    }

    #[track_caller]
    fn same(&self, script: &str, of: &str) -> String {
        same(&self.stage, script, of)
    }

    /// The first `count` of the clouds that run here are killed, something is done, and they are back.
    fn without(&mut self, count: usize, body: impl FnOnce(&Self)) {
        let ports: Vec<String> = self.providers.iter().map(|(_, running)| running.port().to_owned()).collect();
        if count > 0 {
            self.server.kill();
        }
        let gone = count.saturating_sub(1);
        self.providers[..gone].iter_mut().for_each(|(_, running)| running.kill());
        body(self);
        if count > 0 {
            self.server.run();
        }
        for ((name, running), port) in self.providers[..gone].iter_mut().zip(ports) {
            *running = Running::start(&self.stage, name, &port);
        }
    }

    /// Every fragment that PostgreSQL holds is changed.
    fn lie(&self) {
        let url = self.server.url(self.server.port);
        let told =
            Command::new("psql").args([&url, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", LIE]).output().expect("psql");
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    }

    fn repaired(&self, of: &str) {
        let repaired = self.stage.good(&["db", "REPAIR TABLE people"]);
        assert!(repaired.lines().skip(1).all(|line| line.ends_with(",complete")), "{of}: {repaired}");
    }
}

/// The two statements that make the same table at clouds and here.
pub fn creates([shape, distribution, uses]: [usize; 3]) -> String {
    let (clouds, may_fail, may_collude) = SHAPES[shape];
    let mut columns = COLUMNS.to_owned();
    for (mark, said) in ["{t}", "{n}", "{d}"].into_iter().zip(USES[uses]) {
        columns = columns.replace(mark, said);
    }
    let plain = ["{t}", "{n}", "{d}"].into_iter().fold(COLUMNS.to_owned(), |plain, mark| plain.replace(mark, ""));
    format!(
        "CREATE TABLE people ({columns}) WITH (engine = 'dispersed', clouds = '{}', may_fail = {may_fail}, may_collude = {may_collude}, \
         coding = '{}'); CREATE TABLE plain ({plain})",
        CLOUDS[..clouds].join(", "),
        DISTRIBUTIONS[distribution]
    )
}

fn combinations() -> Vec<[usize; 3]> {
    let mut all = Vec::new();
    for shape in 0..SHAPES.len() {
        for distribution in 0..DISTRIBUTIONS.len() {
            all.extend((0..USES.len()).map(|uses| [shape, distribution, uses]));
        }
    }
    all.into_iter().step_by(if is_full() { 1 } else { 7 }).collect()
}

#[test]
fn all_combinations_answer_as_a_relation_does_while_clouds_are_killed_and_lie() {
    let Some(mut everywhere) = Everywhere::start() else { return };
    for combination in combinations() {
        let create = creates(combination);
        let may_fail = SHAPES[combination[0]].1;
        everywhere.stage.good(&["db", &create]);
        everywhere.same(FILL, &create);
        let noted = everywhere.same(QUESTIONS, &create);
        // On a busy machine any of them may be slow.
        let is_said = |line: &str| line.contains("it is slow") || may_fail == 0 && line.contains("unverified");
        let is_fault = |line: &str| line.contains("cloud") && !is_said(line);
        assert!(!noted.lines().any(is_fault), "{create}: {noted}");
        everywhere.without(may_fail, |everywhere| {
            everywhere.same(QUESTIONS, &create);
            everywhere.same(CHANGE, &create);
            everywhere.same(QUESTIONS, &create);
        });
        everywhere.repaired(&create);
        let noted = everywhere.same(QUESTIONS, &create);
        assert!(!noted.lines().any(is_fault), "{create}: {noted}");
        if may_fail > 0 {
            everywhere.lie();
            let noted = everywhere.same(QUESTIONS, &create);
            assert!(noted.contains("cloud a") && !noted.contains("cloud b"), "{create}: {noted}");
            everywhere.stage.good(&["db", "REFRESH TABLE people"]);
            assert!(!everywhere.same(QUESTIONS, &create).contains("cloud"), "{create}");
        }
        everywhere.stage.good(&["db", "DROP TABLE people; DROP TABLE plain"]);
    }
}
