//! Connections to a database that are encrypted, to a server that somebody vouches for.
//!
//! No half of that is done: who encrypts and does not ask who is at the other end talks to whoever is in between.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::authorities::tls;

/// How connections are encrypted.
#[derive(Clone)]
pub struct Encrypted(TlsConnector);

impl Encrypted {
    /// Vouched for by those of a file, or by whom this machine trusts.
    ///
    /// # Errors
    /// What is wrong with the file, for people.
    pub fn new(ca: Option<&Path>) -> Result<Self, String> {
        tls(ca).map(|config| Self(TlsConnector::from(Arc::new(config))))
    }
}

/// The same, for one server.
pub struct Server {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// What is sent over it.
pub struct Sealed<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encrypted {
    type Stream = Sealed<S>;
    type TlsConnect = Server;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Server, Self::Error> {
        Ok(Server { connector: self.0.clone(), name: ServerName::try_from(domain.to_owned())? })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Server {
    type Stream = Sealed<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Sealed<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(Sealed) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Sealed<S> {
    /// None is needed: the server's certificate was checked.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Sealed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Sealed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
