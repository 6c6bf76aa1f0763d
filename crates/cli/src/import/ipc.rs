//! Arrow: an IPC stream, as `--format arrow` writes one; columns come with their types.
//!
//! It is decoded piece by piece, so that a length which is a lie takes no more memory than there are bytes.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::buffer::Buffer;
use counterfoil::arrow::datatypes::SchemaRef;
use counterfoil::arrow::ipc::reader::StreamDecoder;
use counterfoil::{ColumnInfo, Error, sql_type};

use super::Batches;
use super::source::Source;
use super::text::find;
use crate::failure::input;

const PIECE_BYTES: usize = 1 << 20;
/// With which the other form of such files begins, whose parts are found from its end.
const FILE_MARK: &[u8] = b"ARROW1";

/// A stream that is decoded as it is read.
struct Stream {
    reader: Box<dyn Read + Send>,
    decoder: StreamDecoder,
    /// What was read and not decoded yet.
    left: Buffer,
    is_first: bool,
}

impl Stream {
    fn open(source: &Source) -> Result<Self, Error> {
        let (reader, decoder) = (source.reader()?, StreamDecoder::new());
        Ok(Self { reader, decoder, left: Buffer::from(Vec::<u8>::new()), is_first: true })
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
            let decoded = catch_unwind(AssertUnwindSafe(|| decoder.decode(left)));
            let decoded = decoded.map_err(|_| input("this is no Arrow stream that can be read"))?;
            if let Some(batch) = decoded.map_err(|error| input(format!("this is no Arrow stream: {error}")))? {
                return Ok(Some(batch));
            }
        }
    }

    /// Reads a piece; whether there was one.
    fn read(&mut self) -> Result<bool, Error> {
        let mut piece = Vec::new();
        let read = self.reader.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
        read.map_err(|error| input(format!("the Arrow stream cannot be read on: {error}")))?;
        if std::mem::take(&mut self.is_first) && piece.starts_with(FILE_MARK) {
            return Err(input("an Arrow file, whose parts are found from its end: write it as an IPC stream"));
        }
        self.left = Buffer::from(piece);
        Ok(!self.left.is_empty())
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
