//! Files and folders over one connection.

use std::ops::Range;

use counterfoil_disperse::{FILE_BYTES_MAX, Failure};
use futures::{StreamExt as _, TryStreamExt as _};
use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};

use super::session::{Session, if_there};
use crate::objects::NAMES_MAX;
use crate::pace::Pace;

/// Bytes that are asked for, or sent, at once: every server takes so many.
const PIECE_BYTES: usize = 32 << 10;
/// Pieces on their way.
const PIECES: usize = 32;

/// Whether a folder is there, in which tables lie. A share that the server has not mounted must not look like tables without rows.
pub(super) async fn finds(session: &Session, pace: &Pace, path: &str) -> Result<(), Failure> {
    match session.asks(pace, async { if_there(session.raw.stat(path).await) }).await? {
        Some(found) if found.attrs.file_type().is_dir() => Ok(()),
        _ => Err(Failure::Refused(format!("there is no folder {path} at the server: make it"))),
    }
}

/// Names in a folder; none: it is not there.
pub(super) async fn names(session: &Session, pace: &Pace, path: &str) -> Result<Option<Vec<String>>, Failure> {
    let opened = session.asks(pace, async { if_there(session.raw.opendir(path).await) }).await?;
    let Some(opened) = opened else { return Ok(None) };
    let mut names = Vec::new();
    while let Some(page) = session.asks(pace, unless_ended(session.raw.readdir(opened.handle.as_str()))).await? {
        // A page without names says nothing, for ever if it likes.
        if page.files.is_empty() || names.len() + page.files.len() > NAMES_MAX {
            return Err(Failure::Malformed(format!("a listing without end, or of more than {NAMES_MAX} files")));
        }
        let page = page.files.into_iter().map(|file| file.filename);
        // A name that leads elsewhere is none.
        names.extend(page.filter(|name| !name.contains('/') && name != "." && name != ".." && !name.is_empty()));
    }
    session.asks(pace, session.raw.close(opened.handle)).await?;
    Ok(Some(names))
}

/// The end of a file, or of a folder, is no error.
async fn unless_ended<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<Option<T>, Error> {
    match asked.await {
        Ok(told) => Ok(Some(told)),
        Err(Error::Status(status)) if status.status_code == StatusCode::Eof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A part of a file, or what there is of it; none: it is not there.
pub(super) async fn read(
    session: &Session,
    pace: &Pace,
    path: &str,
    range: Range<u64>,
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(found) = session.asks(pace, async { if_there(session.raw.lstat(path).await) }).await? else {
        return Ok(None);
    };
    // A pipe would never end, and never begin.
    let bytes = found.attrs.size.filter(|bytes| *bytes <= FILE_BYTES_MAX && found.attrs.file_type().is_file());
    let bytes = bytes.ok_or_else(|| Failure::Malformed("no file, or one of more bytes than any of ours has".into()))?;
    let opened =
        session.asks(pace, async { if_there(session.raw.open(path, OpenFlags::READ, FileAttributes::empty()).await) });
    let Some(opened) = opened.await? else { return Ok(None) };
    let end = range.end.min(bytes);
    let begins = (range.start..end).step_by(PIECE_BYTES);
    let pieces = begins.map(|begin| piece(session, pace, &opened.handle, begin..end.min(begin + PIECE_BYTES as u64)));
    // Memory is taken for what has come: the server says what it likes of a length. It may shrink meanwhile: then it is not what was
    // written.
    let mut pieces = futures::stream::iter(pieces).buffered(PIECES);
    let mut file = Vec::new();
    while let Some(piece) = pieces.try_next().await? {
        file.extend_from_slice(&piece);
    }
    drop(pieces);
    session.asks(pace, session.raw.close(opened.handle)).await?;
    Ok(Some(file))
}

/// A piece of a file, or what there is of it.
async fn piece(session: &Session, pace: &Pace, handle: &str, range: Range<u64>) -> Result<Vec<u8>, Failure> {
    let length = (range.end - range.start) as usize;
    let mut piece = Vec::with_capacity(length);
    while piece.len() < length {
        let wanted = length - piece.len();
        let asked = session.raw.read(handle, range.start + piece.len() as u64, wanted as u32);
        let Some(come) = session.asks(pace, unless_ended(asked)).await? else { break };
        if come.data.is_empty() || come.data.len() > wanted {
            return Err(Failure::Malformed("other bytes of a file than it was asked for".into()));
        }
        pace.moved(come.data.len());
        piece.extend_from_slice(&come.data);
    }
    Ok(piece)
}

/// Writes a file, and has it on the server's disk; false: there is no such folder.
pub(super) async fn write(session: &Session, pace: &Pace, path: &str, bytes: &[u8]) -> Result<bool, Failure> {
    let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
    let opened = session.asks(pace, async { if_there(session.raw.open(path, flags, FileAttributes::empty()).await) });
    let Some(opened) = opened.await? else { return Ok(false) };
    let handle = opened.handle.as_str();
    let pieces = bytes.chunks(PIECE_BYTES).enumerate().map(|(at, piece)| async move {
        session.asks(pace, session.raw.write(handle, (at * PIECE_BYTES) as u64, piece.to_vec())).await?;
        pace.moved(piece.len());
        Ok(())
    });
    futures::stream::iter(pieces).buffered(PIECES).try_collect::<()>().await?;
    session.asks(pace, session.sync(handle)).await?;
    session.asks(pace, session.raw.close(handle)).await?;
    Ok(true)
}
