//! Which part answers which request.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde_json::json;

use crate::listener::answer::{Answer, Refusal, VERSION, Version, done, json_answer};
use crate::listener::parameters::Parameters;
use crate::listener::shared::Shared;
use crate::listener::{body, query, write};

pub(crate) async fn answer(shared: Arc<Shared>, mut request: Request<Incoming>) -> Result<Answer, Infallible> {
    let path = request.uri().path().to_owned();
    let version = if path.starts_with("/api/v2/") { Version::Two } else { Version::One };
    let refusal = match (path.as_str(), request.method()) {
        ("/ping" | "/health", &Method::GET | &Method::HEAD) => {
            let answer = if path == "/ping" { ping(&request) } else { health(&shared) };
            return Ok(answer);
        }
        // A page from anywhere can make a browser send to a loopback address; browsers say so in these headers.
        _ if ["origin", "sec-fetch-site"].iter().any(|name| request.headers().contains_key(*name)) => Refusal::Browser,
        ("/write" | "/api/v2/write", &Method::POST) => return Ok(write::answer(&shared, &mut request, version).await),
        ("/query", &Method::GET | &Method::POST) => return Ok(query::answer(&shared, &mut request).await),
        ("/write" | "/api/v2/write", _) => Refusal::Method("POST"),
        ("/query", _) => Refusal::Method("GET, POST"),
        ("/ping" | "/health", _) => Refusal::Method("GET, HEAD"),
        _ => Refusal::NotFound,
    };
    body::drain(request.body_mut()).await;
    Ok(refusal.answer(version))
}

/// Needs no credentials, as InfluxDB's: collectors ask it to know whether there is a server.
fn ping(request: &Request<Incoming>) -> Answer {
    let parameters = Parameters::of(request.uri().query().unwrap_or(""));
    match parameters.first("verbose") {
        None | Some("" | "0" | "false") => done(),
        Some(_) => json_answer(StatusCode::OK, &json!({ "version": VERSION })),
    }
}

/// Whether a write could succeed, without the reason, which is not everybody's.
fn health(shared: &Shared) -> Answer {
    let well = shared.queue.is_open() && shared.sink.health().is_ok();
    let (status, word, message) = match well {
        true => (StatusCode::OK, "pass", "ready for queries and writes"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "fail", "writes are not possible"),
    };
    let body = json!({ "name": "influxdb", "message": message, "status": word, "checks": [], "version": VERSION });
    json_answer(status, &body)
}
