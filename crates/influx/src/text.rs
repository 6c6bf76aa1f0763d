//! Text of a line as it stands there, escapes included.

use std::borrow::Cow;
use std::ops::Range;

/// Which backslashes of a text are escapes; every other backslash is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// `\,` and `\ ` in the name of a measurement.
    Measurement,
    /// `\,`, `\ ` and `\=` in tags and names of fields.
    Name,
    /// `\"` and `\\` in a string.
    String,
}

impl Escapes {
    fn escapes(self, byte: u8) -> bool {
        match self {
            Escapes::Measurement => matches!(byte, b',' | b' '),
            Escapes::Name => matches!(byte, b',' | b' ' | b'='),
            Escapes::String => matches!(byte, b'"' | b'\\'),
        }
    }
}

/// A text of a line: a slice of it, unescaped only when it is read.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    pub(crate) raw: &'a str,
    pub(crate) escapes: Escapes,
    /// Whether there is a backslash in it.
    pub(crate) escaped: bool,
}

impl<'a> Text<'a> {
    /// The text without its escapes; borrowed where it has none.
    pub fn unescaped(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut text = String::with_capacity(self.raw.len());
        self.push_to(&mut text);
        Cow::Owned(text)
    }

    /// Writes the text without its escapes behind `target`.
    pub fn push_to(self, target: &mut String) {
        if !self.escaped {
            return target.push_str(self.raw);
        }
        let bytes = self.raw.as_bytes();
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
            let backslash = at + found;
            at = backslash + 1;
            if bytes.get(at).is_some_and(|&next| self.escapes.escapes(next)) {
                target.push_str(&self.raw[copied..backslash]);
                copied = at;
                at += 1;
            }
        }
        target.push_str(&self.raw[copied..]);
    }
}

/// Where a text lies in its line; lines are shorter than 4 GB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
    escaped: bool,
}

impl Span {
    pub(crate) fn new(range: Range<usize>, escaped: bool) -> Span {
        Span { start: range.start as u32, end: range.end as u32, escaped }
    }

    pub(crate) fn of(self, line: &str, escapes: Escapes) -> Text<'_> {
        Text { raw: &line[self.range()], escapes, escaped: self.escaped }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str, escapes: Escapes) -> Cow<'_, str> {
        Text { raw, escapes, escaped: raw.contains('\\') }.unescaped()
    }

    fn name(raw: &str) -> Cow<'_, str> {
        text(raw, Escapes::Name)
    }

    #[test]
    fn a_backslash_before_anything_else_is_itself() {
        assert!(matches!(name("plain"), Cow::Borrowed("plain")));
        assert_eq!(name(r"a\ b\,c\=d"), "a b,c=d");
        assert_eq!(name(r"C:\dir\"), r"C:\dir\");
        assert_eq!(name(r"\\ é\ü"), r"\ é\ü");
        assert_eq!(text(r"a\=b", Escapes::Measurement), r"a\=b");
        assert_eq!(text(r#"\"a\\\n"#, Escapes::String), r#""a\\n"#);
    }
}
