//! Chronix as a peer of the benchmark (`src/remote.rs` of counterfoil-bench-series): takes orders from standard input, answers
//! on standard output. Any failure ends the program.

mod engine;
mod fold;

use std::io::{BufReader, BufWriter, Read, StdinLock, StdoutLock, Write, stdin, stdout};
use std::path::Path;

use engine::Engine;
use fold::{Answer, Fold};

/// Why the program ends.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Series of each sort.
pub const SERIES: u32 = 100;
const TUPLE_BYTES: usize = 24;

/// A value that was measured, as it comes through the pipe; its time is in milliseconds.
pub struct Tuple {
    series: u32,
    quality: u8,
    time: i64,
    value: f64,
}

impl Tuple {
    fn read(bytes: [u8; TUPLE_BYTES]) -> Result<Tuple, Failure> {
        Ok(Tuple {
            series: u32::from_le_bytes(bytes[..4].try_into()?),
            quality: bytes[4],
            time: i64::from_le_bytes(bytes[8..16].try_into()?),
            value: f64::from_le_bytes(bytes[16..].try_into()?),
        })
    }

    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        to.write_all(&self.series.to_le_bytes())?;
        to.write_all(&[self.quality, 0, 0, 0])?;
        to.write_all(&self.time.to_le_bytes())?;
        to.write_all(&self.value.to_le_bytes())
    }
}

struct Peer<'a> {
    engine: Engine,
    orders: BufReader<StdinLock<'a>>,
    answers: BufWriter<StdoutLock<'a>>,
}

impl Peer<'_> {
    fn take<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Failure> {
        let mut bytes = [0; BYTES];
        self.orders.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn sort(&mut self) -> Result<usize, Failure> {
        match self.take::<1>()? {
            [sort @ 0..=1] => Ok(usize::from(sort)),
            [_] => Err("a sort that nobody knows".into()),
        }
    }

    fn span(&mut self) -> Result<(i64, i64), Failure> {
        Ok((i64::from_le_bytes(self.take()?), i64::from_le_bytes(self.take()?)))
    }

    fn change(&mut self, word: u8) -> Result<(), Failure> {
        let sort = self.sort()?;
        let count = u32::from_le_bytes(self.take()?);
        let tuples = (0..count).map(|_| Tuple::read(self.take()?)).collect::<Result<Vec<Tuple>, Failure>>()?;
        match word {
            b'D' => self.engine.delete(sort, &tuples),
            _ => self.engine.insert(sort, &tuples, word == b'U'),
        }
    }

    fn fold_one(&mut self) -> Result<(), Failure> {
        let sort = self.sort()?;
        let [kind] = self.take()?;
        let series = u32::from_le_bytes(self.take()?);
        let span = self.span()?;
        let fold = Fold { kind, parameter: f64::from_le_bytes(self.take()?) };
        let answer = fold::fold(&self.engine, sort, series, span, fold)?;
        self.answer(answer)
    }

    fn fold_all(&mut self) -> Result<(), Failure> {
        let sort = self.sort()?;
        let [kind] = self.take()?;
        let span = self.span()?;
        let count = u32::from_le_bytes(self.take()?);
        let fold = |parameter| Fold { kind, parameter };
        let folds =
            (0..count).map(|_| Ok(fold(f64::from_le_bytes(self.take()?)))).collect::<Result<Vec<_>, Failure>>()?;
        let answer = fold::fold_all(&self.engine, sort, span, &folds)?;
        self.answer(answer)
    }

    fn answer(&mut self, (tuples, number): Answer) -> Result<(), Failure> {
        self.answers.write_all(&tuples.to_le_bytes())?;
        self.answers.write_all(&number.to_le_bytes())?;
        Ok(self.answers.flush()?)
    }

    fn newest(&mut self) -> Result<(), Failure> {
        let sort = self.sort()?;
        let found = self.engine.newest(sort)?;
        self.answers.write_all(&(found.len() as u32).to_le_bytes())?;
        found.iter().try_for_each(|tuple| tuple.write(&mut self.answers))?;
        Ok(self.answers.flush()?)
    }

    fn done(&mut self) -> Result<(), Failure> {
        self.answers.write_all(&[0])?;
        Ok(self.answers.flush()?)
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let mut word = [0];
        while self.orders.read(&mut word)? == 1 {
            match word[0] {
                b'I' | b'U' | b'D' => self.change(word[0])?,
                // What was stored is durable since it was.
                b'C' => self.done()?,
                b'S' => {
                    self.engine.settle()?;
                    self.done()?;
                }
                b'F' => self.fold_one()?,
                b'A' => self.fold_all()?,
                b'N' => self.newest()?,
                _ => return Err("a word that nobody knows".into()),
            }
        }
        Ok(self.engine.database.close()?)
    }
}

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).ok_or("usage: chronix-peer FOLDER")?;
    let engine = Engine::create(Path::new(&folder))?;
    let orders = BufReader::with_capacity(1 << 18, stdin().lock());
    Peer { engine, orders, answers: BufWriter::new(stdout().lock()) }.serve()
}
