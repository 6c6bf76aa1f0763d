//! One line of line protocol, read without copying.
//!
//! ```text
//! MEASUREMENT[,TAG=VALUE]... FIELD=VALUE[,FIELD=VALUE]... [TIME]
//! cpu,host=a,region=eu usage=0.5,cores=4i,note="a \"word\"" 1700000000000000000
//! ```
//!
//! 1. A backslash before a comma, a space or (not in a measurement) an equals sign takes its meaning away; in a string
//!    one before a quote or a backslash does. Every other backslash is itself, also before another one.
//! 2. Only a string may hold a newline.
//! 3. Nothing is allocated for a line but what the parser keeps for the next one.

use crate::limits::{FIELDS_MAX, LINE_BYTES_MAX, NAME_BYTES_MAX, TAG_VALUE_BYTES_MAX, TAGS_MAX};
use crate::problem::{Fault, Problem};
use crate::text::{Escapes, Span, Text};
use crate::value::{self, Value};

/// A parser, which is kept from line to line for its buffers.
#[derive(Debug, Default)]
pub struct Parser {
    tags: Vec<(Span, Span)>,
    fields: Vec<(Span, Stored)>,
}

/// The value of a field, a string as its place in the line.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Plain(Value<'static>),
    String(Span),
}

/// A line that parsed.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    text: &'a str,
    series: Span,
    measurement: Span,
    tags: &'a [(Span, Span)],
    fields: &'a [(Span, Stored)],
    time: Option<i64>,
}

impl<'a> Line<'a> {
    /// The name of the measurement.
    pub fn measurement(&self) -> Text<'a> {
        self.measurement.of(self.text, Escapes::Measurement)
    }

    /// Measurement and tags as they stand in the line: equal bytes are the same series.
    pub fn series(&self) -> &'a str {
        &self.text[self.series.range()]
    }

    /// The tags in the line's order.
    pub fn tags(&self) -> impl ExactSizeIterator<Item = (Text<'a>, Text<'a>)> + use<'a> {
        let text = self.text;
        self.tags.iter().map(move |&(key, value)| (key.of(text, Escapes::Name), value.of(text, Escapes::Name)))
    }

    /// The fields in the line's order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (Text<'a>, Value<'a>)> + use<'a> {
        let text = self.text;
        self.fields.iter().map(move |&(key, value)| {
            let value = match value {
                Stored::Plain(value) => value,
                Stored::String(span) => Value::Text(span.of(text, Escapes::String)),
            };
            (key.of(text, Escapes::Name), value)
        })
    }

    /// The time as it stands there, in the request's precision.
    pub fn time(&self) -> Option<i64> {
        self.time
    }
}

impl Parser {
    /// A parser.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Reads one line, without its newline. Comments and empty lines are not lines: [`crate::Lines`] leaves them out.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Fault> {
        if line.len() > LINE_BYTES_MAX {
            return Err(Fault::at(0, Problem::Limit("bytes of a line", LINE_BYTES_MAX)));
        }
        let text = std::str::from_utf8(line).map_err(|error| Fault::at(error.valid_up_to(), Problem::NotUtf8))?;
        self.tags.clear();
        self.fields.clear();
        let mut scan = Scan { text, bytes: line, at: 0 };
        scan.skip_blanks();
        let start = scan.at;
        let measurement = scan.measurement()?;
        self.tags(&mut scan)?;
        let series = Span::new(start..scan.at, false);
        scan.skip_blanks();
        self.fields(&mut scan)?;
        scan.skip_blanks();
        let time = scan.time()?;
        Ok(Line { text, series, measurement, tags: &self.tags, fields: &self.fields, time })
    }

    fn tags(&mut self, scan: &mut Scan<'_>) -> Result<(), Fault> {
        while scan.take(b',') {
            let start = scan.at;
            if self.tags.len() == TAGS_MAX {
                return Err(Fault::at(start, Problem::Limit("tags of a line", TAGS_MAX)));
            }
            let key = scan.name(NAME_BYTES_MAX, "bytes of a tag's name")?;
            if !scan.take(b'=') {
                return Err(Fault::at(start, Problem::TagWithoutValue));
            }
            let value = scan.name(TAG_VALUE_BYTES_MAX, "bytes of a tag's value")?;
            if scan.peek() == Some(b'=') {
                return Err(Fault::at(scan.at, Problem::EqualsInTag));
            }
            self.tags.push((key, value));
        }
        Ok(())
    }

    fn fields(&mut self, scan: &mut Scan<'_>) -> Result<(), Fault> {
        if scan.peek().is_none() {
            return Err(Fault::at(scan.at, Problem::NoFields));
        }
        loop {
            let start = scan.at;
            if self.fields.len() == FIELDS_MAX {
                return Err(Fault::at(start, Problem::Limit("fields of a line", FIELDS_MAX)));
            }
            let key = scan.name(NAME_BYTES_MAX, "bytes of a field's name")?;
            if !scan.take(b'=') {
                return Err(Fault::at(start, Problem::FieldWithoutValue));
            }
            let value = scan.value()?;
            self.fields.push((key, value));
            if !scan.take(b',') {
                return Ok(());
            }
        }
    }
}

// Kinds of bytes, one bit each: a look into a table is half the work of comparing with each.

/// What ends a measurement, a tag or a value: a comma or a space.
const END: u8 = 1;
/// What ends a name before its value.
const EQUALS: u8 = 2;
const BACKSLASH: u8 = 4;
/// What ends a time: a space or a tab.
const BLANK: u8 = 8;

const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    kinds[b',' as usize] = END;
    kinds[b' ' as usize] = END | BLANK;
    kinds[b'\t' as usize] = BLANK;
    kinds[b'=' as usize] = EQUALS;
    kinds[b'\\' as usize] = BACKSLASH;
    kinds
};

/// A place in a line, and what can be read from there.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Everything before the next byte of a kind that no backslash precedes.
    fn until(&mut self, kind: u8) -> Span {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.pass(kind | BACKSLASH);
            if !self.take(b'\\') {
                return Span::new(start..self.at, escaped);
            }
            escaped = true;
            self.at += usize::from(self.peek().is_some_and(|byte| KINDS[byte as usize] & kind != 0));
        }
    }

    /// Goes on to the next byte of a kind, or the end. Most of the time of reading is spent here.
    fn pass(&mut self, kind: u8) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|&byte| KINDS[byte as usize] & kind != 0).unwrap_or(rest.len());
    }

    fn measurement(&mut self) -> Result<Span, Fault> {
        let span = self.until(END);
        self.checked(span, NAME_BYTES_MAX, "bytes of a measurement's name", Problem::NoMeasurement)
    }

    fn name(&mut self, bytes_max: usize, what: &'static str) -> Result<Span, Fault> {
        let span = self.until(END | EQUALS);
        self.checked(span, bytes_max, what, Problem::EmptyName)
    }

    /// Limits count escapes, so that a name within them is within them wherever it goes. A newline is no part of a
    /// name: it ended the line, unless a string further on holds it.
    fn checked(&self, span: Span, bytes_max: usize, what: &'static str, empty: Problem) -> Result<Span, Fault> {
        let start = span.range().start;
        match span.range().len() {
            0 => Err(Fault::at(start, empty)),
            bytes if bytes > bytes_max => Err(Fault::at(start, Problem::Limit(what, bytes_max))),
            _ => Ok(span),
        }
    }

    fn value(&mut self) -> Result<Stored, Fault> {
        if self.take(b'"') {
            return self.string().map(Stored::String);
        }
        let start = self.at;
        self.pass(END);
        if self.at == start {
            return Err(Fault::at(start, Problem::FieldWithoutValue));
        }
        value::parse(&self.text[start..self.at]).map(Stored::Plain).map_err(|problem| Fault::at(start, problem))
    }

    /// The rest of a string whose opening quote was read.
    fn string(&mut self) -> Result<Span, Fault> {
        let start = self.at;
        let mut escaped = false;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]) {
            self.at += found;
            if self.take(b'"') {
                let span = Span::new(start..self.at - 1, escaped);
                return match self.peek() {
                    None | Some(b',' | b' ') => Ok(span),
                    Some(_) => Err(Fault::at(self.at, Problem::AfterString)),
                };
            }
            escaped = true;
            self.at = (self.at + 2).min(self.bytes.len());
        }
        Err(Fault::at(start - 1, Problem::UnclosedString))
    }

    /// What stands behind the fields: nothing, or a time.
    fn time(&mut self) -> Result<Option<i64>, Fault> {
        let start = self.at;
        self.pass(BLANK);
        if self.at == start {
            return Ok(None);
        }
        let time = match value::integer(&self.text[start..self.at]) {
            Ok(time) => time,
            Err(Problem::OutOfRange) => return Err(Fault::at(start, Problem::TimeOutOfRange)),
            Err(_) => return Err(Fault::at(start, Problem::NotATime)),
        };
        self.skip_blanks();
        match self.peek() {
            None => Ok(Some(time)),
            Some(_) => Err(Fault::at(self.at, Problem::AfterTime)),
        }
    }
}

#[cfg(test)]
mod tests;
