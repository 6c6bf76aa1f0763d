//! The same as bytes: what a page sends and is told.

use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Column, Type, Value as Cell};
use counterfoil_verifier::{Brought, Session, Wanted, call};
use serde_json::Value;

use crate::world::{Dice, World, row};

fn told(session: &mut Option<Session>, request: &Writer) -> Value {
    serde_json::from_slice(&call(session, &request.0)).expect("JSON")
}

fn begun(world: &World, owner: &str, sql: &str, memory: &[u8]) -> Writer {
    let mut writer = Writer::default();
    writer.byte(1).string(owner.as_bytes()).string(sql.as_bytes());
    writer.number(world.terms().now).number(5).number(u64::MAX).string(memory);
    writer
}

/// Asks as a page does; gives what the last step told.
fn asked(world: &World, session: &mut Option<Session>, sql: &str) -> Value {
    let owner = world.publication.owner().to_string();
    let begun = told(session, &begun(world, &owner, sql, &[]));
    assert_eq!(begun["table"], "prices");
    loop {
        let step = told(session, Writer::default().byte(2));
        let Some(wanted) = step["wanted"].as_array() else { return step };
        for wanted in wanted {
            let path = wanted["path"].as_str().expect("a path");
            let most = wanted["most"].as_u64().expect("a number") as usize;
            let mut writer = Writer::default();
            writer.byte(3).string(path.as_bytes());
            match world.folder_sends(&Wanted { path: path.into(), question: None, most }) {
                Brought::Bytes(bytes) => writer.byte(0).string(&bytes),
                Brought::Nothing => writer.byte(1),
                Brought::Failed(what) => writer.byte(2).string(what.as_bytes()),
            };
            assert_eq!(told(session, &writer), serde_json::json!({}));
        }
    }
}

#[test]
fn a_page_is_told_rows_verdict_and_what_was_checked() {
    let world = World::of(30);
    let mut session = None;
    let step =
        asked(&world, &mut session, "SELECT symbol, price, note FROM prices WHERE symbol = 'NES' ORDER BY price");
    let read = &step["read"];
    assert_eq!(read["names"], serde_json::json!(["symbol", "price", "note"]));
    assert_eq!(read["kinds"], serde_json::json!(["TEXT", "NUMERIC(10,2)", "TEXT"]));
    assert_eq!(read["numbers"], serde_json::json!([false, true, false]));
    assert_eq!((&read["count"], &read["periods"]), (&10.into(), &2.into()));
    assert!(
        read["verdict"].as_str().expect("a text").starts_with("authentic and complete as of 1970-01-01 01:23:22+00")
    );
    assert!(step["used"].as_array().expect("files").iter().any(|file| file[0] == "head"));
    let rows = told(&mut session, Writer::default().byte(4).number(1).number(2));
    let markup = "<img src=x onerror=alert(4)>";
    assert_eq!(
        rows["rows"],
        serde_json::json!([["NES", "0.28", markup], ["NES", "0.49", "<img src=x onerror=alert(7)>"]])
    );
    let caught = told(&mut session, Writer::default().byte(5).byte(0).number(0).number(2));
    assert_eq!(caught["refused"]["word"], "forged");
    let kept = call(&mut session, &[6]);
    assert!(counterfoil_reader::Kept::from_bytes(&kept).expect("a kept answer").check(&world.terms().owner, 5).is_ok());
    // What was seen comes back, and a damaged one is no reason to go on without.
    let memory = step["memory"].as_str().expect("a memory");
    let bytes: Vec<u8> =
        (0..memory.len()).step_by(2).map(|at| u8::from_str_radix(&memory[at..at + 2], 16).expect("digits")).collect();
    let newer = told(&mut session, Writer::default().byte(7).string(&[]));
    assert_eq!(newer["memory"], memory);
    let owner = world.publication.owner().to_string();
    assert_eq!(told(&mut session, &begun(&world, &owner, "SELECT * FROM prices", &bytes))["table"], "prices");
    assert!(told(&mut session, &begun(&world, &owner, "SELECT * FROM prices", &bytes[1..]))["misuse"].is_string());
    assert!(session.is_none());
}

#[test]
fn mistakes_are_told_apart_from_refusals() {
    let world = World::of(4);
    let owner = world.publication.owner().to_string();
    let mut session = None;
    assert!(told(&mut session, Writer::default().byte(2))["misuse"].is_string());
    let wrong = told(&mut session, &begun(&world, &owner[..20], "SELECT * FROM prices", &[]));
    assert!(wrong["refused"]["text"].as_str().expect("a text").starts_with("an owner is foilpub1"));
    assert_eq!(told(&mut session, &begun(&world, &owner, "DELETE FROM prices", &[]))["refused"]["kind"], "sql");
    assert_eq!(asked(&world, &mut session, "SELECT nothing FROM prices")["refused"]["kind"], "sql");
    assert!(told(&mut session, Writer::default().byte(4).number(0).number(9))["misuse"].is_string());
    assert_eq!(told(&mut session, Writer::default().byte(5).byte(3))["nothing"], true);
}

#[test]
fn a_long_value_is_told_in_part() {
    let mut world = World::new();
    let mut long = row(1);
    long[3] = Cell::Text("é".repeat(5000));
    world.publish(vec![long]);
    let column: &Column = &world.publication.definition().columns[3];
    assert_eq!(column.kind, Type::Text);
    let mut session = None;
    asked(&world, &mut session, "SELECT note FROM prices");
    let rows = told(&mut session, Writer::default().byte(4).number(0).number(u64::MAX));
    assert_eq!(rows["rows"][0][0], serde_json::json!(["é".repeat(4096), 904]));
}

#[test]
fn noise_is_misuse_and_nothing_else() {
    let world = World::of(8);
    let mut session = None;
    asked(&world, &mut session, "SELECT * FROM prices");
    let mut dice = Dice(9);
    for _ in 0..20_000 {
        let length = dice.next() % 12;
        let mut request: Vec<u8> = (0..length).map(|_| dice.next() as u8).collect();
        if let Some(kind) = request.first_mut() {
            // A question begun anew would end this one.
            *kind = [2, 3, 4, 5, 7, 8][*kind as usize % 6];
        }
        let reply = call(&mut session, &request);
        assert!(serde_json::from_slice::<Value>(&reply).expect("JSON").is_object());
    }
    assert!(serde_json::from_slice::<Value>(&call(&mut session, &[1, 1])).expect("JSON")["misuse"].is_string());
}
