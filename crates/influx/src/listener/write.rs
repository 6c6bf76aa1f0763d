//! `/write` and `/api/v2/write`.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use hyper::{HeaderMap, Request};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout};

use crate::batch::Reading;
use crate::gather::{Gathered, Stopped, gather};
use crate::listener::answer::{Answer, Refusal, Version, done};
use crate::listener::body::{self, BodyFault};
use crate::listener::credentials;
use crate::listener::parameters::Parameters;
use crate::listener::queue::NotWritten;
use crate::listener::shared::Shared;
use crate::listener::sink::{Access, Write};
use crate::precision::Precision;
use crate::schema::Schema;

/// What a write says beside its lines.
struct Order {
    database: String,
    reading: Reading,
    gzip: bool,
}

pub(crate) async fn answer(shared: &Arc<Shared>, request: &mut Request<Incoming>, version: Version) -> Answer {
    match write(shared, request, version).await {
        Ok(()) => done(),
        Err(refusal) => {
            body::drain(request.body_mut()).await;
            refusal.answer(version)
        }
    }
}

async fn write(shared: &Arc<Shared>, request: &mut Request<Incoming>, version: Version) -> Result<(), Refusal> {
    let parameters = Parameters::of(request.uri().query().unwrap_or(""));
    let credentials =
        credentials::of(request.headers(), &parameters).map_err(|text| Refusal::Unauthenticated(text.to_owned()))?;
    let order = order(shared, request.headers(), &parameters, version)?;
    let database = order.database.clone();
    let schema = shared
        .ask(move |sink| {
            sink.authorize(&credentials, &Access::Write { database: database.clone() })?;
            sink.schema(&database)
        })
        .await?;
    let begun = Instant::now();
    let place = timeout(shared.limits.queue_wait, shared.writes.clone().acquire_owned()).await;
    let place = place.map_err(|_| Refusal::Busy(shared.limits.retry_after))?.map_err(|_| shared.stopping())?;
    let wait = shared.limits.queue_wait.saturating_sub(begun.elapsed());
    let (sender, pieces) = mpsc::channel(2);
    let task = Task { shared: shared.clone(), order, schema, wait, _place: place };
    let task = tokio::task::spawn_blocking(move || task.run(pieces));
    body::pump(request.body_mut(), sender, &shared.limits).await;
    task.await.map_err(|_| shared.stopping())?
}

fn order(shared: &Shared, headers: &HeaderMap, parameters: &Parameters, version: Version) -> Result<Order, Refusal> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > shared.limits.body_bytes_max as u64) {
        return Err(Refusal::TooLarge(shared.limits.body_bytes_max));
    }
    let gzip = match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
        None | Some(b"" | b"identity") => false,
        Some(b"gzip" | b"x-gzip") => true,
        Some(_) => return Err(Refusal::Encoding),
    };
    let reading = Reading {
        precision: precision(parameters, version)?,
        now: nanoseconds_now(),
        quality_fields: shared.quality_fields.clone(),
    };
    Ok(Order { database: database(parameters, version)?, reading, gzip })
}

/// `db` and `rp`, or `bucket`, which may be `DATABASE/POLICY`. There are no retention policies: a table has one
/// retention. The name that InfluxDB gives to its default policy is taken, any other is refused, because rows of two
/// policies would otherwise land in one table.
fn database(parameters: &Parameters, version: Version) -> Result<String, Refusal> {
    let (name, policy) = match version {
        Version::One => {
            let name = parameters.first("db").unwrap_or("");
            (name, parameters.first("rp").unwrap_or(""))
        }
        Version::Two => {
            let bucket = parameters.first("bucket").unwrap_or("");
            bucket.split_once('/').unwrap_or((bucket, ""))
        }
    };
    if name.is_empty() {
        let parameter = if version == Version::One { "db" } else { "bucket" };
        return Err(Refusal::BadRequest(format!("database is required: name it in the parameter {parameter}")));
    }
    if !matches!(policy, "" | "autogen") {
        let text = format!("retention policy not found: {policy:?}: leave it out, retention belongs to the table");
        return Err(Refusal::BadRequest(text));
    }
    Ok(name.to_owned())
}

fn precision(parameters: &Parameters, version: Version) -> Result<Precision, Refusal> {
    let name = parameters.first("precision").unwrap_or("");
    let (precision, names) = match version {
        _ if name.is_empty() => return Ok(Precision::default()),
        Version::One => (Precision::from_version_1(name), "ns, u, ms, s, m and h"),
        Version::Two => (Precision::from_version_2(name), "ns, us, ms, and s"),
    };
    precision.ok_or_else(|| Refusal::BadRequest(format!("invalid precision; valid precision units are {names}")))
}

/// Now; a clock before 1970 or after 2262 counts as the nearest time that there is.
fn nanoseconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The part of a write that a thread of its own does: unpacking, reading lines, waiting for the sink.
struct Task {
    shared: Arc<Shared>,
    order: Order,
    schema: Arc<dyn Schema>,
    wait: Duration,
    /// Given back when the task ends, also where its client has gone: its memory is in use until then.
    _place: OwnedSemaphorePermit,
}

impl Task {
    fn run(mut self, pieces: mpsc::Receiver<body::Piece>) -> Result<(), Refusal> {
        let text = body::text(pieces, self.order.gzip, self.shared.limits.body_bytes_max);
        let reading = self.order.reading.clone();
        let schema = self.schema.clone();
        let batch_bytes_max = self.shared.limits.batch_bytes_max;
        let mut refused = crate::problem::Rejects::default();
        let gathered = gather(text, &reading, &*schema, batch_bytes_max, |batch| {
            let write = Write { database: self.order.database.clone(), batch };
            let written = Handle::current().block_on(self.shared.queue.write(write, self.wait))?;
            refused.append(written.rejects);
            self.wait = self.shared.limits.queue_wait;
            Ok(())
        });
        let Gathered { lines, mut rejects } = gathered.map_err(|stopped| self.stopped(stopped))?;
        rejects.append(refused);
        if rejects.is_empty() { Ok(()) } else { Err(Refusal::Partial { lines, rejects }) }
    }

    fn stopped(&self, stopped: Stopped<NotWritten>) -> Refusal {
        let limits = &self.shared.limits;
        match stopped {
            Stopped::Taker(NotWritten::Busy) => Refusal::Busy(limits.retry_after),
            Stopped::Taker(NotWritten::Closed) => self.shared.stopping(),
            Stopped::Taker(NotWritten::Sink(error)) => Refusal::Sink(error, limits.retry_after),
            Stopped::Source(error) => self.source(&error),
        }
    }

    fn source(&self, error: &io::Error) -> Refusal {
        match body::fault_of(error) {
            Some(BodyFault::TooLarge) => Refusal::TooLarge(self.shared.limits.body_bytes_max),
            Some(BodyFault::Slow) => Refusal::Slow,
            Some(BodyFault::Aborted) => Refusal::BadRequest("the body ended before its end: send it again".to_owned()),
            None => Refusal::BadRequest("the body is not gzip, or cut short: send it again".to_owned()),
        }
    }
}
