//! Just enough of an HTTP client to say anything, also what no client would.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line[name.len() + 1..].trim())
    }

    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).expect("JSON")
    }
}

pub struct Client {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, unread: Vec::new() }
    }

    /// Sends bytes; false where nobody takes them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// One answer; none where the connection ends before it.
    pub fn answer(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.unread.drain(..end + 4).collect()).expect("text");
        let status = head[9..12].parse().expect("a status");
        let mut answer = Answer { status, head, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        while self.unread.len() < length {
            self.more()?;
        }
        answer.body = String::from_utf8(self.unread.drain(..length).collect()).expect("text");
        Some(answer)
    }

    fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let bytes = self.stream.read(&mut buffer).ok().filter(|&bytes| bytes > 0)?;
        self.unread.extend_from_slice(&buffer[..bytes]);
        Some(())
    }

    pub fn request(&mut self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send(&request(line, headers, body));
        self.answer().expect("an answer")
    }
}

pub fn request(line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "transfer-encoding") {
        head += &format!("content-length: {}\r\n", body.len());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// One request on a connection of its own.
pub fn once(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    Client::new(address).request(line, headers, body)
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}
