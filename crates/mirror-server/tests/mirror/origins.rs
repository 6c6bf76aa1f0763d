//! Pages of other origins: they may read and ask, and see why not; they may not bring updates.

use std::sync::Arc;

use counterfoil_mirror_server::Embedded;

use crate::client::{Reply, once};
use crate::world::{World, listen, row};

fn is_open(reply: &Reply) -> bool {
    reply.head.lines().any(|line| line == "access-control-allow-origin: *")
}

#[test]
fn pages_of_any_origin_may_read_and_ask() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    let mut world = World::new();
    world.insert(vec![row("A", 1, 1)]);
    world.close();
    let listener = listen(store, world.owner, |_| ());
    let address = listener.address();
    world.push(address, 1 << 20);
    for what in ["manifest", "head", "state", "summaries/0"] {
        let reply = world.get(address, what);
        assert!(reply.status == 200 && is_open(&reply), "{what}");
    }
    let question = world.all(0).to_bytes();
    let answered = world.post(address, "answer", &question);
    assert!(answered.status == 200 && is_open(&answered));
    // A page is to be able to say why there is no answer, and to look for a table above the tables.
    for (reply, status) in [
        (world.get(address, "summaries/7"), 404),
        (world.post(address, "answer", b"no question"), 400),
        (world.get(address, "answer"), 405),
    ] {
        assert!(reply.status == status && is_open(&reply), "{status}");
    }
    for nothing in ["/", "/manifest", "/a/b/c"] {
        let reply = once(address, &format!("GET {nothing}"), b"");
        assert!(reply.status == 404 && is_open(&reply), "{nothing}");
    }
    // What browsers ask in advance.
    for (what, method) in [("manifest", "get"), ("answer", "post")] {
        let reply = once(address, &format!("OPTIONS {}", world.path(what)), b"");
        assert!(reply.status == 204 && reply.body.is_empty() && is_open(&reply), "{what}");
        assert!(reply.head.contains(&format!("access-control-allow-methods: {method}\r\n")), "{what}");
        assert!(reply.head.contains("access-control-allow-headers: content-type\r\n"), "{what}");
        assert!(!reply.head.contains("access-control-allow-credentials"), "nobody is known here");
    }
}

#[test]
fn updates_are_no_pages_affair() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    let world = World::new();
    let listener = listen(store, world.owner, |_| ());
    let address = listener.address();
    let asked = once(address, &format!("OPTIONS {}", world.path("update")), b"");
    assert!(asked.status == 405 && !is_open(&asked));
    assert!(!is_open(&world.post(address, "update", b"")));
    for nothing in ["/", "/health", "/a/b/c"] {
        assert_ne!(once(address, &format!("OPTIONS {nothing}"), b"").status, 204, "{nothing}");
    }
}
