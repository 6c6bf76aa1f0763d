//! Publishing and asking beyond this machine: https, buckets, and the page for browsers.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::published::{PRICES, mirror, publish, published, words};
use super::served::Served;
use super::stage::{Ended, Stage, ended};
use buckets::{Buckets, KEY, REGION, SECRET, TOKEN};
use certificates::{Authority, Valid};
use server::{Reply, serve};

// Servers of the tests of `transport`, of which more is tried there.
#[allow(dead_code)]
#[path = "../../../transport/tests/transport/buckets.rs"]
mod buckets;
#[allow(dead_code)]
#[path = "../../../transport/tests/transport/certificates.rs"]
mod certificates;
#[allow(dead_code)]
#[path = "../../../transport/tests/transport/server.rs"]
mod server;

const ALL: &str = "SELECT * FROM prices";
const PAGE: &str = include_str!("../../../verifier/page/page.html");

/// A web server with TLS that has the files of a folder, and the file of who vouches for it.
fn private(stage: &Stage, folder: PathBuf) -> (String, String) {
    let authority = Authority::new();
    stage.write("ca.pem", &authority.pem);
    let address = serve(Some(authority.server("127.0.0.1", Valid::Now)), move |request| {
        fs::read(folder.join(&request.path[1..])).map_or_else(|_| Reply::missing(), Reply::found)
    });
    (format!("https://{address}"), "ca.pem".into())
}

fn run_with(stage: &Stage, words: &[&str], environment: &[(&str, &str)]) -> Ended {
    ended(stage.command(words).envs(environment.iter().copied()).output().expect("runs"))
}

#[test]
fn a_server_with_tls_is_asked_if_somebody_vouches_for_it() {
    let (stage, owner) = published();
    let (url, ca) = private(&stage, stage.path("site"));
    let asked = words(&url, &owner, ALL);
    assert_eq!(stage.good(&[&asked[..], &["--tls-ca", &ca]].concat()), PRICES);
    let by_environment = run_with(&stage, &asked, &[("SSL_CERT_FILE", stage.path(&ca).to_str().expect("a path"))]);
    assert_eq!((by_environment.code, &by_environment.out[..]), (0, PRICES), "{}", by_environment.err);
    stage.refused(&asked, 2, &["--tls-ca", &url]);
    stage.refused(&[&asked[..], &["--tls-ca", "prices.csv"]].concat(), 1, &["prices.csv", "PEM"]);
    stage.refused(&[&asked[..], &["--tls-ca", "nothing.pem"]].concat(), 1, &["nothing.pem"]);
    // What comes through TLS is checked like all else.
    let head = stage.read("site/head");
    stage.write("site/head", &head[..head.len() - 1]);
    stage.refused(&[&asked[..], &["--tls-ca", &ca]].concat(), 3, &["malformed"]);
}

/// Each file comes well within its minute. How many there are is up to the server.
#[test]
fn servers_are_waited_for_so_long_in_all() {
    let (stage, owner) = published();
    let site = stage.path("site");
    let address = serve(None, move |request| {
        thread::sleep(Duration::from_millis(300));
        fs::read(site.join(&request.path[1..])).map_or_else(|_| Reply::missing(), Reply::found)
    });
    let url = format!("http://{address}");
    let asked = words(&url, &owner, ALL);
    stage.refused(&[&asked[..], &["--timeout", "0.5"]].concat(), 2, &["0.5 s in all", "--timeout"]);
    assert_eq!(stage.good(&asked), PRICES);
}

#[test]
fn a_mirror_with_tls_is_told_if_somebody_vouches_for_it() {
    let (stage, _) = published();
    let (url, ca) = private(&stage, stage.path("nothing"));
    let told = stage.run(&["publish", "prices.csv", "--out", "site", "--to", &url]);
    assert!(told.code == 2 && told.err.contains("--tls-ca"), "{}", told.err);
    let told = stage.run(&["publish", "prices.csv", "--out", "site", "--to", &url, "--tls-ca", &ca]);
    assert!(told.code == 2 && told.err.contains("no mirror is here"), "{}", told.err);
    stage.good(&["init", "db"]);
    stage.good(&["import", "db", "prices", "prices.csv", "--create"]);
    let sql = format!("PUBLISH TABLE prices ORDER BY symbol, day TO '{url}'");
    let environment = [("SSL_CERT_FILE", stage.path(&ca))];
    let environment = environment.each_ref().map(|(name, path)| (*name, path.to_str().expect("a path")));
    let told = run_with(&stage, &["db", &sql], &environment);
    assert!(told.code == 2 && told.err.contains("no mirror is here"), "{}", told.err);
    let told = run_with(&stage, &["db", &format!("{sql}, 'dir:live'")], &environment);
    assert!(told.code == 0 && told.err.contains("no mirror is here"), "{}", told.err);
    assert!(stage.good(&["db", "SHOW PUBLICATIONS"]).contains(&url));
}

#[test]
fn who_cannot_be_told_keeps_nobody_else_from_being_told() {
    let (stage, owner) = published();
    let (_served, url) = mirror(&stage, &["--allow", &owner]);
    let to = ["--to", "http://127.0.0.1:1", "--to", &url, "--to", "http://127.0.0.1:2"];
    let revoke = [&["publish", "revoke", "site.foil", "--out", "site"][..], &to].concat();
    let told = stage.run(&revoke);
    assert!(["127.0.0.1:1", "error: ", "127.0.0.1:2", "2 of 4 were told"].iter().all(|part| told.err.contains(part)));
    assert!(told.code == 2 && told.err.contains(&url), "{}", told.err);
    assert_eq!(stage.good(&words(&url, &owner, ALL)), PRICES);
    assert_eq!(stage.good(&words("site", &owner, ALL)), PRICES);
}

#[test]
fn a_mirror_that_keeps_others_tables_is_told_the_owners_name_and_then_takes_it() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE quotes (symbol TEXT, price BIGINT); INSERT INTO quotes VALUES ('ABB', 21)"]);
    let publish = |url: &str| ["db".to_owned(), format!("PUBLISH TABLE quotes ORDER BY symbol TO '{url}'")];
    let another = stage.good(&["publish", "keygen", "root"]);
    let (served, url) = mirror(&stage, &["--allow", another.trim()]);
    let [db, sql] = publish(&url);
    let refused = |says: &[&str]| stage.refused(&[&db, &sql], 2, says);
    let named = |told: &str| {
        let from = told.find("--allow ").expect("whom to allow") + "--allow ".len();
        told[from..].split(|letter: char| !letter.is_ascii_alphanumeric()).next().expect("a name").to_owned()
    };
    let owner = named(&refused(&["does not keep tables of this owner", "--allow foilpub1"]));
    assert_eq!(named(&refused(&["--allow"])), owner, "it is the same the next time");
    assert_eq!(stage.good(&["db", "SHOW PUBLICATIONS"]).lines().count(), 1);
    drop(served);
    let (_served, url) = mirror(&stage, &["--allow", &owner]);
    let [db, sql] = publish(&url);
    assert!(stage.good(&[&db, &sql]).contains(&owner));
    assert_eq!(stage.good(&words(&url, &owner, "SELECT * FROM quotes")), "symbol,price\nABB,21\n");
}

#[test]
fn a_mirror_serves_through_tls_itself() {
    let (stage, owner) = published();
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    stage.write("cert.pem", certified.cert.pem());
    stage.write("key.pem", certified.signing_key.serialize_pem());
    let serve = ["mirror", "serve", "--store", "store", "--listen", "127.0.0.1:0", "--allow", &owner];
    let tls = ["--tls-certificate-file", "cert.pem", "--tls-key-file", "key.pem"];
    let served = Served::start(&stage, &[&serve[..], &tls].concat());
    let line = served.says("published tables at ");
    let url = line.split(' ').find(|word| word.starts_with("https://")).expect("an address").trim_end_matches(':');
    publish(&stage, &["--to", url, "--tls-ca", "cert.pem"]);
    assert_eq!(stage.good(&[&words(url, &owner, ALL)[..], &["--tls-ca", "cert.pem"]].concat()), PRICES);
    stage.refused(&words(url, &owner, ALL), 2, &["--tls-ca"]);
    let wrong = [&serve[..], &["--tls-certificate-file", "key.pem", "--tls-key-file", "key.pem"]].concat();
    stage.refused(&wrong, 1, &["key.pem", "PEM"]);
    stage.refused(&[&serve[..], &tls[..2]].concat(), 1, &["--tls-key-file"]);
}

/// A server of one bucket, and the environment that names it.
fn bucket() -> (Buckets, String, Vec<(&'static str, String)>) {
    let buckets = Buckets::default();
    let answering = buckets.clone();
    let url = format!("http://{}", serve(None, move |request| answering.answer(&request)));
    let environment = [
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", TOKEN),
        ("AWS_REGION", REGION),
        ("AWS_ENDPOINT_URL", &url),
    ];
    let environment = environment.map(|(name, value)| (name, value.to_owned())).to_vec();
    (buckets, url, environment)
}

#[test]
fn a_bucket_is_published_to_and_asked_like_a_folder() {
    let (buckets, url, environment) = bucket();
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, &value[..])).collect();
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    let publish =
        ["publish", "prices.csv", "--order-by", "symbol,day", "--state", "prices.foil", "--to", "s3://prices/of/today"];
    // A key is asked for before anything is made.
    stage.refused(&publish, 1, &["AWS_ACCESS_KEY_ID", "--s3-secret-file"]);
    assert!(!stage.path("prices.foil").exists());
    let told = run_with(&stage, &publish, &environment);
    let (owner, site) = (told.out.trim().to_owned(), format!("{url}/prices/of/today"));
    assert!(told.code == 0 && told.err.contains("objects written"), "{}", told.err);
    assert!(told.err.contains(&format!("--server {site} ")), "{}", told.err);
    assert_eq!(stage.good(&words(&site, &owner, ALL)), PRICES);
    // A file may name the key as well; it is in no message, and in no state.
    let named: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    stage.write("secret", named.concat());
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    let again = stage.run(&[&publish[..], &["--s3-secret-file", "secret"]].concat());
    assert_eq!((again.code, again.out.trim()), (0, &owner[..]), "{}", again.err);
    assert!(stage.good(&words(&site, &owner, ALL)).contains("SAP,2026-01-05,141"));
    stage.write("secret", named.concat().replace(SECRET, "another"));
    let wrong = stage.run(&[&publish[..], &["--s3-secret-file", "secret"]].concat());
    assert!(wrong.code == 2 && wrong.err.contains("SignatureDoesNotMatch"), "{}", wrong.err);
    for said in [&told.err, &again.err, &wrong.err] {
        assert!(!said.contains(SECRET) && !said.contains(TOKEN), "{said}");
    }
    assert!(buckets.state(|state| state.objects.contains_key("of/today/head")));
    let missing = [&publish[..7], &["s3://costs/of/today", "--s3-secret-file", "secret"]].concat();
    let told = stage.run(&missing);
    assert!(
        told.code == 1 && told.err.contains("no such bucket") && told.err.contains("s3://costs/of/today"),
        "{}",
        told.err
    );
}

#[test]
fn a_live_table_is_published_to_a_bucket() {
    let (_buckets, url, environment) = bucket();
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, &value[..])).collect();
    let stage = Stage::with_database();
    stage.write("prices.csv", PRICES);
    stage.good(&["import", "db", "prices", "prices.csv", "--create"]);
    let sql = "PUBLISH TABLE prices ORDER BY symbol, day TO 's3://prices/live'";
    let told = run_with(&stage, &["db", sql], &environment);
    let owner = told.out.lines().nth(1).and_then(|line| line.split(',').next()).expect("an owner").to_owned();
    assert!(told.code == 0 && told.err.contains("s3://prices/live: "), "{}", told.err);
    assert_eq!(stage.good(&words(&format!("{url}/prices/live"), &owner, ALL)), PRICES);
    assert!(stage.good(&["db", "SHOW PUBLICATIONS"]).contains("s3://prices/live"));
    // Without a key nobody is told, and it stays as it is; with a folder beside it, it is told later by whoever has one.
    let told = stage.run(&["db", sql]);
    assert!(told.code != 0 && told.err.contains("AWS_ACCESS_KEY_ID"), "{}", told.err);
    let told = stage.run(&["db", &format!("{sql}, 'dir:live'")]);
    assert!(told.code == 0 && told.err.contains("AWS_ACCESS_KEY_ID"), "{}", told.err);
}

#[test]
fn a_page_for_browsers_lies_beside_the_table() {
    let (stage, owner) = published();
    stage.write("page.html", PAGE);
    let told = stage.run(&["publish", "prices.csv", "--out", "site", "--page", "page.html"]);
    let sum = "SHA-256 ";
    let shown = told.err.split(sum).nth(1).and_then(|rest| rest.get(..64)).unwrap_or_default();
    assert!(told.code == 0 && shown.bytes().all(|byte| byte.is_ascii_hexdigit()) && shown.len() == 64, "{}", told.err);
    assert!(told.err.contains(&format!("#owner={owner}&table=prices")), "{}", told.err);
    assert_eq!(stage.text("site/index.html"), PAGE);
    // It stays when the table changes, and another one takes its place.
    publish(&stage, &[]);
    assert_eq!(stage.text("site/index.html"), PAGE);
    stage.write("page.html", format!("{PAGE} "));
    publish(&stage, &["--page", "page.html"]);
    assert_eq!(stage.text("site/index.html"), format!("{PAGE} "));
    // What is no such page is refused before anything is signed, and somebody's own is not written over.
    stage.refused(
        &["publish", "prices.csv", "--out", "site", "--page", "prices.csv"],
        1,
        &["no verifier's page", "prices.csv"],
    );
    stage.write("site/index.html", "<!DOCTYPE html><title>Prices</title>");
    let told = stage.run(&["publish", "prices.csv", "--out", "site", "--page", "page.html"]);
    assert!(told.code == 1 && told.err.contains("index.html"), "{}", told.err);
    assert_eq!(stage.text("site/index.html"), "<!DOCTYPE html><title>Prices</title>");
}
