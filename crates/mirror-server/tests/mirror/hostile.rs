//! Strangers, slow clients, greedy ones, and some that are no clients at all.

use std::io::Read as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use counterfoil_mirror::wire::{Progress, Update};
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Edge, Interval, Position, Question, SecretKey};

use crate::client::{Client, head, once};
use crate::world::{Dice, World, definition, listen, row};

fn loaded(change: impl FnOnce(&mut counterfoil_mirror_server::Limits)) -> (tempfile::TempDir, World, Listener) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    let mut world = World::new();
    world.insert((0..30).map(|day| row("A", day, day)).collect());
    world.close();
    let listener = listen(store, world.owner, change);
    world.push(listener.address(), 1 << 20);
    (folder, world, listener)
}

#[test]
fn updates_of_strangers_replays_and_forgeries_change_nothing() {
    let (_folder, mut world, listener) = loaded(|_| ());
    let address = listener.address();
    let first = world.publication.update_for(&Default::default(), 1 << 20).expect("an update").expect("news");
    let before = world.state(address);
    world.insert(vec![row("B", 1, 1)]);
    let second = world.publication.update_for(&before, 1 << 20).expect("an update").expect("news");
    world.close();
    let third = world.publication.update_for(&before, 1 << 20).expect("an update").expect("news");
    // Of another owner, whom nobody named; and by its name with this owner's bytes.
    let mut stranger = World::of(definition(3, "prices"), 40);
    let foreign = stranger.publication.update_for(&Default::default(), 1 << 20).expect("an update").expect("news");
    assert_eq!(stranger.post(address, "update", &foreign).status, 403);
    assert_eq!(world.post(address, "update", &foreign).status, 403);
    assert_eq!(stranger.post(address, "update", &third).status, 403);
    let mut other = World::of(definition(3, "other"), 5);
    let renamed = other.publication.update_for(&Default::default(), 1 << 20).expect("an update").expect("news");
    assert_eq!(world.post(address, "update", &renamed).status, 403);
    // Of this owner, with any byte changed, cut short, or longer.
    let mut dice = Dice(2);
    for _ in 0..200 {
        let mut bytes = third.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(3) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.truncate(at),
            _ => bytes.push(0),
        }
        assert_eq!(world.post(address, "update", &bytes).status, 403);
    }
    // Signed by a key that the owner does not certify, over the owner's manifest.
    let (update, _) = Update::check(&third, &world.owner, 0).expect("an update");
    let key = SecretKey::from_entropy(&[99; 32]).expect("a key");
    assert_eq!(world.post(address, "update", &update.sign(&key)).status, 403);
    assert!(world.state(address) == before);
    // The third begins where the mirror stands, once; the second does not any more, and the first not again.
    assert_eq!(world.post(address, "update", &third).status, 200);
    let after = world.state(address);
    assert_eq!(world.post(address, "update", &third).status, 200, "done already");
    for update in [&first, &second] {
        assert_eq!(world.post(address, "update", update).status, 409);
    }
    assert!(world.state(address) == after);
    world.holds(address);
    // States that no honest mirror has make an owner begin anew, or refuse, and nothing else.
    for number in [0, 1, u64::MAX] {
        let progress = Progress { generation: number, number, rid: number, periods: number };
        let _ = world.publication.update_for(&counterfoil_mirror::wire::State { progress, ..after }, 100);
    }
}

#[test]
fn what_the_owner_signs_must_make_sense_too() {
    let (_folder, mut world, listener) = loaded(|_| ());
    let address = listener.address();
    let key = SecretKey::from_entropy(&[6; 32]).expect("the owner's signing key");
    let before = world.state(address);
    world.insert(vec![row("B", 1, 1)]);
    world.close();
    let update = world.publication.update_for(&before, 1 << 20).expect("an update").expect("news");
    let (good, _) = Update::check(&update, &world.owner, 0).expect("an update");
    let post = |change: &dyn Fn(&mut Update)| {
        let mut update = good.clone();
        change(&mut update);
        world.post(address, "update", &update.sign(&key)).status
    };
    // Numbers of other entries, no entry, summaries that do not follow, an end that is none.
    assert_eq!(post(&|update| update.changes[0].0 += 1), 400);
    assert_eq!(post(&|update| update.changes[0].1 = Some(vec![1, 2, 3])), 400);
    assert_eq!(post(&|update| update.summaries.clear()), 403);
    assert_eq!(post(&|update| update.summaries.push(update.summaries[0].clone())), 403);
    assert_eq!(post(&|update| update.after = update.before), 403);
    assert_eq!(post(&|update| update.open += 1), 403);
    assert_eq!(post(&|update| update.before.mark = [1; 32]), 409);
    assert!(world.state(address) == before);
    assert_eq!(post(&|_| ()), 200);
    world.holds(address);
}

#[test]
fn questions_that_make_no_sense_or_ask_for_too_much_end_in_an_error() {
    let (_folder, world, listener) = loaded(|limits| {
        limits.answer_bytes_max = 10_000;
        limits.question_bytes_max = 100_000;
    });
    let address = listener.address();
    let all = world.all(0);
    assert_eq!(world.post(address, "answer", &all.to_bytes()).status, 422);
    let few = all.clone().limited(3, counterfoil_proof::Direction::Ascending).expect("a limit");
    assert_eq!(world.ask(address, &few).expect("an honest answer").rows.len(), 3);
    // A thousand ranges of which each costs its neighbours; a million are none that there are.
    let edge = |rid| Edge::at(&Position::of(b"x", rid).expect("a position"));
    let ranges = (0..1000).map(|at| Interval::new(edge(2 * at)..edge(2 * at + 1)).expect("an interval")).collect();
    let many = Question::new(world.publication.definition(), 0, ranges, &[]).expect("a question");
    assert_eq!(world.post(address, "answer", &many.to_bytes()).status, 422);
    let mut million = Writer::default();
    million.raw(&all.to_bytes()[..36]).number(0).number(0).number(1_000_000);
    for _ in 0..40_000 {
        million.string(&[1]).string(&[2]);
    }
    assert_eq!(world.post(address, "answer", &million.0).status, 413);
    assert_eq!(world.post(address, "answer", &million.0[..90_000]).status, 400);
    let mut dice = Dice(6);
    for _ in 0..300 {
        let mut bytes = few.to_bytes();
        let at = dice.below(bytes.len() as u64) as usize;
        if dice.below(2) == 0 {
            bytes[at] ^= 1 << dice.below(8)
        } else {
            bytes.truncate(at)
        }
        let status = world.post(address, "answer", &bytes).status;
        assert!([200, 400, 422].contains(&status), "{status}");
    }
    // Names that are none, and methods that are not for them.
    for line in ["GET /", "GET /x/y/head", "GET //", "PUT /health/x", "GET /foilpub1/prices/head"] {
        assert_eq!(once(address, line, b"").status, 404, "{line}");
    }
    for line in ["summaries/01", "summaries/-1", "summaries/99999999999999999999", "summaries/1", "%ff", "head/x"] {
        assert_eq!(world.get(address, line).status, 404, "{line}");
    }
    assert_eq!(world.post(address, "head", b"").status, 405);
    assert_eq!(world.get(address, "answer").status, 405);
    assert_eq!(world.get(address, "summaries/0").status, 200);
}

#[test]
fn slow_clients_hold_nobody_up() {
    let (_folder, world, listener) = loaded(|limits| {
        limits.head_timeout = Duration::from_millis(400);
        limits.body_timeout = Duration::from_millis(400);
        limits.write_timeout = Duration::from_millis(400);
        limits.answers_at_once_max = 2;
        limits.updates_at_once_max = 1;
    });
    let address = listener.address();
    let mut slow: Vec<_> = (0..40).map(|_| Client::new(address)).collect();
    for (at, client) in slow.iter_mut().enumerate() {
        match at % 3 {
            0 => client.send(b"GET /he"),
            1 => client.send(&head(&format!("POST {}", world.path("answer")), 1000)),
            _ => client.send(&head(&format!("POST {}", world.path("update")), 40 << 20)),
        };
    }
    for client in slow.iter_mut().skip(1).step_by(3).take(2) {
        let status = client.reply().map(|reply| reply.status);
        assert!([Some(408), Some(503)].contains(&status), "{status:?}");
    }
    // Places are free again for who comes now.
    let mut honest = 0;
    while world.ask(address, &world.all(0)).is_err() {
        honest += 1;
        assert!(honest < 100, "nobody is answered");
    }
    slow.iter_mut().step_by(3).for_each(|client| assert!(client.is_closed()));
    // One that asks and never reads.
    let mut deaf = Client::new(address);
    let question = world.all(0).to_bytes();
    let ask = [&head(&format!("POST {}", world.path("answer")), question.len())[..], &question].concat();
    deaf.stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let asked = (0..400_000).take_while(|_| deaf.send(&ask)).count();
    assert!(asked < 400_000, "somebody waits for it for ever");
    world.ask(address, &world.all(0)).expect("an honest answer");
}

/// Replies take of one memory until they are read: who reads too slowly loses the connection, and others get the room.
#[test]
fn replies_that_nobody_reads_take_no_more_than_their_memory() {
    let (_folder, mut world, listener) = loaded(|limits| {
        limits.write_timeout = Duration::from_millis(600);
        limits.queue_wait = Duration::from_millis(100);
        limits.reply_bytes_max = 9 << 20;
    });
    world.insert((0..1500).map(|day| row(&"A".repeat(900), day, day)).collect());
    world.close();
    let address = listener.address();
    world.push(address, 1 << 20);
    let question = world.all(0).hinted().to_bytes();
    // Many answers in a row, since the system's buffers take the first ones.
    let ask = [&head(&format!("POST {}", world.path("answer")), question.len())[..], &question].concat().repeat(20);
    let mut slow: Vec<_> = (0..12).map(|_| Client::new(address)).collect();
    slow.iter_mut().for_each(|client| assert!(client.send(&ask)));
    let busy = (0..40).filter(|_| {
        slow.iter_mut().for_each(|client| drop(client.stream.read(&mut [0])));
        matches!(world.post(address, "answer", &question).status, 503)
    });
    assert!(busy.count() > 0, "there was room for everything");
    let mut tried = 0;
    while world.post(address, "answer", &question).status != 200 {
        tried += 1;
        assert!(tried < 1000, "nobody gets room again");
    }
}

#[test]
fn too_large_is_told_before_it_comes() {
    let (_folder, world, listener) = loaded(|limits| limits.update_bytes_max = 1 << 20);
    let address = listener.address();
    for (what, length) in [("update", (1 << 20) + 1), ("answer", 10 << 20), ("update", usize::MAX / 2)] {
        let mut client = Client::new(address);
        client.send(&head(&format!("POST {}", world.path(what)), length));
        // It may go on a little, and then is told.
        client.send(&[7; 1000]);
        client.stream.shutdown(std::net::Shutdown::Write).expect("the end");
        assert_eq!(client.reply().map(|reply| reply.status), Some(413), "{what}");
    }
    let mut endless = Client::new(address);
    let line = format!("POST {} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", world.path("update"));
    endless.send(line.as_bytes());
    let chunk = [&b"10000\r\n"[..], &[7; 0x10000], b"\r\n"].concat();
    assert!((0..100).take_while(|_| endless.send(&chunk)).count() < 100 || endless.reply().is_some());
}

#[test]
fn connections_beyond_the_limit_are_told_and_a_stop_waits_for_nobody_long() {
    let (_folder, world, listener) = loaded(|limits| {
        limits.connections_max = 5;
        limits.shutdown_wait = Duration::from_millis(300);
    });
    let address = listener.address();
    let mut held: Vec<_> = (0..8).map(|_| Client::new(address)).collect();
    let told = held.iter_mut().rev().take(3).filter_map(Client::reply).filter(|reply| reply.status == 503).count();
    assert_eq!(told, 3);
    held.truncate(3);
    held[0].send(&head(&format!("POST {}", world.path("update")), 1000));
    listener.shut_down();
    let mut rest = Vec::new();
    held[1].stream.read_to_end(&mut rest).expect("an end");
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn noise_harms_nobody() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let (_folder, world, listener) = loaded(|limits| limits.head_timeout = Duration::from_millis(200));
    let address = listener.address();
    let question = world.all(0).to_bytes();
    let ask = [&head(&format!("POST {}", world.path("answer")), question.len())[..], &question].concat();
    let senders: Vec<_> = (1..=3)
        .map(|seed| {
            let ask = ask.clone();
            thread::spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..if full { 3000 } else { 100 } {
                    let mut bytes = ask.clone();
                    for _ in 0..dice.below(8) {
                        let at = dice.below(bytes.len() as u64) as usize;
                        bytes[at] = dice.below(256) as u8;
                    }
                    let mut client = Client::new(address);
                    client.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
                    client.send(&bytes);
                    let _ = client.stream.read(&mut [0; 1000]);
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
    world.holds(address);
}
