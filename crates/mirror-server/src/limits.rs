//! What a mirror takes and gives at most, so that its memory is bounded whatever comes.

use std::time::Duration;

use counterfoil_mirror::wire::UPDATE_BYTES_MAX;

/// The limits of a mirror.
///
/// Its memory is at most about `connections_max` times 16 KiB, `answers_at_once_max` times `question_bytes_max` and four
/// times `answer_bytes_max`, `reply_bytes_max`, `sums_bytes_max`, and `updates_at_once_max` times three times `update_bytes_max`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections; whoever comes beyond them gets 503 at once.
    pub connections_max: usize,
    /// Requests that read the store at once; others wait up to `queue_wait`.
    pub answers_at_once_max: usize,
    /// Updates whose body is being read or written.
    pub updates_at_once_max: usize,
    /// Bytes of a question: 4096 intervals between the longest keys take 8.5 million.
    pub question_bytes_max: usize,
    /// Bytes of entries that one answer may need.
    pub answer_bytes_max: usize,
    /// Bytes of replies that wait to be read by their clients, of all together. At least those of a site's largest file.
    pub reply_bytes_max: usize,
    /// Bytes of the sums of signatures that are kept for answers to come, of all tables together.
    pub sums_bytes_max: usize,
    /// How long an answer may take.
    pub answer_time_max: Duration,
    /// Bytes of an update.
    pub update_bytes_max: usize,
    /// Tables that are kept.
    pub tables_max: u64,
    /// How long a head may take, and how long a connection may stay idle.
    pub head_timeout: Duration,
    /// A body has this long, and a second more for every `body_bytes_per_second_min` that came.
    pub body_timeout: Duration,
    /// The slowest client that is waited for.
    pub body_bytes_per_second_min: usize,
    /// How long a client may take to read 64 KiB of a reply.
    pub write_timeout: Duration,
    /// How long a request waits for its turn before the answer that tells the client to come again.
    pub queue_wait: Duration,
    /// How long requests that have begun may go on when the mirror is shut down.
    pub shutdown_wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 256,
            answers_at_once_max: 8,
            updates_at_once_max: 2,
            question_bytes_max: 9 << 20,
            answer_bytes_max: 32 << 20,
            reply_bytes_max: 256 << 20,
            sums_bytes_max: 64 << 20,
            answer_time_max: Duration::from_secs(20),
            update_bytes_max: UPDATE_BYTES_MAX,
            tables_max: 10_000,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 64 << 10,
            write_timeout: Duration::from_secs(10),
            queue_wait: Duration::from_secs(4),
            shutdown_wait: Duration::from_secs(10),
        }
    }
}
