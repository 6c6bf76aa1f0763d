//! It answers as memory does, after it was ended and begun again, too.

use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{Failure, MemoryProvider, Provider as _};
use counterfoil_provider::{Limits, Remote};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::host::{Host, token};
use crate::questions::{Step, done, steps, table};

#[test]
fn it_answers_as_memory_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let cloud = Remote::new(&host.url, Some(&token(folder.path(), "ada"))).expect("an address");
    let number = std::cell::Cell::new(0_u8);
    let mut runner = TestRunner::new(Config { cases: 24, max_shrink_iters: 64, ..Config::default() });
    let run = |steps: Vec<Step>| {
        number.set(number.get().wrapping_add(1));
        let (table, memory) = (table(number.get()), MemoryProvider::default());
        for step in std::iter::once(&Step::Put(vec![1 << 63])).chain(&steps) {
            prop_assert_eq!(done(&cloud, &table, step), done(&memory, &table, step), "{:?}", step);
        }
        cloud.drop_table(&table).expect("dropped");
        Ok(())
    };
    runner.run(&steps(), run).expect("alike");
}

#[test]
fn what_was_put_is_there_when_it_begins_again_and_a_connection_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let (port, url) = (host.port(), host.url.clone());
    let cloud = Remote::new(&url, Some(&token(folder.path(), "ada"))).expect("an address");
    let ask = Step::Ask { tags: vec![1], order: None, between: None, places: None, sums: true };
    done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
    let before = done(&cloud, &table(1), &ask).expect("an answer");
    drop(host);
    assert!(matches!(done(&cloud, &table(1), &ask), Err(Failure::Unreachable(_))));
    let host = Host::start(folder.path(), port, Limits::default());
    assert_eq!(host.url, url, "its key is the one it had");
    assert_eq!(done(&cloud, &table(1), &ask).expect("an answer"), before);
}

#[test]
fn long_rows_come_in_parts_and_clients_see_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let name = |text: &str| Name::parse(text).expect("a name");
    let (table, column) = (name("t0000000000000001"), name("c0000000000000001"));
    let mut strings = Strings::default();
    (0..9_u8).for_each(|row| strings.push(&vec![row; 3 << 20]));
    let rows = Fragments { places: (0..9).collect(), columns: vec![(column.clone(), Data::Strings(strings))] };
    let cloud = Remote::new(&host.url, Some(&token(folder.path(), "ada"))).expect("an address");
    cloud.put(&table, &rows).expect("put");
    let mut found = Vec::new();
    let question = Question { columns: vec![column.clone()], ..Question::default() };
    let take = |answer: Answer| {
        let Some(Data::Strings(strings)) = answer.rows.column(&column) else { panic!("strings") };
        found.extend(answer.rows.places.iter().copied().zip(strings.iter().map(|string| (string[0], string.len()))));
        Ok(())
    };
    cloud.ask(&table, &question, &mut { take }).expect("an answer");
    found.sort_unstable();
    assert_eq!(found, (0..9).map(|row| (row, (row as u8, 3 << 20))).collect::<Vec<_>>());
    // Whoever takes an answer may call it off, and ask again.
    let called_off = cloud.ask(&table, &question, &mut |_| Err(Failure::CalledOff));
    assert_eq!(called_off, Err(Failure::CalledOff));
    cloud.remove(&table, &[0, 1, 2]).expect("removed");

    let other = Remote::new(&host.url, Some(&token(folder.path(), "bob"))).expect("an address");
    let mut rows_of_ada = 0;
    let own = other.ask(&table, &Question::default(), &mut |answer| {
        rows_of_ada += answer.rows.places.len();
        Ok(())
    });
    assert!(own == Err(Failure::NoTable) && rows_of_ada == 0);
    other.drop_table(&table).expect("nothing to drop");
    let mut left = 0;
    let count = |answer: Answer| {
        left += answer.rows.places.len();
        Ok(())
    };
    cloud.ask(&table, &Question::default(), &mut { count }).expect("an answer");
    assert_eq!(left, 6);
}

/// A client hears what is wrong with its folder, and not where that lies.
#[test]
fn a_failure_does_not_say_where_a_folder_lies() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let cloud = Remote::new(&host.url, Some(&token(folder.path(), "ada"))).expect("an address");
    done(&cloud, &table(1), &Step::Put(vec![1, 2])).expect("put");
    std::fs::remove_dir_all(folder.path().join("held/ada")).expect("gone");
    let told = done(&cloud, &table(1), &Step::Put(vec![3])).expect_err("no folder").to_string();
    let place = folder.path().display().to_string();
    assert!(told.contains("ada is no folder") && !told.contains(&place), "{told}");
}
