//! A hundred writers at once, and memory that stays where it was. Alone in its program: it looks at all of its memory.

mod common;

use std::sync::Arc;
use std::thread;

use common::client::{Client, gzip};
use common::listen;
use common::memory::Memory;
use counterfoil_influx::listener::Sink;

/// Bytes of this process in memory; none where the system does not say.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

#[test]
fn a_hundred_writers_and_flat_memory() {
    let sink = Arc::new(Memory::default());
    sink.create_database("db").unwrap();
    let listener = listen(sink.clone(), |_| ());
    let address = listener.address();
    let lines_each = 2000;
    let body: String = (0..lines_each)
        .map(|line| {
            format!("cpu,host=host{},region=eu usage={line}.5,count={line}i,note=\"a text\" {line}\n", line % 50)
        })
        .collect();
    let packed = Arc::new(gzip(body.as_bytes()));
    let round = |requests: usize| {
        let writer = |_| {
            let packed = packed.clone();
            thread::spawn(move || {
                let mut client = Client::new(address);
                for _ in 0..requests {
                    loop {
                        let gzip = ("content-encoding", "gzip");
                        let answer = client.request("POST /api/v2/write?bucket=db", &[gzip], &packed);
                        match answer.status {
                            204 => break,
                            503 => thread::sleep(std::time::Duration::from_millis(100)),
                            _ => panic!("{answer:?}"),
                        }
                    }
                }
            })
        };
        let writers: Vec<_> = (0..100).map(writer).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    };
    round(1);
    let before = resident();
    round(8);
    let after = resident();
    assert_eq!(sink.rows("db"), 900 * lines_each as u64);
    if let (Some(before), Some(after)) = (before, after) {
        println!("{} MB after 100 requests, {} MB after 900", before >> 20, after >> 20);
        assert!(after < before + (48 << 20), "{} MB became {} MB", before >> 20, after >> 20);
        assert!(after < 200 << 20, "{} MB", after >> 20);
    }
}
