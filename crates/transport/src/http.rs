//! Files from a web server. It may be slow, hostile or gone: everything has a bound.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_mirror::site::Fetch;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};
use url::Url;

use crate::authorities::Authorities;
use crate::error::Error;
use crate::patience::Patience;
use crate::vouched;

/// For a file: connecting, waiting and reading.
const FILE_PATIENCE: Duration = Duration::from_secs(60);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of why a server does not answer.
const REASON_BYTES: u64 = 200;

/// A folder or a mirror behind HTTP. Nothing depends on who answers: what comes is checked against the owner's name.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    base: String,
    patience: Arc<Patience>,
}

impl Http {
    /// The folder at an address; for one that begins with `https://`, this machine's authorities vouch.
    ///
    /// # Errors
    /// [`Error::Address`]: of another sort; [`Error::NoAddress`].
    pub fn at(url: &str) -> Result<Self, Error> {
        Self::vouched_for(url, &Authorities::default())
    }

    /// The folder at an address, with those who vouch for its server.
    ///
    /// # Errors
    /// [`Error::Address`]: of another sort; [`Error::NoAddress`].
    pub fn vouched_for(url: &str, authorities: &Authorities) -> Result<Self, Error> {
        let is_private = url.starts_with("https://");
        if !is_private && !url.starts_with("http://") {
            return Err(Error::Address(url.into()));
        }
        if let Err(error) = Url::parse(url) {
            return Err(Error::NoAddress(url.into(), error.to_string()));
        }
        let patience = Arc::new(Patience::of(Duration::MAX));
        Ok(Self { agent: agent(is_private, authorities), base: url.trim_end_matches('/').to_owned(), patience })
    }

    /// The same, with a limit to what it takes in all. Others may share it.
    #[must_use]
    pub fn with_patience(self, patience: Arc<Patience>) -> Self {
        Self { patience, ..self }
    }

    /// What a request brings, while there is patience for it.
    fn bring(
        &self,
        path: &str,
        most: usize,
        send: impl FnOnce(Duration) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Option<Vec<u8>>, String> {
        let told = |spent| format!("{path}: {spent}");
        let brought =
            self.patience.spend(|left| Self::body(path, most, send(left.min(FILE_PATIENCE)))).map_err(told)?;
        // Where nothing is left, that is why it broke off.
        brought.map_err(|error| self.patience.left().err().map_or(error, told))
    }

    /// What a request brought, at most `most` bytes; none if there is no such thing.
    fn body(path: &str, most: usize, sent: Result<Response<Body>, ureq::Error>) -> Result<Option<Vec<u8>>, String> {
        let mut response = match sent {
            Ok(response) if [404, 410].contains(&response.status().as_u16()) => return Ok(None),
            Ok(response) => response,
            Err(error) => return Err(format!("{path}: {}", vouched::told(&error))),
        };
        if !response.status().is_success() {
            return Err(refused(path, &mut response));
        }
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(most as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("{path}: {error}"))?;
        if bytes.len() > most { Err(format!("{path}: more than {most} bytes")) } else { Ok(Some(bytes)) }
    }
}

/// Why a server does not answer, in its own words as far as it has some: a line that can be printed.
fn refused(path: &str, response: &mut Response<Body>) -> String {
    match response.status().as_u16() {
        422 => return format!("{path}: too much for this server: ask for less"),
        503 => return format!("{path}: the server is loading it, or busy"),
        _ => {}
    }
    let mut bytes = Vec::new();
    _ = response.body_mut().as_reader().take(REASON_BYTES).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let line: String = text.trim().chars().take_while(|letter| !letter.is_control()).collect();
    let is_reason = !line.is_empty() && !line.starts_with(['<', '{']);
    format!(
        "{path}: status {}{}",
        response.status().as_u16(),
        if is_reason { format!(": {line}") } else { String::new() }
    )
}

/// What makes requests. One that began with TLS is not led to where it would go on in clear.
fn agent(is_private: bool, authorities: &Authorities) -> Agent {
    let config = Agent::config_builder()
        .timeout_connect(Some(CONNECT_PATIENCE))
        .max_redirects(4)
        .https_only(is_private)
        .http_status_as_error(false)
        .tls_config(authorities.tls())
        .user_agent(concat!("counterfoil/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// A request that takes no longer than this, connecting, waiting and reading.
fn within<B>(request: RequestBuilder<B>, time: Duration) -> RequestBuilder<B> {
    request.config().timeout_global(Some(time)).build()
}

impl Fetch for Http {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let request = self.agent.get(format!("{}/{path}", self.base));
        self.bring(path, most, |time| within(request, time).call())
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        let request = self.agent.post(format!("{}/{path}", self.base));
        self.bring(path, most, |time| within(request, time).send(question))
    }
}
