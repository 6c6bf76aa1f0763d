//! A file of fragments: Parquet, of which each column can be read and checked without the others.
//!
//! ```text
//! MAC-BYTES-FOOTER.parquet     MAC: the first 16 bytes of HMAC-SHA256(key, 00 | BYTES | footer); BYTES of the file and FOOTER of its
//!                              footer are u32, big-endian
//! PAR1 | chunk of each column | footer
//! footer                       Parquet's, where "macs" is of each chunk the first 16 bytes of HMAC-SHA256(key, 01 | chunk)
//! ```
//! Names and MACs are hexadecimal.
//! 1. The name says what is in the file: the footer's MAC is the name's, and the footer has those of the chunks. Whoever asks for sums
//!    fetches the footer and the shares, and none of the cells beside them.
//! 2. Nothing is parsed that is not as it was written here: the library that reads Parquet sees our own footers and chunks alone.
//! 3. Whoever may read the files can query them with what they like (Spark, Trino, DuckDB): they see what the store sees.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use bytes::{Buf as _, Bytes};
use hmac::Mac as _;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, Length};

use crate::fragments::{Data, Fragments, Name, Strings};
use crate::keys::Secret;
use crate::provider::Failure;

/// Rows of a file at most.
pub(crate) const FILE_ROWS: usize = 1 << 16;
/// Bytes of a file that is read at most, whoever wrote it.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// A file of so few bytes is read whole: another question would take longer than they do.
const SMALL_BYTES: u64 = 256 << 10;
/// Bytes between chunks that are read with them rather than asked around.
const GAP_BYTES: u64 = 128 << 10;
const PLACE: &str = "place";
const MACS: &str = "macs";
const MAC_BYTES: usize = 16;
const MAGIC: &[u8] = b"PAR1";
/// Behind the metadata in a footer: its length, and the magic.
const FOOTER_END_BYTES: u64 = 8;

type Mac = [u8; MAC_BYTES];
/// Why a file cannot be made, or is none.
type Wrong = Box<dyn std::error::Error>;

/// The name of a file of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileName {
    text: String,
    bytes: u64,
    footer: u64,
}

impl FileName {
    fn new(mac: Mac, bytes: u32, footer: u32) -> Self {
        let text = format!("{}-{bytes:08x}-{footer:08x}.parquet", hexadecimal(&mac));
        Self { text, bytes: bytes.into(), footer: footer.into() }
    }

    /// A name as it stands in a listing; none: it is none of ours.
    pub fn parse(text: String) -> Option<Self> {
        let mut parts = text.strip_suffix(".parquet")?.split('-');
        let (mac, bytes, footer) = (parts.next()?, parts.next()?, parts.next()?);
        let is_one = parts.next().is_none()
            && [(mac, 2 * MAC_BYTES), (bytes, 8), (footer, 8)].iter().all(|(part, length)| {
                part.len() == *length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            });
        let number = |part| u64::from_str_radix(part, 16).ok();
        let (bytes, footer) = (number(bytes)?, number(footer)?);
        is_one.then_some(Self { text, bytes, footer })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the file is read whole, whatever is wanted of it.
    pub fn is_small(&self) -> bool {
        self.bytes <= SMALL_BYTES
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a part of a file is, so that none is taken for another.
#[derive(Clone, Copy)]
enum Part {
    /// Of a file of so many bytes: without them one footer would be that of as many files as somebody likes.
    Footer(u32),
    Chunk,
}

fn mac(key: &Secret, part: Part, bytes: &[u8]) -> Mac {
    let mut mac = key.mac();
    match part {
        Part::Footer(bytes) => mac.update(&[&[0][..], &bytes.to_be_bytes()].concat()),
        Part::Chunk => mac.update(&[1]),
    }
    mac.update(bytes);
    let whole = mac.finalize().into_bytes();
    std::array::from_fn(|at| whole[at])
}

/// A file of rows, and its name.
///
/// # Errors
/// They fit into no file.
pub(crate) fn encode(rows: &Fragments, key: &Secret) -> Result<(FileName, Vec<u8>), Wrong> {
    let mut columns: Vec<(&str, ArrayRef)> = vec![(PLACE, Arc::new(UInt64Array::from(rows.places.clone())))];
    for (name, data) in &rows.columns {
        let array: ArrayRef = match data {
            Data::Shares(shares) => Arc::new(UInt64Array::from(shares.clone())),
            Data::Strings(strings) => Arc::new(BinaryArray::from_iter_values(strings.iter())),
        };
        columns.push((name.as_str(), array));
    }
    let batch = RecordBatch::try_from_iter(columns)?;
    // Fragments look like noise: neither dictionaries nor a search for repetitions find anything in most of them.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)?;
    writer.write(&batch)?;
    writer.flush()?;
    writer.sync()?;
    let chunks = writer.flushed_row_groups().iter().flat_map(|group| group.columns());
    let macs: Vec<Mac> = chunks
        .map(|chunk| {
            let (start, length) = chunk.byte_range();
            mac(key, Part::Chunk, &writer.inner()[start as usize..(start + length) as usize])
        })
        .collect();
    let footer = writer.bytes_written();
    writer.append_key_value_metadata(KeyValue::new(MACS.to_owned(), hexadecimal(macs.as_flattened())));
    let file = writer.into_inner()?;
    let (bytes, footer_bytes) = (u32::try_from(file.len())?, u32::try_from(file.len() - footer)?);
    let name = FileName::new(mac(key, Part::Footer(bytes), &file[footer..]), bytes, footer_bytes);
    Ok((name, file))
}

/// The rows of a file, with these of their columns (all, unless some are named); none: it has gone meanwhile. `get` fetches a range of
/// its bytes.
///
/// # Errors
/// [`Failure`]: that of `get`, or the file is not as it was written.
pub(crate) fn read(
    name: &FileName,
    key: &Secret,
    columns: Option<&BTreeSet<&str>>,
    get: &dyn Fn(Range<u64>) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<Option<Fragments>, Failure> {
    let other = || Failure::Malformed(format!("file {} is not as it was written", name.as_str()));
    let told = |wrong: Wrong| Failure::Malformed(format!("file {}: {wrong}", name.as_str()));
    let footer_at = name.bytes.checked_sub(name.footer).filter(|_| name.bytes <= FILE_BYTES_MAX).ok_or_else(other)?;
    let mut there = There { bytes: name.bytes, parts: Vec::new() };
    let is_whole = columns.is_none() || name.is_small();
    let fetch = |there: &mut There, range: Range<u64>| -> Result<bool, Failure> {
        let got = get(range.clone()).map_err(|failure| match failure {
            Failure::Malformed(what) => told(what.into()),
            other => other,
        });
        let Some(bytes) = got? else { return Ok(false) };
        there.add(range, bytes.into()).ok_or_else(other)?;
        Ok(true)
    };
    if !fetch(&mut there, if is_whole { 0..name.bytes } else { footer_at..name.bytes })? {
        return Ok(None);
    }
    let footer = there.part(footer_at..name.bytes).ok_or_else(other)?;
    let bytes = name.bytes as u32;
    let is_ours = FileName::new(mac(key, Part::Footer(bytes), &footer), bytes, name.footer as u32) == *name;
    let begins = there.part(0..MAGIC.len() as u64).is_none_or(|magic| magic == MAGIC);
    if !is_ours || !begins {
        return Err(other());
    }
    let footer = Footer::parse(&footer).map_err(told)?;
    let chunks: Vec<(Range<u64>, Mac)> = footer.chunks(columns).collect();
    // What is parsed is then in one part, and that is the one that was looked at.
    if chunks.iter().any(|(range, _)| range.end > footer_at) {
        return Err(other());
    }
    for range in together(chunks.iter().map(|(range, _)| range.clone())) {
        if there.part(range.clone()).is_none() && !fetch(&mut there, range)? {
            return Ok(None);
        }
    }
    let is_ours = |(range, own): &(Range<u64>, Mac)| {
        there.part(range.clone()).is_some_and(|chunk| mac(key, Part::Chunk, &chunk) == *own)
    };
    if !chunks.iter().all(is_ours) {
        return Err(other());
    }
    footer.decode(there, columns).map(Some).map_err(told)
}

/// Ranges, ascending, that are read at once: such as lie close to each other.
fn together(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end + GAP_BYTES => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

/// A footer as it was written.
struct Footer {
    metadata: Arc<ParquetMetaData>,
    macs: Vec<Mac>,
}

impl Footer {
    fn parse(footer: &[u8]) -> Result<Self, Wrong> {
        let end = footer.len().checked_sub(FOOTER_END_BYTES as usize).ok_or("no footer")?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer[..end])?;
        let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let macs = pairs.filter(|pair| pair.key == MACS).find_map(|pair| pair.value.as_deref()).ok_or("no MACs")?;
        let parse = |at: usize| macs.get(2 * at..2 * at + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes: Vec<u8> = (0..macs.len() / 2).map(parse).collect::<Option<_>>().ok_or("no MACs")?;
        let (macs, _) = bytes.as_chunks::<MAC_BYTES>();
        let chunks = metadata.row_groups().iter().map(|group| group.columns().len()).sum::<usize>();
        match macs.len() == chunks {
            true => Ok(Self { macs: macs.to_vec(), metadata: Arc::new(metadata) }),
            false => Err("a MAC is missing".into()),
        }
    }

    /// Where columns lie, and what their MACs are: places, and those that are wanted.
    fn chunks(&self, columns: Option<&BTreeSet<&str>>) -> impl Iterator<Item = (Range<u64>, Mac)> {
        let chunks = self.metadata.row_groups().iter().flat_map(|group| group.columns());
        chunks.zip(&self.macs).filter_map(move |(chunk, mac)| {
            let name = chunk.column_descr().name();
            let (start, length) = chunk.byte_range();
            let is_wanted = columns.is_none_or(|columns| name == PLACE || columns.contains(name));
            is_wanted.then_some((start..start + length, *mac))
        })
    }

    fn decode(&self, there: There, columns: Option<&BTreeSet<&str>>) -> Result<Fragments, Wrong> {
        let metadata = ArrowReaderMetadata::try_new(self.metadata.clone(), ArrowReaderOptions::new())?;
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(there, metadata).with_batch_size(FILE_ROWS);
        if let Some(columns) = columns {
            let wanted = std::iter::once(PLACE).chain(columns.iter().copied());
            let mask = ProjectionMask::columns(reader.parquet_schema(), wanted);
            reader = reader.with_projection(mask);
        }
        let mut rows = Fragments::default();
        for batch in reader.build()? {
            add(&mut rows, &batch?)?;
        }
        if rows.is_even() { Ok(rows) } else { Err("columns of different lengths".into()) }
    }
}

fn add(rows: &mut Fragments, batch: &RecordBatch) -> Result<(), Wrong> {
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let numbers = array.as_any().downcast_ref::<UInt64Array>().map(|numbers| numbers.values().to_vec());
        if field.name() == PLACE {
            rows.places.extend(numbers.ok_or("places that are no numbers")?);
            continue;
        }
        let strings = array.as_any().downcast_ref::<BinaryArray>().map(|array| {
            let mut strings = Strings::default();
            array.iter().for_each(|string| strings.push(string.unwrap_or_default()));
            strings
        });
        let name = Name::parse(field.name()).ok_or("a column of another name")?;
        let data = numbers.map(Data::Shares).or(strings.map(Data::Strings)).ok_or("a column of another type")?;
        rows.append(name, data).ok_or("a column of two types")?;
    }
    Ok(())
}

/// What has been fetched of a file.
struct There {
    bytes: u64,
    parts: Vec<(u64, Bytes)>,
}

impl There {
    /// Adds a part; none: there are not as many bytes as were asked for.
    fn add(&mut self, range: Range<u64>, bytes: Bytes) -> Option<()> {
        let wanted = range.end.checked_sub(range.start)?;
        // Some servers of files know no ranges, and give all of it.
        let is_all = bytes.len() as u64 == self.bytes;
        let (start, bytes) = if is_all { (0, bytes) } else { (range.start, bytes) };
        (is_all || bytes.len() as u64 == wanted).then(|| self.parts.push((start, bytes)))
    }

    /// What is there from an offset on.
    fn from(&self, start: u64) -> Option<Bytes> {
        let own = self.parts.iter().find(|(first, bytes)| (*first..*first + bytes.len() as u64).contains(&start))?;
        Some(own.1.slice((start - own.0) as usize..))
    }

    fn part(&self, range: Range<u64>) -> Option<Bytes> {
        let length = range.end.checked_sub(range.start)? as usize;
        self.from(range.start).filter(|bytes| bytes.len() >= length).map(|bytes| bytes.slice(..length))
    }
}

fn not_there() -> ParquetError {
    ParquetError::EOF("a part of a file that was not fetched".into())
}

impl Length for There {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for There {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.from(start).map(Bytes::reader).ok_or_else(not_there)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.part(start..start.saturating_add(length as u64)).ok_or_else(not_there)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::ops::Range;

    use proptest::prelude::*;

    use super::{FILE_ROWS, FileName, encode, read};
    use crate::fragments::{Data, Fragments, Name, Strings};
    use crate::keys::Secret;
    use crate::provider::Failure;

    const SHARES: &str = "c0000000000000002";

    fn rows(count: u64) -> Fragments {
        let (mut cells, mut others) = (Strings::default(), Strings::default());
        for row in 0..count {
            cells.push_with(|cell| {
                cell.extend((0..48).map(|at| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (at % 57)) as u8))
            });
            others.push(&row.to_le_bytes());
        }
        let name = |number: u64| Name::parse(&format!("c{number:016x}")).expect("a name");
        let columns = vec![
            (name(1), Data::Strings(cells)),
            (name(2), Data::Shares((0..count).map(|row| row * row).collect())),
            (name(3), Data::Strings(others)),
        ];
        Fragments { places: (0..count).map(|row| row * 3).collect(), columns }
    }

    fn part(file: &[u8], range: &Range<u64>) -> Vec<u8> {
        file[(range.start as usize).min(file.len())..(range.end as usize).min(file.len())].to_vec()
    }

    fn asked(name: &FileName, file: &[u8], columns: Option<&BTreeSet<&str>>) -> Result<Option<Fragments>, Failure> {
        read(name, &Secret::new([5; 32]), columns, &|range| Ok(Some(part(file, &range))))
    }

    #[test]
    fn what_is_not_wanted_is_not_fetched() {
        let rows = rows(FILE_ROWS as u64);
        let (name, file) = encode(&rows, &Secret::new([5; 32])).expect("a file");
        assert_eq!(asked(&name, &file, None), Ok(Some(rows.clone())));
        let fetched = RefCell::new(Vec::new());
        let get = |range: Range<u64>| {
            fetched.borrow_mut().push(range.clone());
            Ok(Some(part(&file, &range)))
        };
        let wanted = BTreeSet::from([SHARES]);
        let found = read(&name, &Secret::new([5; 32]), Some(&wanted), &get).expect("read").expect("rows");
        assert_eq!((&found.places, &found.columns[..]), (&rows.places, &rows.columns[1..2]));
        let bytes: u64 = fetched.borrow().iter().map(|range| range.end - range.start).sum();
        let all = file.len() as u64;
        assert!(bytes < 20 * FILE_ROWS as u64 && 3 * bytes < all && fetched.borrow().len() == 3, "{bytes} of {all}");
        // A server that knows no ranges.
        let whole = read(&name, &Secret::new([5; 32]), Some(&wanted), &|_| Ok(Some(file.clone())));
        assert_eq!(whole, Ok(Some(found)));
        assert_eq!(read(&name, &Secret::new([5; 32]), Some(&wanted), &|_| Ok(None)), Ok(None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_changed_file_is_refused_or_says_the_same(at in any::<prop::sample::Index>(), bit in 0_u8..8, end in 0_usize..4096) {
            thread_local!(static FILE: (FileName, Vec<u8>) = encode(&rows(20_000), &Secret::new([5; 32])).expect("a file"));
            let (name, whole) = FILE.with(Clone::clone);
            let wanted = BTreeSet::from([SHARES]);
            let right = asked(&name, &whole, Some(&wanted)).expect("rows");
            // Half of the time near the end, where the footer is.
            let at = if bit < 4 { at.index(whole.len()) } else { whole.len() - 1 - end };
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let told = asked(&name, &changed, Some(&wanted));
            prop_assert!(told == Ok(right) || matches!(told, Err(Failure::Malformed(_))), "byte {}", at);
            prop_assert!(matches!(asked(&name, &changed, None), Err(Failure::Malformed(_))), "byte {}", at);
            prop_assert!(matches!(asked(&name, &whole[..at], None), Err(Failure::Malformed(_))));
        }

        #[test]
        fn names_are_those_of_our_files_or_none(mac in "[0-9a-f]{32}", bytes in any::<u32>(), footer in any::<u32>()) {
            let text = format!("{mac}-{bytes:08x}-{footer:08x}.parquet");
            let name = FileName::parse(text.clone()).expect("a name");
            prop_assert_eq!(name.as_str(), &text);
            // It says what it likes of lengths.
            prop_assert!(matches!(asked(&name, b"PAR1 and so on", None), Err(Failure::Malformed(_))));
            for wrong in [text.to_uppercase(), text.replace('-', ""), text.replace(".parquet", "-00.parquet"), format!("{text}.part")] {
                prop_assert_eq!(FileName::parse(wrong), None);
            }
        }
    }

    #[test]
    fn a_chunk_is_no_footer_and_not_anothers() {
        let key = Secret::new([5; 32]);
        let (name, file) = encode(&rows(20_000), &key).expect("a file");
        let (other, file_of_other) = encode(&rows(20_001), &key).expect("a file");
        // Footer and chunks of two files of one key.
        let footer_at = (name.bytes - name.footer) as usize;
        let mixed = [&file_of_other[..footer_at], &file[footer_at..]].concat();
        assert!(matches!(asked(&name, &mixed, None), Err(Failure::Malformed(_))));
        assert!(matches!(asked(&other, &file, None), Err(Failure::Malformed(_))));
        // The store sees MACs of chunks: none of them is a name.
        let text = String::from_utf8_lossy(&file[footer_at..]).into_owned();
        let macs = text.find("macs").map(|at| &text[at..]).expect("the MACs");
        let first: String = macs.chars().skip(4).filter(char::is_ascii_hexdigit).take(32).collect();
        let chunk = asked_chunk(&file, footer_at);
        let made = format!("{first}-{:08x}-{:08x}.parquet", chunk.len(), chunk.len());
        let made = FileName::parse(made).expect("a name");
        assert!(
            matches!(asked(&made, &chunk, None), Err(Failure::Malformed(what)) if what.contains("not as it was written"))
        );
    }

    #[test]
    fn a_footer_is_of_one_file() {
        let key = Secret::new([5; 32]);
        let (name, file) = encode(&rows(20_000), &key).expect("a file");
        let (at, holes) = ((name.bytes - name.footer) as usize, 4096);
        let with_a_hole = [&file[..at], &vec![0; holes], &file[at..]].concat();
        let longer =
            name.as_str().replace(&format!("{:08x}", name.bytes), &format!("{:08x}", name.bytes + holes as u64));
        let longer = FileName::parse(longer).expect("a name");
        assert_ne!(longer, name);
        assert!(matches!(asked(&longer, &with_a_hole, None), Err(Failure::Malformed(_))));
        assert!(matches!(asked(&longer, &with_a_hole, Some(&BTreeSet::from([SHARES]))), Err(Failure::Malformed(_))));
    }

    /// The first chunk: from behind the magic to where the second begins, which the shape of `rows` tells.
    fn asked_chunk(file: &[u8], footer_at: usize) -> Vec<u8> {
        let metadata = super::Footer::parse(&file[footer_at..]).expect("a footer");
        let (range, _) = metadata.chunks(None).next().expect("a chunk");
        file[range.start as usize..range.end as usize].to_vec()
    }
}
