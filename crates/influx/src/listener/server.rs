//! The listener: a socket, its connections, and the thread that writes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::listener::limits::Limits;
use crate::listener::patient::Patient;
use crate::listener::queue::Queue;
use crate::listener::route;
use crate::listener::shared::{QUESTIONS_MAX, Shared};
use crate::listener::sink::Sink;

/// What a connection beyond the limit is told.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What a listener is made with beside its address and sink.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Its limits.
    pub limits: Limits,
    /// The fields that hold qualities of OPC UA, in every measurement that has them.
    pub quality_fields: Vec<String>,
}

/// A listener that takes requests until it is shut down or dropped.
///
/// It has a runtime of its own, so it is made, shut down and dropped outside of any other.
pub struct Listener {
    address: SocketAddr,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    accepting: Option<tokio::task::JoinHandle<()>>,
    queue: Queue,
    ingesting: Option<JoinHandle<()>>,
    shutdown_wait: Duration,
}

impl Listener {
    /// Listens at `address` (port 0: any free one) and writes to `sink`.
    ///
    /// # Errors
    /// The address cannot be had, or the machine gives no thread.
    pub fn bind(address: SocketAddr, sink: Arc<dyn Sink>, settings: Settings) -> io::Result<Listener> {
        let limits = settings.limits;
        let shutdown_wait = limits.shutdown_wait;
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(limits.writes_in_flight_max + QUESTIONS_MAX)
            .thread_name("influx")
            .enable_io()
            .enable_time()
            .build()?;
        let socket = {
            let _inside = runtime.enter();
            TcpListener::from_std(socket)?
        };
        let (queue, ingesting) = Queue::start(sink.clone(), limits.queue_batches_max)?;
        let shared = Arc::new(Shared {
            sink,
            writes: Arc::new(Semaphore::new(limits.writes_in_flight_max)),
            questions: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            limits,
            quality_fields: settings.quality_fields.into(),
            queue: queue.clone(),
        });
        let (stop, stopped) = watch::channel(false);
        let accepting = Some(runtime.spawn(accept(socket, shared, stopped)));
        Ok(Listener {
            address,
            runtime: Some(runtime),
            stop,
            accepting,
            queue,
            ingesting: Some(ingesting),
            shutdown_wait,
        })
    }

    /// The address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests that have begun end within [`Limits::shutdown_wait`], and returns when
    /// the sink has written what was acknowledged or waits for it.
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
        self.queue.close();
        runtime.shutdown_timeout(Duration::from_secs(1));
        if let Some(ingesting) = self.ingesting.take() {
            let _ = ingesting.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop_all();
    }
}

/// Takes connections until it is stopped, then waits for them.
async fn accept(socket: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let taken = tokio::select! {
            taken = socket.accept() => taken,
            _ = stopped.changed() => break,
        };
        while connections.try_join_next().is_some() {}
        match taken {
            Ok((stream, _)) if connections.len() < shared.limits.connections_max => {
                connections.spawn(serve(stream, shared.clone(), stopped.clone()));
            }
            Ok((stream, _)) => drop(stream.try_write(TOO_MANY)),
            // No more files: there will be some when connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    // Answers are small: each goes out at once.
    let _ = stream.set_nodelay(true);
    let limits = shared.limits.clone();
    let stream = TokioIo::new(Patient::new(stream, limits.answer_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes_max.max(8192))
        .max_headers(limits.headers_max)
        .serve_connection(stream, service_fn(move |request| route::answer(shared.clone(), request)));
    let mut connection = std::pin::pin!(connection);
    // What ends a connection early is its client's affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(limits.shutdown_wait, connection).await;
}
