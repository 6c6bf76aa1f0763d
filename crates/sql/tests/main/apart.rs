//! Two clouds that are one place, or stand in each other's: none gets the shares of another beside its own.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{Catalogue, MemoryProvider, Provider, Secret};
use counterfoil_sql::{CloudSecret, Clouds};

use crate::catalogue::SECRET;
use crate::clients::world;
use crate::dispersed::{World, files};

const COLUMNS: &str = "id INT, n BIGINT FOR (sum)";

/// Names of what lies in a folder, but for the catalogue, which is called the same everywhere.
fn tables_in(folder: &Path) -> Vec<String> {
    let catalogue: Name = Catalogue::new(Secret::new(SECRET)).name();
    let names = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.contains(catalogue.as_str()));
    names.sort();
    names
}

fn notices(world: &mut World) -> String {
    world.database.session.take_notices().join("\n")
}

/// One place, whatever follows in its address.
struct OnePlace(Arc<MemoryProvider>);

impl Clouds for OnePlace {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        url.starts_with("place:").then(|| Ok(url.to_owned()))
    }

    fn open(&self, url: &str, _: Option<CloudSecret<'_>>, _: Secret) -> Option<Result<Arc<dyn Provider>, String>> {
        url.starts_with("place:").then(|| Ok(self.0.clone() as Arc<dyn Provider>))
    }
}

/// Addresses differ, and what is given to the one the other shows.
#[test]
fn a_cloud_that_is_there_by_another_name_is_refused() {
    let mut world = World::new();
    world.database.engine.reach_clouds_with(Arc::new(OnePlace(Arc::default())));
    world.add("one", "place:db");
    for url in ["place:db", "place:db?sslmode=disable", "place://localhost/db"] {
        let refused = world.database.ask(&format!("CREATE CLOUD two OPTIONS (url '{url}')"));
        assert!(refused.starts_with("error: ") && refused.contains("does so as a whole"), "{url}: {refused}");
    }
    assert!(world.database.ask("CREATE CLOUD IF NOT EXISTS two OPTIONS (url 'place:x')").contains("cloud one shows"));
    for cloud in ["a", "b", "c"] {
        assert!(files(&world.path(cloud)).is_empty(), "what was compared leaves nothing behind");
    }
    world.database.ask("DROP CLOUD one");
    world.add("two", "place:x");
}

/// Whoever answers at the address of another cloud would get its shares beside those that he has.
#[test]
fn an_address_that_leads_to_another_cloud_gets_nothing() {
    let mut world = world(COLUMNS);
    assert_eq!(world.database.ask("INSERT INTO t SELECT i, i FROM generate_series(1, 40) AS s(i)"), "INSERT 40");
    let before = tables_in(&world.path("a"));
    world.set_there("b", false);
    symlink(world.path("a"), world.path("b")).expect("a link");
    notices(&mut world);
    for id in 1001..1004 {
        assert_eq!(world.database.ask(&format!("INSERT INTO t VALUES ({id}, 123456789)")), "INSERT 1");
        let told = notices(&mut world);
        assert!(id > 1001 || told.contains("what lies at its address is what cloud a was given"), "{told}");
    }
    assert_eq!(tables_in(&world.path("a")), before, "the shares of one cloud");
    let repaired = world.database.ask("REPAIR TABLE t");
    assert!(repaired.contains("b|0|0|out of reach: what lies at its address"), "{repaired}");
    assert_eq!(tables_in(&world.path("a")), before);
    assert_eq!(world.database.ask("SELECT count(*), sum(n) FROM t"), "43|370371187");
    // What waited for it goes to it when its address leads there again.
    std::fs::remove_file(world.path("b")).expect("no link");
    world.set_there("b", true);
    let repaired = world.database.ask("REPAIR TABLE t");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    world.set_there("a", false);
    assert_eq!(world.database.ask("SELECT count(*), sum(n) FROM t"), "43|370371187");
}

/// Of two more than may fail stand in each other's place: what comes waits here, and nothing has to be taken back.
#[test]
fn clouds_in_each_others_place_get_nothing() {
    let mut world = world(COLUMNS);
    assert_eq!(world.database.ask("INSERT INTO t VALUES (1, 10), (2, 20)"), "INSERT 2");
    let exchange = |world: &World| {
        let [a, b, aside] = ["a", "b", "aside"].map(|cloud| world.path(cloud));
        for (from, to) in [(&a, &aside), (&b, &a), (&aside, &b)] {
            std::fs::rename(from, to).expect("exchanged");
        }
    };
    let before = ["a", "b"].map(|cloud| tables_in(&world.path(cloud)));
    exchange(&world);
    notices(&mut world);
    assert_eq!(world.database.ask("INSERT INTO t VALUES (3, 30)"), "INSERT 1");
    let told = notices(&mut world);
    for (cloud, other) in [("a", "b"), ("b", "a")] {
        let text = format!(
            "cloud {cloud} is told later what has changed: out of reach: what lies at its address is what cloud {other} was given"
        );
        assert!(told.contains(&text), "{told}");
    }
    exchange(&world);
    assert_eq!(["a", "b"].map(|cloud| tables_in(&world.path(cloud))), before);
    assert_eq!(world.database.ask("SELECT count(*), sum(n) FROM t"), "3|60");
    let repaired = world.database.ask("REPAIR TABLE t EXTENDED");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
}
