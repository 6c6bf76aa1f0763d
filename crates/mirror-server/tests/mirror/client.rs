//! Just enough of an HTTP client to say anything, also what no client would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// In small letters, from the status on.
    pub head: String,
    pub body: Vec<u8>,
}

pub struct Client {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Self::on(TcpStream::connect(address).expect("a connection"))
    }

    fn on(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.set_write_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, unread: Vec::new() }
    }

    /// Sends bytes; false where nobody takes them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// One reply; none where the connection ends before it.
    pub fn reply(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.unread.drain(..end + 4).collect()).expect("text").to_lowercase();
        let status = head[9..12].parse().expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
        while self.unread.len() < length {
            self.more()?;
        }
        Some(Reply { status, head, body: self.unread.drain(..length).collect() })
    }

    /// Whether the other side has ended the connection.
    pub fn is_closed(&mut self) -> bool {
        !matches!(self.stream.read(&mut [0; 100]), Ok(1..))
    }

    fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let bytes = self.stream.read(&mut buffer).ok().filter(|&bytes| bytes > 0)?;
        self.unread.extend_from_slice(&buffer[..bytes]);
        Some(())
    }
}

pub fn head(line: &str, length: usize) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n").into_bytes()
}

/// One request on a connection of its own.
pub fn once(address: SocketAddr, line: &str, body: &[u8]) -> Reply {
    let mut client = Client::new(address);
    client.send(&[&head(line, body.len())[..], body].concat());
    client.reply().expect("a reply")
}

/// The same where nobody may be there, or go away meanwhile.
pub fn attempt(address: SocketAddr, line: &str, body: &[u8]) -> Option<Reply> {
    let mut client = Client::on(TcpStream::connect(address).ok()?);
    // It may have said already why it hears no more.
    client.send(&[&head(line, body.len())[..], body].concat());
    client.reply()
}
