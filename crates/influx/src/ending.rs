//! Where a line ends: at the first newline that no string holds.
//!
//! The bytes come in pieces of any size, so this is a machine that keeps its state between them and looks at each byte
//! once. It knows as much of the syntax as tells a quote that opens a string from any other, exactly as the parser
//! does: after the first unescaped equals sign of a field.

use memchr::{memchr, memchr2};

/// How far a line was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Blanks before the line.
    #[default]
    Start,
    /// Measurement and tags.
    Series,
    /// Blanks between the series and its fields.
    Gap,
    /// The first byte of a field's name.
    Begin,
    /// The rest of it.
    Name,
    /// Right behind a field's equals sign.
    Equals,
    /// A value that is no string.
    Value,
    /// Inside a string.
    String,
    /// Inside a string, behind a backslash that escapes whatever comes.
    Escape,
    /// Right behind a closing quote.
    Closed,
    /// No string can begin any more: a comment, the time, or what cannot parse.
    Rest,
}

/// The machine, for one line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    state: State,
    /// Whether the byte before was a backslash.
    backslash: bool,
}

impl Ending {
    /// Takes more bytes of the line; gives how many of them belong to it, where its newline is among them. That newline
    /// is then the next byte.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.state == State::Start
            && let Some(newline) = memchr(b'\n', bytes)
            && memchr(b'"', &bytes[..newline]).is_none()
        {
            return Some(newline); // by far the most lines: whole, and without a string
        }
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::String {
                at += memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at);
                if at == bytes.len() {
                    return None;
                }
            } else if bytes[at] == b'\n' && self.state != State::Escape {
                return Some(at);
            }
            self.step(bytes[at]);
            at += 1;
        }
        None
    }

    /// Whether a string is open, which may then hold newlines.
    pub(crate) fn in_string(&self) -> bool {
        matches!(self.state, State::String | State::Escape)
    }

    fn step(&mut self, byte: u8) {
        let plain = !self.backslash;
        self.backslash = byte == b'\\';
        self.state = match (self.state, byte) {
            (State::Start, b' ' | b'\t') => State::Start,
            (State::Start, b'#') => State::Rest,
            (State::Series, b' ') if plain => State::Gap,
            (State::Start | State::Series, _) => State::Series,
            (State::Gap, b' ' | b'\t') => State::Gap,
            (State::Gap | State::Begin, b'=' | b',' | b' ') => State::Rest,
            (State::Name, b'=') if plain => State::Equals,
            (State::Name, b',' | b' ') if plain => State::Rest,
            (State::Gap | State::Begin | State::Name, _) => State::Name,
            (State::Equals, b'"') => State::String,
            (State::Value | State::Equals | State::Closed, b',') => State::Begin,
            (State::Value | State::Equals, b' ') => State::Rest,
            (State::Value | State::Equals, _) => State::Value,
            (State::String, b'"') => State::Closed,
            (State::String, b'\\') => State::Escape,
            (State::String | State::Escape, _) => State::String,
            (State::Closed | State::Rest, _) => State::Rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the first line of `bytes` ends, which must not depend on how they are cut into pieces.
    fn end(bytes: &[u8]) -> Option<usize> {
        let whole = Ending::default().advance(bytes);
        let mut machine = Ending::default();
        let single = bytes.iter().position(|byte| machine.advance(&[*byte]).is_some());
        assert_eq!(whole, single);
        whole
    }

    #[test]
    fn only_a_string_holds_a_newline() {
        for (line, rest) in [
            ("m a=1", "x"),
            ("m a=\"x\ny\",b=\"\\\"\n\" 1", "x"),
            ("m a=\"\\\\\"", "\""),
            ("# it's \"a=\"", "b"),
            ("m,t=\"x a=1", "\""),
            ("m,t=a\\ b=\" a=1", "\""),
            ("m a\\=\"=1", "\""),
            ("m a=1=\"", "x"),
            ("m a=1 b=\"", "x"),
            ("m a,b=\"", "x"),
            ("m a=\"x\"y=\"", "x"),
            ("m a=x\"", "x"),
            ("m\\", "x"),
            ("m =\"", "x"),
            ("m a=1,=\"", "x"),
            ("m a=\"x\",\\==\"y\"", "x"),
        ] {
            assert_eq!(end(format!("{line}\n{rest}").as_bytes()), Some(line.len()), "{line}");
        }
        assert_eq!(end(b"m a=\"x\nm b=1\n"), None);
        assert_eq!(end(b"m a=1"), None);
    }
}
