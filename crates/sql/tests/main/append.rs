//! Rows by column into series tables that are made and widened as they come.

use counterfoil_sql::relation::Type;
use counterfoil_sql::series_engine::Values;
use counterfoil_sql::{NewField, NewPoints};

use crate::database::{Database, ask};

/// Rows as a collector has them: `tags | time | field=value ...`, the values with the letters of line protocol.
struct Rows {
    tags: Vec<String>,
    sets: Vec<Vec<(usize, String)>>,
    set_of: Vec<u32>,
    times: Vec<i64>,
    fields: Vec<(String, Type, Values, Vec<u32>)>,
}

fn rows(lines: &[&str]) -> Rows {
    let mut rows = Rows { tags: vec![], sets: vec![], set_of: vec![], times: vec![], fields: vec![] };
    for (row, line) in (0..).zip(lines) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let mut set = Vec::new();
        for (name, value) in parts[0].split_whitespace().filter_map(|tag| tag.split_once('=')) {
            let at = rows.tags.iter().position(|tag| tag == name).unwrap_or_else(|| {
                rows.tags.push(name.into());
                rows.tags.len() - 1
            });
            set.push((at, value.to_owned()));
        }
        set.sort();
        let known = rows.sets.iter().position(|other| *other == set);
        rows.set_of.push(known.unwrap_or_else(|| {
            rows.sets.push(set);
            rows.sets.len() - 1
        }) as u32);
        rows.times.push(parts[1].parse().unwrap());
        parts[2].split_whitespace().for_each(|field| rows.field(row, field));
    }
    rows
}

impl Rows {
    fn field(&mut self, row: u32, text: &str) {
        let (name, value) = text.split_once('=').unwrap();
        let (kind, empty) = match value.as_bytes() {
            [.., b'i'] => (Type::BigInt, Values::Integers(vec![])),
            [.., b'u'] => (Type::Numeric { precision: 18, scale: 0 }, Values::Integers(vec![])),
            [b'"', ..] => (Type::Text, Values::Texts(vec![])),
            _ => (Type::Double, Values::Doubles(vec![])),
        };
        let at = self.fields.iter().position(|(other, of, ..)| other == name && *of == kind).unwrap_or_else(|| {
            self.fields.push((name.into(), kind, empty, vec![]));
            self.fields.len() - 1
        });
        match &mut self.fields[at].2 {
            Values::Integers(values) => values.push(value[..value.len() - 1].parse().unwrap()),
            Values::Doubles(values) => values.push(value.parse().unwrap()),
            Values::Texts(values) => values.push(value.trim_matches('"').as_bytes().into()),
        }
        self.fields[at].3.push(row);
    }

    fn points(&self, table: &str) -> NewPoints<'_> {
        let all = self.times.len();
        let fields = self.fields.iter().map(|(name, kind, values, rows)| NewField {
            name,
            kind: *kind,
            values: values.clone(),
            rows: (rows.len() < all).then_some(&rows[..]),
        });
        let sets = self.sets.iter().map(|set| set.iter().map(|(tag, text)| (*tag, text.as_str())).collect());
        NewPoints {
            table: table.to_owned(),
            may_create: true,
            options: vec![],
            tags: &self.tags,
            sets: sets.collect(),
            set_of: &self.set_of,
            times: &self.times,
            fields: fields.collect(),
        }
    }
}

impl Database {
    /// Appends rows; what was refused, as `row: reason` lines.
    fn append(&mut self, table: &str, lines: &[&str]) -> String {
        self.append_as(table, lines, |_| {})
    }

    fn append_as(&mut self, table: &str, lines: &[&str], change: impl Fn(&mut NewPoints<'_>)) -> String {
        let rows = rows(lines);
        let mut points = rows.points(table);
        change(&mut points);
        match self.session.append_points(&[points]) {
            Ok(appended) => {
                let refused: Vec<_> = appended[0].refused().map(|(row, reason)| format!("{row}: {reason}")).collect();
                assert_eq!(appended[0].rows() + refused.len(), lines.len());
                refused.join("\n")
            }
            Err(error) => format!("error: {error}"),
        }
    }
}

const ALL: &str = "SELECT host, time, load, cores FROM cpu ORDER BY host, time";

#[test]
fn a_table_is_made_on_its_first_row() {
    let mut database = Database::new();
    assert_eq!(
        database.append(
            "cpu",
            &[
                "host=b region=eu | 2 | load=0.5 cores=4i",
                "host=a | 1000000001 | load=0.25",
                "host=b region=eu | 1 | cores=2i"
            ],
        ),
        ""
    );
    database.expect(&[
        (
            "SELECT host, region, time, load, cores FROM cpu ORDER BY host, time",
            "a||1970-01-01 00:00:01.000000001|0.25|NULL\nb|eu|1970-01-01 00:00:00.000000001|NULL|2\n\
             b|eu|1970-01-01 00:00:00.000000002|0.5|4",
        ),
        ("SELECT count(*) FROM cpu WHERE region = ''", "1"),
        (
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'cpu'
             ORDER BY ordinal_position",
            "host|text|NO\nregion|text|NO\ntime|timestamp without time zone|NO\nload|double precision|YES\n\
             cores|bigint|YES",
        ),
    ]);
}

#[test]
fn a_row_changes_what_it_gives_and_leaves_the_rest() {
    let mut database = Database::new();
    // Within a request, in a later one, and late by so much that a leaf holds what is there.
    assert_eq!(database.append("cpu", &["host=a | 5 | load=1", "host=a | 5 | cores=4i", "host=a | 5 | load=2"]), "");
    database.expect(&[(ALL, "a|1970-01-01 00:00:00.000000005|2|4")]);
    assert_eq!(database.append("cpu", &["host=a | 5 | cores=8i"]), "");
    database.expect(&[(ALL, "a|1970-01-01 00:00:00.000000005|2|8")]);
    let many: Vec<String> = (10..20_000).map(|time| format!("host=a | {time} | load={time}")).collect();
    assert_eq!(database.append("cpu", &many.iter().map(String::as_str).collect::<Vec<_>>()), "");
    assert_eq!(
        database.append("cpu", &["host=a | 12 | cores=1i", "host=a | 12 | cores=3i", "host=a | 5 | load=9"]),
        ""
    );
    assert_eq!(database.append("cpu", &["host=a | 11 | load=7 cores=7i", "host=a | 9 | cores=9i"]), "");
    database.expect(&[
        (
            "SELECT load, cores FROM cpu WHERE time <= to_timestamp_nanos(13) ORDER BY time",
            "9|8\nNULL|9\n10|NULL\n7|7\n12|3\n13|NULL",
        ),
        ("SELECT count(*), count(load), count(cores) FROM cpu", "19992|19991|4"),
    ]);
}

#[test]
fn the_same_rows_are_there_in_whatever_order_they_come() {
    let lines: Vec<String> =
        (0..3000).map(|n| format!("host=h{} | {} | f{}={n}", n % 7, (n * 7919) % 401, n % 5)).collect();
    let mut model = std::collections::BTreeMap::<(String, i64), [Option<i64>; 5]>::new();
    for n in 0..3000_i64 {
        let row = model.entry((format!("h{}", n % 7), (n * 7919) % 401)).or_default();
        row[(n % 5) as usize] = Some(n);
    }
    let cell = |value: &Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
    let wanted: Vec<String> = model
        .iter()
        .map(|((host, time), row)| format!("{host}|{time}|{}", row.iter().map(cell).collect::<Vec<_>>().join("|")))
        .collect();
    for piece in [1000, 37] {
        let mut database = Database::new();
        for some in lines.chunks(piece) {
            assert_eq!(database.append("m", &some.iter().map(String::as_str).collect::<Vec<_>>()), "");
        }
        let found = database.ask("SELECT host, CAST(time AS BIGINT), f0, f1, f2, f3, f4 FROM m ORDER BY host, time");
        assert_eq!(found, wanted.join("\n"), "{piece} at a time");
    }
}

#[test]
fn what_does_not_fit_is_refused_row_by_row() {
    let mut database = Database::new();
    assert_eq!(database.append("cpu", &["host=a | 1 | load=1 cores=1i"]), "");
    assert_eq!(
        database.append(
            "cpu",
            &[
                "host=a | 2 | load=2i",
                "host=a | 3 | load=3 cores=3.5",
                "host=a rack=7 | 4 | load=4",
                "host=a load=x | 5 | cores=5i",
                "host=a | 6 | host=6i",
                "host=a | 7 | time=7i",
                "host=a | 8 | load=8",
                "host=a | 9 | big=999999999999999999u",
                "host=a | 10 | big=1000000000000000000u",
            ],
        ),
        "0: type conflict: field \"load\" is bigint here, its column double precision: send double precision\n\
         1: type conflict: field \"cores\" is double precision here, its column bigint: send bigint\n\
         2: tag \"rack\" is not in the key of the table, and a key does not grow: leave it out, send it as a field, or \
         make the table anew with it\n\
         3: \"load\" is a tag and a field: rename one of them\n\
         4: \"host\" is a tag and a field: rename one of them\n\
         5: \"time\" is a tag and a field: rename one of them\n\
         8: a number out of the range of column \"big\", numeric(18,0): leave it out"
    );
    let long = "x".repeat(2100);
    assert_eq!(
        database.append("cpu", &[&format!("host=a | 11 | note=\"{long}\""), "host=a | 12 | note=\"short\""]),
        "0: the texts of a row have at most 2040 bytes together: shorten them, or use several rows"
    );
    let half = "y".repeat(1500);
    assert_eq!(
        database.append(
            "cpu",
            &[
                &format!("host=a | 13 | note=\"{half}\""),
                &format!("host=a | 13 | more=\"{half}\""),
                "host=a | 13 | load=13"
            ],
        ),
        "1: the texts of a row have at most 2040 bytes together: shorten them, or use several rows"
    );
    assert_eq!(
        database.append("cpu", &[&format!("host=a | 13 | more=\"{half}\"")]),
        "0: the texts of a row have at most 2040 bytes together: shorten them, or use several rows"
    );
    let tag = "z".repeat(4100);
    assert_eq!(
        database.append("cpu", &[&format!("host={tag} | 14 | load=1")]),
        "0: the tags of a series have at most 4096 bytes together: shorten them"
    );
    database.expect(&[
        ("SELECT count(*), sum(load), max(big), sum(length(note)) FROM cpu", "5|22|999999999999999999|1505"),
        ("SELECT count(DISTINCT host) FROM cpu", "1"),
    ]);
}

#[test]
fn tables_that_are_not_for_such_rows_refuse_them_all() {
    let mut database = Database::after(
        "CREATE TABLE rel (a INT); CREATE VIEW v AS SELECT 1 AS one;
         CREATE TABLE other (s TEXT, ts TIMESTAMP(9), PRIMARY KEY (s, ts)) WITH (engine = 'series');
         CREATE TABLE coarse (s TEXT, time TIMESTAMP, PRIMARY KEY (s, time)) WITH (engine = 'series');
         CREATE TABLE ids (s INT, time TIMESTAMP(9), PRIMARY KEY (s, time)) WITH (engine = 'series');
         CREATE TABLE checked (s TEXT, time TIMESTAMP(9), v DOUBLE PRECISION CHECK (v > 0), PRIMARY KEY (s, time))
         WITH (engine = 'series');
         CREATE TABLE strict (s TEXT, time TIMESTAMP(9), v DOUBLE PRECISION NOT NULL, PRIMARY KEY (s, time))
         WITH (engine = 'series');
         CREATE TABLE theirs (s TEXT, time TIMESTAMP(9), v DOUBLE PRECISION, PRIMARY KEY (s, time))
         WITH (engine = 'series', influx_database = 'b')",
    );
    let line = ["s=a | 1 | v=1"];
    for (table, says) in [
        ("rel", "\"rel\" is a relation, not a series table"),
        ("v", "\"v\" is a view"),
        ("other_pkey", "\"other_pkey\" is an index"),
        ("other", "table \"other\" has another time"),
        ("coarse", "table \"coarse\" has another time"),
        ("ids", "has column \"s\" in its key, which is no TEXT"),
        ("checked", "has CHECK constraints"),
        ("strict", "has column \"v\" with NOT NULL or DEFAULT"),
        ("__counterfoil", "reserved"),
        (&"n".repeat(201), "names have 1 to 200 bytes, this one has 201"),
    ] {
        let refused = database.append(table, &line);
        assert!(refused.contains(says), "{table}: {refused}");
    }
    let of_a = |points: &mut NewPoints<'_>| points.options = vec![("influx_database".into(), "a".into())];
    let refused = database.append_as("theirs", &line, of_a);
    assert_eq!(refused, "0: table \"theirs\" is that of influx_database = \"b\": use another measurement");
    assert_eq!(database.append("theirs", &line), "");
    assert_eq!(database.append_as("mine", &line, of_a), "");
    let options = database.ask("SHOW CREATE TABLE mine");
    assert!(options.contains("influx_database = 'a'"), "{options}");
}

#[test]
fn nothing_is_made_where_that_is_forbidden() {
    let mut database = Database::new();
    let forbid = |points: &mut NewPoints<'_>| points.may_create = false;
    let line = ["host=a | 1 | load=1", "host=a | 2 | load=2 more=3"];
    let says = "there is no table \"cpu\", and none may be made: create it first";
    assert_eq!(database.append_as("cpu", &line, forbid), format!("0: {says}\n1: {says}"));
    assert_eq!(database.append("cpu", &line[..1]), "");
    assert_eq!(
        database.append_as("cpu", &line, forbid),
        "1: there is no column \"more\", and none may be made: add it first, or leave the field out"
    );
    // What only refused rows would need is not made either.
    assert_eq!(database.append("none", &["host=a wrong=b | 1 | big=1000000000000000000u"]).lines().count(), 1);
    assert_eq!(
        database.append("some", &["host=a wrong=b | 1 | big=1000000000000000000u", "host=a | 2 | x=1"]).lines().count(),
        1
    );
    database.expect(&[
        ("SELECT * FROM cpu", "a|1970-01-01 00:00:00.000000001|1"),
        ("SELECT * FROM none", "error: table 'none' not found"),
        ("SELECT * FROM some", "a|1970-01-01 00:00:00.000000002|1"),
    ]);
}

#[test]
fn a_table_that_refuses_duplicates_does_so_here() {
    let mut database = Database::after(
        "CREATE TABLE once (host TEXT, time TIMESTAMP(9), load DOUBLE PRECISION, PRIMARY KEY (host, time))
         WITH (engine = 'series', on_duplicate = 'error')",
    );
    let says = "a row with this key is there already, and the table has on_duplicate = 'error'";
    assert_eq!(database.append("once", &["host=a | 1 | load=1", "host=a | 1 | load=2"]), format!("1: {says}"));
    assert_eq!(database.append("once", &["host=a | 2 | load=3", "host=a | 1 | load=4"]), format!("1: {says}"));
    database.expect(&[("SELECT load FROM once ORDER BY time", "1\n3")]);
}

#[test]
fn columns_and_series_have_limits_of_their_own() {
    let mut database = Database::new();
    let wide: Vec<String> = (0..200).map(|n| format!("h=a | {n} | f{n}=1")).collect();
    let refused = database.append("wide", &wide.iter().map(String::as_str).collect::<Vec<_>>());
    let first = refused.lines().next().unwrap_or("");
    assert!(first.contains("a series table has at most") && first.contains("columns beside its key"), "{first}");
    let stored = database.ask("SELECT count(*) FROM wide").parse::<usize>().unwrap();
    assert_eq!(stored + refused.lines().count(), 200);
    assert!(stored > 100, "{stored}");
    let again = database.append("wide", &["h=a | 500 | f1=7", "h=a | 501 | other=7"]);
    assert!(again.starts_with("1: a series table has at most"), "{again}");
    let tags: Vec<String> = (0..64).map(|n| format!("tag{n}=v{n}")).collect();
    assert_eq!(database.append("tagged", &[&format!("{} | 1 | a=1", tags.join(" "))]), "");
    assert_eq!(database.ask("SELECT tag63, a FROM tagged WHERE tag0 = 'v0'"), "v63|1");
    assert_eq!(database.append("alone", &[" | 1 | a=1", " | 2 | a=2"]), "", "no tag at all");
    assert_eq!(database.ask("SELECT sum(a) FROM alone"), "3");
}

#[test]
fn rows_are_part_of_the_transaction() {
    let mut database = Database::new();
    database.expect(&[("BEGIN", "BEGIN")]);
    assert_eq!(database.append("cpu", &["host=a | 1 | load=1"]), "");
    database.expect(&[("SAVEPOINT s", "SAVEPOINT")]);
    assert_eq!(database.append("cpu", &["host=b | 1 | load=2 cores=1i"]), "");
    database.expect(&[("SELECT count(*), sum(cores) FROM cpu", "2|1"), ("ROLLBACK TO s", "ROLLBACK")]);
    assert_eq!(database.append("cpu", &["host=c | 1 | load=3 cores=1.5"]), "");
    let mut reader = database.connect();
    assert_eq!(ask(&mut reader, "SELECT * FROM cpu", &[]), "error: table 'cpu' not found");
    database.expect(&[("COMMIT", "COMMIT")]);
    assert_eq!(ask(&mut reader, "SELECT host, load, cores FROM cpu ORDER BY host", &[]), "a|1|NULL\nc|3|1.5");
    database.expect(&[("BEGIN", "BEGIN")]);
    assert_eq!(database.append("cpu", &["host=d | 1 | load=4"]), "");
    database.expect(&[("ROLLBACK", "ROLLBACK"), ("SELECT count(*) FROM cpu", "2")]);
}

#[test]
fn a_view_is_not_changed_by_a_column() {
    let mut database = Database::new();
    assert_eq!(database.append("cpu", &["host=a | 1 | load=1"]), "");
    database.expect(&[
        ("CREATE TABLE racks (name TEXT, power DOUBLE PRECISION)", "CREATE TABLE"),
        ("CREATE VIEW plain AS SELECT * FROM cpu", "CREATE VIEW"),
        ("CREATE VIEW joined AS SELECT load, power FROM cpu JOIN racks ON host = name", "CREATE VIEW"),
    ]);
    assert_eq!(database.append("cpu", &["host=a | 2 | load=2 idle=5"]), "");
    database.expect(&[("SELECT * FROM plain WHERE load = 2", "a|1970-01-01 00:00:00.000000002|2")]);
    // With a column power in both tables the view would not know which one it means.
    assert_eq!(
        database.append("cpu", &["host=a | 2 | cores=3i", "host=a | 3 | power=3", "host=a | 4 | power=4"]),
        "1: view joined depends on table cpu: drop it first\n2: view joined depends on table cpu: drop it first"
    );
    database.expect(&[
        ("SELECT load, idle, cores FROM cpu ORDER BY time", "1|NULL|NULL\n2|5|3"),
        ("SELECT count(*) FROM joined", "0"),
    ]);
}

#[test]
fn rows_far_ahead_of_the_clock_are_kept_apart() {
    let mut database = Database::new();
    // The year 2261, nanoseconds end in 2262.
    let ahead = "9200000000000000000";
    assert_eq!(
        database.append("cpu", &["host=a | 1 | load=1", &format!("host=b | {ahead} | load=2"), "host=b | 2 | load=3"]),
        ""
    );
    database.expect(&[
        ("SELECT host, load FROM cpu ORDER BY host", "a|1\nb|3"),
        ("SELECT host, load FROM future.cpu", "b|2"),
    ]);
    assert_eq!(
        database
            .append("cpu", &[&format!("host=c | {ahead} | load=4 cores=5i"), &format!("host=a | {ahead} | load=6")]),
        ""
    );
    database.expect(&[
        ("SELECT count(*) FROM cpu", "2"),
        ("SELECT host, load, cores FROM future.cpu ORDER BY host", "a|6|NULL\nb|2|NULL\nc|4|5"),
    ]);
}

#[test]
fn rows_go_through_a_swinging_door_as_those_of_insert_do() {
    let mut database = Database::new();
    let columns = "host TEXT, time TIMESTAMP(9), load DOUBLE PRECISION, cores BIGINT, PRIMARY KEY (host, time)";
    for table in ["lines", "rows"] {
        let options = "engine = 'series', swinging_door = 'load 0.5, cores 0'";
        database.ask(&format!("CREATE TABLE {table} ({columns}) WITH ({options})"));
    }
    let loads = [0.0, 1.1, 2.0, 2.9, 4.0, 4.0, 4.0, 4.2, 9.0, 9.0, 9.0, 9.0];
    for part in loads.iter().enumerate().collect::<Vec<_>>().chunks(5) {
        let line = |(at, load): &(usize, &f64)| {
            ["a", "b"].map(|host| format!("host={host} | {at} | load={load} cores={}i", at / 9))
        };
        let lines: Vec<String> = part.iter().flat_map(line).collect();
        assert_eq!(database.append("lines", &lines.iter().map(String::as_str).collect::<Vec<_>>()), "");
        let row = |(at, load): &(usize, &f64)| {
            ["a", "b"].map(|host| format!("('{host}', '1970-01-01 00:00:00.{at:09}', {load}, {})", at / 9))
        };
        let rows: Vec<String> = part.iter().flat_map(row).collect();
        assert_eq!(
            database.ask(&format!("INSERT INTO rows VALUES {}", rows.join(", "))),
            format!("INSERT {}", rows.len())
        );
    }
    let all = |database: &mut Database, table| {
        database.ask(&format!("SELECT host, time, load, cores FROM {table} ORDER BY host, time"))
    };
    let (lines, rows) = (all(&mut database, "lines"), all(&mut database, "rows"));
    assert_eq!(lines, rows);
    assert!(lines.lines().count() < loads.len() * 2, "some are left out: {lines}");
    assert_eq!(database.append("lines", &["host=c | 1 | load=-0"]), "");
    database.expect(&[("SELECT load FROM lines WHERE host = 'c' AND load = 0", "0")]);
    // What gives a part of a point that is there changes it, and the newest point is still there.
    assert_eq!(database.append("lines", &["host=a | 11 | cores=7i"]), "");
    database.expect(&[("SELECT load, cores FROM lines WHERE host = 'a' ORDER BY time DESC LIMIT 1", "9|7")]);
}

#[test]
fn rows_kept_apart_are_completed_and_refused_as_others_are() {
    let mut database = Database::new();
    // The year 2261, nanoseconds end in 2262.
    let ahead = |host: &str, load: &str| format!("host={host} | 9200000000000000000 | {load}");
    // Series have other numbers there.
    assert_eq!(database.append("cpu", &["host=a | 5 | load=1", "host=z | 5 | load=1", &ahead("z", "load=2")]), "");
    assert_eq!(database.append("cpu", &[&ahead("z", "cores=4i"), &ahead("a", "cores=8i")]), "");
    assert_eq!(database.append("cpu", &[&ahead("a", "load=6"), "host=a | 5 | cores=1i"]), "");
    database.expect(&[
        ("SELECT host, load, cores FROM future.cpu ORDER BY host", "a|6|8\nz|2|4"),
        ("SELECT host, load, cores FROM cpu ORDER BY host", "a|1|1\nz|1|NULL"),
        ("ALTER TABLE cpu SET (on_duplicate = 'error')", "ALTER TABLE"),
    ]);
    assert_eq!(
        database.append("cpu", &[&ahead("a", "load=7"), &ahead("b", "load=7"), "host=c | 5 | load=7"]),
        "0: a row with this key is there already, and the table has on_duplicate = 'error'"
    );
    database.expect(&[
        ("SELECT host, load FROM future.cpu ORDER BY host", "a|6\nb|7\nz|2"),
        ("SELECT host, load FROM cpu ORDER BY host", "a|1\nc|7\nz|1"),
    ]);
}
