//! A web server on a port of its own, until the test ends: in clear, or with TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The first byte of a handshake.
const HANDSHAKE: u8 = 0x16;

/// What somebody asked for.
pub struct Request {
    pub method: String,
    /// With what stands behind `?`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..])
    }
}

/// What is answered: a status, one header, and a body.
pub struct Reply {
    pub status: u16,
    pub header: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn found(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, header: String::new(), body: body.into() }
    }

    pub fn missing() -> Self {
        Self { status: 404, header: String::new(), body: Vec::new() }
    }

    pub fn leads_to(url: &str) -> Self {
        Self { status: 302, header: format!("Location: {url}\r\n"), body: Vec::new() }
    }
}

/// Serves, one request a connection.
pub fn serve(tls: Option<Arc<ServerConfig>>, answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, tls, answer) = (stream.expect("a client"), tls.clone(), answer.clone());
            // A client that does not like what it sees goes: nothing is wrong with that.
            thread::spawn(move || match tls {
                None => converse(stream, &*answer),
                Some(config) => {
                    let connection = ServerConnection::new(config).expect("a connection");
                    converse(StreamOwned::new(connection, stream), &*answer)
                }
            });
        }
    });
    address
}

fn converse(mut stream: impl Read + Write, answer: &dyn Fn(Request) -> Reply) -> io::Result<()> {
    let reply = match read(&mut stream)? {
        Some(request) => answer(request),
        None => Reply { status: 400, header: String::new(), body: Vec::new() },
    };
    let Reply { status, header, body } = reply;
    let head = format!("HTTP/1.1 {status} so\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    stream.flush()
}

/// A request; nothing if somebody speaks TLS where it is not spoken.
fn read(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        if head.is_empty() && byte[0] == HANDSHAKE {
            // All of it is read: a connection that ends with bytes that nobody read takes the answer with it.
            let mut rest = [0; 4];
            stream.read_exact(&mut rest)?;
            stream.read_exact(&mut vec![0; usize::from(u16::from_be_bytes([rest[2], rest[3]]))])?;
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers = head.lines().skip(1).filter_map(header).collect();
    let mut request = Request { method, path, headers, body: Vec::new() };
    request.body.resize(request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0), 0);
    stream.read_exact(&mut request.body)?;
    Ok(Some(request))
}
