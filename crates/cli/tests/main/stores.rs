//! A dispersed table over three kinds of stores, each a real server of its own: a bucket, a web server, and a machine that is reached by ssh.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use counterfoil_test_servers::{S3Server, SftpServer, WebDavServer};

use super::everywhere::{CHANGE, DISTRIBUTIONS, FILL, QUESTIONS, USES, creates, is_full, same};
use super::stage::{Stage, ended};

/// The clouds `a`, `b` and `c` of a table `people`, beside which `plain` lies here.
struct Stores {
    stage: Stage,
    bucket: S3Server,
    web: WebDavServer,
    machine: SftpServer,
}

impl Stores {
    fn start() -> Option<Self> {
        let (bucket, web, machine) = (S3Server::start()?, WebDavServer::start()?, SftpServer::start()?);
        let stores = Self { stage: Stage::with_database(), bucket, web, machine };
        let stage = &stores.stage;
        stage.write("bucket", format!("{}\n{}\n", S3Server::KEY, S3Server::SECRET));
        stage.write("web", WebDavServer::PASSWORD);
        let at_bucket = format!("s3://{}/mine?endpoint={}", S3Server::BUCKET, stores.bucket.endpoint());
        let (user, port) = (WebDavServer::USER, stores.web.port());
        let at_web = format!("webdav://{user}@127.0.0.1:{port}/{}", WebDavServer::FOLDER);
        let key_file = stores.key_file();
        for (name, url, secret) in
            [("a", at_bucket, "bucket"), ("b", at_web, "web"), ("c", stores.at_machine(), &key_file)]
        {
            stage.good(&["db", &format!("CREATE CLOUD {name} OPTIONS (url '{url}', secret_file '{secret}')")]);
        }
        stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
        Some(stores)
    }

    /// With two tables.
    fn with_tables() -> Option<Self> {
        let stores = Self::start()?;
        stores.stage.good(&[
            "db",
            "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT FOR (equality), salary NUMERIC(10,2) FOR (sum)) \
             WITH (engine = 'dispersed', clouds = 'a, b, c'); CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2))",
        ]);
        Some(stores)
    }

    fn at_machine(&self) -> String {
        let (machine, host) = (&self.machine, format!("127.0.0.1:{}", self.machine.port()));
        let (files, hosts) = (machine.files(), machine.known_hosts());
        format!("sftp://{}@{host}{}?known_hosts={}", machine.user, files.display(), hosts.display())
    }

    fn key_file(&self) -> String {
        self.machine.key_file().display().to_string()
    }

    /// A statement about each of both tables, which ends well; what it printed.
    #[track_caller]
    fn both(&self, sql: &str) -> [String; 2] {
        ["people", "plain"].map(|table| self.stage.good(&["db", &sql.replace("TABLE", table)]))
    }

    fn fill(&self) {
        self.both("INSERT INTO TABLE SELECT value, 'name ' || value % 7, value * 1.5 FROM generate_series(1, 500) AS t(value)");
        self.both("DELETE FROM TABLE WHERE id % 10 = 3");
        self.both("UPDATE TABLE SET salary = -1 WHERE id = 8");
    }

    #[track_caller]
    fn same(&self) {
        for sql in [
            "SELECT * FROM TABLE ORDER BY id",
            "SELECT sum(salary) AS s, count(*) AS c FROM TABLE",
            "SELECT id FROM TABLE WHERE name = 'name 3' ORDER BY id",
        ] {
            let [people, plain] = self.both(sql);
            assert_eq!(people, plain, "{sql}");
        }
    }
}

#[test]
fn a_bucket_a_web_server_and_a_machine_are_three_clouds() {
    let Some(mut stores) = Stores::with_tables() else { return };
    stores.fill();
    stores.same();
    // One is gone for a while, and told when it is back.
    stores.bucket.kill();
    stores.same();
    let told = stores.stage.run(&["db", "INSERT INTO people VALUES (1000, 'late', 5)"]);
    assert!(told.code == 0 && told.err.contains("cloud a"), "{}", told.err);
    stores.stage.good(&["db", "INSERT INTO plain VALUES (1000, 'late', 5)"]);
    stores.same();
    stores.bucket.run();
    stores.stage.good(&["db", "REPAIR TABLE people"]);
    stores.stage.good(&["db", "REFRESH TABLE people"]);
    stores.same();
    // The laptop is lost, and the machine brings it back.
    let (stage, at_machine, key_file) = (&stores.stage, stores.at_machine(), stores.key_file());
    fs::remove_file(stage.path("db")).expect("the database");
    let told =
        stage.run(&["restore", "--from", &at_machine, "db", "--key-file", "shares", "--cloud-secret-file", &key_file]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.err.contains("table people: 451 rows"), "{}", told.err);
    assert_eq!(stage.good(&["db", "SELECT count(*) AS c, sum(id) AS s FROM people"]), "c,s\n451,113850\n");
}

/// All types, codings and distributions, as at processes that answer questions (everywhere.rs).
#[test]
fn all_types_and_codings_answer_at_stores_as_a_relation_does() {
    let Some(mut stores) = Stores::start() else { return };
    let all =
        (0..DISTRIBUTIONS.len()).flat_map(|distribution| (0..USES.len()).map(move |uses| [0, distribution, uses]));
    for (at, combination) in all.enumerate().filter(|(at, _)| is_full() || at % 4 == 3) {
        let create = creates(combination);
        stores.stage.good(&["db", &create]);
        same(&stores.stage, FILL, &create);
        same(&stores.stage, QUESTIONS, &create);
        let victim = at % 3;
        stores.begin(victim, Trouble::Killed, Path::new(""));
        same(&stores.stage, QUESTIONS, &create);
        same(&stores.stage, CHANGE, &create);
        stores.end(victim, Trouble::Killed);
        stores.stage.good(&["db", "REPAIR TABLE people"]);
        let noted = same(&stores.stage, QUESTIONS, &create);
        assert!(!noted.lines().any(|line| line.contains("cloud") && !line.contains("it is slow")), "{create}: {noted}");
        stores.stage.good(&["db", "DROP TABLE people; DROP TABLE plain"]);
    }
}

/// What happens to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It is killed, and started again in the end.
    Killed,
    /// It hangs, and goes on in the end.
    Hangs,
    /// What lies there is what lay there before the statement.
    PutBack,
    /// A bit of every file is changed.
    Damaged,
    /// All is gone.
    Emptied,
}

const TROUBLES: [Trouble; 5] = [Trouble::Killed, Trouble::Hangs, Trouble::PutBack, Trouble::Damaged, Trouble::Emptied];

/// What the client does meanwhile, with another `NUMBER` each time. The first so many are of both tables.
const CHANGES: usize = 2;
const STATEMENTS: [&str; 4] = [
    "INSERT INTO TABLE SELECT NUMBER * 10000 + value, 'name ' || value % 7, value FROM generate_series(1, 2000) AS t(value)",
    "UPDATE TABLE SET salary = salary + 1 WHERE name = 'name 3'",
    "REFRESH TABLE people",
    "SELECT * FROM people ORDER BY id",
];

impl Stores {
    fn files(&self, victim: usize) -> PathBuf {
        [self.bucket.objects().join("mine"), self.web.files(), self.machine.files()][victim].clone()
    }

    fn begin(&mut self, victim: usize, trouble: Trouble, before: &Path) {
        let files = self.files(victim);
        match (trouble, victim) {
            (Trouble::Killed, 0) => self.bucket.kill(),
            (Trouble::Killed, 1) => self.web.kill(),
            (Trouble::Killed, _) => self.machine.kill(),
            (Trouble::Hangs, 0) => self.bucket.stop(),
            (Trouble::Hangs, 1) => self.web.stop(),
            (Trouble::Hangs, _) => self.machine.stop(),
            (Trouble::PutBack, _) => {
                empty(&files);
                shell(&format!("cp -a {}/. {}", before.display(), files.display()));
            }
            (Trouble::Damaged, _) => all_files(&files).iter().for_each(|file| damage(file)),
            (Trouble::Emptied, _) => empty(&files),
        }
    }

    fn end(&mut self, victim: usize, trouble: Trouble) {
        match (trouble, victim) {
            (Trouble::Killed, 0) => self.bucket.run(),
            (Trouble::Killed, 1) => self.web.run(),
            (Trouble::Killed, _) => self.machine.run(),
            (Trouble::Hangs, 0) => self.bucket.go_on(),
            (Trouble::Hangs, 1) => self.web.go_on(),
            (Trouble::Hangs, _) => self.machine.go_on(),
            _ => {}
        }
    }
}

fn shell(command: &str) {
    let done = Command::new("sh").args(["-c", command]).status().expect("sh");
    assert!(done.success(), "{command}");
}

/// Takes away what lies in a folder while somebody may write there, who may keep a folder from going at first.
fn empty(folder: &Path) {
    shell(&format!("for i in 1 2 3 4 5; do rm -rf {}/* && break; sleep 0.1; done", folder.display()));
}

/// All files below a folder, of those that are still there.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] }).collect()
}

/// Changes a bit in the middle of a file, where it lies.
fn damage(file: &Path) {
    use std::os::unix::fs::FileExt;
    let Ok(open) = fs::OpenOptions::new().read(true).write(true).open(file) else { return };
    let (mut byte, at) = ([0], open.metadata().expect("a file").len() / 2);
    if open.read_exact_at(&mut byte, at).is_ok() {
        open.write_all_at(&[byte[0] ^ 1], at).expect("changed");
    }
}

/// Whatever one of them does (`COUNTERFOIL_PROOF=full`: each of them with each statement), at some moment of a statement: it ends well, nothing is lost, answers are right while it lasts, and a repair
/// makes all of it whole.
#[test]
fn whatever_one_of_them_does_at_any_moment_nothing_is_lost() {
    let Some(mut stores) = Stores::with_tables() else { return };
    stores.fill();
    let before = stores.stage.path("before");
    let cases = TROUBLES.iter().flat_map(|trouble| (0..3).map(move |victim| (*trouble, victim)));
    for (number, (trouble, victim)) in cases.enumerate() {
        for (at, statement) in STATEMENTS.iter().enumerate() {
            // Otherwise each trouble once, of the next one each, and in the next statement.
            let trouble_number = number / 3;
            if !is_full() && (victim != trouble_number % 3 || at != trouble_number % 4) {
                continue;
            }
            let of = format!("{trouble:?} {victim}: {statement}");
            shell(&format!("rm -rf {0}; cp -a {1} {0}", before.display(), stores.files(victim).display()));
            let sql = |table: &str| {
                let own = statement.replace("NUMBER", &(number * 4 + at + 1).to_string());
                if at < CHANGES { own.replace("TABLE", table) } else { own }
            };
            let child = stores.stage.spawn(&["sql", "db", "-c", &sql("people")]);
            std::thread::sleep(Duration::from_millis(20 + 90 * (number as u64 * 5 + at as u64) % 700));
            stores.begin(victim, trouble, &before);
            let told = ended(child.wait_with_output().expect("ends"));
            assert_eq!(told.code, 0, "{of}: {}", told.err);
            if at < CHANGES {
                stores.stage.good(&["db", &sql("plain")]);
            }
            stores.same();
            stores.end(victim, trouble);
            let repaired = stores.stage.good(&["db", "REPAIR TABLE people EXTENDED"]);
            assert!(repaired.lines().skip(1).all(|line| line.ends_with(",complete")), "{of}: {repaired}");
            stores.same();
        }
    }
    // Each of them is whole: any two give all.
    for victim in 0..3 {
        stores.begin(victim, Trouble::Killed, &before);
        stores.same();
        stores.end(victim, Trouble::Killed);
    }
}
