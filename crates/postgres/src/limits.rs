//! What a client may take before it has shown who it is, and after.

use std::time::Duration;

/// Bounds of a server: whatever is sent to it, its memory and its waits end here.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients at a time that were let in; the next one is told so and closed.
    pub connections_max: usize,
    /// Those who have not shown who they are at a time: of more, whoever has taken longest is closed.
    pub strangers_max: usize,
    /// Bytes of a message before a client has shown who it is.
    pub greeting_bytes_max: usize,
    /// Bytes of a statement with its parameters, or of a piece of COPY.
    pub message_bytes_max: usize,
    /// Bytes of a message that need no room in the budget of all clients; and the same again of what is held for a client.
    pub small_bytes: usize,
    /// Bytes of that budget: for what is larger, of all clients together.
    pub large_bytes_max: usize,
    /// How long a client may take to show who it is, and to send the rest of a message that it began.
    pub patience: Duration,
    /// How long a client may take to read what it was sent.
    pub write_patience: Duration,
    /// How long a wrong password is waited for to be answered.
    pub refusal_delay: Duration,
    /// How long connections have to end when the server does.
    pub shutdown_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 256,
            strangers_max: 64,
            greeting_bytes_max: 10_000,
            message_bytes_max: 64 << 20,
            small_bytes: 64 << 10,
            large_bytes_max: 256 << 20,
            patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(60),
            refusal_delay: Duration::from_millis(500),
            shutdown_wait: Duration::from_secs(10),
        }
    }
}
