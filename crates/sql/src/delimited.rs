//! Delimited text, read and written: CSV, and the tab-separated form of PostgreSQL's COPY.
//!
//! A field of CSV knows whether it was quoted: an unquoted empty field is NULL, `""` is an empty text.

use std::io::BufRead;

use crate::error::{Error, Position, Result};

/// Bytes that one record may have.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// How fields are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Quotes and no backslashes, or PostgreSQL's text form: backslashes and no quotes.
    pub csv: bool,
    /// Between fields.
    pub delimiter: u8,
    /// What an unquoted field says to be NULL.
    pub null: String,
    /// Around fields, in CSV.
    pub quote: u8,
    /// Before a quote inside quotes, in CSV.
    pub escape: u8,
    /// Whether the first record is the names of the columns.
    pub header: bool,
}

impl Form {
    /// Comma-separated, NULL is an unquoted empty field.
    pub fn csv() -> Self {
        Form { csv: true, delimiter: b',', null: String::new(), quote: b'"', escape: b'"', header: false }
    }

    /// Tab-separated with backslashes, NULL is `\N`.
    pub fn text() -> Self {
        Form { csv: false, delimiter: b'\t', null: "\\N".into(), quote: 0, escape: 0, header: false }
    }
}

/// Reads records one after another.
pub struct Reader<R> {
    input: R,
    form: Form,
    line: u64,
    buffer: Vec<u8>,
}

/// A field: its text, or NULL.
pub type Field = Option<String>;

impl<R: BufRead> Reader<R> {
    /// Reads records of a form.
    pub fn new(input: R, form: Form) -> Self {
        Reader { input, form, line: 0, buffer: Vec::new() }
    }

    /// The line on which the record read last began, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next record, `None` at the end (or at `\.`).
    ///
    /// # Errors
    /// [`Error::Input`] with the line, for text that is no record; [`Error::Host`] if reading fails.
    pub fn record(&mut self) -> Result<Option<Vec<Field>>> {
        let first = self.line + 1;
        let mut lines = 0;
        self.buffer.clear();
        let mut open = false;
        loop {
            let from = self.buffer.len();
            let read = self.input.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|error| Error::Host(format!("reading failed: {error}")))?;
            if read == 0 && self.buffer.is_empty() {
                return Ok(None);
            }
            lines += 1;
            if self.buffer.len() > RECORD_BYTES_MAX {
                return Err(wrong(first, "a record is larger than 1 GiB"));
            }
            open = self.form.csv && self.is_open(open, from);
            if open {
                if read == 0 {
                    return Err(wrong(first, "a quoted field does not end"));
                }
                continue;
            }
            break;
        }
        self.line = first;
        let mut end = self.buffer.len();
        if self.buffer[..end].ends_with(b"\n") {
            end -= 1;
        }
        if self.buffer[..end].ends_with(b"\r") {
            end -= 1;
        }
        if &self.buffer[..end] == b"\\." {
            return Ok(None);
        }
        let text = std::str::from_utf8(&self.buffer[..end]).map_err(|_| wrong(first, "the text is not UTF-8"))?;
        if text.contains('\0') {
            return Err(wrong(first, "no text has a zero byte in it"));
        }
        let record = if self.form.csv { self.quoted(text, first)? } else { self.escaped(text, first)? };
        self.line = first + lines - 1;
        Ok(Some(record))
    }

    /// Whether the buffer ends inside quotes, given whether it did before its byte `from`.
    fn is_open(&self, mut open: bool, from: usize) -> bool {
        let Form { quote, escape, .. } = self.form;
        let mut skip = false;
        for (at, byte) in self.buffer.iter().enumerate().skip(from) {
            if skip {
                skip = false;
            } else if open && *byte == escape && escape != quote {
                skip = self.buffer.get(at + 1).is_some_and(|next| *next == quote || *next == escape);
            } else if *byte == quote {
                open = !open;
            }
        }
        open
    }

    fn quoted(&self, text: &str, line: u64) -> Result<Vec<Field>> {
        let Form { delimiter, quote, escape, ref null, .. } = self.form;
        let mut fields = Vec::new();
        let mut rest = text.as_bytes();
        loop {
            let mut field = Vec::new();
            let mut was_quoted = false;
            while let [byte, tail @ ..] = rest {
                if *byte == delimiter {
                    break;
                }
                rest = tail;
                if *byte != quote {
                    field.push(*byte);
                    continue;
                }
                was_quoted = true;
                rest = inside(rest, quote, escape, &mut field)
                    .ok_or_else(|| wrong(line, "a quoted field does not end"))?;
            }
            let field = String::from_utf8(field).map_err(|_| wrong(line, "the text is not UTF-8"))?;
            fields.push((was_quoted || field != *null).then_some(field));
            match rest {
                [_, tail @ ..] => rest = tail,
                [] => return Ok(fields),
            }
        }
    }

    fn escaped(&self, text: &str, line: u64) -> Result<Vec<Field>> {
        let delimiter = char::from(self.form.delimiter);
        let mut fields = Vec::new();
        let mut start = 0;
        let mut escaped = false;
        for (at, letter) in text.char_indices().chain([(text.len(), delimiter)]) {
            if letter == delimiter && !escaped {
                fields.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            escaped = letter == '\\' && !escaped;
        }
        let field = |field: &str| {
            if field == self.form.null {
                return Ok(None);
            }
            unescape(field).map(Some).ok_or_else(|| wrong(line, "a field is not UTF-8, or has a zero byte"))
        };
        fields.into_iter().map(field).collect()
    }
}

/// Reads a quoted part up to its closing quote; answers what comes after.
fn inside<'a>(mut rest: &'a [u8], quote: u8, escape: u8, field: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [first, second, tail @ ..] if *first == escape && (*second == quote || *second == escape) => {
                field.push(*second);
                rest = tail;
            }
            [first, tail @ ..] if *first == quote => return Some(tail),
            [first, tail @ ..] => {
                field.push(*first);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn unescape(field: &str) -> Option<String> {
    if !field.contains('\\') {
        return Some(field.to_owned());
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let [letter, tail @ ..] = rest else {
            bytes.push(b'\\');
            break;
        };
        rest = tail;
        match letter {
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(11),
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|digit| (b'0'..=b'7').contains(*digit)).count();
                let digits = std::iter::once(letter).chain(&rest[..more]);
                bytes.push(digits.fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &rest[more..];
            }
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                let more = rest.iter().take(2).take_while(|digit| digit.is_ascii_hexdigit()).count();
                let digits = rest[..more].iter().filter_map(|digit| char::from(*digit).to_digit(16));
                bytes.push(digits.fold(0_u8, |value, digit| value << 4 | digit as u8));
                rest = &rest[more..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn wrong(line: u64, what: &str) -> Error {
    Error::Input(what.to_owned()).at(Position::Rows { line })
}

/// Appends a field.
pub fn write_field(out: &mut String, field: Option<&str>, form: &Form) {
    let Some(text) = field else { return out.push_str(&form.null) };
    if !form.csv {
        for letter in text.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                letter if letter == char::from(form.delimiter) => {
                    out.push('\\');
                    out.push(letter);
                }
                letter => out.push(letter),
            }
        }
        return;
    }
    let (delimiter, quote, escape) = (char::from(form.delimiter), char::from(form.quote), char::from(form.escape));
    let odd = |letter: char| letter == delimiter || letter == quote || matches!(letter, '\n' | '\r');
    if text != form.null && !text.contains(odd) && !text.starts_with(' ') && !text.ends_with(' ') && text != "\\." {
        return out.push_str(text);
    }
    out.push(quote);
    for letter in text.chars() {
        if letter == quote || letter == escape {
            out.push(escape);
        }
        out.push(letter);
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, form: Form) -> Vec<Vec<Field>> {
        let mut reader = Reader::new(text.as_bytes(), form);
        let mut records = Vec::new();
        while let Some(record) = reader.record().unwrap() {
            records.push(record);
        }
        records
    }

    fn fields(fields: &[Option<&str>]) -> Vec<Field> {
        fields.iter().map(|field| field.map(str::to_owned)).collect()
    }

    #[test]
    fn quoted_and_unquoted_empty_fields_differ() {
        let records = read("a,\"\",\n\"x\"\"y\",\"two\nlines\",3\r\n", Form::csv());
        assert_eq!(records[0], fields(&[Some("a"), Some(""), None]));
        assert_eq!(records[1], fields(&[Some("x\"y"), Some("two\nlines"), Some("3")]));
        assert!(Reader::new("\"open".as_bytes(), Form::csv()).record().is_err());
    }

    #[test]
    fn backslashes_are_read_in_the_text_form() {
        let records = read("a\\tb\t\\N\t\\\\N\n\\.\nnever", Form::text());
        assert_eq!(records, [fields(&[Some("a\tb"), None, Some("\\N")])]);
    }

    #[test]
    fn bytes_are_read_by_their_numbers_and_none_is_zero() {
        let records = read("\\x41\\x4\\x\t\\101\\7\t\\xc3\\xa9\\xe\n", Form::text());
        assert_eq!(records, [fields(&[Some("A\u{4}x"), Some("A\u{7}"), Some("\u{e9}\u{e}")])]);
        for refused in ["\\xe9\n", "\\0\n", "\\x00\n", "a\0b\n"] {
            assert!(Reader::new(refused.as_bytes(), Form::text()).record().is_err(), "{refused:?}");
        }
        assert!(Reader::new("\"a\0b\"\n".as_bytes(), Form::csv()).record().is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let quoted = |quote: u8, escape: u8| Form { quote, escape, ..Form::csv() };
        let semicolons = Form { delimiter: b';', null: "-".into(), ..Form::csv() };
        for form in [Form::csv(), Form::text(), semicolons, quoted(b'\'', b'\''), quoted(b'd', b'\\')] {
            let record = fields(&[Some("plain"), Some(""), None, Some("a,b;c\"d\\e\nf\tg "), Some("\\N"), Some("-")]);
            let mut text = String::new();
            for (place, field) in record.iter().enumerate() {
                if place > 0 {
                    text.push(char::from(form.delimiter));
                }
                write_field(&mut text, field.as_deref(), &form);
            }
            assert_eq!(read(&text, form), [record]);
        }
    }

    #[test]
    fn lines_are_counted_over_quoted_line_ends() {
        let mut reader = Reader::new("a\n\"b\nc\"\nd".as_bytes(), Form::csv());
        let mut lines = Vec::new();
        while reader.record().unwrap().is_some() {
            lines.push(reader.line());
        }
        assert_eq!(lines, [1, 3, 4]);
    }
}
