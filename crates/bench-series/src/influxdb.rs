//! InfluxDB from Debian's package: a server of its own on this machine, spoken to in line protocol and InfluxQL.
//!
//! Every write is a request that is answered when its points are in the synced log, so each slice is a window of its own.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::query::{Answer, Fold, Folding};
use crate::store::{Span, Store, bytes_in};
use crate::workload::{Sort, Tuple};

/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and where its files are.
pub struct InfluxDb {
    child: Child,
    port: u16,
    folder: std::path::PathBuf,
}

const fn table(sort: Sort) -> &'static str {
    match sort {
        Sort::Analog => "analog",
        Sort::Boolean => "boolean",
    }
}

impl InfluxDb {
    /// Starts a server on an empty folder; none if the package is not there.
    pub fn start(folder: &Path) -> Result<Option<InfluxDb>, Failure> {
        let [port, backup] = [free_port()?, free_port()?];
        let local = |port: u16| format!("127.0.0.1:{port}");
        let started = Command::new("influxd")
            .env("INFLUXDB_META_DIR", folder.join("meta"))
            .env("INFLUXDB_DATA_DIR", folder.join("data"))
            .env("INFLUXDB_DATA_WAL_DIR", folder.join("wal"))
            .env("INFLUXDB_DATA_QUERY_LOG_ENABLED", "false")
            .env("INFLUXDB_DATA_CACHE_SNAPSHOT_WRITE_COLD_DURATION", "2s")
            .env("INFLUXDB_DATA_COMPACT_FULL_WRITE_COLD_DURATION", "2s")
            .env("INFLUXDB_HTTP_BIND_ADDRESS", local(port))
            .env("INFLUXDB_BIND_ADDRESS", local(backup))
            .env("INFLUXDB_HTTP_LOG_ENABLED", "false")
            .env("INFLUXDB_HTTP_MAX_BODY_SIZE", "0")
            .env("INFLUXDB_MONITOR_STORE_ENABLED", "false")
            .env("INFLUXDB_REPORTING_DISABLED", "true")
            .env("HOME", folder)
            .args(["run", "-config", "/dev/null"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match started {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            started => started?,
        };
        let mut made = InfluxDb { child, port, folder: folder.into() };
        made.wait()?;
        made.ask("CREATE DATABASE tuples WITH DURATION INF SHARD DURATION 52w")?;
        Ok(Some(made))
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let begun = std::time::Instant::now();
        while self.request("GET /ping", "").is_err() {
            if begun.elapsed() > PATIENCE || self.child.try_wait()?.is_some() {
                return Err("InfluxDB does not come up".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The body of what is answered.
    fn request(&self, what: &str, body: &str) -> Result<String, Failure> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        // Version 1.0: the answer comes in one piece and ends with the connection.
        let head = format!(
            "{what} HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a head")?;
        let is_good = head.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        if is_good && !body.contains("\"error\"") {
            Ok(body.to_owned())
        } else {
            Err(format!("InfluxDB: {answer}").into())
        }
    }

    /// The rows that a question is answered with, each as its texts.
    fn ask(&self, question: &str) -> Result<Vec<Vec<String>>, Failure> {
        let mut body = String::from("db=tuples&epoch=ms&q=");
        for byte in question.bytes() {
            let _ = if byte.is_ascii_alphanumeric() {
                write!(body, "{}", byte as char)
            } else {
                write!(body, "%{byte:02X}")
            };
        }
        Ok(rows(&self.request("POST /query", &body)?))
    }

    fn within(sort: Sort, series: u32, span: Span) -> String {
        // Its own times end where nanoseconds do.
        let last = span.last.min(i64::MAX / 1_000_000);
        format!("FROM {} WHERE sensor = '{series}' AND time >= {}ms AND time <= {last}ms", table(sort), span.first)
    }

    fn numbers(&self, question: &str) -> Result<Vec<f64>, Failure> {
        let rows = self.ask(question)?;
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        Ok(first.iter().skip(1).map(|cell| cell.parse()).collect::<Result<_, _>>()?)
    }
}

fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The rows of all series of an answer, with what their tag says in front where there is one.
fn rows(json: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for series in json.split("\"name\":").skip(1) {
        let tag = series.split_once("\"tags\":{\"sensor\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let Some((_, values)) = series.split_once("\"values\":[[") else { continue };
        let Some((values, _)) = values.split_once("]]") else { continue };
        for row in values.split("],[") {
            let cells = row.split(',').map(|cell| cell.trim_matches('"').to_owned());
            rows.push(tag.iter().map(|(number, _)| (*number).to_owned()).chain(cells).collect());
        }
    }
    rows
}

impl Store for InfluxDb {
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        let mut lines = String::with_capacity(tuples.len() * 64);
        for Tuple { series, time, value, quality } in tuples {
            let _ = writeln!(lines, "{},sensor={series} value={value},quality={quality}i {time}", table(sort));
        }
        self.request("POST /write?db=tuples&precision=ms", &lines).map(drop)
    }

    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        for Tuple { series, time, .. } in tuples {
            self.ask(&format!("DELETE FROM {} WHERE sensor = '{series}' AND time = {time}ms", table(sort)))?;
        }
        Ok(())
    }

    /// A point that was deleted takes about as long as a thousand that are inserted.
    fn deletions_max(&self) -> usize {
        200
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        let within = Self::within(sort, series, span);
        let ask = |what: &str| self.numbers(&format!("SELECT {what} {within}"));
        let answer = |numbers: &[f64], number: f64| Answer { tuples: numbers.first().map_or(0, |n| *n as u64), number };
        Ok(match fold {
            Fold::Raw => {
                let mut folding = Folding::new(fold);
                for row in self.ask(&format!("SELECT value, quality {within}"))? {
                    let [time, value, quality] = &row[..] else { return Err("a row without its cells".into()) };
                    folding.take_columns(&[time.parse()?], [value.parse()?].into_iter(), &[quality.parse()?]);
                }
                folding.answer()
            }
            Fold::Count => {
                let found = ask("count(value)")?;
                answer(&found, found.first().copied().unwrap_or(0.0))
            }
            Fold::Sum | Fold::Average => {
                let found =
                    ask(if fold == Fold::Sum { "count(value), sum(value)" } else { "count(value), mean(value)" })?;
                answer(&found, found.get(1).copied().unwrap_or(0.0))
            }
            Fold::Extremes => {
                let found = ask("count(value), min(value), max(value)")?;
                answer(&found, found.iter().skip(1).sum())
            }
            Fold::Above(threshold) => {
                let found = ask("count(value)")?;
                let above = self.numbers(&format!("SELECT count(value) {within} AND value > {threshold:?}"))?;
                answer(&found, above.first().copied().unwrap_or(0.0))
            }
            Fold::Gaps(most) => {
                let found = self.ask(&format!("SELECT elapsed(value, 1ms) {within}"))?;
                let is_gap = |row: &Vec<String>| row.get(1).and_then(|cell| cell.parse::<i64>().ok()) > Some(most);
                let gaps = found.iter().filter(|row| is_gap(row)).count();
                // There is one less than there are values; of none at all there is no telling.
                Answer { tuples: found.len() as u64 + u64::from(!found.is_empty()), number: gaps as f64 }
            }
        })
    }

    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
        let rows = self.ask(&format!("SELECT last(value), quality FROM {} GROUP BY sensor", table(sort)))?;
        let tuple = |row: &Vec<String>| -> Result<Tuple, Failure> {
            let [series, time, value, quality] = &row[..] else { return Err("a row without its cells".into()) };
            Ok(Tuple { series: series.parse()?, time: time.parse()?, value: value.parse()?, quality: quality.parse()? })
        };
        rows.iter().map(tuple).collect()
    }

    fn settle(&mut self) -> Result<(), Failure> {
        // The server puts itself in order after two seconds of quiet, and says nowhere that it has.
        let (mut before, mut same) = (0, 0);
        while same < 4 {
            std::thread::sleep(Duration::from_secs(1));
            let bytes = bytes_in(&self.folder)?;
            same = if bytes == before { same + 1 } else { 0 };
            before = bytes;
        }
        Ok(())
    }
}

impl Drop for InfluxDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_an_answer() {
        let json = r#"{"results":[{"statement_id":0,"series":[{"name":"analog","tags":{"sensor":"7"},"columns":["time","last"],"values":[[12,1.5,192]]},{"name":"analog","tags":{"sensor":"8"},"columns":["time","last"],"values":[[13,-2e-3,64],[14,0,192]]}]}]}"#;
        assert_eq!(
            rows(json),
            [vec!["7", "12", "1.5", "192"], vec!["8", "13", "-2e-3", "64"], vec!["8", "14", "0", "192"]]
        );
        assert_eq!(rows(r#"{"results":[{"statement_id":0}]}"#), Vec::<Vec<String>>::new());
    }
}
