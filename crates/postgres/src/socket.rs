//! A client's socket, in clear or behind TLS.
//!
//! 1. A stranger has so much time for all that it has to say, however it comes: its handshake counts.
//! 2. What came in clear is never taken for something that came behind TLS.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::ServerConnection;
use socket2::{SockRef, TcpKeepalive};

use crate::limits::Limits;
use crate::tls::{self, Tls};

/// After so long without a word a client's machine is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// A stream to a client.
pub trait Stream: Read + Write {
    /// Whether the next reads are waited for without end, or for a bounded time.
    fn be_patient(&self, without_end: bool) -> io::Result<()>;

    /// The client has shown who it is: from now on it may take its time between messages.
    fn let_in(&mut self) -> io::Result<()>;

    /// The first byte that the client sends, which the next read reads too; none where it sends nothing.
    fn first(&mut self) -> io::Result<Option<u8>>;

    /// Everything from here on goes behind TLS: does the handshake. One that nobody asked for in clear is one for PostgreSQL by
    /// its name.
    fn secure(&mut self, tls: &Tls, by_name: bool) -> io::Result<()>;

    /// Whether it goes behind TLS.
    fn is_secure(&self) -> bool;

    /// Whether the client is on this machine.
    fn is_local(&self) -> bool;

    /// Says that nothing more comes.
    fn close(&mut self) -> io::Result<()>;
}

/// A socket.
pub struct Socket {
    clear: Clear,
    secured: Option<Box<ServerConnection>>,
}

/// What goes over the network.
struct Clear {
    stream: TcpStream,
    limits: Limits,
    stranger_until: Option<Instant>,
}

impl Socket {
    /// A socket of a stranger.
    pub fn new(stream: TcpStream, limits: Limits) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A client whose machine is gone says nothing: whoever waits for the writer that it holds is not to wait for ever.
        let probes = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4);
        SockRef::from(&stream).set_tcp_keepalive(&probes)?;
        stream.set_read_timeout(Some(limits.patience))?;
        stream.set_write_timeout(Some(limits.patience))?;
        let stranger_until = Some(Instant::now() + limits.patience);
        Ok(Socket { clear: Clear { stream, limits, stranger_until }, secured: None })
    }
}

impl Clear {
    /// A stranger's next read ends with its time.
    fn hurry(&self) -> io::Result<()> {
        let Some(until) = self.stranger_until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))
    }
}

impl Read for Clear {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.hurry()?;
        self.stream.read(buffer)
    }
}

impl Write for Clear {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.secured {
            Some(connection) => rustls::Stream::new(&mut **connection, &mut self.clear).read(buffer),
            None => self.clear.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.secured {
            Some(connection) => rustls::Stream::new(&mut **connection, &mut self.clear).write(bytes),
            None => self.clear.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.secured {
            Some(connection) => rustls::Stream::new(&mut **connection, &mut self.clear).flush(),
            None => self.clear.flush(),
        }
    }
}

impl Stream for Socket {
    fn be_patient(&self, without_end: bool) -> io::Result<()> {
        let patience = if without_end { None } else { Some(self.clear.limits.patience) };
        self.clear.stream.set_read_timeout(patience)
    }

    fn let_in(&mut self) -> io::Result<()> {
        self.clear.stranger_until = None;
        self.clear.stream.set_write_timeout(Some(self.clear.limits.write_patience))
    }

    fn first(&mut self) -> io::Result<Option<u8>> {
        self.clear.hurry()?;
        let mut first = [0];
        let came = self.clear.stream.peek(&mut first)?;
        Ok((came == 1).then_some(first[0]))
    }

    fn secure(&mut self, tls: &Tls, by_name: bool) -> io::Result<()> {
        let mut connection = Box::new(tls.connection()?);
        connection.complete_io(&mut self.clear)?;
        if connection.is_handshaking() || (by_name && !tls::is_asked_for(&connection)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.secured = Some(connection);
        Ok(())
    }

    fn is_secure(&self) -> bool {
        self.secured.is_some()
    }

    fn is_local(&self) -> bool {
        self.clear.stream.peer_addr().is_ok_and(|peer| is_loopback(peer.ip()))
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(connection) = &mut self.secured else { return Ok(()) };
        connection.send_close_notify();
        while connection.wants_write() {
            connection.write_tls(&mut self.clear)?;
        }
        Ok(())
    }
}

/// Whether an address is one of this machine alone, also where a socket of IPv6 writes it its own way.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
