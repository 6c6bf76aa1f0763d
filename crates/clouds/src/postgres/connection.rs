//! A connection, and the task that serves it.

use std::time::Duration;

use counterfoil_disperse::Failure;
use counterfoil_tls::postgres::Encrypted;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use super::answered;

/// A connection: closed when it is dropped, whatever the server says.
pub(super) struct Connection {
    pub client: Client,
    serving: JoinHandle<()>,
}

impl Connection {
    /// Connects, on the runtime that this runs on.
    pub async fn open(config: &Config, encrypted: Option<&Encrypted>, patience: Duration) -> Result<Self, Failure> {
        // What ends it is told to whoever uses the client.
        let (client, serving) = match encrypted {
            Some(encrypted) => {
                let (client, connection) = answered(patience, config.connect(encrypted.clone())).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            }
            None => {
                let (client, connection) = answered(patience, config.connect(NoTls)).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            }
        };
        Ok(Self { client, serving })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
