//! PUBLISH in SQL: a table of a live database, asked by others.

use super::published::words;
use super::stage::Stage;

const PUBLISH: &str = "PUBLISH TABLE quotes ORDER BY symbol, day ORDER BY price TO 'dir:site'";

/// A database with quotes that are published, and the owner's name.
fn published() -> (Stage, String) {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE quotes (symbol TEXT, day DATE, price NUMERIC(10, 2))"]);
    stage.good(&["db", "INSERT INTO quotes VALUES ('ABB', '2026-01-05', 21.5), ('SAP', '2026-01-05', 140.25)"]);
    let owner = publish(&stage);
    (stage, owner)
}

/// The owner's name.
fn publish(stage: &Stage) -> String {
    let answer = stage.good(&["db", PUBLISH]);
    answer.lines().nth(1).and_then(|line| line.split(',').next()).expect("an owner").to_owned()
}

#[test]
fn a_table_is_published_again_and_asked() {
    let (stage, owner) = published();
    let all = words("site", &owner, "SELECT * FROM quotes ORDER BY symbol");
    assert_eq!(stage.good(&all), "symbol,day,price\nABB,2026-01-05,21.50\nSAP,2026-01-05,140.25\n");
    stage.good(&[
        "db",
        "UPDATE quotes SET price = 141 WHERE symbol = 'SAP'; INSERT INTO quotes VALUES ('ZAL', '2026-01-06', NULL)",
    ]);
    let told = stage.run(&["db", PUBLISH]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.contains(&owner) && told.out.contains(",quotes,3,"), "{}", told.out);
    for notice in [" ms)", "totals: ", "filters: ", "% of this machine", "dir:", "files written"] {
        assert!(told.err.contains(notice), "{notice}: {}", told.err);
    }
    let top = words("site", &owner, "SELECT symbol, price FROM quotes WHERE price > 100");
    assert_eq!(stage.good(&top), "symbol,price\nSAP,141.00\n");
    let shown = stage.good(&["db", "SHOW PUBLICATIONS"]);
    for part in ["quotes", &owner, "\"(symbol, day), (price)\"", "1 hour", "90 days", "dir:/"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let status = stage.good(&["publish", "status", "db", "--table", "quotes"]);
    assert!(status.contains(&owner) && status.contains("3 rows"), "{status}");
    stage.good(&["publish", "rotate", "db", "--table", "quotes", "--out", "site"]);
    stage.good(&all);
    stage.good(&["verify", "db"]);
}

#[test]
fn a_published_table_keeps_its_columns_until_it_is_no_longer() {
    let (stage, owner) = published();
    for sql in ["ALTER TABLE quotes ADD COLUMN note TEXT", "ALTER TABLE quotes RENAME TO others", "DROP TABLE quotes"] {
        stage.refused(&["db", sql], 1, &["quotes is published", "UNPUBLISH quotes"]);
    }
    let otherwise = PUBLISH.replace(" TO ", " SIGN GROUP TO ");
    stage.refused(&["db", &otherwise], 1, &["signed otherwise", "FORGET KEYS"]);
    let other = "PUBLISH TABLE quotes ORDER BY day TO 'dir:site'";
    stage.refused(&["db", other], 1, &["other columns or orders", "FORGET KEYS"]);
    let less = PUBLISH.replace("TO", "WITHOUT TOTALS TO");
    stage.refused(&["db", &less], 1, &["more beside its rows", "FORGET KEYS"]);
    let told = stage.run(&["db", "UNPUBLISH quotes"]);
    assert!(told.code == 0 && told.err.contains("keys are kept"), "{}", told.err);
    assert_eq!(stage.good(&["db", "SHOW PUBLICATIONS"]).lines().count(), 1);
    stage.refused(&["db", "UNPUBLISH quotes"], 1, &["not published"]);
    assert_eq!(publish(&stage), owner, "under the same name");
    stage.good(&["db", "UNPUBLISH quotes FORGET KEYS"]);
    stage.refused(&["db", "UNPUBLISH quotes FORGET KEYS"], 1, &["not published"]);
    stage.good(&["db", "ALTER TABLE quotes ADD COLUMN note TEXT"]);
    // The folder is the other owner's, until it is moved away.
    stage.refused(&["db", PUBLISH], 2, &["published here already", "move it away"]);
    std::fs::rename(stage.path("site"), stage.path("away")).expect("renamed");
    assert_ne!(publish(&stage), owner, "under another one");
    stage.good(&["db", "UNPUBLISH quotes"]);
    stage.good(&["db", "DROP TABLE quotes"]);
}

#[test]
fn keys_are_shown_to_nobody() {
    let (stage, _) = published();
    for sql in ["SELECT * FROM __counterfoil_published_quotes", "DROP TABLE \"__counterfoil_published_quotes\""] {
        stage.refused(&["db", sql], 1, &["reserved"]);
    }
    // Functions take the name of a table as a text, too.
    for input in [
        "'__counterfoil_published_quotes'",
        "'\"__counterfoil_published_quotes\"'",
        "'public.__counterfoil_published_quotes'",
    ] {
        stage.refused(&["db", &format!("SELECT * FROM lttb({input}, 5)")], 1, &["not found"]);
    }
    for sql in [
        "SHOW TABLES",
        "SELECT table_name FROM information_schema.tables",
        "SELECT relname FROM pg_catalog.pg_class",
        "SELECT column_name, table_name FROM information_schema.columns",
    ] {
        let shown = stage.good(&["db", sql]);
        assert!(!shown.contains("__counterfoil"), "{sql}: {shown}");
    }
    stage.good(&["export", "db", "--all", "all"]);
    assert!(!stage.text("all/schema.sql").contains("__counterfoil"));
    stage.run(&["salvage", "db", "saved"]);
    for folder in ["all", "saved"] {
        let names: Vec<String> = std::fs::read_dir(stage.path(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        assert!(names.iter().any(|name| name.starts_with("quotes")), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("published")), "{names:?}");
    }
}

#[test]
fn wrong_use_says_what_to_do() {
    let (stage, _) = published();
    let refused = |sql: &str, parts: &[&str]| {
        stage.refused(&["db", sql], 1, parts);
    };
    refused("BEGIN; PUBLISH TABLE quotes ORDER BY day TO 'dir:x'", &["COMMIT first"]);
    refused("PUBLISH TABLE nothing ORDER BY day TO 'dir:x'", &["no table nothing"]);
    refused("PUBLISH TABLE quotes ORDER BY nothing TO 'dir:x'", &["no column nothing", "symbol, day, price"]);
    refused(
        "PUBLISH TABLE quotes ORDER BY day TO 'ftp://example.com/x'",
        &["ftp://example.com/x", "dir:PATH", "s3://"],
    );
    let said =
        stage.refused(&["db", "PUBLISH TABLE quotes ORDER BY day TO 's3://key:secret@quotes'"], 1, &["no bucket"]);
    assert!(!said.contains("secret"), "{said}");
    refused("PUBLISH TABLE quotes ORDER BY day SIGN PER ROW TO 'dir:x'", &["PER RECORD or PER ATTRIBUTE"]);
    refused("PUBLISH TABLE quotes ORDER BY day SIGN GROUP (65) TO 'dir:x'", &["2 to 64 rows"]);
    refused("PUBLISH TABLE quotes ORDER BY day EVERY 'often' TO 'dir:x'", &["'1 hour'"]);
    refused("PUBLISH TABLE quotes TO 'dir:x'", &["ORDER BY"]);
    refused("PUBLISH TABLE quotes ORDER BY day TO 'dir:x', 'dir:./x'", &["named twice"]);
    // Whoever cannot be reached is told of, and the rest is done.
    let told = stage
        .run(&["db", "PUBLISH TABLE quotes ORDER BY symbol, day ORDER BY price TO 'http://127.0.0.1:1', 'dir:site'"]);
    assert!(told.code == 0 && told.err.contains("127.0.0.1:1") && told.err.contains("dir:"), "{}", told.err);
    // Somebody was told, and when that was is known.
    let shown = stage.good(&["db", "SHOW PUBLICATIONS"]);
    let last = shown.lines().nth(1).and_then(|line| line.rsplit(',').nth(1)).expect("when");
    assert!(last.starts_with("20"), "{shown}");
}

#[test]
fn a_root_key_is_taken_out_of_a_database_and_changed() {
    let (stage, owner) = published();
    stage.refused(&["publish", "keygen", "root", "--from", "db"], 1, &["--table"]);
    let taken = stage.good(&["publish", "keygen", "root", "--from", "db", "--table", "quotes"]);
    assert_eq!(taken.trim(), owner);
    // PUBLISH cannot ask for it: other terms are signed beside it.
    let other = PUBLISH.replace(" TO ", " RENEW '30 days' MAX AGE '60 days' TO ");
    stage.refused(&["db", &other], 1, &["kept elsewhere", "counterfoil publish terms"]);
    let terms = ["publish", "terms", "db", "--table", "quotes", "--root", "root"];
    stage.refused(&terms, 1, &["--renew"]);
    stage.refused(&[&terms[..], &["--max-age", "60"]].concat(), 1, &["before they are renewed"]);
    stage.good(&[&terms[..], &["--renew", "30", "--max-age", "60"]].concat());
    stage.good(&["db", &other]);
    let status = stage.good(&["publish", "status", "db", "--table", "quotes"]);
    assert!(status.contains("after 30 days") && status.contains("signatures count for 60 days"), "{status}");
    let next = stage.good(&["publish", "keygen", "next"]);
    let rotate =
        ["publish", "rotate", "db", "--table", "quotes", "--root", "root", "--new-root", "next", "--out", "site"];
    assert_eq!(stage.good(&rotate), next);
    // It is found under another name from then on.
    let shown = stage.good(&["db", "SHOW PUBLICATIONS"]);
    assert!(shown.contains(next.trim()) && !shown.contains(&owner), "{shown}");
    let all = words("site", next.trim(), "SELECT * FROM quotes ORDER BY symbol");
    assert_eq!(stage.good(&all).lines().count(), 3);
    let shows = ["publish", "status", "db", "--table", "quotes"];
    assert!(!stage.run(&shows).err.contains("UNPUBLISH"));
    stage.good(&["db", "UNPUBLISH quotes"]);
    let ended = stage.run(&shows);
    assert!(ended.code == 0 && ended.err.contains("UNPUBLISH ended it: its keys are kept"), "{}", ended.err);
}

#[test]
fn a_publication_that_reaches_nobody_is_none() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE quotes (symbol TEXT, day DATE, price NUMERIC(10, 2))"]);
    let nobody = "PUBLISH TABLE quotes ORDER BY symbol, day ORDER BY price TO 'http://127.0.0.1:1'";
    stage.refused(&["db", nobody], 2, &["nobody could be told", "127.0.0.1:1"]);
    assert_eq!(stage.good(&["db", "SHOW PUBLICATIONS"]).lines().count(), 1);
    // Nobody knows of the keys: another order begins anew.
    stage.good(&["db", "PUBLISH TABLE quotes ORDER BY day TO 'dir:other'"]);
    stage.good(&["db", "UNPUBLISH quotes FORGET KEYS"]);
    let owner = publish(&stage);
    stage.refused(
        &["db", &nobody.replace(" TO ", " RENEW '7 days' MAX AGE '9 days' TO ")],
        2,
        &["nobody could be told"],
    );
    let status = stage.good(&["publish", "status", "db", "--table", "quotes"]);
    assert!(status.contains("after 90 days") && !status.contains("signatures count for"), "{status}");
    let shown = stage.good(&["db", "SHOW PUBLICATIONS"]);
    assert!(shown.contains(&owner) && shown.contains("dir:/") && !shown.contains("127.0.0.1"), "{shown}");
}

#[test]
fn a_folder_is_one_tables_and_no_database_lies_in_it() {
    let (stage, owner) = published();
    for target in ["dir:.", "dir:site/.."] {
        let inside = PUBLISH.replace("dir:site", target);
        stage.refused(&["db", &inside], 1, &["would be served with the folder", "beside it"]);
    }
    stage.good(&["db", "CREATE TABLE others (n BIGINT)"]);
    stage.refused(&["db", "PUBLISH TABLE others ORDER BY n TO 'dir:site'"], 2, &["quotes", "move it away"]);
    stage.write("n.csv", "n\n1\n");
    let told = stage.run(&["publish", "n.csv", "--order-by", "n", "--out", "site"]);
    assert!(told.code == 1 && told.err.contains("quotes") && told.err.contains("move it away"), "{}", told.err);
    let shown = stage.good(&["db", "SHOW PUBLICATIONS"]);
    assert!(!shown.contains("others"), "{shown}");
    let all = words("site", &owner, "SELECT * FROM quotes ORDER BY symbol");
    assert_eq!(stage.good(&all).lines().count(), 3);
}

#[test]
fn signatures_count_for_as_long_as_it_is_said() {
    let (stage, _) = published();
    let aged = |terms: &str| PUBLISH.replace(" TO ", &format!(" {terms} TO "));
    let soon = aged("RENEW '30 days' MAX AGE '30 days'");
    stage.refused(&["db", &soon], 1, &["before they are renewed"]);
    stage.refused(&["db", &aged("EVERY '7 days' RENEW '30 days' MAX AGE '31 days'")], 1, &["between two lists"]);
    stage.good(&["db", "CREATE TABLE others (n BIGINT)"]);
    let first = "PUBLISH TABLE others ORDER BY n RENEW '1 hour' MAX AGE '5 seconds' TO 'dir:others'";
    stage.refused(&["db", first], 1, &["before they are renewed"]);
    stage.good(&["db", "PUBLISH TABLE others ORDER BY n TO 'dir:others'"]);
    stage.good(&["db", &aged("RENEW '30 days' MAX AGE '60 days'")]);
    let status = |stage: &Stage| stage.good(&["publish", "status", "db", "--table", "quotes"]);
    assert!(status(&stage).contains("signatures count for 60 days"), "{}", status(&stage));
    assert!(status(&stage).contains("every 1 hour") && status(&stage).contains("after 30 days"), "{}", status(&stage));
    stage.good(&["db", PUBLISH]);
    assert!(!status(&stage).contains("signatures count for"));
    stage.refused(&["db", &aged("EVERY '1 second' RENEW '90 days'")], 1, &["7776000 lists of changes", "EVERY '78 s'"]);
    stage.refused(&["db", &aged("EVERY '1 hour' RENEW '1 second'")], 1, &["renewed within 1 s", "as often as EVERY"]);
    stage.refused(&["db", &aged("EVERY '1 hour' EVERY '2 hours'")], 1, &["EVERY is said twice"]);
    stage.refused(&["db", &aged("MAX AGE '60 days' MAX AGE '70 days'")], 1, &["MAX AGE is said twice"]);
}

#[test]
fn a_database_put_back_signs_with_a_new_key() {
    let (stage, owner) = published();
    stage.good(&["backup", "db", "backup"]);
    stage.good(&["db", "UPDATE quotes SET price = 999"]);
    publish(&stage);
    let all = "SELECT price FROM quotes";
    assert!(stage.good(&words("site", &owner, all)).contains("999"));
    stage.good(&["restore", "backup", "db"]);
    let told = stage.run(&["db", PUBLISH]);
    assert!(told.code == 0 && told.err.contains("new key signs"), "{}", told.err);
    assert!(stage.good(&words("site", &owner, all)).contains("140.25"));
}

#[test]
fn rows_are_signed_as_it_is_said() {
    for (sign, shown) in
        [("PER ATTRIBUTE", "per attribute"), ("GROUP", "groups of up to 16"), ("GROUP (2)", "groups of up to 2 rows")]
    {
        let stage = Stage::with_database();
        stage.good(&["db", "CREATE TABLE quotes (symbol TEXT, day DATE, price NUMERIC(10, 2))"]);
        stage.good(&["db", "INSERT INTO quotes VALUES ('ABB', '2026-01-05', 21.5), ('SAP', '2026-01-05', 140.25)"]);
        let sql = PUBLISH.replace(" TO ", &format!(" SIGN {sign} TO "));
        let answer = stage.good(&["db", &sql]);
        let owner = answer.lines().nth(1).and_then(|line| line.split(',').next()).expect("an owner");
        assert!(stage.good(&["publish", "status", "db", "--table", "quotes"]).contains(shown), "{sign}");
        stage.good(&["db", "UPDATE quotes SET price = 141 WHERE symbol = 'SAP'"]);
        // Said once, it stays.
        stage.good(&["db", PUBLISH]);
        let top = words("site", owner, "SELECT symbol, price FROM quotes WHERE price > 100");
        assert_eq!(stage.good(&top), "symbol,price\nSAP,141.00\n", "{sign}");
    }
}

#[test]
fn points_of_a_series_are_published() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE power (meter TEXT, time TIMESTAMP, watts DOUBLE PRECISION, PRIMARY KEY (meter, time)) WITH (engine = 'series')"]);
    stage.good(&["db", "INSERT INTO power VALUES ('a', '2026-01-05 10:00:00', 1.5), ('b', '2026-01-05 10:00:01', 2)"]);
    let answer = stage.good(&["db", "PUBLISH TABLE power ORDER BY meter, time TO 'dir:site'"]);
    let owner = answer.lines().nth(1).and_then(|line| line.split(',').next()).expect("an owner");
    let sum = words("site", owner, "SELECT sum(watts) FROM power WHERE meter = 'a'");
    assert_eq!(stage.good(&sum), "sum\n1.5\n");
    stage.refused(&["db", "DROP TABLE power"], 1, &["is published"]);
}
