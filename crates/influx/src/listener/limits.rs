//! What a listener takes at most, so that its memory is bounded whatever comes.

use std::time::Duration;

/// The limits of a listener.
///
/// Its memory is at most about `connections_max` times `head_bytes_max`, and `writes_in_flight_max` times three times
/// `batch_bytes_max` and 1 MiB: with the defaults 4 MiB and 112 MiB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections; whoever comes beyond them gets 503 at once.
    pub connections_max: usize,
    /// Requests whose body is being read or written; others wait up to `queue_wait`.
    pub writes_in_flight_max: usize,
    /// Batches that wait for the ingesting thread; it commits as many as there are at once.
    pub queue_batches_max: usize,
    /// Memory of one batch; a larger request becomes several, each durable before the answer.
    pub batch_bytes_max: usize,
    /// Bytes of a body, as received and as unpacked.
    pub body_bytes_max: usize,
    /// Bytes of a request's head, at least 8192.
    pub head_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// How long a head may take, and how long a connection may stay idle.
    pub head_timeout: Duration,
    /// A body has this long, and a second more for every `body_bytes_per_second_min` that came.
    pub body_timeout: Duration,
    /// The slowest client that is waited for.
    pub body_bytes_per_second_min: usize,
    /// How long a client may leave an answer unread.
    pub answer_timeout: Duration,
    /// How long a request waits for its turn before the answer that tells the client to come again: less than the 5
    /// seconds after which Telegraf gives up.
    pub queue_wait: Duration,
    /// What that answer says in `Retry-After`.
    pub retry_after: Duration,
    /// How long requests that have begun may go on when the listener is shut down.
    pub shutdown_wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 256,
            writes_in_flight_max: 16,
            queue_batches_max: 8,
            batch_bytes_max: 2 << 20,
            body_bytes_max: 32 << 20,
            head_bytes_max: 16 << 10,
            headers_max: 64,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 1024,
            answer_timeout: Duration::from_secs(10),
            queue_wait: Duration::from_secs(4),
            retry_after: Duration::from_secs(1),
            shutdown_wait: Duration::from_secs(10),
        }
    }
}
