//! Which part answers which request.

use std::convert::Infallible;
use std::sync::Arc;

use counterfoil_proof::Owner;
use hyper::body::Incoming;
use hyper::{Method, Request};
use percent_encoding::percent_decode_str;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::answering::{Answering, Asked};
use crate::body;
use crate::options::Allowed;
use crate::origins;
use crate::reply::{self, Problem, Reply};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) answering: Answering,
    pub(crate) allowed: Allowed,
    pub(crate) answers: Arc<Semaphore>,
    pub(crate) updates: Arc<Semaphore>,
    /// Memory for replies.
    pub(crate) room: Arc<Semaphore>,
}

/// Bytes of a place in the memory for replies.
pub(crate) const ROOM_BYTES: usize = 1 << 10;

/// The last parts of a path: OWNER, TABLE, what. A base in front of them is the front server's affair.
struct Path {
    asked: Asked,
    what: What,
}

enum What {
    Manifest,
    Head,
    State,
    Summaries(u64),
    Answer,
    Update,
}

impl Path {
    fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let (owner, name, what) = match parts[..] {
            [owner, name, "manifest"] => (owner, name, What::Manifest),
            [owner, name, "head"] => (owner, name, What::Head),
            [owner, name, "state"] => (owner, name, What::State),
            [owner, name, "summaries", file] => (owner, name, What::Summaries(number(file)?)),
            [owner, name, "answer"] => (owner, name, What::Answer),
            [owner, name, "update"] => (owner, name, What::Update),
            _ => return None,
        };
        let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
        Some(Self { asked: Asked { owner: owner.parse::<Owner>().ok()?, name }, what })
    }

    fn method(&self) -> &'static str {
        if matches!(self.what, What::Answer | What::Update) { "POST" } else { "GET" }
    }

    /// Whether pages of other origins may use it.
    fn is_open(&self) -> bool {
        !matches!(self.what, What::Update)
    }
}

/// A number as we write it: no sign, no zeros in front.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

pub(crate) async fn answer(shared: Arc<Shared>, mut request: Request<Incoming>) -> Result<Reply, Infallible> {
    let path = Path::of(request.uri().path());
    // That there is nothing here is for every page to see, too: readers look above the tables first.
    let is_open = path.as_ref().is_none_or(Path::is_open);
    if let (&Method::OPTIONS, true, Some(path)) = (request.method(), is_open, &path) {
        return Ok(origins::preflight(path.method()));
    }
    let mut reply = match route(&shared, path, &mut request).await {
        Ok((bytes, room)) => reply::bytes(bytes, room),
        Err(problem) => {
            body::drain(request.body_mut()).await;
            problem.reply()
        }
    };
    if is_open {
        origins::open(&mut reply);
    }
    Ok(reply)
}

/// A reply's bytes, and its part of the memory for replies.
type Done = (Vec<u8>, OwnedSemaphorePermit);

async fn route(shared: &Arc<Shared>, path: Option<Path>, request: &mut Request<Incoming>) -> Result<Done, Problem> {
    if request.uri().path() == "/health" {
        let bytes = b"ok\n".to_vec();
        return room(shared, &bytes).await.map(|room| (bytes, room));
    }
    let path = path.ok_or(Problem::NotFound("there is nothing here by this name"))?;
    if request.method().as_str() != path.method() {
        return Err(Problem::Method(path.method()));
    }
    let limits = &shared.answering.limits;
    let asked = path.asked;
    match path.what {
        What::Manifest => work(shared, move |shared| shared.answering.manifest(&asked)).await,
        What::Head => work(shared, move |shared| shared.answering.head(&asked)).await,
        What::State => work(shared, move |shared| shared.answering.state(&asked)).await,
        What::Summaries(file) => work(shared, move |shared| shared.answering.summaries(&asked, file)).await,
        What::Answer => {
            let place = place(shared, &shared.answers).await?;
            let question = body::whole(request, limits.question_bytes_max, limits).await?;
            work_in(shared, place, move |shared| shared.answering.answer(&asked, &question)).await
        }
        What::Update => {
            let place = place(shared, &shared.updates).await?;
            let update = body::whole(request, limits.update_bytes_max, limits).await?;
            work_in(shared, place, move |shared| shared.answering.take(&asked, &update, &shared.allowed)).await
        }
    }
}

async fn place(shared: &Shared, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    let place = timeout(shared.answering.limits.queue_wait, places.clone().acquire_owned()).await;
    place.map_err(|_| Problem::Busy)?.map_err(|_| Problem::Busy)
}

async fn work(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Result<Done, Problem> {
    let place = place(shared, &shared.answers).await?;
    work_in(shared, place, work).await
}

/// Does what may block on a thread of its own. One that dies of a damaged store takes nobody along.
async fn work_in(
    shared: &Arc<Shared>,
    place: OwnedSemaphorePermit,
    work: impl FnOnce(&Shared) -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Result<Done, Problem> {
    let shared_there = shared.clone();
    let bytes = tokio::task::spawn_blocking(move || work(&shared_there)).await.unwrap_or(Err(Problem::Died))?;
    // The place is free when the reply has its memory, so that few of them wait for it.
    let room = room(shared, &bytes).await;
    drop(place);
    Ok((bytes, room?))
}

async fn room(shared: &Shared, bytes: &[u8]) -> Result<OwnedSemaphorePermit, Problem> {
    let places = u32::try_from(bytes.len() / ROOM_BYTES + 1).map_err(|_| Problem::Busy)?;
    let room = timeout(shared.answering.limits.queue_wait, shared.room.clone().acquire_many_owned(places)).await;
    room.map_err(|_| Problem::Busy)?.map_err(|_| Problem::Busy)
}
