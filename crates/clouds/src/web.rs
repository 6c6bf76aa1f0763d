//! Connections to web servers.

use std::path::Path;
use std::time::Duration;

use counterfoil_tls::tls;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::objects::Connections;

/// Connections that wait for somebody, and how long.
const IDLE_MAX: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(30);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// What makes connections, and keeps some. They are made on the runtime of whoever asks.
///
/// # Errors
/// What is wrong with the file of those who vouch, for people.
pub(crate) fn connections(ca: Option<&Path>, patience: Duration) -> Result<Connections, String> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_PATIENCE.min(patience)));
    let https =
        HttpsConnectorBuilder::new().with_tls_config(tls(ca)?).https_or_http().enable_http1().wrap_connector(http);
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(IDLE_MAX).pool_idle_timeout(IDLE_TIME).pool_timer(TokioTimer::new());
    Ok(builder.build(https))
}
