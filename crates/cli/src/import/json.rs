//! JSON lines: one object a line, or the objects of one array, their values as texts. Numbers keep their digits as they stand, which no number
//! type of a library would.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use counterfoil::Error;

use crate::failure::on_line;

/// A value of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    /// `true` or `false`.
    Boolean(&'a str),
    /// A number, as it stands.
    Number(&'a str),
    /// A text.
    Text(Cow<'a, str>),
    /// An array or an object, as it stands.
    Nested(&'a str),
}

/// Reads lines, or, where the first letter is a bracket, the objects of an array.
pub struct Lines<R> {
    source: BufReader<R>,
    text: String,
    /// The line on which what was read last ends, from 1.
    line: u64,
    /// Whether it is an array, once its first letter was seen.
    array: Option<Array>,
}

/// How far an array has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Array {
    /// It is none.
    None,
    /// An object is due, or the end.
    First,
    /// A comma is due, or the end.
    Next,
}

const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(256 * 1024, source), text: String::new(), line: 0, array: None }
    }

    /// The next line that is not blank, or the next object of the array, and the line on which it begins; none at the end.
    pub fn read(&mut self) -> Result<Option<(u64, &str)>, Error> {
        match self.array {
            None => self.begin()?,
            Some(Array::None) => {}
            Some(Array::First | Array::Next) => return self.element(),
        }
        if self.array == Some(Array::First) { self.element() } else { self.line() }
    }

    /// Looks at the first letter, behind a byte order mark.
    fn begin(&mut self) -> Result<(), Error> {
        self.line = 1;
        self.skip(b"\xEF\xBB\xBF")?;
        let is_array = self.letter()? == Some(b'[');
        if is_array {
            self.source.consume(1);
        }
        self.array = Some(if is_array { Array::First } else { Array::None });
        // What was passed over so far is counted; a line is counted when it is read.
        self.line -= u64::from(!is_array);
        Ok(())
    }

    /// Passes over letters that may be there.
    fn skip(&mut self, letters: &[u8]) -> Result<(), Error> {
        for letter in letters {
            if self.peek()? == Some(*letter) {
                self.source.consume(1);
            }
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<u8>, Error> {
        let line = self.line;
        let there = self.source.fill_buf().map(|bytes| bytes.first().copied());
        there.map_err(|error| on_line(line, format!("the file cannot be read on: {error}")))
    }

    /// The next letter that is not blank, which is not taken yet.
    fn letter(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.peek()? {
                Some(b'\n') => self.line += 1,
                Some(b' ' | b'\t' | b'\r') => {}
                other => return Ok(other),
            }
            self.source.consume(1);
        }
    }

    fn wants(&self, what: &str) -> Error {
        on_line(self.line, format!("{what} was expected")).advise("write an array of objects, or one object a line")
    }

    fn element(&mut self) -> Result<Option<(u64, &str)>, Error> {
        let mut letter = self.letter()?;
        if self.array == Some(Array::Next) && letter == Some(b',') {
            self.source.consume(1);
            letter = self.letter()?;
        } else if letter == Some(b']') {
            self.source.consume(1);
            return match self.letter()? {
                None => Ok(None),
                Some(_) => Err(self.wants("nothing behind the array")),
            };
        } else if self.array == Some(Array::Next) {
            return Err(self.wants("a comma or a closing bracket"));
        }
        if letter != Some(b'{') {
            return Err(self.wants("an object"));
        }
        self.array = Some(Array::Next);
        let begins = self.line;
        self.line += self.whole_object()?;
        Ok(Some((begins, &self.text)))
    }

    /// Takes an object to the brace that closes it; how many lines that ended.
    fn whole_object(&mut self) -> Result<u64, Error> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let (mut depth, mut in_text, mut escaped) = (0_u64, false, false);
        loop {
            let Some(letter) = self.peek()? else { return Err(self.wants("a closing brace")) };
            self.source.consume(1);
            bytes.push(letter);
            if bytes.len() as u64 > LINE_BYTES_MAX {
                return Err(on_line(self.line, format!("there is an object longer than {LINE_BYTES_MAX} bytes")));
            }
            match letter {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                b'{' if !in_text => depth += 1,
                b'}' if !in_text => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        self.text = String::from_utf8(bytes).map_err(|_| on_line(self.line, "this is not UTF-8 text"))?;
        Ok(lines)
    }

    fn line(&mut self) -> Result<Option<(u64, &str)>, Error> {
        loop {
            let mut bytes = std::mem::take(&mut self.text).into_bytes();
            bytes.clear();
            self.line += 1;
            let line = self.line;
            let read = self.source.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| on_line(line, format!("the file cannot be read on: {error}")))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > LINE_BYTES_MAX {
                return Err(on_line(line, format!("the line is longer than {LINE_BYTES_MAX} bytes")));
            }
            self.text = String::from_utf8(bytes).map_err(|_| on_line(line, "this is not UTF-8 text"))?;
            if !self.text.trim().is_empty() {
                break;
            }
        }
        Ok(Some((self.line, self.text.trim())))
    }
}

/// Names and values of the object that a line holds; why not, otherwise.
pub fn object(text: &str) -> Result<Vec<(Cow<'_, str>, Value<'_>)>, &'static str> {
    let mut parser = Parser { text, at: 0 };
    let mut members = Vec::new();
    parser.expect(b'{', "an object was expected")?;
    if !parser.take(b'}') {
        loop {
            let name = parser.text_value("a name in quotes was expected")?;
            parser.expect(b':', "a colon was expected")?;
            members.push((name, parser.value()?));
            if parser.take(b',') {
                continue;
            }
            parser.expect(b'}', "a comma or a closing brace was expected")?;
            break;
        }
    }
    parser.blank();
    if parser.at < text.len() { Err("there is text behind the object") } else { Ok(members) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn blank(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, otherwise: &'static str) -> Result<(), &'static str> {
        if self.take(byte) { Ok(()) } else { Err(otherwise) }
    }

    fn text_value(&mut self, otherwise: &'static str) -> Result<Cow<'a, str>, &'static str> {
        self.blank();
        let start = self.at;
        self.at = self.end_of_text(start).ok_or(otherwise)?;
        let whole = &self.text[start..self.at];
        let inner = &whole[1..whole.len() - 1];
        if inner.bytes().all(|byte| byte != b'\\' && byte >= b' ') {
            return Ok(Cow::Borrowed(inner));
        }
        serde_json::from_str(whole).map(Cow::Owned).map_err(|_| "a text has an escape that means nothing")
    }

    /// Where the text that begins at `start` ends.
    fn end_of_text(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let mut at = start + 1;
        loop {
            match bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn value(&mut self) -> Result<Value<'a>, &'static str> {
        self.blank();
        match self.text.as_bytes().get(self.at) {
            Some(b'"') => Ok(Value::Text(self.text_value("a text never ends")?)),
            Some(b'{' | b'[') => self.nested(),
            Some(_) => self.word(),
            None => Err("a value was expected"),
        }
    }

    fn nested(&mut self) -> Result<Value<'a>, &'static str> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at = self.end_of_text(self.at).ok_or("a text never ends")?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => return Err("an array or object never ends"),
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        let whole = &self.text[start..self.at];
        match serde_json::from_str::<serde_json::Value>(whole) {
            Ok(_) => Ok(Value::Nested(whole)),
            Err(_) => Err("an array or object is malformed"),
        }
    }

    fn word(&mut self) -> Result<Value<'a>, &'static str> {
        let rest = &self.text[self.at..];
        let length = rest.find([',', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        match word {
            "null" => Ok(Value::Null),
            "true" | "false" => Ok(Value::Boolean(word)),
            _ if is_number(word) => Ok(Value::Number(word)),
            _ => Err("a value was expected"),
        }
    }
}

/// Whether text is a number as JSON has them.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_without_losing_digits() {
        let members = object(
            r#" {"a": 123456789012345678901234567890.10, "b":"x\n\u00e4", "c":[1,{"d":"]"}],"e":null, "f":true} "#,
        );
        let expected = vec![
            (Cow::from("a"), Value::Number("123456789012345678901234567890.10")),
            (Cow::from("b"), Value::Text("x\nä".into())),
            (Cow::from("c"), Value::Nested(r#"[1,{"d":"]"}]"#)),
            (Cow::from("e"), Value::Null),
            (Cow::from("f"), Value::Boolean("true")),
        ];
        assert_eq!(members, Ok(expected));
        assert_eq!(object("{}"), Ok(vec![]));
    }

    fn read_all(text: &str) -> Result<Vec<(u64, String)>, String> {
        let (mut lines, mut all) = (Lines::new(text.as_bytes()), Vec::new());
        while let Some((line, text)) = lines.read().map_err(|error| error.to_string())? {
            all.push((line, text.to_owned()));
        }
        Ok(all)
    }

    #[test]
    fn an_array_is_read_object_by_object() {
        let all =
            |objects: &[(u64, &str)]| Ok(objects.iter().map(|(line, text)| (*line, (*text).to_owned())).collect());
        let text = "\u{feff}\n [{\"a\":1},\n\n{\"a\":\"}\\\"\\\\\",\n\"b\":{}} , {}\n]\n";
        assert_eq!(read_all(text), all(&[(2, "{\"a\":1}"), (4, "{\"a\":\"}\\\"\\\\\",\n\"b\":{}}"), (5, "{}")]));
        assert_eq!(read_all("[]"), all(&[]));
        assert_eq!(read_all("\u{feff}{\"a\":1}\n\n{}\n"), all(&[(1, "{\"a\":1}"), (3, "{}")]));
        assert_eq!(read_all("\n\n{}\n[1]"), all(&[(3, "{}"), (4, "[1]")]));
        for (text, says) in [
            ("[1]", "an object was expected (line 1)"),
            ("[\n{}", "a comma or a closing bracket was expected (line 2)"),
            ("[{},\n]", "an object was expected (line 2)"),
            ("[{\n", "a closing brace was expected (line 1)"),
            ("[{}] x", "nothing behind the array was expected (line 1)"),
            ("[{}{}]", "a comma or a closing bracket was expected (line 1)"),
            ("[", "an object was expected (line 1)"),
        ] {
            let told = read_all(text);
            assert!(told.as_ref().is_err_and(|told| told.starts_with(says)), "{text}: {told:?}");
        }
    }

    #[test]
    fn what_is_no_object_says_why() {
        for text in [
            "",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":\"\\q\"}",
            "{\"a\":[1}",
            "{\"a\":\"x",
            "{\"a\":]}",
            "{\"a\":\"\\",
        ] {
            assert!(object(text).is_err(), "{text}");
        }
    }

    #[test]
    fn noise_never_panics() {
        let letters = ["{", "}", "[", "]", "\"", "\\", ":", ",", "1", "a", "€", " "];
        let mut seed = 7u64;
        for _ in 0..50_000 {
            let text: String = (0..10)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    letters[(seed >> 33) as usize % letters.len()]
                })
                .collect();
            let _ = object(&text);
            let _ = object(&format!("{{\"a\":{text}"));
        }
    }
}
