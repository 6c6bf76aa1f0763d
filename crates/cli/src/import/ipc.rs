//! Arrow: an IPC stream, as `--format arrow` writes one; columns come with their types.
//!
//! ```text
//! message   ff ff ff ff | bytes of its head u32, nought at the end | head (flatbuffer), which says how long its body is | body
//! ```
//! Heads are read here, bodies by the library, piece by piece: a length that is a lie takes no more memory than there are bytes. What is
//! packed says itself how long it becomes, and the library makes room for that before it looks: it is refused.

use std::cell::Cell;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::buffer::Buffer;
use counterfoil::arrow::datatypes::SchemaRef;
use counterfoil::arrow::ipc::reader::StreamDecoder;
use counterfoil::arrow::ipc::root_as_message;
use counterfoil::{ColumnInfo, Error, sql_type};

use super::Batches;
use super::source::Source;
use super::text::find;
use crate::failure::input;

const PIECE_BYTES: u64 = 1 << 20;
/// With which the other form of such files begins, whose parts are found from its end.
const FILE_MARK: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];

/// A stream that is decoded as it is read.
struct Stream {
    reader: Box<dyn Read + Send>,
    decoder: StreamDecoder,
    /// What was read and not decoded yet.
    left: Buffer,
    /// Bytes that are left of the body that is read.
    body: u64,
}

impl Stream {
    fn open(source: &Source) -> Result<Self, Error> {
        let (reader, decoder) = (source.reader()?, StreamDecoder::new());
        Ok(Self { reader, decoder, left: Buffer::from(Vec::<u8>::new()), body: 0 })
    }

    /// The columns: what was read on the way to them is of the first rows.
    fn schema(&mut self) -> Result<(SchemaRef, Option<RecordBatch>), Error> {
        let first = self.next_batch()?;
        let schema = self.decoder.schema().ok_or_else(|| input("this is no Arrow stream: it names no columns"))?;
        Ok((schema, first))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if self.left.is_empty() && !self.read()? {
                let ended = self.decoder.finish();
                return ended.map(|()| None).map_err(|error| input(format!("the Arrow stream breaks off: {error}")));
            }
            let (decoder, left) = (&mut self.decoder, &mut self.left);
            // The library says that it checks what it is given; what it has missed is an error here, too.
            let decoded = quietly(|| decoder.decode(left));
            let decoded = decoded.map_err(|_| input("this is no Arrow stream that can be read"))?;
            if let Some(batch) = decoded.map_err(|error| input(format!("this is no Arrow stream: {error}")))? {
                return Ok(Some(batch));
            }
        }
    }

    /// Reads a piece of a body, or the next head; whether there was one.
    fn read(&mut self) -> Result<bool, Error> {
        let piece = match self.body {
            0 => self.head()?,
            left => {
                let piece = self.bytes(left.min(PIECE_BYTES))?;
                self.body -= piece.len() as u64;
                piece
            }
        };
        self.left = Buffer::from(piece);
        Ok(!self.left.is_empty())
    }

    fn bytes(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(most).read_to_end(&mut bytes);
        read.map_err(|error| input(format!("the Arrow stream cannot be read on: {error}")))?;
        Ok(bytes)
    }

    /// The head of the next message, with what is before it; nothing at the end.
    fn head(&mut self) -> Result<Vec<u8>, Error> {
        let mut before = self.bytes(8)?;
        if FILE_MARK.starts_with(&before[..before.len().min(FILE_MARK.len())]) && !before.is_empty() {
            return Err(input("an Arrow file, whose parts are found from its end: write it as an IPC stream"));
        }
        let Some((mark, length)) = before.split_first_chunk::<4>() else { return Ok(before) };
        let Ok(length) = <[u8; 4]>::try_from(length) else { return Ok(before) };
        if *mark != CONTINUATION {
            return Err(input("this is no Arrow stream: it does not begin as one"));
        }
        let head = self.bytes(u64::from(u32::from_le_bytes(length)))?;
        // One that is cut, or none at the end of all, is for the library to tell.
        if head.len() as u64 == u64::from(u32::from_le_bytes(length)) && !head.is_empty() {
            self.body = body_of(&head)?;
        }
        before.extend(head);
        Ok(before)
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic of what it is given, without a word of that on standard error: whoever calls says what it is.
fn quietly<T>(body: impl FnOnce() -> T) -> std::thread::Result<T> {
    static SAYS_LESS: Once = Once::new();
    SAYS_LESS.call_once(|| {
        let says = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                says(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(body));
    IS_QUIET.set(false);
    done
}

/// How long the body of a message is, of a head that is one.
fn body_of(head: &[u8]) -> Result<u64, Error> {
    let message = root_as_message(head).map_err(|error| input(format!("this is no Arrow stream: {error}")))?;
    let of_dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
    let rows = message.header_as_record_batch().or(of_dictionary);
    if rows.is_some_and(|rows| rows.compression().is_some()) {
        return Err(input("an Arrow stream that is packed: write it without compression, or as Parquet"));
    }
    let bytes = u64::try_from(message.bodyLength());
    let bytes = bytes.map_err(|_| input("this is no Arrow stream: a body of less than no bytes"))?;
    // A column of a type that takes no bytes has as many rows as it says.
    let lengths = rows.iter().flat_map(|rows| rows.nodes()).flatten().map(|node| node.length());
    let most = lengths.chain(rows.map(|rows| rows.length())).max().unwrap_or(0);
    match u64::try_from(most).is_ok_and(|most| most <= bytes.saturating_mul(8)) {
        true => Ok(bytes),
        false => Err(input("this is no Arrow stream: it has more rows than bits")),
    }
}

/// Names and SQL types of the columns.
pub fn columns(source: &Source) -> Result<Vec<(String, String)>, Error> {
    let (schema, _) = Stream::open(source)?.schema().map_err(|error| error.at(source.place()))?;
    let column = |field: &counterfoil::arrow::datatypes::FieldRef| {
        let kind = sql_type(field.data_type());
        let kind = kind.map_err(|error| error.at(format!("{}, column {}", source.place(), field.name())))?;
        Ok((field.name().to_lowercase(), kind))
    };
    schema.fields().iter().map(column).collect()
}

/// The rows, for a table with these columns.
pub fn read(source: &Source, columns: &[ColumnInfo]) -> Result<(Vec<String>, Batches), Error> {
    let mut stream = Stream::open(source)?;
    let (schema, first) = stream.schema()?;
    let names = schema.fields().iter().map(|field| find(columns, field.name()).map(|column| column.name.clone()));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let rest = std::iter::from_fn(move || stream.next_batch().transpose());
    Ok((names, Box::new(first.map(Ok).into_iter().chain(rest))))
}
