//! Clouds of dispersed tables that are down, full, put back or not as they should be.

use std::path::PathBuf;

use crate::dispersed::{QUESTIONS, ROWS, World, ask_all, both, files, same};

#[test]
fn a_cloud_that_is_down_is_told_when_it_is_back() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    world.set_there("b", false);
    same(&mut world, "INSERT INTO TABLE (id, name) VALUES (10, 'ten'), (11, 'eleven')");
    same(&mut world, "DELETE FROM TABLE WHERE id IN (2, 10)");
    same(&mut world, "UPDATE TABLE SET name = 'one' WHERE id = 1");
    assert_eq!(world.waiting(), "a 0 0, b 2 3, c 0 0");
    ask_all(&mut world);
    world.set_there("b", true);
    same(&mut world, "INSERT INTO TABLE (id, name) VALUES (12, 'twelve')");
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    // Now another one may fail.
    world.set_there("c", false);
    ask_all(&mut world);
}

#[test]
fn rows_that_wait_for_one_cloud_are_no_obstacle_for_the_others() {
    let mut world = both();
    world.set_there("b", false);
    // More than leave at once, by their bytes: eighty of half a megabyte.
    for first in [0, 40] {
        let sql = "INSERT INTO TABLE (id, name) SELECT value, repeat('x', 500000) FROM generate_series(FIRST, LAST) AS t(value)";
        same(&mut world, &sql.replace("FIRST", &(first + 1).to_string()).replace("LAST", &(first + 40).to_string()));
    }
    assert_eq!(world.waiting(), "a 0 0, b 80 0, c 0 0");
    same(&mut world, "SELECT count(*), sum(length(name)) FROM TABLE");
    world.set_there("b", true);
    same(&mut world, "INSERT INTO TABLE (id) VALUES (1000)");
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    same(&mut world, "SELECT id, length(name) FROM TABLE ORDER BY id");
}

#[test]
fn what_is_on_its_way_is_not_repaired_away() {
    let mut world = both();
    same(&mut world, "INSERT INTO TABLE (id, name, small) VALUES (1, 'Ada', 1)");
    for cloud in ["a", "b", "c"] {
        world.set_there(cloud, false);
        same(
            &mut world,
            &format!("INSERT INTO TABLE (id, name, small) VALUES ({}, 'Bob', 2)", u32::from(cloud.as_bytes()[0])),
        );
        // The others have it, and this one does not: it is live nowhere yet.
        world.database.ask("REPAIR TABLE people");
        world.set_there(cloud, true);
        world.database.ask("REPAIR TABLE people");
        assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
        for gone in ["a", "b", "c"] {
            world.set_there(gone, false);
            same(&mut world, "SELECT id, name, small FROM TABLE ORDER BY id");
            world.set_there(gone, true);
        }
    }
}

/// Somebody emptied a cloud's folder, or mounted another one in its place: what it says of a condition is nothing, not that no row matches.
#[test]
fn an_empty_folder_is_not_believed_about_conditions() {
    for other in ["a", "b"] {
        let mut world = both();
        same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
        let away = world.path("away");
        std::fs::rename(world.path("c"), &away).expect("emptied");
        std::fs::create_dir(world.path("c")).expect("an empty folder");
        world.set_there(other, false);
        for sql in [
            "SELECT id FROM TABLE WHERE id = 4",
            "SELECT id FROM TABLE WHERE name = 'Ada' ORDER BY id",
            "SELECT id FROM TABLE WHERE salary > 0 ORDER BY id",
        ] {
            // Two are gone where one may be: all rows are read if one cloud has the columns, and else that is an error.
            let [told, expected] = ["people", "plain"].map(|table| world.database.ask(&sql.replace("TABLE", table)));
            assert!(told == expected || told.contains("cannot be had"), "{other}, {sql}: {told}");
        }
        let told = world.database.ask("INSERT INTO people (id, name) VALUES (4, 'again')");
        assert!(told.starts_with("error: "), "{other}: {told}");
        world.set_there(other, true);
        ask_all(&mut world);
        world.database.ask("REPAIR TABLE people");
        ask_all(&mut world);
    }
}

#[test]
fn a_table_that_was_dropped_and_is_there_again_has_its_rows() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    for (sql, answer) in [
        ("BEGIN; DROP TABLE people; ROLLBACK", "BEGIN\nDROP TABLE\nROLLBACK"),
        (
            "BEGIN; SAVEPOINT s; DROP TABLE people; ROLLBACK TO s; COMMIT",
            "BEGIN\nSAVEPOINT\nDROP TABLE\nROLLBACK\nCOMMIT",
        ),
        ("DROP TABLE people, nothing", "error: no table nothing"),
    ] {
        assert_eq!(world.database.ask(sql), answer);
        ask_all(&mut world);
    }
    assert_eq!(world.database.ask("BEGIN; DROP TABLE people; COMMIT"), "BEGIN\nDROP TABLE\nCOMMIT");
    assert!(["a", "b", "c"].iter().all(|cloud| files(&world.path(cloud)).is_empty()));
}

#[test]
fn a_cloud_that_was_away_lets_go_of_a_dropped_table_when_it_is_back() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    world.set_there("b", false);
    world.database.session.take_notices();
    assert_eq!(world.database.ask("DROP TABLE people"), "DROP TABLE");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("cloud b keeps what it has, and lets go of it later"), "{notices}");
    let shown = |world: &mut World| {
        let shown = world.database.ask("SHOW CLOUDS");
        shown.lines().map(|line| line.rsplit('|').next().expect("a column").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&mut world), "0 1 0");
    world.set_there("b", true);
    assert!(!files(&world.path("b")).is_empty());
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c')";
    assert_eq!(world.database.ask(&format!("CREATE TABLE other (id INT) {with}")), "CREATE TABLE");
    assert_eq!(shown(&mut world), "0 0 0");
    assert!(files(&world.path("b")).is_empty());
    // Who says that it will never come back waits for nothing.
    world.database.ask("INSERT INTO other VALUES (1)");
    world.set_there("c", false);
    world.database.ask("DROP TABLE other");
    assert_eq!(shown(&mut world), "0 0 1");
    assert_eq!(world.database.ask("DROP CLOUD c"), "DROP CLOUD");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("may keep tables that were dropped (1)"), "{notices}");
    assert_eq!(shown(&mut world), "0 0");
}

#[test]
fn more_failures_than_declared_are_an_error_that_names_them() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    world.set_there("a", false);
    world.set_there("b", false);
    let answer = world.database.ask("SELECT * FROM people");
    assert!(
        answer.starts_with("error: ") && answer.contains("cloud a") && answer.contains("cannot be had"),
        "{answer}"
    );
    world.set_there("a", true);
    ask_all(&mut world);
    // A file that somebody changed.
    for file in files(&world.path("a")) {
        let mut bytes = std::fs::read(&file).expect("a file");
        bytes[10] ^= 1;
        std::fs::write(&file, bytes).expect("a file");
    }
    let answer = world.database.ask("SELECT * FROM people");
    assert!(answer.contains("cloud a: its answer is none"), "{answer}");
    world.set_there("b", true);
    ask_all(&mut world);
}

#[test]
fn a_cloud_put_back_to_yesterday_is_named_and_not_believed() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let yesterday: Vec<(PathBuf, Vec<u8>)> =
        files(&world.path("b")).into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    same(&mut world, "INSERT INTO TABLE (id, name, salary) VALUES (10, 'Ada', 7), (11, 'eleven', 8)");
    same(&mut world, "DELETE FROM TABLE WHERE id = 2");
    files(&world.path("b")).into_iter().for_each(|file| std::fs::remove_file(file).expect("a file"));
    yesterday.into_iter().for_each(|(path, bytes)| std::fs::write(path, bytes).expect("a file"));
    ask_all(&mut world);
    // Some question has asked it for rows.
    world.database.session.take_notices();
    world.set_there("a", false);
    let told: Vec<String> = QUESTIONS
        .iter()
        .flat_map(|sql| {
            world.database.ask(&sql.replace("TABLE", "people"));
            world.database.session.take_notices()
        })
        .collect();
    assert!(told.iter().any(|note| note.contains("cloud b") && note.contains("does not show rows")), "{told:?}");
    // What it says of a condition misses some: it is named for that, too, if it was asked for it.
    world.set_there("a", true);
    let mut named = 0;
    for sql in ["SELECT count(note) FROM people WHERE name = 'Ada'", "SELECT note FROM people WHERE salary = 7"] {
        let (answer, told) = (world.database.ask(sql), world.database.session.take_notices());
        assert!(!answer.starts_with("error"), "{answer}");
        let plan = world.database.ask(&format!("EXPLAIN {sql}"));
        let asked = plan.split("asked at clouds: [").nth(1).and_then(|asked| asked.split(']').next());
        let is_asked = asked.is_some_and(|asked| asked.split(' ').any(|word| word == "b"));
        let is_named = told.iter().any(|note| note.contains("cloud b: it leaves out rows"));
        assert_eq!(is_asked, is_named, "{sql}: {told:?}, {plan}");
        named += u32::from(is_named);
        // Where two are to show the same, there are not two, and the error names it.
        let answer = world.database.ask(&format!("{sql} OPTIMIZE FOR RELIABILITY"));
        let told = world.database.session.take_notices().join("\n");
        assert!(answer.contains("cloud b: it") || told.contains("cloud b: it"), "{sql}: {answer}: {told}");
    }
    assert!(named > 0);
}

#[test]
fn a_cloud_that_is_not_as_it_should_be_is_told_when_it_is_made() {
    let mut world = World::new();
    let told = world.database.ask("CREATE CLOUD d OPTIONS (url 'dir:/nowhere/at/all')");
    assert_eq!(told, "error: cloud at dir:/nowhere/at/all: there is no such folder; make it, or mount it");
    let folder = world.path("e");
    std::fs::create_dir(&folder).expect("a folder");
    world.add("e", &format!("dir:{}", folder.display()));
    assert!(world.database.session.take_notices().is_empty());
    let told = world.database.ask("CREATE TABLE t (n INT FOR (sum))");
    assert!(told.contains("engine = 'dispersed'"), "{told}");
}
