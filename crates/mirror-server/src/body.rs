//! A request's body, no larger and no slower than may be.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::Limits;
use crate::reply::Problem;

/// What a client that was refused may still send before its connection is closed, so that it reads the reply.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads a body whole.
pub(crate) async fn whole(
    request: &mut Request<Incoming>,
    bytes_max: usize,
    limits: &Limits,
) -> Result<Vec<u8>, Problem> {
    let body = request.body_mut();
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Problem::TooLarge(bytes_max));
    }
    let begun = Instant::now();
    let mut whole = Vec::new();
    loop {
        let earned = Duration::from_secs((whole.len() / limits.body_bytes_per_second_min.max(1)) as u64);
        let frame = timeout_at(begun + limits.body_timeout + earned, body.frame()).await.map_err(|_| Problem::Slow)?;
        let Some(frame) = frame else { return Ok(whole) };
        if let Ok(bytes) = frame.map_err(|_| Problem::Aborted)?.into_data() {
            if bytes.len() > bytes_max - whole.len() {
                return Err(Problem::TooLarge(bytes_max));
            }
            whole.extend_from_slice(&bytes);
        }
    }
}

/// Reads on a little, so that a client in the middle of sending sees the reply and not a reset connection.
pub(crate) async fn drain(body: &mut Incoming) {
    let drained = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DRAIN_BYTES_MAX {
                return;
            }
        }
    };
    let _ = timeout(DRAIN_TIMEOUT, drained).await;
}
