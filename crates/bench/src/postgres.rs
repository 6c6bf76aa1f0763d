//! The door for clients of PostgreSQL beside the library in the same process: what the way over the wire costs.
//!
//! The client here does as little as a client can: it counts rows and does not read their cells. Beside rows as text stands the
//! library with every cell written as text, beside rows in binary the library with every cell read.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use counterfoil::arrow::array::{Array, AsArray, RecordBatch};
use counterfoil::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use counterfoil::{Connection, Database, Value, write_cell};
use counterfoil_bench_figures::machine;
use counterfoil_postgres::{Listener, Settings};

use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::{line, median, seconds};

/// Rows unless told otherwise.
pub const ROWS: usize = 500_000;
/// Statements of one row in a measurement.
const POINTS: usize = 2000;
const GOAL: &str = "0.70";

const TABLE: &str = "(id BIGINT PRIMARY KEY, name TEXT, price DOUBLE PRECISION, at TIMESTAMP)";
const ALL: &str = "SELECT id, name, price, at FROM t";
const ONE: &str = "SELECT id, name, price, at FROM t WHERE id = $1";
const PUT: &str = "INSERT INTO p VALUES ($1, $2, $3, NULL)";

/// Prints rates for so many rows.
pub fn run(rows: usize) -> Result<(), Failure> {
    machine::print();
    println!("rows:    {rows}\n");
    println!("{:<44} {:>12} {:>12} {:>8}", "", "door", "library", "ratio");
    let folder = Folder::new()?;
    let database = Database::create(folder.options("door.db")?)?;
    let mut library = database.connect()?;
    library.run(&format!("CREATE TABLE t {TABLE}; CREATE TABLE c {TABLE}; CREATE TABLE p {TABLE}"), &[])?;
    library.execute(
        "INSERT INTO t SELECT x, 'name of row ' || x, x / 7.0, TIMESTAMP '2024-01-01 00:00:00'
         FROM generate_series(1, $1) AS g(x)",
        &[Value::Integer(rows as i64)],
    )?;
    let listener = Listener::bind(&database, Settings::at("127.0.0.1:0".parse()?).danger_no_authentication())?;
    let mut client = Client::connect(listener.address())?;
    rows_out(&mut client, &mut library, rows)?;
    rows_in(&mut client, &mut library, rows)?;
    points(&mut client, &mut library, rows)
}

fn rows_out(client: &mut Client, library: &mut Connection, rows: usize) -> Result<(), Failure> {
    let rate = |seconds: f64| rows as f64 / seconds;
    let door = median(3, || Ok(seconds(|| all(client.ask(ALL)?, rows))?.0))?;
    let own = median(3, || Ok(seconds(|| all(texts(library)?, rows))?.0))?;
    line("rows out, text", "rows/s", rate(door), rate(own), GOAL);
    client.prepare("all", ALL)?;
    let door = median(3, || Ok(seconds(|| all(client.run("all", &[])?, rows))?.0))?;
    let own = median(3, || Ok(seconds(|| all(cells(library)?, rows))?.0))?;
    line("rows out, binary", "rows/s", rate(door), rate(own), GOAL);
    Ok(())
}

fn rows_in(client: &mut Client, library: &mut Connection, rows: usize) -> Result<(), Failure> {
    let line_of = |row: usize| format!("{row}\tname of row {row}\t{}\t2024-01-01 00:00:00\n", row as f64 / 7.0);
    let text: String = (0..rows).map(line_of).collect();
    let copy = "COPY c FROM STDIN";
    let (own, copied) = seconds(|| Ok(library.copy_in(copy, &mut text.as_bytes())?))?;
    all(copied as usize, rows)?;
    library.execute("TRUNCATE c", &[])?;
    let (door, ()) = seconds(|| client.copy_in(copy, text.as_bytes()))?;
    line("rows in, COPY as text", "rows/s", rows as f64 / door, rows as f64 / own, GOAL);
    Ok(())
}

fn points(client: &mut Client, library: &mut Connection, rows: usize) -> Result<(), Failure> {
    let rate = |seconds: f64| POINTS as f64 / seconds;
    let key = |at: usize| (at * 7919 % rows + 1) as i64;
    let (there_and_back, ()) = seconds(|| (0..POINTS).try_for_each(|_| client.sync()))?;
    println!("{:<44} {:>9.0} us", "there and back, with nothing to do", there_and_back / POINTS as f64 * 1e6);
    client.prepare("one", ONE)?;
    let (door, ()) = seconds(|| (0..POINTS).try_for_each(|at| all(client.run("one", &[&key(at).to_be_bytes()])?, 1)))?;
    let mut one = library.prepare(ONE)?;
    let (own, ()) =
        seconds(|| (0..POINTS).try_for_each(|at| all(count(one.query(&[Value::Integer(key(at))])?, cells_of)?, 1)))?;
    line("one row by its key, prepared", "rows/s", rate(door), rate(own), GOAL);
    client.prepare("put", PUT)?;
    let (door, ()) = seconds(|| {
        (0..POINTS as i64)
            .try_for_each(|at| client.run("put", &[&at.to_be_bytes(), b"a name", &1.5f64.to_be_bytes()]).map(drop))
    })?;
    let mut put = library.prepare(PUT)?;
    let (own, ()) = seconds(|| {
        (0..POINTS as i64).try_for_each(|at| {
            let row = [Value::Integer(at + POINTS as i64), Value::from("a name"), Value::Double(1.5)];
            Ok(put.execute(&row).map(drop)?)
        })
    })?;
    line("one row in, prepared, a commit each", "rows/s", rate(door), rate(own), GOAL);
    Ok(())
}

fn all(came: usize, rows: usize) -> Result<(), Failure> {
    if came == rows { Ok(()) } else { Err(format!("{came} rows came where {rows} are").into()) }
}

fn count(
    rows: impl Iterator<Item = counterfoil::Result<RecordBatch>>,
    mut look: impl FnMut(&RecordBatch) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        look(&batch)?;
        count += batch.num_rows();
    }
    Ok(count)
}

/// Every cell as text.
fn texts(library: &mut Connection) -> Result<usize, Failure> {
    let mut cell = String::new();
    count(library.query(ALL, &[])?, |batch| {
        for row in 0..batch.num_rows() {
            for column in batch.columns() {
                cell.clear();
                write_cell(&mut cell, column.as_ref(), row)?;
                std::hint::black_box(&cell);
            }
        }
        Ok(())
    })
}

/// Every cell as a value.
fn cells(library: &mut Connection) -> Result<usize, Failure> {
    count(library.query(ALL, &[])?, cells_of)
}

fn cells_of(batch: &RecordBatch) -> Result<(), Failure> {
    for row in 0..batch.num_rows() {
        for column in batch.columns() {
            match column.data_type() {
                DataType::Int64 => _ = std::hint::black_box(column.as_primitive::<Int64Type>().value(row)),
                DataType::Float64 => _ = std::hint::black_box(column.as_primitive::<Float64Type>().value(row)),
                DataType::Timestamp(..) => {
                    _ = std::hint::black_box(column.as_primitive::<TimestampMicrosecondType>().value(row));
                }
                DataType::Utf8View => drop(std::hint::black_box(column.as_string_view().value(row).to_owned())),
                other => return Err(format!("a column of type {other}").into()),
            }
        }
    }
    Ok(())
}

/// A client that counts.
struct Client {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream: BufReader::with_capacity(1 << 16, stream), body: Vec::new() };
        let fields = b"user\0bench\0\0";
        let length = (fields.len() as u32 + 8).to_be_bytes();
        client.send(&[length.as_slice(), &196_608u32.to_be_bytes(), fields].concat())?;
        client.answer().map(|_| client)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// The kind of the next message, whose body is in `self.body`.
    fn receive(&mut self) -> Result<u8, Failure> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        self.body.resize(length.saturating_sub(4), 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(head[0])
    }

    /// How many rows came up to ReadyForQuery.
    fn answer(&mut self) -> Result<usize, Failure> {
        let mut rows = 0;
        loop {
            match self.receive()? {
                b'D' => rows += 1,
                b'E' => return Err(String::from_utf8_lossy(&self.body).into_owned().into()),
                b'Z' => return Ok(rows),
                _ => {}
            }
        }
    }

    /// Asks for nothing.
    fn sync(&mut self) -> Result<(), Failure> {
        self.send(&message(b'S', b""))?;
        self.answer().map(drop)
    }

    fn ask(&mut self, sql: &str) -> Result<usize, Failure> {
        self.send(&message(b'Q', format!("{sql}\0").as_bytes()))?;
        self.answer()
    }

    fn prepare(&mut self, name: &str, sql: &str) -> Result<(), Failure> {
        let parse = message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes());
        let describe = message(b'D', format!("S{name}\0").as_bytes());
        self.send(&[parse, describe, message(b'S', b"")].concat())?;
        self.answer().map(drop)
    }

    /// Runs what was prepared, all in binary.
    fn run(&mut self, name: &str, values: &[&[u8]]) -> Result<usize, Failure> {
        let mut bind = format!("\0{name}\0").into_bytes();
        bind.extend([0, 1, 0, 1]);
        bind.extend((values.len() as u16).to_be_bytes());
        for value in values {
            bind.extend((value.len() as u32).to_be_bytes());
            bind.extend(*value);
        }
        bind.extend([0, 1, 0, 1]);
        let bytes = [message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', b"")].concat();
        self.send(&bytes)?;
        self.answer()
    }

    fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<(), Failure> {
        self.send(&message(b'Q', format!("{sql}\0").as_bytes()))?;
        while self.receive()? != b'G' {}
        for piece in rows.chunks(1 << 16) {
            self.send(&message(b'd', piece))?;
        }
        self.send(&message(b'c', b""))?;
        self.answer().map(drop)
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}
