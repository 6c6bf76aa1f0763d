//! `/query`: what loaders and collectors ask before they write.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::listener::answer::{Answer, Refusal, Version, json_answer};
use crate::listener::body;
use crate::listener::credentials::{self, Credentials};
use crate::listener::influxql::{self, Statement};
use crate::listener::parameters::Parameters;
use crate::listener::shared::Shared;
use crate::listener::sink::{Access, Sink, SinkError};

/// The most bytes of a form.
const FORM_BYTES_MAX: usize = 64 << 10;

pub(crate) async fn answer(shared: &Arc<Shared>, request: &mut Request<Incoming>) -> Answer {
    match query(shared, request).await {
        Ok(answer) => answer,
        Err(refusal) => {
            body::drain(request.body_mut()).await;
            refusal.answer(Version::One)
        }
    }
}

async fn query(shared: &Arc<Shared>, request: &mut Request<Incoming>) -> Result<Answer, Refusal> {
    let mut parameters = Parameters::of(request.uri().query().unwrap_or(""));
    if is_form(request) {
        let form = body::whole(request.body_mut(), FORM_BYTES_MAX, &shared.limits).await;
        parameters.extend(Parameters::of_bytes(&form.ok_or(Refusal::TooLarge(FORM_BYTES_MAX))?));
    }
    let credentials =
        credentials::of(request.headers(), &parameters).map_err(|text| Refusal::Unauthenticated(text.to_owned()))?;
    let text = parameters.first("q").unwrap_or("").trim();
    if text.is_empty() {
        return Err(Refusal::BadRequest("missing required parameter \"q\"".to_owned()));
    }
    let statements =
        influxql::parse(text).map_err(|text| Refusal::BadRequest(format!("error parsing query: {text}")))?;
    let posted = request.method() == Method::POST;
    if !posted && statements.iter().any(|statement| matches!(statement, Statement::DropDatabase(_))) {
        return Err(Refusal::BadRequest("DROP DATABASE is not read from an address: send it with POST".to_owned()));
    }
    let results = shared.ask(move |sink| run(sink, &credentials, &statements)).await?;
    Ok(json_answer(StatusCode::OK, &json!({ "results": results })))
}

fn is_form(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    kind.starts_with(b"application/x-www-form-urlencoded")
}

/// Runs statements up to the first that fails, whose result says so. Credentials that do not suffice for one of them
/// refuse them all.
fn run(sink: &dyn Sink, credentials: &Credentials, statements: &[Statement]) -> Result<Vec<Value>, SinkError> {
    for statement in statements {
        sink.authorize(credentials, &access(statement))?;
    }
    let mut results = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        let mut result = json!({ "statement_id": index });
        match one(sink, statement) {
            Ok(Some(series)) => result["series"] = series,
            Ok(None) => (),
            Err(error @ (SinkError::Refused(_) | SinkError::UnknownDatabase(_))) => {
                result["error"] = Value::from(error.to_string());
                results.push(result);
                break;
            }
            Err(error) => return Err(error),
        }
        results.push(result);
    }
    Ok(results)
}

fn access(statement: &Statement) -> Access {
    match statement {
        Statement::ShowDatabases => Access::ListDatabases,
        Statement::CreateDatabase(name) => Access::CreateDatabase { database: name.clone() },
        Statement::DropDatabase(name) => Access::DropDatabase { database: name.clone() },
    }
}

fn one(sink: &dyn Sink, statement: &Statement) -> Result<Option<Value>, SinkError> {
    match statement {
        Statement::ShowDatabases => {
            let names: Vec<_> = sink.databases()?.into_iter().map(|name| json!([name])).collect();
            // Loaders read the first series without asking whether there is one: it is there also when it is empty.
            Ok(Some(json!([{ "name": "databases", "columns": ["name"], "values": names }])))
        }
        Statement::CreateDatabase(name) => sink.create_database(name).map(|()| None),
        Statement::DropDatabase(name) => sink.drop_database(name).map(|()| None),
    }
}
