//! Published tables in a bucket of a real server, and at mirrors beside a real PostgreSQL.

use std::fs;

use counterfoil_test_servers::{PostgresServer, S3Server};
use nix::sys::signal::Signal;

use super::published::{PRICES, publish, words};
use super::served::Served;
use super::stage::Stage;

const ALL: &str = "SELECT * FROM prices";

#[test]
fn a_bucket_of_a_real_server_holds_what_a_folder_holds() {
    let Some(mut bucket) = S3Server::start() else { return };
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    let secret = format!(
        "AWS_ACCESS_KEY_ID={}\nAWS_SECRET_ACCESS_KEY={}\nAWS_ENDPOINT_URL={}\n",
        S3Server::KEY,
        S3Server::SECRET,
        bucket.endpoint()
    );
    stage.write("secret", secret);
    let to = format!("s3://{}/of/today", S3Server::BUCKET);
    let published = ["publish", "prices.csv", "--order-by", "symbol,day", "--state", "prices.foil"];
    let published = [&published[..], &["--to", &to, "--s3-secret-file", "secret"]].concat();
    let owner = stage.good(&published).trim().to_owned();
    // What any web server would serve of it.
    let site = bucket.objects().join("of/today").display().to_string();
    assert_eq!(stage.good(&words(&site, &owner, ALL)), PRICES);
    // Another price, a row less: only what has changed is written, and what nobody needs goes.
    stage.write("prices.csv", PRICES.replace("140.25", "141").replace("ZAL,2026-01-05,30\n", ""));
    let told = stage.run(&published);
    assert!(told.code == 0 && told.err.contains("objects written"), "{}", told.err);
    let now = stage.good(&words(&site, &owner, ALL));
    assert!(now.contains("SAP,2026-01-05,141") && !now.contains("ZAL"), "{now}");
    // While nobody answers nothing is lost, and the next time brings all of it.
    bucket.kill();
    stage.write("prices.csv", PRICES);
    assert_eq!(stage.run(&published).code, 2);
    assert_eq!(stage.good(&words(&site, &owner, ALL)), now, "it is as it was");
    bucket.run();
    stage.good(&published);
    assert_eq!(stage.good(&words(&site, &owner, ALL)), PRICES);
    let wrong = fs::read_to_string(stage.path("secret")).expect("a file").replace("not-a-secret", "another");
    stage.write("secret", wrong);
    let told = stage.run(&published);
    assert!(told.code == 2 && !told.err.contains("another/of"), "{}", told.err);
}

#[test]
fn mirrors_beside_one_postgresql_serve_the_same() {
    let Some(mut server) = PostgresServer::start() else { return };
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    let owner = publish(&stage, &["--order-by", "symbol,day"]);
    let store = server.url(server.port);
    let start = || {
        let serve = ["mirror", "serve", "--store", &store, "--listen", "127.0.0.1:0", "--allow", &owner];
        let served = Served::start(&stage, &serve);
        let line = served.says("published tables at ");
        let url = line.split(' ').find(|word| word.starts_with("http://")).expect("an address");
        (served, url.trim_end_matches(':').to_owned())
    };
    let ((mut one, first), (_two, second)) = (start(), start());
    publish(&stage, &["--state", "site.foil", "--to", &first]);
    for url in [&first, &second] {
        assert_eq!(stage.good(&words(url, &owner, ALL)), PRICES, "at {url}");
    }
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    publish(&stage, &["--state", "site.foil", "--to", &second]);
    for url in [&first, &second] {
        assert!(stage.good(&words(url, &owner, ALL)).contains("SAP,2026-01-05,141"), "at {url}");
    }
    // One that is started anew has all of it; without its database it answers that, and nothing else.
    assert_eq!(one.end(Signal::SIGTERM), Some(0));
    let (_again, url) = start();
    assert!(stage.good(&words(&url, &owner, ALL)).contains("SAP,2026-01-05,141"));
    server.kill();
    stage.refused(&words(&url, &owner, ALL), 2, &["127.0.0.1"]);
    server.run();
    assert!(stage.good(&words(&url, &owner, ALL)).contains("SAP,2026-01-05,141"));
}
