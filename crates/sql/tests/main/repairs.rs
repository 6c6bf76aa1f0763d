//! REPAIR TABLE: clouds that have lost what they were given, or show something else, have it again.

use crate::dispersed::{ROWS, ask_all, both, files, same};
use crate::fickle::{Fault, fickle};

#[test]
fn a_cloud_that_lost_everything_gets_it_back() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, "DELETE FROM TABLE WHERE id = 3");
    for cloud in ["a", "b", "c"] {
        std::fs::remove_dir_all(world.path(cloud)).expect("the cloud");
        std::fs::create_dir(world.path(cloud)).expect("an empty one");
        let repaired = world.database.ask("REPAIR TABLE people");
        let expected = |own: &str| format!("{own}|{}|0|complete", if own == cloud { 4 } else { 0 });
        assert_eq!(repaired, ["a", "b", "c"].map(expected).join("\n"));
        for gone in ["a", "b", "c"] {
            world.set_there(gone, false);
            ask_all(&mut world);
            world.set_there(gone, true);
        }
    }
    assert!(world.database.ask("REPAIR TABLE plain").contains("not dispersed"));
    world.set_there("a", false);
    assert!(world.database.ask("REPAIR TABLE people").contains("a|0|0|out of reach"));
}

#[test]
fn what_a_cloud_shows_otherwise_is_put_there_anew() {
    let (mut database, clouds) = fickle();
    let columns =
        "id INT PRIMARY KEY, n INT FOR (sum, equality), word TEXT FOR (equality, prefix), day DATE FOR (range)";
    let with = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = 1)";
    assert_eq!(database.ask(&format!("CREATE TABLE t ({columns}) {with}")), "CREATE TABLE");
    let rows = "SELECT i, i * 3, 'w' || i % 7, DATE '2024-01-01' FROM generate_series(1, 5000) AS s(i)";
    assert_eq!(database.ask(&format!("INSERT INTO t {rows}")), "INSERT 5000");
    let complete = |put: [u32; 3]| {
        put.iter().enumerate().map(|(cloud, put)| format!("f{cloud}|{put}|0|complete")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 0, 0]));
    clouds.0[1].fail(Fault::Changing, 0);
    database.session.take_notices();
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 5000, 0]));
    let notices = database.session.take_notices().join("\n");
    assert!(notices.contains("cloud f1 showed 5000 rows otherwise than it was given them"), "{notices}");
    // Which rows lie there is right: nothing else is looked at without EXTENDED.
    assert_eq!(database.ask("REPAIR TABLE t"), complete([0, 0, 0]));
    clouds.0[1].heal();
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 0, 0]));
    assert_eq!(database.ask("SELECT sum(n), count(*) FROM t"), "37507500|5000");
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_mended() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, "DELETE FROM TABLE WHERE id = 3");
    for (cloud, cut) in [("a", false), ("b", true), ("c", false)] {
        let path = files(&world.path(cloud)).into_iter().max_by_key(|path| path.metadata().expect("a file").len());
        let path = path.expect("a file of the table");
        let mut bytes = std::fs::read(&path).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes.truncate(if cut { middle } else { bytes.len() });
        std::fs::write(&path, bytes).expect("a changed file");
        // With another one away there are not enough that have all of it: nothing is let go of.
        let other = if cloud == "c" { "a" } else { "c" };
        world.set_there(other, false);
        let told = world.database.ask("REPAIR TABLE people EXTENDED");
        assert!(!told.contains(&format!("{cloud}|4|0|complete")), "{told}");
        assert!(path.is_file(), "{cloud} has what it had");
        world.set_there(other, true);
        let repaired = world.database.ask("REPAIR TABLE people EXTENDED");
        let expected = |own: &str| format!("{own}|{}|0|complete", if own == cloud { 4 } else { 0 });
        assert_eq!(repaired, ["a", "b", "c"].map(expected).join("\n"), "{cloud}");
        for gone in ["a", "b", "c"] {
            world.set_there(gone, false);
            ask_all(&mut world);
            world.set_there(gone, true);
        }
    }
}
