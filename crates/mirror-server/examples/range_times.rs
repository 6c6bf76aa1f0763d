//! What ranges take of a mirror that serves an embedded store, with and without the sums of signatures that it keeps:
//! `cargo run --release -p counterfoil-mirror-server --example range_times [RECORDS]` (200,000 unless told).
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_mirror::wire::State;
use counterfoil_mirror_server::{Allowed, Embedded, Limits, Listener};
use counterfoil_proof::{Column, Definition, Edge, Interval, Question, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

type Failure = Box<dyn Error + Send + Sync>;

/// Times that a range is asked for.
const ROUNDS: usize = 9;

fn owner(records: i64) -> Result<Publication<MemoryLedger>, Failure> {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let definition = Definition {
        table: [1; 16],
        name: "readings".into(),
        columns: vec![column("at", Type::BigInt), column("reading", Type::BigInt)],
        orders: vec![vec![0]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: Vec::new(),
    };
    let plan = Plan { definition, now: 0, every: 0, renew: 0, max_age: u64::MAX, expires: u64::MAX };
    let secrets = Secrets::from_entropy(&std::array::from_fn(|at| at as u8))?;
    let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
    let row = |at: i64| vec![Value::Integer(at), Value::Integer(at * 7919 % 10_007)];
    owner.edit(Edit { insert: (0..records).map(row).collect(), ..Edit::default() })?;
    owner.close_period(1000)?;
    Ok(owner)
}

fn post(address: SocketAddr, path: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
    let method = if body.is_empty() { "GET" } else { "POST" };
    let mut stream = TcpStream::connect(address)?;
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("no reply")? + 4;
    if !reply.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&reply[..end]).into_owned().into());
    }
    Ok(reply.split_off(end))
}

fn push(owner: &mut Publication<MemoryLedger>, address: SocketAddr, place: &str) -> Result<(), Failure> {
    loop {
        let state = State::from_bytes(&post(address, &format!("{place}/state"), &[])?)?;
        let Some(update) = owner.update_for(&state, 8 << 20)? else { return Ok(()) };
        post(address, &format!("{place}/update"), &update)?;
    }
}

fn range(owner: &Publication<MemoryLedger>, from: i64, rows: i64, columns: &[u16]) -> Result<Question, Failure> {
    let edge = |at: i64| -> Result<Edge, Failure> {
        let mut key = Vec::new();
        Type::BigInt.encode(&Value::Integer(at), &mut key).map_err(|_| "a number")?;
        Ok(Edge::before(&key))
    };
    let interval = Interval::new(edge(from)?..edge(from + rows)?).ok_or("an interval of nothing")?;
    Ok(Question::new(owner.definition(), 0, vec![interval], columns)?)
}

/// Milliseconds of the first time, and of the least of those behind it, each of another range of so many rows that overlaps.
fn times(owner: &Publication<MemoryLedger>, address: SocketAddr, place: &str, rows: i64) -> Result<[f64; 2], Failure> {
    let (mut first, mut least) = (None, f64::INFINITY);
    for round in 0..ROUNDS as i64 {
        let question = range(owner, 1000 + 7 * round, rows, &[0, 1])?.to_bytes();
        let begun = Instant::now();
        post(address, &format!("{place}/answer"), &question)?;
        let took = begun.elapsed().as_secs_f64() * 1e3;
        if first.replace(first.unwrap_or(took)).is_some() {
            least = least.min(took);
        }
    }
    Ok([first.unwrap_or(least), least])
}

fn serve(store: &Path, owner: &Publication<MemoryLedger>, sums_bytes_max: usize) -> Result<Listener, Failure> {
    let mut limits = Limits::default();
    limits.sums_bytes_max = sums_bytes_max;
    let allowed = Allowed::Owners(BTreeSet::from([owner.owner()]));
    let address = "127.0.0.1:0".parse()?;
    Ok(Listener::bind(address, Arc::new(Embedded::open(store)?), allowed, limits, None)?)
}

fn main() -> Result<(), Failure> {
    let records = std::env::args().nth(1).map_or(Ok(200_000), |records| records.parse())?;
    let mut owner = owner(records)?;
    let place = format!("/{}/readings", owner.owner());
    let folder = tempfile::tempdir()?;
    println!(
        "{records} records; milliseconds of a range, its first time and the least of {} that overlap it",
        ROUNDS - 1
    );
    println!("{:>8} {:>16} {:>16} {:>16} {:>16}", "rows", "added up, first", "least", "by sums, first", "least");
    let mut lines: Vec<(i64, Vec<f64>)> = [100, 1000, 10_000, 50_000]
        .into_iter()
        .filter(|rows| rows + 2000 < records)
        .map(|rows| (rows, vec![]))
        .collect();
    let store = folder.path().join("store");
    let listener = serve(&store, &owner, 0)?;
    push(&mut owner, listener.address(), &place)?;
    listener.shut_down();
    for sums_bytes_max in [0, Limits::default().sums_bytes_max] {
        let listener = serve(&store, &owner, sums_bytes_max)?;
        // What is read of the store is in memory then. No sums are made for an answer that shows some columns.
        let all = range(&owner, 0, 60_000, &[0])?;
        post(listener.address(), &format!("{place}/answer"), &all.to_bytes())?;
        for (rows, line) in lines.iter_mut().rev() {
            line.extend(times(&owner, listener.address(), &place, *rows)?);
        }
        listener.shut_down();
    }
    for (rows, line) in lines {
        println!("{rows:>8} {:>16.2} {:>16.2} {:>16.2} {:>16.2}", line[0], line[1], line[2], line[3]);
    }
    Ok(())
}
