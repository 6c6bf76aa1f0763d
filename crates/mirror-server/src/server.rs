//! The listener: a socket and its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::answering::Answering;
use crate::limits::Limits;
use crate::options::Allowed;
use crate::patient::Patient;
use crate::route::{self, ROOM_BYTES, Shared};
use crate::store::Store;
use crate::tls::Tls;

/// What a connection beyond the limit is told.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// A mirror that takes requests until it is shut down or dropped.
///
/// It has a runtime of its own, so it is made, shut down and dropped outside of any other.
pub struct Listener {
    address: SocketAddr,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    accepting: Option<tokio::task::JoinHandle<()>>,
    shutdown_wait: Duration,
    /// Held until the runtime is gone: a store whose connections wait while they close must not be dropped by one of its tasks.
    _store: Arc<dyn Store>,
}

impl Listener {
    /// Listens at `address` (port 0: any free one), with TLS if there is a certificate, and answers from `store`.
    ///
    /// # Errors
    /// The address cannot be had, or the machine gives no thread.
    pub fn bind(
        address: SocketAddr,
        store: Arc<dyn Store>,
        allowed: Allowed,
        limits: Limits,
        tls: Option<Tls>,
    ) -> io::Result<Listener> {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(limits.answers_at_once_max + limits.updates_at_once_max)
            .thread_name("mirror")
            .enable_io()
            .enable_time()
            .build()?;
        let socket = {
            let _inside = runtime.enter();
            TcpListener::from_std(socket)?
        };
        let (shutdown_wait, held) = (limits.shutdown_wait, store.clone());
        let shared = Arc::new(Shared {
            allowed,
            answers: Arc::new(Semaphore::new(limits.answers_at_once_max)),
            room: Arc::new(Semaphore::new(limits.reply_bytes_max / ROOM_BYTES)),
            updates: Arc::new(Semaphore::new(limits.updates_at_once_max)),
            answering: Answering::new(store, limits),
        });
        let (stop, stopped) = watch::channel(false);
        let accepting = Some(runtime.spawn(accept(socket, shared, tls, stopped)));
        Ok(Listener { address, runtime: Some(runtime), stop, accepting, shutdown_wait, _store: held })
    }

    /// The address it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, and lets requests that have begun end within [`Limits::shutdown_wait`].
    pub fn shut_down(mut self) {
        self.stop_all();
    }

    fn stop_all(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let _ = self.stop.send(true);
        if let Some(accepting) = self.accepting.take() {
            // Each connection ends within the wait; the second on top is for the last of them to be reaped.
            let _ = runtime.block_on(async { timeout(self.shutdown_wait + Duration::from_secs(1), accepting).await });
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop_all();
    }
}

/// Takes connections until it is stopped, then waits for them.
async fn accept(socket: TcpListener, shared: Arc<Shared>, tls: Option<Tls>, mut stopped: watch::Receiver<bool>) {
    let acceptor = tls.map(|tls| tls.acceptor());
    let mut connections = JoinSet::new();
    loop {
        let taken = tokio::select! {
            taken = socket.accept() => taken,
            _ = stopped.changed() => break,
        };
        while connections.try_join_next().is_some() {}
        match taken {
            Ok((stream, _)) if connections.len() < shared.answering.limits.connections_max => {
                connections.spawn(greet(stream, acceptor.clone(), shared.clone(), stopped.clone()));
            }
            Ok((stream, _)) if acceptor.is_none() => drop(stream.try_write(TOO_MANY)),
            // Nobody can be told anything before a handshake.
            Ok(_) => {}
            // No more files: there will be some when connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

/// Begins a connection: with a handshake, where there is a certificate.
async fn greet(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let limits = &shared.answering.limits;
    let (stream, patience) = (Patient::new(stream, limits.write_timeout), limits.head_timeout);
    let Some(acceptor) = acceptor else { return serve(stream, shared, stopped).await };
    let greeted = tokio::select! {
        greeted = timeout(patience, acceptor.accept(stream)) => greeted,
        _ = stopped.changed() => return,
    };
    // What ends a handshake is its client's affair.
    if let Ok(Ok(stream)) = greeted {
        serve(stream, shared, stopped).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let limits = shared.answering.limits.clone();
    let stream = TokioIo::new(stream);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(stream, service_fn(move |request| route::answer(shared.clone(), request)));
    let mut connection = std::pin::pin!(connection);
    // What ends a connection early is its client's affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(limits.shutdown_wait, connection).await;
}
