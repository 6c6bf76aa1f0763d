//! A dispersed table over three kinds of stores, each a real server of its own: a bucket, a web server, and a machine that is reached by ssh.

use std::fs;

use counterfoil_test_servers::{S3Server, SftpServer, WebDavServer};

use super::stage::Stage;

#[test]
fn a_bucket_a_web_server_and_a_machine_are_three_clouds() {
    let (Some(mut bucket), Some(web), Some(machine)) = (S3Server::start(), WebDavServer::start(), SftpServer::start())
    else {
        return;
    };
    let stage = Stage::with_database();
    fs::write(stage.path("bucket"), format!("{}\n{}\n", S3Server::KEY, S3Server::SECRET)).expect("a file");
    fs::write(stage.path("web"), WebDavServer::PASSWORD).expect("a file");
    let (endpoint, port) = (bucket.endpoint(), web.port());
    let at_bucket = format!("s3://{}/mine?endpoint={endpoint}", S3Server::BUCKET);
    let at_web = format!("webdav://{}@{}:{port}/{}", WebDavServer::USER, "127.0.0.1", WebDavServer::FOLDER);
    let host = format!("127.0.0.1:{}", machine.port());
    let (user, files, hosts) = (&machine.user, machine.files(), machine.known_hosts());
    let at_machine = format!("sftp://{user}@{host}{}?known_hosts={}", files.display(), hosts.display());
    let key_file = machine.key_file().display().to_string();
    for (name, url, secret) in [("a", &at_bucket, "bucket"), ("b", &at_web, "web"), ("c", &at_machine, &key_file[..])] {
        stage.good(&["db", &format!("CREATE CLOUD {name} OPTIONS (url '{url}', secret_file '{secret}')")]);
    }
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    stage.good(&[
        "db",
        "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT FOR (equality), salary NUMERIC(10,2) FOR (sum)) \
         WITH (engine = 'dispersed', clouds = 'a, b, c'); CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2))",
    ]);
    let both = |sql: &str| ["people", "plain"].map(|table| stage.good(&["db", &sql.replace("TABLE", table)]));
    both("INSERT INTO TABLE SELECT value, 'name ' || value % 7, value * 1.5 FROM generate_series(1, 500) AS t(value)");
    both("DELETE FROM TABLE WHERE id % 10 = 3");
    both("UPDATE TABLE SET salary = -1 WHERE id = 8");
    let same = || {
        for sql in [
            "SELECT * FROM TABLE ORDER BY id",
            "SELECT sum(salary) AS s, count(*) AS c FROM TABLE",
            "SELECT id FROM TABLE WHERE name = 'name 3' ORDER BY id",
        ] {
            let [people, plain] = both(sql);
            assert_eq!(people, plain, "{sql}");
        }
    };
    same();
    // One is gone for a while, and told when it is back.
    bucket.kill();
    same();
    let told = stage.run(&["db", "INSERT INTO people VALUES (1000, 'late', 5)"]);
    assert!(told.code == 0 && told.err.contains("cloud a"), "{}", told.err);
    stage.good(&["db", "INSERT INTO plain VALUES (1000, 'late', 5)"]);
    same();
    bucket.run();
    stage.good(&["db", "REPAIR TABLE people"]);
    stage.good(&["db", "REFRESH TABLE people"]);
    same();
    // The laptop is lost, and the machine brings it back.
    fs::remove_file(stage.path("db")).expect("the database");
    let told =
        stage.run(&["restore", "--from", &at_machine, "db", "--key-file", "shares", "--cloud-secret-file", &key_file]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.err.contains("table people: 451 rows"), "{}", told.err);
    assert_eq!(stage.good(&["db", "SELECT count(*) AS c, sum(id) AS s FROM people"]), "c,s\n451,113850\n");
}
