//! ALTER CLOUD: a cloud is somewhere else by now.

use crate::clients::{client, world};
use crate::database::Database;
use crate::dispersed::{World, files};

const CREATE: &str = "id INT PRIMARY KEY, n INT FOR (sum)";

/// The clouds that a database knows, without where they all lie.
fn addresses(database: &mut Database) -> Vec<String> {
    database.ask("SHOW CLOUDS").lines().map(|line| line.split('|').take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn readdress(world: &mut World, cloud: &str, folder: &str) -> String {
    let url = format!("dir:{}", world.path(folder).display());
    world.database.ask(&format!("ALTER CLOUD {cloud} OPTIONS (url '{url}')"))
}

#[test]
fn a_cloud_that_moved_is_asked_where_it_is() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1), (2, 20)");
    std::fs::rename(world.path("a"), world.path("moved")).expect("moved");
    // What was written meanwhile waits for it.
    assert_eq!(world.database.ask("INSERT INTO t VALUES (3, 300)"), "INSERT 1");
    world.database.session.take_notices();
    assert_eq!(readdress(&mut world, "a", "moved"), "ALTER CLOUD");
    world.database.ask("REPAIR TABLE t");
    world.database.session.take_notices();
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "321");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    // Without one of the others it is what answers.
    world.set_there("b", false);
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "321");
    world.set_there("b", true);
}

#[test]
fn whoever_brings_a_table_back_is_told_where_its_clouds_are() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1), (2, 20)");
    std::fs::rename(world.path("a"), world.path("moved")).expect("moved");
    assert_eq!(readdress(&mut world, "a", "moved"), "ALTER CLOUD");
    let mut other = client(&world.path("c"));
    let there = format!("a dir:{}", world.path("moved").display());
    assert_eq!(addresses(&mut other)[0], there);
    assert_eq!(other.ask("SELECT sum(n) FROM t"), "21");
}

#[test]
fn a_cloud_that_begins_anew_is_given_what_it_lacks() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1), (2, 20)");
    std::fs::create_dir(world.path("new")).expect("a folder");
    assert_eq!(readdress(&mut world, "a", "new"), "ALTER CLOUD");
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "21");
    assert_eq!(world.database.ask("REPAIR TABLE t"), "a|2|0|complete\nb|0|0|complete\nc|0|0|complete");
    world.set_there("c", false);
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "21");
}

#[test]
fn no_cloud_becomes_another_one() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1)");
    let before = addresses(&mut world.database);
    let refused = readdress(&mut world, "a", "b");
    assert!(refused.starts_with("error: cloud b is at dir:"), "{refused}");
    std::os::unix::fs::symlink(world.path("b"), world.path("link")).expect("a link");
    let refused = readdress(&mut world, "a", "link");
    assert!(refused.contains("cloud b is at dir:"), "{refused}");
    for (sql, text) in [
        ("ALTER CLOUD z OPTIONS (url 'dir:/tmp')", "no cloud z: SHOW CLOUDS lists them"),
        ("ALTER CLOUD a OPTIONS (url 'gopher:x')", "gopher"),
        ("ALTER CLOUD a OPTIONS (url 'dir:/no/such/folder')", "/no/such/folder"),
    ] {
        let refused = world.database.ask(sql);
        assert!(refused.starts_with("error") && refused.contains(text), "{sql}: {refused}");
    }
    world.database.ask("BEGIN");
    let refused = world.database.ask("ALTER CLOUD a OPTIONS (url 'dir:/tmp')");
    assert!(refused.contains("ALTER CLOUD") && refused.starts_with("error"), "{refused}");
    world.database.ask("ROLLBACK");
    assert_eq!(addresses(&mut world.database), before);
    assert_eq!(world.database.ask("SELECT n FROM t"), "1");
}

#[test]
fn what_was_dropped_is_let_go_of_where_its_cloud_is_by_now() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1)");
    std::fs::rename(world.path("a"), world.path("moved")).expect("moved");
    assert_eq!(world.database.ask("DROP TABLE t"), "DROP TABLE");
    assert!(!files(&world.path("moved")).is_empty());
    assert_eq!(readdress(&mut world, "a", "moved"), "ALTER CLOUD");
    world.database.ask("SELECT 1");
    assert_eq!(files(&world.path("moved")), Vec::<std::path::PathBuf>::new());
}

/// Two clouds exchange their addresses, which one client is told and another one only sees: it takes neither for the other, whatever it learns.
#[test]
fn who_learns_while_addresses_are_others_gives_nothing_to_the_wrong_cloud() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t SELECT i, i FROM generate_series(1, 40) AS s(i)");
    let mut other = client(&world.path("a"));
    for (from, to, cloud) in [("c", "x", "c"), ("b", "c", "b"), ("x", "b", "c")] {
        std::fs::rename(world.path(from), world.path(to)).expect("moved");
        assert_eq!(readdress(&mut world, cloud, to), "ALTER CLOUD");
    }
    let tables =
        |world: &World| ["b", "c"].map(|folder| std::fs::read_dir(world.path(folder)).expect("a cloud").count());
    for round in 0..3 {
        assert_eq!(world.database.ask(&format!("UPDATE t SET n = {round} WHERE id = 3")), "UPDATE 1");
        assert_eq!(tables(&world), [2, 2], "rows and a catalogue");
        for sql in [
            "SELECT n FROM t WHERE id = 7",
            "INSERT INTO t VALUES (7, 1)",
            "INSERT INTO t VALUES (9001, 1)",
            "DELETE FROM t WHERE id = 8",
        ] {
            let told = other.ask(sql);
            assert!(told.contains("were addresses exchanged? ALTER CLOUD"), "{sql}: {told}");
        }
        assert_eq!(tables(&world), [2, 2], "rows and a catalogue");
    }
    // Told where they are, it goes on.
    std::fs::create_dir(world.path("aside")).expect("a folder");
    for (cloud, to) in [("c", "aside"), ("b", "c"), ("c", "b")] {
        let url = format!("dir:{}", world.path(to).display());
        assert_eq!(other.ask(&format!("ALTER CLOUD {cloud} OPTIONS (url '{url}')")), "ALTER CLOUD");
    }
    assert_eq!(other.ask("SELECT count(*), sum(n) FROM t WHERE id IN (3, 7, 8)"), "3|17");
    assert_eq!(other.ask("INSERT INTO t VALUES (9001, 1000)"), "INSERT 1");
    let repaired = other.ask("REPAIR TABLE t");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    assert_eq!(world.database.ask("SELECT n FROM t WHERE id = 9001"), "1000");
}
