//! Publishing a file and asking about it, over a folder and over HTTP; what is not the owner's ends with exit code 3.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::signal::Signal;

use super::served::Served;
use super::stage::Stage;

pub const PRICES: &str =
    "symbol,day,price\nABB,2026-01-05,21.5\nABB,2026-01-06,\nSAP,2026-01-05,140.25\nZAL,2026-01-05,30\n";

/// A stage on which prices are published, and the owner's name.
pub fn published() -> (Stage, String) {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    let owner = publish(&stage, &["--order-by", "symbol,day", "--order-by", "price"]);
    (stage, owner)
}

pub fn publish(stage: &Stage, more: &[&str]) -> String {
    let words = [&["publish", "prices.csv", "--out", "site"], more].concat();
    stage.good(&words).trim().to_owned()
}

pub fn words<'a>(server: &'a str, owner: &'a str, sql: &'a str) -> Vec<&'a str> {
    vec!["ask", "--server", server, "--owner", owner, sql]
}

#[test]
fn what_is_published_can_be_asked_and_published_again() {
    let (stage, owner) = published();
    let ended = stage.run(&words("site", &owner, "SELECT day, price FROM prices WHERE symbol = 'ABB'"));
    assert_eq!((ended.code, &ended.out[..]), (0, "day,price\n2026-01-05,21.5\n2026-01-06,\n"), "{}", ended.err);
    assert!(ended.err.starts_with("verified: authentic and complete as of 20"), "{}", ended.err);
    assert!(ended.err.contains(" s old at most (4 signatures)"), "two rows and what stands around them: {}", ended.err);
    // The owner's state is beside the folder, and sealed.
    assert!(stage.path("site.foil").is_file() && !String::from_utf8_lossy(&stage.read("site.foil")).contains("ABB"));
    // Another price, one row gone, one new: the same owner.
    stage.write("prices.csv", PRICES.replace("140.25", "141").replace("ZAL,2026-01-05,30\n", "ZAL,2026-01-07,31\n"));
    assert_eq!(publish(&stage, &[]), owner);
    let sum = stage.good(&words("site", &owner, "SELECT count(*), sum(price), max(day) FROM prices"));
    assert_eq!(sum.lines().nth(1), Some("4,193.5,2026-01-07"));
    // By the other order, from its end.
    let top =
        stage.good(&words("site", &owner, "SELECT symbol FROM prices WHERE price > 30 ORDER BY price DESC LIMIT 1"));
    assert_eq!(top, "symbol\nSAP\n");
    // Nobody's files are written over.
    for name in ["head", "manifest", "about.txt"] {
        let folder = format!("own-{name}");
        fs::create_dir(stage.path(&folder)).expect("a folder");
        stage.write(&format!("{folder}/{name}"), "mine");
        let into = ["publish", "prices.csv", "--out", &folder, "--order-by", "symbol"];
        let told = stage.run(&into);
        let says = format!("a file called {name} is here");
        assert!(told.code == 1 && told.err.contains(&says) && told.err.contains("move it away"), "{}", told.err);
        assert_eq!(stage.text(&format!("{folder}/{name}")), "mine");
    }
    // A file that lacks a column is not one with empty ones.
    stage.write("short.csv", "symbol,day\nABB,2026-01-05\n");
    let short = ["publish", "short.csv", "--table", "prices", "--out", "site"];
    stage.refused(&short, 1, &["column price of table prices is not in the file", "short.csv"]);
    stage.good(&words("site", &owner, "SELECT * FROM prices WHERE price > 30"));
    // Folders on the way are made, for the state beside it, too.
    stage.good(&["publish", "prices.csv", "--out", "deep/down/site", "--order-by", "symbol"]);
    assert!(stage.path("deep/down/site.foil").is_file());
}

#[test]
fn a_server_is_named_as_people_do_or_it_is_said_how() {
    let (stage, owner) = published();
    let sql = "SELECT count(*) FROM prices";
    let whole = format!("dir:{}", stage.path("site").display());
    for server in ["site", "./site", "dir:site", &whole] {
        assert_eq!(stage.good(&words(server, &owner, sql)), "count\n4\n", "{server}");
    }
    for (server, says) in [
        ("127.0.0.1:8080", "there is no folder 127.0.0.1:8080: name a folder that is there, or a server with http://"),
        ("dir:nowhere", "there is no folder nowhere"),
        ("http://127.0.0.1:99999", "this is no address of a server: invalid port number"),
        ("gopher://example.com", "use https:// or http://"),
    ] {
        stage.refused(&words(server, &owner, sql), 1, &[says]);
    }
}

#[test]
fn types_of_a_file_may_be_said_and_their_sums_are_signed() {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    let typed = ["--order-by", "symbol,day", "--type", "price=NUMERIC(10,2)"];
    for (kind, says) in
        [("price", "price=NUMERIC"), ("prize=DATE", "no column prize"), ("price=DATE, x DATE", "a type of SQL")]
    {
        let ended = stage.run(&["publish", "prices.csv", "--out", "site", "--order-by", "day", "--type", kind]);
        assert!(ended.code != 0 && ended.err.contains(says), "{kind}: {}", ended.err);
    }
    stage.refused(
        &["publish", "prices.csv", "--out", "site", "--order-by", "day", "--type", "symbol=DATE"],
        1,
        &["ABB"],
    );
    let owner = publish(&stage, &typed);
    let ended = stage.run(&words("site", &owner, "SELECT sum(price) FROM prices"));
    assert_eq!((ended.code, &ended.out[..]), (0, "sum\n191.75\n"), "{}", ended.err);
    // What is said again is so, or is refused.
    publish(&stage, &typed);
    let other = ["publish", "prices.csv", "--out", "site", "--type", "price=NUMERIC(12,2)"];
    stage.refused(&other, 1, &["column price is published with another type"]);
    stage.good(&["init", "db"]);
    stage.good(&["import", "db", "prices", "prices.csv", "--create", "--type", "Price=numeric(6, 1)"]);
    assert_eq!(stage.ask("SELECT sum(price) FROM prices"), "191.8");
}

#[test]
fn values_or_groups_may_be_signed_in_place_of_rows() {
    for (sign, signatures) in [("record", 4), ("attribute", 10), ("group", 2), ("group:2", 4)] {
        let stage = Stage::new();
        stage.write("prices.csv", PRICES);
        let owner = publish(&stage, &["--order-by", "symbol,day", "--order-by", "price", "--sign", sign]);
        let sql = "SELECT day, price FROM prices WHERE symbol = 'ABB'";
        let ended = stage.run(&words("site", &owner, sql));
        assert_eq!((ended.code, &ended.out[..]), (0, "day,price\n2026-01-05,21.5\n2026-01-06,\n"), "{}", ended.err);
        assert!(ended.err.contains(&format!("({signatures} signatures)")), "{sign}: {}", ended.err);
        // Said once, it stays.
        stage.write("prices.csv", PRICES.replace("140.25", "141"));
        assert_eq!(publish(&stage, &[]), owner);
        let sum = stage.good(&words("site", &owner, "SELECT sum(price) FROM prices"));
        assert_eq!(sum.lines().nth(1), Some("192.5"), "{sign}");
    }
}

/// Kept by the first version that kept any.
#[test]
fn what_was_kept_long_ago_is_checked() {
    let stage = Stage::new();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/kept/record-rows.answer");
    let owner = "foilpub1dn50q5e7l9dn8mfahyjgrdyzg8yc0gpuxu8crp60ywlfw2gh6p4q32u5yw";
    let rows = "day,price\n2026-01-01,\n2026-01-02,999.99\n2026-01-03,11.85\n2026-01-01,14.44\n2026-01-02,14.81\n2026-01-03,15.18\n";
    assert_eq!(stage.good(&["ask", "--check", kept, "--owner", owner]), rows);
}

#[test]
fn all_formats_show_all_types() {
    let stage = Stage::new();
    stage.write(
        "t.csv",
        "n,x,b,d,t,z,s\n1,2.5,true,2026-01-05,2026-01-05T10:00:00,2026-01-05T10:00:00+02:00,\"a,\"\"b\"\"\"\n,,,,,,\n",
    );
    let owner = stage.good(&["publish", "t.csv", "--out", "site", "--order-by", "n"]).trim().to_owned();
    let all = words("site", &owner, "SELECT * FROM t ORDER BY n");
    stage.good(&["init", "db"]);
    stage.good(&["import", "db", "t", "t.csv", "--create"]);
    for format in ["csv", "json", "jsonl", "table"] {
        let published = stage.good(&[&all[..], &["--format", format]].concat());
        assert_eq!(published, stage.good(&["db", "SELECT * FROM t ORDER BY n", "--format", format]), "{format}");
    }
}

#[test]
fn what_is_not_the_owners_is_not_shown() {
    let (stage, owner) = published();
    let all = "SELECT * FROM prices";
    // A page changed in its place: its name says so.
    let pages: Vec<PathBuf> = files(&stage.path("site/pages"));
    let whole: Vec<Vec<u8>> = pages.iter().map(|page| fs::read(page).expect("a page")).collect();
    for (page, whole) in pages.iter().zip(&whole) {
        let mut changed = whole.clone();
        let at = changed.len() / 2;
        changed[at] ^= 1;
        fs::write(page, changed).expect("written");
    }
    assert_eq!(stage.run(&words("site", &owner, all)).out, "");
    stage.refused(&words("site", &owner, all), 3, &["malformed", "pages/", "ask another server"]);
    for (page, whole) in pages.iter().zip(&whole) {
        fs::write(page, whole).expect("written");
    }
    stage.good(&words("site", &owner, all));
    // Another owner's table under this name.
    stage.good(&["publish", "prices.csv", "--out", "other", "--order-by", "symbol"]);
    stage.refused(&words("other", &owner, all), 3, &["forged", "another owner's"]);
    // Too old for whoever asks.
    let strict = [&words("site", &owner, all)[..], &["--max-age", "0"]].concat();
    stage.refused(&strict, 3, &["stale"]);
}

#[test]
fn yesterdays_folder_is_refused_by_whoever_has_seen_todays() {
    let (stage, owner) = published();
    copy(&stage.path("site"), &stage.path("yesterday"));
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    publish(&stage, &[]);
    let all = "SELECT * FROM prices";
    stage.good(&words("yesterday", &owner, all));
    stage.good(&words("site", &owner, all));
    stage.refused(&words("yesterday", &owner, all), 3, &["stale", "seen already"]);
    // What is remembered is looked at as well.
    stage.write(&format!("state/readers/{owner}/prices"), "?");
    stage.refused(&words("site", &owner, all), 3, &["is damaged", "delete the file"]);
}

#[test]
fn an_owner_put_back_from_a_backup_goes_on_under_another_key() {
    let (stage, owner) = published();
    stage.good(&["backup", "site.foil", "backup"]);
    let all = "SELECT * FROM prices";
    stage.write("prices.csv", PRICES.replace("140.25", "999"));
    publish(&stage, &[]);
    copy(&stage.path("site"), &stage.path("lost"));
    assert!(stage.good(&words("site", &owner, all)).contains("999"));
    stage.good(&["restore", "backup", "site.foil"]);
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    let ended = stage.run(&["publish", "prices.csv", "--out", "site"]);
    assert!(ended.code == 0 && ended.err.contains("note: this state was put back"), "{}", ended.err);
    // Whoever saw what was lost goes on, under the old name; the lost folder does not count any more.
    assert!(stage.good(&words("site", &owner, all)).contains("SAP,2026-01-05,141\n"));
    stage.refused(&words("lost", &owner, all), 3, &["stale", "seen already"]);
    // Said once: the next time nothing was put back.
    let again = stage.run(&["publish", "prices.csv", "--out", "site"]);
    assert!(again.code == 0 && !again.err.contains("put back"), "{}", again.err);
}

#[test]
fn an_answer_is_kept_and_checked_without_its_server() {
    let (stage, owner) = published();
    let save = [&words("site", &owner, "SELECT sum(price) FROM prices")[..], &["--save", "kept"]].concat();
    let rows = stage.good(&save);
    stage.refused(&save, 1, &["something of this name already", "kept"]);
    fs::remove_dir_all(stage.path("site")).expect("removed");
    let check = ["ask", "--check", "kept", "--owner", &owner];
    assert_eq!(stage.good(&check), rows);
    let mut bytes = stage.read("kept");
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    stage.write("kept", &bytes);
    stage.refused(&check, 3, &["kept", "do not use"]);
    stage.write("kept", "something else");
    stage.refused(&check, 1, &["no answer that was kept"]);
}

#[test]
fn wrong_use_says_what_to_do() {
    let (stage, owner) = published();
    let publish = ["publish", "prices.csv", "--out"];
    stage.refused(&[&publish[..], &["new"]].concat(), 1, &["by which columns", "there are symbol, day, price"]);
    assert!(!stage.path("new.foil").exists() && !stage.path("new").exists(), "nothing was made");
    stage.refused(&[&publish[..], &["new", "--order-by", "name"]].concat(), 1, &["no column name", "symbol"]);
    stage.refused(&[&publish[..], &["site", "--order-by", "day"]].concat(), 1, &["another order", "--state"]);
    stage.refused(&[&publish[..], &["site", "--sign", "group"]].concat(), 1, &["signed per record", "--state"]);
    stage.refused(&[&publish[..], &["new", "--order-by", "day", "--sign", "group:1"]].concat(), 1, &["group:2"]);
    stage.refused(&[&publish[..], &["site", "--table", "others"]].concat(), 1, &["prices", "--table"]);
    stage.refused(&[&publish[..], &["site", "--state", "site/x.foil"]].concat(), 1, &["would be served"]);
    stage.refused(&words("site", "foilpub1x", "SELECT 1"), 1, &["foilpub1"]);
    stage.refused(&words("nowhere", &owner, "SELECT * FROM prices"), 1, &["no folder nowhere"]);
    stage.refused(&words(".", &owner, "SELECT * FROM prices"), 1, &["no published table"]);
    stage.refused(&words("site", &owner, "SELECT * FROM others"), 1, &["others", "prices"]);
    stage.refused(
        &words("site", &owner, "SELECT a FROM prices GROUP BY a HAVING a > 1"),
        1,
        &["not supported", "HAVING"],
    );
    stage.refused(
        &words("ftp://example.com", &owner, "SELECT * FROM prices"),
        1,
        &["not supported", "ftp", "https://"],
    );
    stage.refused(&["ask", "--owner", &owner, "SELECT 1"], 1, &["--server"]);
}

#[test]
fn any_web_server_will_do_and_none_can_do_harm() {
    let (stage, owner) = published();
    let (all, site) = ("SELECT * FROM prices", stage.path("site"));
    let honest = serve(move |path| fs::read(site.join(path)).ok().map(Sent::All));
    let url = format!("http://{honest}");
    assert_eq!(stage.good(&words(&url, &owner, all)).lines().count(), 5);
    let nothing = format!("http://{}", serve(|_| None));
    stage.refused(&words(&nothing, &owner, all), 1, &["no published table"]);
    let endless = format!("http://{}", serve(|_| Some(Sent::Endless)));
    stage.refused(&words(&endless, &owner, all), 2, &["more than", "bytes"]);
    let broken = format!("http://{}", serve(|_| Some(Sent::BrokenOff)));
    stage.refused(&words(&broken, &owner, all), 2, &["manifest"]);
    let rubbish = format!("http://{}", serve(|_| Some(Sent::All(vec![0x80; 4000]))));
    stage.refused(&words(&rubbish, &owner, all), 3, &["malformed"]);
    stage.refused(&words("http://127.0.0.1:1", &owner, all), 2, &["127.0.0.1:1"]);
}

/// What a server sends of a file.
enum Sent {
    All(Vec<u8>),
    Endless,
    BrokenOff,
}

/// A web server that answers GET with what `file` gives, on a port of its own, until the test ends.
fn serve(file: impl Fn(&str) -> Option<Sent> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
            // A client that has seen enough goes: nothing is wrong with that.
            let _ = match file(path) {
                None => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
                Some(Sent::All(bytes)) => {
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
                    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes))
                }
                Some(Sent::BrokenOff) => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nbeginning")
                }
                Some(Sent::Endless) => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
                    while stream.write_all(&[1; 1 << 16]).is_ok() {}
                    Ok(())
                }
            };
        }
    });
    address
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

pub fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("inside"));
        fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        fs::copy(&file, &target).expect("copied");
    }
}

/// A mirror that runs as a program until it is dropped, which kills it; and its address.
pub fn mirror(stage: &Stage, allow: &[&str]) -> (Served, String) {
    let words = [&["mirror", "serve", "--store", "store", "--listen", "127.0.0.1:0"], allow].concat();
    let served = Served::start(stage, &words);
    let line = served.says("published tables at ");
    let url = line.split(' ').find(|word| word.starts_with("http://")).expect("an address");
    (served, url.trim_end_matches(':').to_owned())
}

#[test]
fn a_mirror_takes_what_its_owner_sends_and_answers_with_proofs() {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    // Whoever has no folder has a state all the same; a mirror that is told nobody's name takes nothing.
    let owner = publish(&stage, &["--order-by", "symbol,day"]);
    let send = |url: &str| publish(&stage, &["--state", "site.foil", "--to", url]);
    let (all, top) = ("SELECT * FROM prices", "SELECT max(price) FROM prices WHERE symbol = 'SAP'");
    let (served, url) = mirror(&stage, &["--allow", &owner]);
    stage.refused(&words(&url, &owner, all), 1, &["no published table"]);
    assert_eq!(send(&url), owner);
    assert_eq!(stage.good(&words(&url, &owner, all)), PRICES);
    // Another owner's table is not taken.
    let other = ["publish", "prices.csv", "--order-by", "day", "--state", "other.foil", "--to", &url];
    let ended = stage.run(&other);
    assert!(ended.code == 2 && ended.err.contains("publish again"), "{}", ended.err);
    drop(served);
    // Killed and started again it has what it had, and takes what is new.
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    let (served, url) = mirror(&stage, &["--allow", &owner]);
    assert_eq!(stage.good(&words(&url, &owner, all)), PRICES);
    send(&url);
    assert_eq!(stage.good(&words(&url, &owner, top)), "max\n141\n");
    drop(served);
    // One that lost its store is sent all of it.
    fs::remove_file(stage.path("store")).expect("removed");
    let (mut served, url) = mirror(&stage, &["--allow-any"]);
    stage.refused(&words(&url, &owner, all), 1, &["no published table"]);
    send(&url);
    assert_eq!(stage.good(&words(&url, &owner, top)), "max\n141\n");
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
}

#[test]
fn a_mirror_is_not_started_by_mistake() {
    let (stage, owner) = published();
    let serve = |more: &[&'static str]| [&["mirror", "serve"], more].concat();
    stage.refused(&serve(&["--store", "store"]), 1, &["--allow"]);
    stage.refused(&serve(&["--allow-any"]), 1, &["no store", "COUNTERFOIL_MIRROR_STORE"]);
    stage.refused(&serve(&["--store", "store", "--allow", "somebody"]), 1, &["somebody", "foilpub1"]);
    stage.refused(&serve(&["--store", "store", "--allow-any", "--listen", "nowhere"]), 1, &["nowhere"]);
    let shown = serve(&["--store", "postgres://mirror:secret@localhost/mirror", "--allow-any"]);
    let said = stage.refused(&shown, 1, &["COUNTERFOIL_MIRROR_STORE"]);
    assert!(!said.contains("secret"), "{said}");
    // Where no mirror is, nothing is taken; the folder is there all the same.
    let ended = stage.run(&["publish", "prices.csv", "--out", "site", "--to", "http://127.0.0.1:1"]);
    assert!(ended.code == 2 && ended.err.contains("127.0.0.1:1"), "{}", ended.err);
    stage.good(&words("site", &owner, "SELECT * FROM prices"));
    stage.refused(&["publish", "prices.csv", "--order-by", "day"], 1, &["--out"]);
}

#[test]
fn totals_take_few_signatures_unless_the_owner_leaves_them_out() {
    let stage = Stage::new();
    let rows: String = (0..3000).map(|n| format!("{n},{}\n", n % 7)).collect();
    stage.write("readings.csv", format!("id,value\n{rows}"));
    let sql = "SELECT count(*), sum(value), min(value) FROM readings WHERE id BETWEEN 100 AND 2899";
    let sum: u32 = (100..2900).map(|n| n % 7).sum();
    let asked = |site: &str, more: &[&str]| {
        let published = [&["publish", "readings.csv", "--order-by", "id", "--out", site][..], more].concat();
        let owner = stage.good(&published).trim().to_owned();
        let ended = stage.run(&words(site, &owner, sql));
        assert_eq!(ended.out, format!("count,sum,min\n2800,{sum},0\n"), "{}", ended.err);
        let (_, signatures) = ended.err.rsplit_once('(').expect("a verdict");
        signatures.split(' ').next().and_then(|number| number.parse::<u32>().ok()).expect("a number")
    };
    let by_nodes = asked("site", &[]);
    assert!(by_nodes < 100, "{by_nodes}");
    assert!(asked("plain", &["--no-totals", "--no-filters"]) > 2800);
    let less = ["publish", "readings.csv", "--order-by", "id", "--out", "site", "--no-totals"];
    stage.refused(&less, 1, &["what is to be left out", "another --out"]);
}

#[test]
fn two_tables_of_one_owner_are_joined() {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    stage.write("firms.csv", "symbol,name\nABB,Asea\nZAL,Zalando\nZZZ,Nobody\n");
    let owner = stage.good(&["publish", "keygen", "root"]).trim().to_owned();
    publish(&stage, &["--order-by", "symbol,day", "--root", "root"]);
    stage.good(&["publish", "firms.csv", "--out", "firms", "--order-by", "symbol", "--root", "root"]);
    let inner = "SELECT day, name FROM prices JOIN firms ON prices.symbol = firms.symbol ORDER BY day, name";
    let ask = |servers: &[&str], sql: &str| {
        let servers: Vec<&str> = servers.iter().flat_map(|server| ["--server", server]).collect();
        [&["ask", "--owner", owner.as_str()][..], &servers, &[sql]]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let good = |servers: &[&str], sql: &str| {
        let words = ask(servers, sql);
        stage.good(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let both = ["site", "firms"];
    assert_eq!(good(&both, inner), "day,name\n2026-01-05,Asea\n2026-01-05,Zalando\n2026-01-06,Asea\n");
    let left = "SELECT p.symbol, f.name FROM prices p LEFT JOIN firms f ON p.symbol = f.symbol WHERE p.price > 100";
    assert_eq!(good(&both, left), "symbol,name\nSAP,\n");
    // One mirror has both.
    let (_served, url) = mirror(&stage, &["--allow", &owner]);
    publish(&stage, &["--to", &url]);
    stage.good(&["publish", "firms.csv", "--out", "firms", "--to", &url]);
    assert_eq!(good(&[&url], left), "symbol,name\nSAP,\n");
    // Kept, and looked at again without a server; another's table is none of this owner's.
    let words = ask(&both, inner);
    let save: Vec<&str> = words.iter().map(String::as_str).chain(["--save", "kept"]).collect();
    let rows = stage.good(&save);
    assert_eq!(stage.good(&["ask", "--check", "kept", "--owner", &owner]), rows);
    stage.good(&["publish", "firms.csv", "--out", "theirs", "--order-by", "symbol"]);
    let words = ask(&["site", "theirs"], inner);
    stage.refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), 3, &["another owner's"]);
}

#[test]
fn several_files_are_the_rows_of_one_table() {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    stage.write("more.csv", "symbol,day,price\nZAL,2026-01-06,1000000\n");
    let publish = ["publish", "prices.csv", "more.csv", "--out", "site", "--order-by", "symbol,day"];
    let owner = stage.good(&publish).trim().to_owned();
    let told = stage.good(&words("site", &owner, "SELECT count(*), max(price) FROM prices"));
    assert_eq!(told.lines().nth(1), Some("5,1000000"));
    // One of them is gone: so are its rows.
    assert_eq!(stage.good(&["publish", "prices.csv", "--out", "site"]).trim(), owner);
    let told = stage.good(&words("site", &owner, "SELECT count(*) FROM prices"));
    assert_eq!(told.lines().nth(1), Some("4"));
    stage.refused(&["publish", "prices.csv", "absent.csv", "--out", "site"], 1, &["absent.csv"]);
}
