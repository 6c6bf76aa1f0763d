//! A listener without a database: it counts what Telegraf, the loader of TSBS or any other client writes to it.
//!
//! ```sh
//! cargo run --release -p counterfoil-influx --example listen -- 127.0.0.1:8086 [COMMIT MILLISECONDS]
//! tsbs_generate_data --use-case=cpu-only --scale=100 --format=influx ... | tsbs_load_influx --urls=http://127.0.0.1:8086
//! ```
//! It runs until standard input ends, and then prints what it got.

#[path = "../tests/common/memory.rs"]
mod memory;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_influx::listener::{Listener, Settings, Sink};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8086".to_owned()).parse()?;
    let sink = Arc::new(memory::Memory::default());
    if let Some(delay) = arguments.next() {
        *sink.delay.lock().expect("no panic") = Duration::from_millis(delay.parse()?);
    }
    let listener = Listener::bind(address, sink.clone(), Settings::default())?;
    println!("listening at {}; end the input to stop", listener.address());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    listener.shut_down();
    for name in sink.databases()? {
        let (rows, values) = sink.look(&name, |database| (database.rows, database.values));
        println!("{name}: {rows} rows, {values} values");
    }
    println!("{} commits", sink.commits.lock().expect("no panic"));
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    }
    Ok(())
}
