//! A server between readers and an honest mirror, which says something else where it pleases.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use counterfoil_mirror::site::Fetch;
use counterfoil_proof::Value;
use counterfoil_reader::{Error, Memory, Terms, Verdict, read, read_join};

use crate::client::{Reply, attempt, once};

/// What becomes of a reply: path, what was sent with it, and what the honest mirror says, nothing where it has no such file.
pub type Rule = Box<dyn FnMut(&str, &[u8], Option<Vec<u8>>) -> Option<Vec<u8>> + Send>;

/// It stands between until the test ends.
pub struct Between {
    pub address: SocketAddr,
    rule: Arc<Mutex<Option<Rule>>>,
}

impl Between {
    pub fn readers_and(mirror: SocketAddr) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let rule: Arc<Mutex<Option<Rule>>> = Arc::default();
        let kept = rule.clone();
        thread::spawn(move || {
            for client in socket.incoming().map_while(Result::ok) {
                pass(client, mirror, &kept);
            }
        });
        Self { address, rule }
    }

    pub fn lie(&self, rule: Rule) {
        *self.rule.lock().expect("a rule") = Some(rule);
    }

    pub fn be_honest(&self) {
        *self.rule.lock().expect("a rule") = None;
    }
}

fn pass(mut client: TcpStream, mirror: SocketAddr, rule: &Mutex<Option<Rule>>) {
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let Some((line, body)) = request(&mut client) else { return };
    let reply = once(mirror, &line, &body);
    let honest = (reply.status == 200).then_some(reply.body);
    let path = line.split(' ').nth(1).unwrap_or_default();
    let told = match &mut *rule.lock().expect("a rule") {
        Some(rule) => rule(path, &body, honest),
        None => honest,
    };
    let (status, bytes) = told.map_or((404, Vec::new()), |bytes| (200, bytes));
    let head = format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
    // Who does not want to hear the rest of it may go.
    let _ = client.write_all(&[head.as_bytes(), &bytes].concat());
}

/// The first line without its version, and the body.
fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut more = |bytes: &mut Vec<u8>| {
        let mut buffer = [0; 4096];
        let count = client.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        Some(())
    };
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        more(&mut bytes)?;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(Some(0), |it| it.parse().ok());
    while bytes.len() < end + length? {
        more(&mut bytes)?;
    }
    let line = head.lines().next()?.strip_suffix(" HTTP/1.1")?.into();
    Some((line, bytes.split_off(end)))
}

/// A reader's way to a server, which may be gone.
pub struct Web(pub SocketAddr);

impl Fetch for Web {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        sent(self.0, &format!("GET /{path}"), b"", most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        sent(self.0, &format!("POST /{path}"), question, most)
    }
}

fn sent(address: SocketAddr, line: &str, body: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
    match attempt(address, line, body).ok_or("nobody answers")? {
        Reply { status: 200, body, .. } if body.len() <= most => Ok(Some(body)),
        Reply { status: 404, .. } => Ok(None),
        Reply { status, body, .. } => Err(format!("status {status}, {} bytes", body.len())),
    }
}

/// What a reader is told to SQL about one table or two, with what it remembers of each.
pub fn ask(
    address: SocketAddr,
    sql: &str,
    terms: &Terms,
    memory: &mut [Option<Memory>; 2],
) -> Result<(Vec<Vec<Value>>, Verdict), Error> {
    let [first, second] = memory;
    if sql.contains(" JOIN ") {
        let read = read_join(&mut Web(address), &mut Web(address), sql, terms, [first, second])?;
        Ok((read.table.rows, read.verdict))
    } else {
        let read = read(&mut Web(address), sql, terms, first)?;
        Ok((read.table.rows, read.verdict))
    }
}
