//! Three providers of one's own, each a process, as the clouds of a table.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::stage::Stage;

const CREATE: &str = "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT FOR (equality, prefix), \
                      salary NUMERIC(10,2) FOR (sum, range)) WITH (engine = 'dispersed', clouds = 'a, b, c')";
const ALL: &str = "SELECT * FROM people ORDER BY id";

/// A provider that runs, and is killed with its test.
pub struct Running {
    child: Child,
    pub url: String,
}

impl Running {
    pub fn start(stage: &Stage, name: &str, port: &str) -> Self {
        let [folder, listen] = places(name, port);
        Self::of(stage.command(&["provider", "serve", &folder, "--listen", &listen]))
    }

    /// On a disk on which no file can grow.
    fn start_where_it_is_full(stage: &Stage, name: &str, port: &str) -> Self {
        let [folder, listen] = places(name, port);
        Self::of(stage.command_where_it_is_full(&["provider", "serve", &folder, "--listen", &listen]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.split_whitespace().find(|word| word.starts_with("provider://")).expect("an address");
        Self { url: url.trim_end_matches(':').to_owned(), child }
    }

    pub fn port(&self) -> &str {
        self.url.split(['/', '?']).nth(2).and_then(|place| place.rsplit(':').next()).expect("a port")
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

/// Where a provider has its files, and where it listens.
fn places(name: &str, port: &str) -> [String; 2] {
    [format!("at-{name}"), format!("127.0.0.1:{port}")]
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn started() -> (Stage, Vec<Running>) {
    let stage = Stage::with_database();
    let mut running = Vec::new();
    for name in ["a", "b", "c"] {
        let token = stage.good(&["provider", "token", &format!("at-{name}"), "ada", "--days", "2"]);
        stage.write(&format!("{name}.token"), token);
        running.push(Running::start(&stage, name, "0"));
        let url = &running.last().expect("one").url;
        stage.good(&["db", &format!("CREATE CLOUD {name} OPTIONS (url '{url}', secret_file '{name}.token')")]);
    }
    stage.good(&["db", CREATE]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    (stage, running)
}

#[test]
fn three_processes_of_which_any_may_be_killed_are_clouds() {
    let (stage, mut running) = started();
    let ask = |sql: &str| stage.good(&["db", sql]);
    ask(
        "INSERT INTO people SELECT value, 'name ' || value % 7, value * 1.25 FROM generate_series(1, 3000) AS t(value)",
    );
    let questions = [
        ("SELECT count(*), sum(salary) FROM people", "3000,5626875.00"),
        ("SELECT count(*), min(id) FROM people WHERE name = 'name 3'", "429,3"),
        ("SELECT count(*) FROM people WHERE salary BETWEEN 10 AND 20", "9"),
        ("SELECT count(*) FROM people WHERE name LIKE 'name 1%'", "429"),
    ];
    let all = ask(ALL);
    for at in 0..3 {
        let port = running[at].port().to_owned();
        running[at].kill();
        for (sql, expected) in questions {
            assert_eq!(ask(sql).lines().nth(1), Some(expected), "{sql} without {at}");
        }
        assert_eq!(ask(ALL), all);
        // What it is not told it is told when it is back.
        ask(&format!(
            "UPDATE people SET name = name WHERE id <= 9; INSERT INTO people VALUES ({}, 'new', 0)",
            9000 + at
        ));
        ask(&format!("DELETE FROM people WHERE id = {}", 9000 + at));
        let name = ["a", "b", "c"][at];
        running[at] = Running::start(&stage, name, &port);
        let repaired = ask("REPAIR TABLE people");
        assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
    }
    // Two are away: more than may be.
    running[0].kill();
    running[1].kill();
    stage.refused(&["db", ALL], 2, &["cloud a", "cloud b", "out of reach"]);
    // The third knows what brings all of it back, when the others are there again.
    fs::remove_file(stage.path("db")).expect("the database");
    let url = running[2].url.clone();
    let from = ["restore", "--from", &url, "db", "--key-file", "shares", "--cloud-secret-file", "c.token"];
    stage.good(&from);
    for (at, name) in [(0, "a"), (1, "b")] {
        let port = running[at].port().to_owned();
        running[at] = Running::start(&stage, name, &port);
    }
    assert_eq!(stage.good(&["db", ALL]), all);
}

/// What a provider answers with is what lies in its folder: it is full, what lies there is of yesterday, changed, or gone.
#[test]
fn three_processes_of_which_any_may_have_something_else_are_clouds() {
    let (stage, mut running) = started();
    let ask = |sql: &str| stage.good(&["db", sql]);
    ask("CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2))");
    let both = |sql: &str| ["people", "plain"].map(|table| ask(&sql.replace("TABLE", table)));
    let same = |when: &str| {
        for sql in [
            "SELECT * FROM TABLE ORDER BY id",
            "SELECT count(*), sum(salary) FROM TABLE",
            "SELECT count(*), sum(salary) FROM TABLE WHERE name = 'name 3'",
            "SELECT count(*) FROM TABLE WHERE salary BETWEEN 10 AND 20",
        ] {
            let [people, plain] = both(sql);
            assert_eq!(people, plain, "{when}: {sql}");
        }
    };
    let rows = "INSERT INTO TABLE SELECT FROM_ + value, 'name ' || value % 7, value * 1.25 FROM generate_series(1, 2000) AS t(value)";
    both(&rows.replace("FROM_", "0"));
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let (folder, yesterday) = (stage.path(&format!("at-{name}")), stage.path("yesterday"));
        let shell =
            |line: &str| assert!(Command::new("sh").args(["-c", line]).status().expect("runs").success(), "{line}");
        let (own, kept) = (folder.display(), yesterday.display());
        shell(&format!("rm -rf {kept}; cp -a {own} {kept}"));
        let port = running[at].port().to_owned();
        let mut again = |change: &str, is_full: bool| {
            running[at].kill();
            shell(change);
            running[at] = match is_full {
                true => Running::start_where_it_is_full(&stage, name, &port),
                false => Running::start(&stage, name, &port),
            };
        };
        again("true", true);
        both(&rows.replace("FROM_", &format!("{}", (at + 1) * 10_000)));
        both(&format!("UPDATE TABLE SET salary = salary + 1 WHERE id % 1000 = {at}"));
        same(&format!("{name} is full"));
        again("true", false);
        same(&format!("{name} has room again"));
        let repaired = ask("REPAIR TABLE people");
        assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
        let fragments = format!("find {own} -type f -size +4k");
        for (trouble, change) in [
            (
                "put back",
                format!("cd {own} && find . -mindepth 1 ! -name 'key*' ! -name tokens -delete; cp -a {kept}/. {own}"),
            ),
            (
                "changed",
                format!(
                    "{fragments} -exec sh -c 'printf x | dd of=\"$1\" bs=1 seek=3000 conv=notrunc status=none' _ {{}} \\;"
                ),
            ),
            ("gone", format!("{fragments} -delete")),
        ] {
            again(&change, false);
            same(&format!("{name} is {trouble}"));
            let told = stage.run(&["db", "SELECT * FROM people OPTIMIZE FOR RELIABILITY"]);
            assert!(told.err.contains(&format!("cloud {name}")), "{name} is {trouble}: {}", told.err);
            let repaired = ask("REPAIR TABLE people EXTENDED");
            assert!(
                repaired.lines().skip(1).all(|line| line.ends_with(",complete")),
                "{name} is {trouble}: {repaired}"
            );
            same(&format!("{name} was {trouble}"));
        }
    }
}

#[test]
fn who_has_no_token_or_meets_another_server_is_told() {
    let (stage, mut running) = started();
    stage.good(&["db", "INSERT INTO people VALUES (1, 'Ada', 1)"]);
    // A token that is not there: a cloud that fails, as others do.
    fs::rename(stage.path("c.token"), stage.path("c.gone")).expect("renamed");
    let told = stage.run(&["db", "SELECT name, salary FROM people WHERE name = 'Ada'"]);
    assert!(told.code == 0 && told.out.contains("Ada"), "{}", told.err);
    let told = stage.run(&["db", "UPDATE people SET salary = 2"]);
    assert!(told.code == 0 && told.err.contains("the secret of cloud c cannot be read"), "{}", told.err);
    fs::rename(stage.path("c.gone"), stage.path("c.token")).expect("renamed");
    let token = stage.read("a.token");
    stage.write("a.token", "cft_wrong");
    let told = stage.run(&["db", "SELECT name FROM people"]);
    assert!(told.code == 0 && told.out == "name\nAda\n", "{}", told.err);
    let told = stage.run(&["db", "INSERT INTO people VALUES (2, 'Bob', 1)"]);
    assert!(told.code == 0 && told.err.contains("no such token"), "{}", told.err);
    // A new cloud that does not let us in is told when it is made.
    let fourth = Running::start(&stage, "d", "0");
    let create = format!("CREATE CLOUD d OPTIONS (url '{}', secret_file 'a.token')", fourth.url);
    let told = stage.run(&["db", &create]);
    assert!(told.code == 0 && told.err.contains("cloud d does not answer as it should"), "{}", told.err);
    assert!(told.err.contains("no such token"), "{}", told.err);
    // A file that is no token, and one server by two names.
    stage.write("long", "x".repeat(600));
    let told = stage.run(&["db", &format!("CREATE CLOUD e OPTIONS (url '{}', secret_file 'long')", running[0].url)]);
    assert!(told.code == 1 && told.err.contains("cloud a is at"), "{} {}", told.code, told.err);
    let by_name = running[0].url.replace("127.0.0.1", "localhost");
    assert_ne!(by_name, running[0].url);
    let told = stage.run(&["db", &format!("CREATE CLOUD e OPTIONS (url '{by_name}', secret_file 'a.token')")]);
    assert!(told.code == 1 && told.err.contains("cloud a is at"), "{} {}", told.code, told.err);
    let fifth = Running::start(&stage, "e", "0");
    let told = stage.run(&["db", &format!("CREATE CLOUD e OPTIONS (url '{}', secret_file 'long')", fifth.url)]);
    assert!(told.code == 0 && told.err.contains("more in it than a token"), "{}", told.err);
    stage.refused(&["provider", "token", "at-a", "ada", "--days", "0"], 1, &["--days"]);
    // Somebody else's server at the address of b: the token of b does not reach it.
    let port = running[1].port().to_owned();
    running[1].kill();
    running[1] = Running::start(&stage, "else", &port);
    // The two that have the cells of id are those.
    stage.refused(&["db", "SELECT id FROM people"], 3, &["no such token", "another server is there"]);
    let told = stage.run(&["db", "SELECT name FROM people WHERE name = 'Ada'"]);
    assert!(told.out == "name\nAda\n" && told.err.contains("cloud b: its answer is none"), "{}", told.err);
    assert!(told.err.contains("another server is there"), "{}", told.err);
    // That is no cloud whose files are damaged: what it had may be where it is now.
    stage.write("a.token", token);
    stage.refused(&["db", "REPAIR TABLE people LET GO"], 1, &["not known to be lost", "cloud b", "another server"]);
    stage.refused(&["provider", "token", "at-a", "../x"], 1, &["a client's name"]);
    stage.refused(&["db", "CREATE CLOUD d OPTIONS (url 'provider://example.com:1')"], 1, &["pin", "provider serve"]);
    stage.write("file", "");
    stage.refused(&["provider", "serve", "file"], 2, &["file"]);
}

#[test]
fn a_token_that_has_expired_is_told_and_a_new_one_goes_on() {
    let (stage, _running) = started();
    let ask = |sql: &str| stage.run(&["db", sql]);
    stage.good(&["db", "INSERT INTO people VALUES (1, 'Ada', 1)"]);
    let tokens = fs::read_to_string(stage.path("at-a/tokens")).expect("tokens");
    let ended: Vec<String> = tokens
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            format!("{} 1 {}\n", words[0], words[2])
        })
        .collect();
    fs::write(stage.path("at-a/tokens"), ended.concat()).expect("written");
    let told = ask("INSERT INTO people VALUES (2, 'Bob', 2); SELECT sum(salary) FROM people");
    assert!(told.code == 0 && told.out.contains("3.00"), "{} {}", told.out, told.err);
    let says_what_to_do = |text: &str| text.contains("the token has expired: have a new one made");
    assert!(says_what_to_do(&told.err), "{}", told.err);
    let told = ask("SELECT * FROM people ORDER BY id");
    assert_eq!(told.out, "id,name,salary\n1,Ada,1.00\n2,Bob,2.00\n");
    // REPAIR says why a cloud is not complete, and a table that nobody can put anywhere says it, too.
    let told = ask("REPAIR TABLE people");
    assert!(says_what_to_do(&format!("{}{}", told.out, told.err)), "{} {}", told.out, told.err);
    let token = stage.good(&["provider", "token", "at-a", "ada", "--days", "2"]);
    stage.write("a.token", token);
    let repaired = stage.good(&["db", "REPAIR TABLE people"]);
    assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
    assert!(ask("SELECT sum(salary) FROM people").err.is_empty());
}
