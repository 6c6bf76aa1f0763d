//! The keys of an owner: they change, are withdrawn, and are kept elsewhere.

use std::io::Write as _;

use super::published::{PRICES, copy, publish, published, words};
use super::stage::Stage;

#[test]
fn signing_keys_come_and_go() {
    let (stage, owner) = published();
    let all = words("site", &owner, "SELECT * FROM prices");
    let status = stage.good(&["publish", "status", "site.foil"]);
    for part in [
        &owner,
        "in this state",
        "prices: 4 rows, by (symbol, day) and (price)",
        "serial 1",
        "1 is open since",
        "after 90 days",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let key = |status: &str, at: usize| {
        let line = status.lines().filter(|line| line.starts_with("key ")).nth(at).expect("a key");
        line.split_whitespace().nth(1).expect("its name").to_owned()
    };
    copy(&stage.path("site"), &stage.path("before"));
    // Another one signs from now on, and both count.
    let told = stage.run(&["publish", "rotate", "site.foil", "--out", "site"]);
    assert_eq!((told.code, told.out.trim()), (0, &owner[..]), "{}", told.err);
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    publish(&stage, &[]);
    assert!(stage.good(&all).contains("141"));
    let status = stage.good(&["publish", "status", "site.foil"]);
    let keys = (key(&status, 0), key(&status, 1));
    assert!(
        keys.0 != keys.1 && status.contains("signed periods 0 to 1") && status.contains("signs since period 2"),
        "{status}"
    );
    // The first one was stolen: nothing that it signed counts for who knows.
    stage.refused(&["publish", "revoke", "site.foil", "--key", "ffff"], 1, &["no signing key", &keys.0, &keys.1]);
    let told = stage.run(&["publish", "revoke", "site.foil", "--key", &keys.0[..6], "--out", "site"]);
    assert!(told.code == 0 && told.err.contains("is withdrawn"), "{}", told.err);
    assert!(stage.good(&all).contains("141"));
    let status = stage.good(&["publish", "status", "site.foil"]);
    assert!(!status.contains(&keys.0), "{status}");
    stage.refused(&words("before", &owner, "SELECT * FROM prices"), 3, &["stale"]);
    // Without a place nobody is told, and the next `publish` makes up for it.
    let told = stage.run(&["publish", "revoke", "site.foil"]);
    assert!(told.code == 0 && told.err.contains("nobody was told yet"), "{}", told.err);
    publish(&stage, &[]);
    stage.good(&all);
    // Terms change when they are asked for.
    publish(&stage, &["--renew", "7"]);
    assert!(stage.good(&["publish", "status", "site.foil"]).contains("after 7 days"));
    publish(&stage, &["--max-age", "14"]);
    publish(&stage, &["--renew", "6"]);
    let status = stage.good(&["publish", "status", "site.foil"]);
    assert!(status.contains("after 6 days") && status.contains("count for 14 days"), "{status}");
    stage.refused(&["publish", "prices.csv", "--out", "site", "--max-age", "6"], 1, &["before they are renewed"]);
    stage.good(&all);
    // Who changes the key and then withdraws one is told that the one before counts still.
    let before = key(&status, 0);
    stage.good(&["publish", "rotate", "site.foil", "--out", "site"]);
    let told = stage.run(&["publish", "revoke", "site.foil", "--out", "site"]);
    assert!(told.code == 0 && told.err.contains("counts as before") && told.err.contains(&before), "{}", told.err);
}

#[test]
fn two_never_sign_from_one_state_at_once() {
    let (stage, owner) = published();
    let all = words("site", &owner, "SELECT * FROM prices");
    stage.good(&all);
    // It has read what is published, and waits for the rows.
    let mut first = stage.spawn(&["publish", "-", "--format", "csv", "--table", "prices", "--out", "site"]);
    let waits = ["--lock-timeout", "1"];
    stage.write("prices.csv", PRICES.replace("140.25", "141"));
    let others = [
        &["publish", "prices.csv", "--out", "site"][..],
        &["publish", "revoke", "site.foil", "--out", "site"],
        &["publish", "rotate", "site.foil"],
        &["publish", "terms", "site.foil", "--renew", "30"],
    ];
    // Whoever comes too early writes first, and is not waited for.
    let is_there = |words: &[&str]| stage.run(&[words, &waits].concat()).code == 4;
    let began = std::time::Instant::now();
    while !is_there(others[3]) {
        assert!(began.elapsed().as_secs() < 60, "the first one does not come");
    }
    for other in others {
        stage.refused(&[other, &waits].concat(), 4, &["site.foil", "is writing"]);
    }
    // Looking keeps nobody waiting.
    assert!(stage.good(&["publish", "status", "site.foil"]).contains(&owner));
    let mut rows = first.stdin.take().expect("its input");
    rows.write_all(PRICES.replace("140.25", "142").as_bytes()).expect("the rows");
    drop(rows);
    let ended = super::stage::ended(first.wait_with_output().expect("its end"));
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(stage.good(&all).contains("142"));
    publish(&stage, &[]);
    // Whoever has seen both summaries finds one chain.
    assert!(stage.good(&all).contains("141"));
}

#[test]
fn a_root_key_is_kept_elsewhere_and_is_one_owner_of_many_tables() {
    let stage = Stage::new();
    stage.write("prices.csv", PRICES);
    stage.write("others.csv", "n\n1\n2\n");
    stage.write("safe.key", "5".repeat(64));
    let (key, root_key) = (["--key-file", "safe.key"], ["--root-key-file", "safe.key"]);
    let owner = stage.good(&[&["publish", "keygen", "root"][..], &key].concat()).trim().to_owned();
    assert!(owner.starts_with("foilpub1"));
    let with_root = [&["--root", "root"][..], &root_key].concat();
    assert_eq!(publish(&stage, &[&["--order-by", "symbol,day"][..], &with_root].concat()), owner);
    let others = ["publish", "others.csv", "--out", "others", "--order-by", "n"];
    assert_eq!(stage.good(&[&others[..], &with_root].concat()).trim(), owner);
    stage.good(&words("others", &owner, "SELECT * FROM others"));
    assert!(stage.good(&["publish", "status", "site.foil"]).contains("kept elsewhere"));
    // Days are as ever without it; keys do not change without it, nor with another one.
    publish(&stage, &[]);
    stage.refused(&["publish", "rotate", "site.foil"], 1, &["kept elsewhere", "--root"]);
    stage.good(&[&["publish", "keygen", "new"][..], &key].concat());
    let wrong = [&["publish", "rotate", "site.foil", "--root", "new"][..], &root_key].concat();
    stage.refused(&wrong, 1, &["kept elsewhere", "--root"]);
    stage.refused(&["publish", "rotate", "site.foil", "--root", "site.foil"], 1, &["no root key is kept here"]);
    stage.good(&[&["publish", "rotate", "site.foil"][..], &with_root].concat());
    // Another root key: both names lead to the table, then one does.
    let change = [&["publish", "rotate", "site.foil", "--out", "site", "--new-root", "new"][..], &with_root].concat();
    let new = stage.good(&change).trim().to_owned();
    let all = "SELECT * FROM prices";
    for name in [&owner, &new] {
        stage.good(&words("site", name, all));
    }
    assert!(new != owner && stage.good(&["publish", "status", "site.foil"]).contains(&format!("{owner}, until")));
    let finish = ["publish", "rotate", "site.foil", "--out", "site", "--finish"];
    stage.refused(&[&finish[..], &with_root].concat(), 1, &["--root"]);
    stage.good(&[&finish[..], &with_root, &["--root", "new"]].concat());
    stage.good(&words("site", &new, all));
    stage.refused(&words("site", &owner, all), 3, &["another owner's"]);
}

#[test]
fn a_root_key_is_taken_out_of_its_state() {
    let (stage, owner) = published();
    assert_eq!(stage.good(&["publish", "keygen", "root", "--from", "site.foil"]).trim(), owner);
    stage.refused(&["publish", "keygen", "again", "--from", "site.foil"], 1, &["kept elsewhere already"]);
    assert!(!stage.path("again").exists());
    stage.refused(&["publish", "revoke", "site.foil"], 1, &["--root"]);
    stage.good(&["publish", "revoke", "site.foil", "--root", "root", "--out", "site"]);
    stage.good(&words("site", &owner, "SELECT * FROM prices"));
}
