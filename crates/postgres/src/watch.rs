//! Who is gone while what they asked for runs.
//!
//! A statement hears nothing from its client: without somebody who looks, one whose client died goes on to its end, with its memory
//! and, where it changes something, the writer that others wait for. The system notes which sockets their clients have closed; it
//! is asked for them every second.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use parking_lot::Mutex;

/// How often it is asked.
pub const PERIOD: Duration = Duration::from_secs(1);
/// Of how many sockets is heard at a time.
const EVENTS: usize = 256;

/// Looks after the sockets of clients.
pub struct Watch {
    registry: Registry,
    poll: Mutex<Poll>,
}

impl Watch {
    /// Looks after none yet.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Watch { registry: poll.registry().try_clone()?, poll: Mutex::new(poll) })
    }

    /// Looks after a client's socket from now on.
    pub fn add(&self, number: u32, stream: &TcpStream) -> io::Result<()> {
        self.registry.register(&mut SourceFd(&stream.as_raw_fd()), Token(number as usize), Interest::READABLE)
    }

    /// Looks after it no more: the system would until its last handle is closed.
    pub fn remove(&self, stream: &TcpStream) {
        // Those that were never let in are not looked after.
        let _ = self.registry.deregister(&mut SourceFd(&stream.as_raw_fd()));
    }

    /// The clients that have gone since it was asked last. One that only says that it sends nothing more is gone, too, as for
    /// PostgreSQL's `client_connection_check_interval`: half of a connection is not told from none.
    pub fn gone(&self) -> io::Result<Vec<u32>> {
        let (mut events, mut gone) = (Events::with_capacity(EVENTS), Vec::new());
        let mut poll = self.poll.lock();
        loop {
            poll.poll(&mut events, Some(Duration::ZERO))?;
            gone.extend(events.iter().filter(|event| is_closed(event)).map(|event| event.token().0 as u32));
            if events.iter().count() < EVENTS {
                return Ok(gone);
            }
        }
    }
}

fn is_closed(event: &Event) -> bool {
    event.is_read_closed() || event.is_write_closed() || event.is_error()
}
