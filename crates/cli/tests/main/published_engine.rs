//! Tables WITH (engine = 'published'): rows of a server that nobody trusts, in queries of a database. What is not the owner's ends
//! the query with exit code 3 and no row.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use counterfoil_proof::{Answer, Definition, Owner, Question, TrustedManifest};
use nix::sys::signal::Signal;

use super::published::{PRICES, copy, mirror, publish, published};
use super::served::Served;
use super::stage::Stage;

/// A stage with prices that are published in `site`, a database in which `prices` stands for them and `own` has the same rows,
/// and the owner's name.
fn engine() -> (Stage, String) {
    let (stage, owner) = published();
    stage.good(&["init", "db"]);
    create(&stage, "dir:site", &owner);
    stage.good(&["db", "CREATE TABLE own (symbol TEXT, day DATE, price DOUBLE PRECISION)"]);
    stage.good(&["import", "db", "own", "prices.csv"]);
    (stage, owner)
}

fn with(server: &str, owner: &str) -> String {
    format!("WITH (engine = 'published', server = '{server}', owner = '{owner}')")
}

fn create(stage: &Stage, server: &str, owner: &str) {
    stage.good(&["db", &format!("CREATE TABLE prices {}", with(server, owner))]);
}

/// Serves from now on from there.
fn create_again(stage: &Stage, server: &str, owner: &str) {
    stage.good(&["db", "DROP TABLE prices"]);
    create(stage, server, owner);
}

const QUESTIONS: [&str; 22] = [
    "SELECT * FROM prices ORDER BY symbol, day",
    "SELECT * FROM prices WHERE symbol = 'ABB' ORDER BY day DESC",
    "SELECT day FROM prices WHERE symbol = 'ABB' AND day > '2026-01-05'",
    "SELECT symbol FROM prices WHERE symbol > 'ABB' AND symbol < 'ZAL'",
    "SELECT symbol, price FROM prices WHERE price > 25 ORDER BY price DESC LIMIT 1",
    "SELECT symbol, price FROM prices WHERE price BETWEEN 21.5 AND 30.00 ORDER BY price",
    "SELECT symbol FROM prices WHERE price IS NULL",
    "SELECT symbol FROM prices WHERE price IS NOT NULL ORDER BY price NULLS FIRST, symbol",
    "SELECT symbol FROM prices WHERE day = '2026-01-06'",
    "SELECT symbol FROM prices WHERE symbol IN ('ZAL', 'SAP', 'QQQ') ORDER BY 1",
    "SELECT symbol FROM prices WHERE symbol NOT IN ('ZAL', 'SAP') ORDER BY day LIMIT 1",
    "SELECT symbol FROM prices WHERE symbol LIKE 'A%' AND price > 20",
    "SELECT symbol FROM prices WHERE length(symbol) = 3 AND price / 2 > 20 ORDER BY symbol",
    "SELECT count(*), sum(price), min(day), max(price), avg(price) FROM prices",
    "SELECT symbol, count(*), max(price) FROM prices GROUP BY symbol HAVING count(*) > 0 ORDER BY symbol",
    "SELECT count(*) FROM prices WHERE symbol = 'none'",
    "SELECT p.symbol, o.price FROM prices p JOIN own o ON p.symbol = o.symbol AND p.day = o.day ORDER BY 1, 2",
    "SELECT o.symbol, p.price FROM own o LEFT JOIN prices p ON p.symbol = o.symbol AND p.price > 100 ORDER BY 1, 2",
    "SELECT symbol FROM prices WHERE price = (SELECT max(price) FROM prices)",
    "SELECT o.day FROM own o WHERE EXISTS (SELECT 1 FROM prices p WHERE p.symbol = o.symbol AND p.price > 25) ORDER BY 1",
    "SELECT DISTINCT day FROM prices UNION SELECT day FROM own ORDER BY day OFFSET 1",
    "WITH dear AS (SELECT * FROM prices WHERE price > 25) SELECT d.symbol, e.symbol FROM dear d, dear e ORDER BY 1, 2",
];

/// Every question answers what the database's own table answers.
fn answers_as_own(stage: &Stage) {
    for question in QUESTIONS {
        let own = question.replace("prices", "own");
        assert_eq!(stage.good(&["db", question]), stage.good(&["db", &own]), "{question}");
    }
}

#[test]
fn queries_answer_what_they_answer_of_a_table_of_the_database() {
    let (stage, owner) = engine();
    answers_as_own(&stage);
    // The same from a program that answers.
    let (_served, url) = mirror(&stage, &["--allow", &owner]);
    publish(&stage, &["--to", &url]);
    create_again(&stage, &url, &owner);
    answers_as_own(&stage);
    // It is told once how old a statement's rows are, of each table.
    let told = stage.run(&["db", "SELECT a.symbol FROM prices a JOIN prices b ON a.symbol = b.symbol"]);
    let notes: Vec<&str> = told.err.lines().collect();
    assert!(told.code == 0 && notes.len() == 1, "{}", told.err);
    assert!(notes[0].starts_with("note: verified: prices: authentic and complete as of 20"), "{}", told.err);
    assert_eq!(stage.run(&["db", "SELECT 1 FROM own"]).err, "");
}

#[test]
fn all_types_come_as_they_were_published() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE own (b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, d DOUBLE PRECISION, n NUMERIC(7, 3), t TEXT, \
         y BYTEA, a DATE, o TIME, m TIMESTAMP, p TIMESTAMP(9), z TIMESTAMPTZ, u UUID)",
    ]);
    stage.good(&[
        "db",
        "INSERT INTO own VALUES (true, -3, 70000, 5000000000, 1.5, -0.1, 12.345, 'a''b', '\\x00ff', '2026-01-05', '10:00:01', \
         '2026-01-05 10:00:00.000001', '2026-01-05 10:00:00.000000001', '2026-01-05 10:00:00+02', \
         'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ]);
    let told = stage.good(&["db", "PUBLISH TABLE own ORDER BY s ORDER BY t ORDER BY r ORDER BY u TO 'dir:site'"]);
    let owner = told.lines().nth(1).and_then(|line| line.split(',').next()).expect("an owner");
    let sql = with("dir:site", owner).replace(")", ", \"table\" = 'own')");
    stage.good(&["db", &format!("CREATE TABLE theirs {sql}")]);
    for of in [
        "SELECT * FROM own ORDER BY s",
        "SELECT t FROM own WHERE b ORDER BY r",
        "SELECT s FROM own WHERE r = 1.5 AND d < 0",
        "SELECT s FROM own WHERE u = 'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "SELECT s FROM own WHERE n > 12.34 AND z = '2026-01-05 08:00:00Z' AND p > '2026-01-05' AND o < '11:00'",
        "SELECT s FROM own WHERE y = '\\x00ff' AND l > 4999999999 AND t = 'a''b' AND NOT b IS NULL",
        "SELECT s FROM own WHERE b IS NULL OR i > 1000000",
    ] {
        let theirs = of.replace("own", "theirs");
        assert_eq!(stage.good(&["db", &theirs]), stage.good(&["db", of]), "{of}");
    }
    let described = |table: &str| stage.good(&["db", &format!("DESCRIBE {table}")]);
    assert_eq!(described("theirs"), described("own"));
}

#[test]
fn a_plan_says_what_is_asked_of_the_server() {
    let (stage, _) = engine();
    let plan = |sql: &str| stage.good(&["db", &format!("EXPLAIN {sql}")]);
    let of = |sql: &str, parts: &[&str], none: &[&str]| {
        let plan = plan(sql);
        for part in parts {
            assert!(plan.contains(part), "{part} of {sql}: {plan}");
        }
        for part in none {
            assert!(!plan.contains(part), "{part} of {sql}: {plan}");
        }
    };
    let by_symbol = "order 0 by (symbol, day), intervals: 1, exactly";
    of(
        "SELECT price FROM prices WHERE symbol = 'ABB'",
        &["Published: prices, asks dir:/", by_symbol, "columns: [price]"],
        &["FilterExec"],
    );
    of(
        "SELECT day FROM prices WHERE symbol IN ('ABB', 'ZAL')",
        &["(symbol, day), intervals: 2, exactly"],
        &["FilterExec"],
    );
    of(
        "SELECT symbol FROM prices WHERE day = '2026-01-05'",
        &["then the condition on each row", "tests: [day]"],
        &["FilterExec"],
    );
    of("SELECT symbol FROM prices WHERE upper(symbol) = 'ABB'", &["Published:", "FilterExec"], &[]);
    // An order that the owner has is not sorted again, and a limit is the server's.
    let top = "SELECT symbol FROM prices WHERE price IS NOT NULL ORDER BY price DESC LIMIT 2";
    of(top, &["order 1 by (price)", "the last 2 rows", "sorted by: [price DESC]"], &["SortExec"]);
    of("SELECT * FROM prices WHERE symbol = 'ABB' ORDER BY day LIMIT 1", &["the first 1 rows"], &["SortExec"]);
    of("SELECT * FROM prices ORDER BY symbol, day", &["sorted by: [symbol, day]"], &["SortExec"]);
    of("SELECT * FROM prices ORDER BY day", &["SortExec"], &["sorted by: ["]);
    of("SELECT * FROM prices LIMIT 2", &["the first 2 rows", "limit: 2"], &[]);
    of("SELECT * FROM prices WHERE symbol = 'a' AND symbol = 'b' AND price > 1", &[], &["asks"]);
    // Nobody is asked for a plan.
    fs::remove_dir_all(stage.path("site")).expect("removed");
    of("SELECT price FROM prices WHERE symbol = 'ABB'", &[by_symbol], &[]);
}

#[test]
fn what_is_the_owners_is_not_changed() {
    let (stage, _) = engine();
    for sql in [
        "INSERT INTO prices VALUES ('X', '2026-01-05', 1)",
        "INSERT INTO prices SELECT * FROM own",
        "UPDATE prices SET price = 1",
        "DELETE FROM prices",
        "TRUNCATE prices",
        "COPY prices FROM 'prices.csv' WITH (FORMAT csv, HEADER)",
    ] {
        stage.refused(
            &["db", sql],
            1,
            &["not supported: INSERT, UPDATE, DELETE and TRUNCATE of table prices", "published"],
        );
    }
    stage.refused(&["import", "db", "prices", "prices.csv"], 1, &["published"]);
    for sql in ["ADD COLUMN x INTEGER", "DROP COLUMN price", "RENAME TO others", "SET (max_age = '1 hour')"] {
        stage.refused(&["db", &format!("ALTER TABLE prices {sql}")], 1, &["ALTER TABLE of table prices", "published"]);
    }
    stage.refused(&["db", "CREATE INDEX i ON prices (day)"], 1, &["CREATE INDEX of table prices", "published"]);
    stage.refused(&["db", "CREATE TABLE child (s TEXT REFERENCES prices (symbol))"], 1, &["prices"]);
    assert_eq!(stage.ask("SELECT count(*) FROM prices"), "4");
}

#[test]
fn it_is_shown_like_other_tables() {
    let (stage, owner) = engine();
    assert_eq!(stage.ask("SHOW TABLES"), "own;prices");
    let columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'prices'";
    assert_eq!(stage.ask(columns), "symbol,text;day,date;price,double precision");
    let kind = "SELECT table_name, table_type, is_insertable_into FROM information_schema.tables ORDER BY 1";
    assert_eq!(stage.ask(kind), "own,BASE TABLE,YES;prices,BASE TABLE,NO");
    let shown = stage.good(&["db", "SHOW CREATE TABLE prices"]);
    assert!(shown.contains("engine = 'published', server = 'dir:/") && shown.contains(&owner), "{shown}");
    let inspected = stage.good(&["inspect", "db"]);
    assert!(inspected.contains(&format!("published      prices: table prices of {owner}, from dir:/")), "{inspected}");
    stage.good(&["verify", "db"]);
    // A view over it is described without its server, and asks it like the table.
    stage.good(&["db", "CREATE VIEW dear AS SELECT symbol FROM prices WHERE price > 100"]);
    assert_eq!(stage.ask("SELECT * FROM dear"), "SAP");
    // Exported is the table and not its rows; what was exported can be run again.
    stage.good(&["export", "db", "--all", "all"]);
    assert!(stage.path("all/own.csv").is_file() && !stage.path("all/prices.csv").exists());
    stage.good(&["init", "db2"]);
    stage.good(&["import", "db2", "--all", "all"]);
    assert_eq!(stage.good(&["db2", "SELECT * FROM dear"]), "symbol\nSAP\n");
    fs::remove_dir_all(stage.path("site")).expect("removed");
    assert_eq!(stage.ask("SELECT column_name FROM information_schema.columns WHERE table_name = 'dear'"), "symbol");
    // It goes without its server, too.
    stage.good(&["db", "DROP VIEW dear; DROP TABLE prices"]);
    assert_eq!(stage.ask("SHOW TABLES"), "own");
}

#[test]
fn wrong_use_says_what_to_do() {
    let (stage, owner) = engine();
    let refused = |sql: &str, code: i32, parts: &[&str]| {
        stage.refused(&["db", &format!("CREATE TABLE new {sql}")], code, parts);
        assert_eq!(stage.ask("SHOW TABLES"), "own;prices", "{sql}");
    };
    refused("WITH (engine = 'published', owner = 'x')", 1, &["server = 'http://example.com'"]);
    refused("WITH (engine = 'published', server = 'dir:site')", 1, &["owner = 'foilpub1...'"]);
    refused(&with("dir:site", "foilpub1x"), 1, &["foilpub1 and 58"]);
    refused(&with("ftp://example.com", &owner), 1, &["not supported: the server ftp://example.com"]);
    refused(&with("site", &owner), 1, &["not supported: the server site", "dir:PATH"]);
    refused(&with("dir:site", &owner).replace(")", ", colour = 'red')"), 1, &["the table option colour"]);
    refused(&with("dir:site", &owner).replace(")", ", max_age = 'soon')"), 1, &["max_age = 'soon'", "1 hour"]);
    refused(&with("dir:nowhere", &owner), 1, &["no published table", "nowhere"]);
    // Its table is called otherwise.
    refused(&with("dir:site", &owner), 1, &["new", "prices"]);
    refused(&with("http://127.0.0.1:1", &owner), 2, &["127.0.0.1:1"]);
    let named = with("dir:site", &owner).replace(")", ", \"table\" = 'prices')");
    refused(&format!("(symbol TEXT) {named}"), 1, &["other columns", "day date"]);
    refused(&format!("(symbol TEXT, day DATE, price DOUBLE PRECISION NOT NULL) {named}"), 1, &["other columns"]);
    refused(
        &format!("(symbol TEXT PRIMARY KEY, day DATE, price DOUBLE PRECISION) {named}"),
        1,
        &["constraints of table new"],
    );
    refused(&format!("{named} AS SELECT 1"), 1, &["AS for a published table"]);
    stage.refused(&["db", &format!("CREATE TABLE own {named}")], 1, &["own already"]);
    stage.good(&["db", &format!("CREATE TABLE IF NOT EXISTS own {named}")]);
    // The columns may be said.
    stage.good(&["db", &format!("CREATE TABLE new (symbol TEXT, day DATE, price DOUBLE PRECISION) {named}")]);
    assert_eq!(stage.ask("SELECT count(*) FROM new"), "4");
}

#[test]
fn what_is_not_the_owners_ends_the_query() {
    let (stage, owner) = engine();
    let all = ["db", "SELECT * FROM prices"];
    // A page that was changed in its place.
    let pages: Vec<_> = super::published::files(&stage.path("site/pages"));
    for page in &pages {
        let mut bytes = fs::read(page).expect("a page");
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(page, bytes).expect("written");
    }
    let refused = |code: i32, parts: &[&str]| {
        stage.refused(&all, code, parts);
        assert_eq!(stage.run(&all).out, "", "no row is shown");
        // Nor counted, nor joined, nor kept.
        stage.refused(&["db", "SELECT count(*) FROM prices, own"], code, parts);
        stage.refused(&["db", "INSERT INTO own SELECT * FROM prices"], code, parts);
        assert_eq!(stage.ask("SELECT count(*) FROM own"), "4");
    };
    refused(3, &["malformed", "pages/", "ask another server"]);
    // Another owner's table of this name.
    fs::remove_dir_all(stage.path("site")).expect("removed");
    stage.good(&["publish", "prices.csv", "--out", "other", "--order-by", "symbol"]);
    copy(&stage.path("other"), &stage.path("site"));
    refused(3, &["forged", "another owner's"]);
    stage.refused(&["db", &format!("CREATE TABLE again {}", with("dir:site", &owner))], 3, &["forged"]);
    // Nothing is there any more.
    fs::remove_dir_all(stage.path("site")).expect("removed");
    refused(2, &["no published table", "ask another server"]);
}

#[test]
fn what_is_too_old_ends_the_query() {
    let (stage, owner) = engine();
    for (age, code) in [("0", 3), ("'1 hour'", 0), ("3600", 0)] {
        let sql = with("dir:site", &owner).replace(")", &format!(", \"table\" = 'prices', max_age = {age})"));
        stage.good(&["db", &format!("CREATE TABLE fresh {sql}")]);
        let ended = stage.run(&["db", "SELECT * FROM fresh"]);
        assert_eq!((ended.code, ended.out.is_empty()), (code, code != 0), "{age}: {}", ended.err);
        assert!(code == 0 || ended.err.contains("stale"), "{}", ended.err);
        stage.good(&["db", "DROP TABLE fresh"]);
    }
}

/// Puts what is in `from` where the table is read.
fn serve_from(stage: &Stage, from: &str) {
    fs::remove_dir_all(stage.path("site")).expect("removed");
    copy(&stage.path(from), &stage.path("site"));
}

#[test]
fn no_server_goes_back_behind_what_the_database_has_seen() {
    let (stage, owner) = engine();
    let yesterdays_is_refused = || {
        serve_from(&stage, "yesterday");
        stage.refused(&["db", "SELECT * FROM prices"], 3, &["stale", "seen already"]);
        serve_from(&stage, "today");
        // Nothing outside of the database remembers it.
        fs::remove_dir_all(stage.path("state/readers")).ok();
        serve_from(&stage, "yesterday");
        stage.refused(&["db", "SELECT * FROM prices"], 3, &["stale", "seen already"]);
        serve_from(&stage, "today");
    };
    let next = |price: &str| {
        fs::remove_dir_all(stage.path("yesterday")).ok();
        copy(&stage.path("site"), &stage.path("yesterday"));
        stage.write("prices.csv", PRICES.replace("140.25", price));
        publish(&stage, &[]);
        fs::remove_dir_all(stage.path("today")).ok();
        copy(&stage.path("site"), &stage.path("today"));
    };
    // By a query.
    next("141");
    assert_eq!(stage.ask("SELECT price FROM prices WHERE symbol = 'SAP'"), "141");
    yesterdays_is_refused();
    // By a statement that has the writer itself, and by one in a transaction.
    next("142");
    stage.good(&["db", "INSERT INTO own SELECT * FROM prices"]);
    yesterdays_is_refused();
    next("143");
    stage.good(&["db", "BEGIN; DELETE FROM own; SELECT count(*) FROM prices; COMMIT"]);
    yesterdays_is_refused();
    // By a query whose rows were refused.
    next("144");
    let strict = with("dir:site", &owner).replace(")", ", \"table\" = 'prices', max_age = 0)");
    stage.good(&["db", &format!("CREATE TABLE fresh {strict}")]);
    stage.refused(&["db", "SELECT * FROM fresh"], 3, &["stale"]);
    yesterdays_is_refused();
    // As long as one table stands for it, it is remembered.
    stage.good(&["db", "DROP TABLE fresh"]);
    yesterdays_is_refused();
    // A copy that is put back remembers less, as of everything else, and that is noticed.
    serve_from(&stage, "yesterday");
    create_again(&stage, "dir:site", &owner);
    assert_eq!(stage.ask("SELECT price FROM prices WHERE symbol = 'SAP'"), "143", "forgotten with the table");
}

#[test]
fn a_table_that_is_published_anew_with_other_columns_is_made_anew() {
    let (stage, _) = engine();
    stage.good(&["publish", "keygen", "root"]);
    fs::remove_dir_all(stage.path("site")).expect("removed");
    let anew = |out: &str, orders: &[&str]| {
        let words = ["publish", "prices.csv", "--out", out, "--root", "root"];
        let orders = orders.iter().flat_map(|order| ["--order-by", order]);
        stage.good(&words.into_iter().chain(orders).collect::<Vec<_>>()).trim().to_owned()
    };
    let owner = anew("a", &["symbol"]);
    copy(&stage.path("a"), &stage.path("site"));
    create_again(&stage, "dir:site", &owner);
    assert_eq!(stage.ask("SELECT count(*) FROM prices"), "4");
    // Other orders need nothing of whoever reads it.
    thread::sleep(Duration::from_millis(20));
    anew("b", &["day", "price"]);
    serve_from(&stage, "b");
    assert_eq!(stage.ask("SELECT count(*) FROM prices WHERE symbol = 'ABB'"), "2");
    let plan = stage.good(&["db", "EXPLAIN SELECT * FROM prices ORDER BY price"]);
    assert!(plan.contains("order 1 by (price)"), "{plan}");
    stage.write("prices.csv", "symbol,price\nABB,1\n");
    thread::sleep(Duration::from_millis(20));
    anew("c", &["symbol"]);
    serve_from(&stage, "c");
    stage.refused(&["db", "SELECT * FROM prices"], 1, &["other columns now", "DROP TABLE prices"]);
    create_again(&stage, "dir:site", &owner);
    assert_eq!(stage.ask("SELECT * FROM prices"), "ABB,1");
}

/// What a server in between does with what a mirror answers.
type Lie = Box<dyn Fn(&str, &[u8], Vec<u8>) -> Vec<u8> + Send>;

/// The head of a message and its body.
fn message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).expect("a body");
    (head, body)
}

/// A server between a mirror and whoever asks it, until the test ends: it is told the path, the question and the answer.
fn between(url: &str, lie: Lie) -> String {
    let upstream: SocketAddr = url.trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let (head, question) = message(&mut stream);
            if head.is_empty() {
                continue;
            }
            let first = head.lines().next().unwrap_or_default();
            let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
            let mut mirror = TcpStream::connect(upstream).expect("a mirror");
            let sent =
                format!("{first}\r\nHost: mirror\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", question.len());
            mirror.write_all(&[sent.as_bytes(), &question].concat()).expect("sent");
            let (head, answer) = message(&mut mirror);
            assert!(!head.to_lowercase().contains("chunked"), "{head}");
            let status = head.lines().next().unwrap_or_default().to_owned();
            let answer = lie(&path, &question, answer);
            let head = format!("{status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
            // Whoever asked may have gone.
            let _ = stream.write_all(&[head.as_bytes(), &answer].concat());
        }
    });
    format!("http://{address}")
}

/// A stage whose prices a mirror serves, its address, and what the table is.
fn mirrored() -> (Stage, Served, String, String, Definition) {
    let (stage, owner) = engine();
    let (served, url) = mirror(&stage, &["--allow", &owner]);
    publish(&stage, &["--to", &url]);
    let known: Owner = owner.parse().expect("an owner");
    let manifest = TrustedManifest::check(&stage.read("site/manifest"), &known, 0).expect("a manifest");
    let definition = manifest.manifest().definition.clone();
    (stage, served, url, owner, definition)
}

#[test]
fn a_mirror_that_lies_gets_no_row_into_a_query() {
    let (stage, _served, url, owner, definition) = mirrored();
    let lying = |lie: Lie, sql: &str, code: i32, parts: &[&str]| {
        create_again(&stage, &between(&url, lie), &owner);
        stage.refused(&["db", sql], code, parts);
        assert_eq!(stage.run(&["db", sql]).out, "", "{sql}");
    };
    let all = "SELECT * FROM prices";
    // An answer with one byte changed, wherever it is.
    for part in 1..8 {
        let change: Lie = Box::new(move |path, _, mut answer| {
            let at = answer.len() * part / 8;
            if path.ends_with("/answer") {
                answer[at] ^= 1;
            }
            answer
        });
        lying(change, all, 3, &["ask another server"]);
    }
    // Rows left out: the first, one between, the last.
    for row in 0..4 {
        let definition = definition.clone();
        let without: Lie = Box::new(move |path, question, answer| {
            if !path.ends_with("/answer") {
                return answer;
            }
            let question = Question::from_bytes(question, &definition).expect("a question");
            let mut parsed = Answer::from_bytes(&answer, &definition, &question).expect("an answer");
            parsed.runs[0].rows.remove(row);
            // Its hint goes with it: the first is of what stands before all rows.
            parsed.hints.as_mut().expect("hints").remove(row + 1);
            parsed.to_bytes(&definition, &question).expect("bytes")
        });
        lying(without, all, 3, &["ask another server"]);
    }
    // The answer to another question, and none at all.
    let last = std::sync::Mutex::new(None::<Vec<u8>>);
    let other: Lie = Box::new(move |path, _, answer| {
        if path.ends_with("/answer") { last.lock().expect("a lock").get_or_insert(answer).clone() } else { answer }
    });
    create_again(&stage, &between(&url, other), &owner);
    assert_eq!(stage.ask("SELECT price FROM prices WHERE symbol = 'SAP'"), "140.25");
    stage.refused(&["db", "SELECT price FROM prices WHERE symbol = 'ZAL'"], 3, &["another question"]);
    lying(
        Box::new(|path, _, answer| if path.ends_with("/answer") { Vec::new() } else { answer }),
        all,
        3,
        &["malformed"],
    );
    // Whoever tells the truth is believed.
    create_again(&stage, &between(&url, Box::new(|_, _, answer| answer)), &owner);
    answers_as_own(&stage);
}

/// A server that says the beginning of something and then nothing more, for as long as the test runs.
fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let mut clients = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbeginning");
            clients.push(stream);
        }
    });
    format!("http://{address}")
}

#[test]
fn a_server_that_is_silent_or_gone_is_not_waited_for_without_end() {
    let (stage, mut served, url, owner, _) = mirrored();
    // Silent in the middle of an answer: whoever asks has set a time.
    let quiet = silent();
    let address: SocketAddr = quiet.trim_start_matches("http://").parse().expect("an address");
    create_again(&stage, &url, &owner);
    served.end(Signal::SIGTERM);
    stage.refused(&["db", "SELECT * FROM prices"], 2, &[&url, "ask another server"]);
    stage.refused(
        &["db", &format!("SET statement_timeout = '500ms'; CREATE TABLE quiet {}", with(&quiet, &owner))],
        130,
        &["interrupted"],
    );
    // The mirror's address is taken over by somebody who says nothing more.
    let port: SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
    let listener = TcpListener::bind(port).expect("the port is free");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut client = stream.expect("a client");
            thread::spawn(move || {
                let Ok(mut there) = TcpStream::connect(address) else { return };
                std::io::copy(&mut there, &mut client).ok();
            });
        }
    });
    let all = "SELECT * FROM prices";
    stage.refused(&["db", &format!("SET statement_timeout = '500ms'; {all}")], 130, &["interrupted"]);
    // Ctrl-C ends it at once.
    let mut asking = Served::start(&stage, &["db", all]);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(asking.end(Signal::SIGINT), Some(130));
    // The database goes on meanwhile.
    assert_eq!(stage.ask("SELECT count(*) FROM own"), "4");
}
