//! PostgreSQL as a cloud: a private server of this test's own, which is killed as well.

use std::time::Duration;

use counterfoil_clouds::Postgres;
use counterfoil_disperse::fragments::{Data, Fragments, Name, Strings};
use counterfoil_disperse::{Failure, MemoryProvider, Provider};
use counterfoil_test_servers::{PostgresServer, certificates};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::questions::{Step, done, steps, table};

fn cloud(server: &PostgresServer) -> Postgres {
    Postgres::new(&server.url(server.port), None).expect("an address")
}

#[test]
fn its_sql_answers_as_memory_does() {
    let Some(server) = PostgresServer::start() else { return };
    let number = std::cell::Cell::new(0_u8);
    let mut runner = TestRunner::new(Config { cases: 24, max_shrink_iters: 64, ..Config::default() });
    runner
        .run(&steps(), |steps| {
            number.set(number.get().wrapping_add(1));
            let (table, memory) = (table(number.get()), MemoryProvider::default());
            // One that knows the table, and one that has to ask for it.
            let known = cloud(&server);
            for step in std::iter::once(&Step::Put(vec![1 << 63])).chain(&steps) {
                let expected = done(&memory, &table, step);
                prop_assert_eq!(done(&known, &table, step), expected.clone(), "{:?}", step);
                if matches!(step, Step::Ask { .. }) {
                    prop_assert_eq!(done(&cloud(&server), &table, step), expected);
                }
            }
            known.drop_table(&table).expect("dropped");
            Ok(())
        })
        .expect("alike");
}

#[test]
fn a_server_that_is_killed_is_out_of_reach_until_it_is_back() {
    let Some(mut server) = PostgresServer::start() else { return };
    let (cloud, table) = (cloud(&server), table(1));
    let ask = Step::Ask { tags: vec![1], order: None, between: None, places: None, sums: false };
    let before = done(&cloud, &table, &Step::Put(vec![1, 2, 4])).expect("put");
    assert_eq!(before.0.len(), 3);
    server.kill();
    assert!(matches!(done(&cloud, &table, &ask), Err(Failure::Unreachable(_))));
    assert!(matches!(done(&cloud, &table, &Step::Put(vec![7])), Err(Failure::Unreachable(_))));
    server.run();
    let found = done(&cloud, &table, &ask).expect("an answer");
    assert_eq!(found.0.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 4]);
}

#[test]
fn a_table_that_somebody_dropped_is_made_anew() {
    let Some(server) = PostgresServer::start() else { return };
    let (cloud, other, table) = (cloud(&server), cloud(&server), table(1));
    let ask = Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false };
    let before = done(&cloud, &table, &Step::Put(vec![1, 2, 4])).expect("put");
    for _ in 0..2 {
        other.drop_table(&table).expect("dropped");
        assert_eq!(done(&cloud, &table, &ask), Err(Failure::NoTable));
        assert_eq!(done(&cloud, &table, &Step::Put(vec![1, 2, 4])), Ok(before.clone()));
        other.drop_table(&table).expect("dropped");
        assert_eq!(cloud.remove(&table, &[1]), Ok(()));
        other.drop_table(&table).expect("dropped");
        // Without having been asked in between.
        assert_eq!(done(&cloud, &table, &Step::Put(vec![1, 2, 4])), Ok(before.clone()));
    }
}

#[test]
fn strings_that_are_as_long_as_codes_by_chance_may_grow() {
    let Some(server) = PostgresServer::start() else { return };
    let (cloud, column) = (cloud(&server), Name::parse("c0000000000000007").expect("a name"));
    for (place, length) in [(1, 12), (2, 20_000)] {
        let mut strings = Strings::default();
        // Noise, which nothing makes shorter.
        strings.push_with(|string| {
            string.extend((0_u32..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8));
        });
        let rows = Fragments { places: vec![place], columns: vec![(column.clone(), Data::Strings(strings))] };
        cloud.put(&table(1), &rows).expect("put");
    }
}

#[test]
fn addresses_that_are_none_and_passwords_in_them_are_refused() {
    for wrong in ["mysql://example.com", "host=example.com", "postgres://", ""] {
        assert!(Postgres::new(wrong, None).is_err_and(|told| told.contains("no postgres:// address")), "{wrong}");
    }
    assert!(Postgres::new("postgres://me:secret@localhost/x", None).is_err_and(|told| told.contains("secret_file")));
    let nobody = Postgres::new("postgres://me@127.0.0.1:1/x", None).expect("an address");
    let ask = Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false };
    assert!(matches!(done(&nobody, &table(1), &ask), Err(Failure::Unreachable(_))));
}

#[test]
fn a_server_that_says_nothing_is_out_of_reach_in_time() {
    // One that takes connections and never answers, and one that stops in the middle.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("postgres://{}@{}/x", "me", std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let ask = Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false };
    let cloud = Postgres::new(&url, None).expect("an address").with_patience(Duration::from_millis(200));
    assert!(matches!(done(&cloud, &table(1), &ask), Err(Failure::Unreachable(_))));
    let Some(server) = PostgresServer::start() else { return };
    let cloud =
        Postgres::new(&server.url(server.port), None).expect("an address").with_patience(Duration::from_secs(2));
    done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
    server.stop();
    assert!(matches!(done(&cloud, &table(1), &ask), Err(Failure::Unreachable(_))));
    assert!(matches!(cloud.remove(&table(1), &[1]), Err(Failure::Unreachable(_))));
    server.go_on();
    assert_eq!(done(&cloud, &table(1), &ask).map(|said| said.1), Ok(3));
}

#[test]
fn an_encrypted_connection_is_one_to_whom_the_authority_vouches_for() {
    let made = certificates(&["127.0.0.1", "localhost"]);
    let Some(server) = PostgresServer::start_with_tls(&made.certificate, &made.key) else { return };
    let ask = Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false };
    let told = |url: &str| {
        let cloud = Postgres::new(url, None).expect("an address");
        done(&cloud, &table(1), &Step::Put(vec![1, 2, 4]))?;
        done(&cloud, &table(1), &ask).map(|said| said.1)
    };
    let url = server.url(server.port);
    let vouched = |file: &std::path::Path| format!("{url}?sslmode=require&sslrootcert={}", file.display());
    assert_eq!(told(&vouched(&made.authority)), Ok(3));
    // It takes no others, a stranger does not vouch for it, nor does one for another name, nor this machine's authorities.
    assert!(matches!(told(&url), Err(Failure::Refused(_))));
    assert!(matches!(told(&vouched(&certificates(&["127.0.0.1"]).authority)), Err(Failure::Unreachable(_))));
    assert!(matches!(told(&format!("{url}?sslmode=require")), Err(Failure::Unreachable(_))));
    let Some(other) = PostgresServer::start() else { return };
    let plain = format!("{}?sslmode=require&sslrootcert={}", other.url(other.port), made.authority.display());
    assert!(matches!(told(&plain), Err(Failure::Refused(what)) if what.contains("encrypt")));
}

#[test]
fn words_of_encryption_mean_what_they_say() {
    let me = "postgres://me@localhost/x";
    for wrong in [
        "sslmode=prefer",
        "sslmode=allow",
        "sslmode=require&sslmode=disable",
        "sslrootcert=ca.pem",
        "sslrootcert=/nowhere/at/all",
    ] {
        assert!(Postgres::new(&format!("{me}?{wrong}"), None).is_err(), "{wrong}");
    }
    let both = format!("{me}?sslmode=disable&sslrootcert={}", certificates(&["x"]).authority.display());
    assert!(Postgres::new(&both, None).is_err());
    for right in ["", "?sslmode=disable", "?connect_timeout=3&sslmode=require", "?sslmode=verify-full"] {
        assert!(Postgres::new(&format!("{me}{right}"), None).is_ok(), "{right}");
    }
}
