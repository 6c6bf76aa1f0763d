//! Cuts SQL text into statements at semicolons, and knows on which line each begins.
//!
//! Only as much SQL is understood as is needed to see which semicolons count: texts, names in quotes, dollar quotes and
//! comments (nested, as PostgreSQL has them).

/// A statement, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text, without the semicolon and without blanks and comments before it.
    pub text: &'a str,
    /// The line of its first letter, from 1.
    pub line: usize,
    /// Which letter of that line it is, from 1.
    pub column: usize,
}

/// Cuts text into statements. The last one needs no semicolon.
#[must_use]
pub fn split(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut cutter = Cutter::new(text);
    while let Some((statement, _)) = cutter.next() {
        statements.push(statement);
    }
    statements
}

/// Cuts what is complete off the front of a text that still grows: statements, and the bytes they took.
#[must_use]
pub fn split_complete(text: &str) -> (Vec<Statement<'_>>, usize) {
    let mut statements = Vec::new();
    let mut taken = 0;
    let mut cutter = Cutter::new(text);
    while let Some((statement, complete)) = cutter.next() {
        if !complete {
            break;
        }
        statements.push(statement);
        taken = cutter.at;
    }
    (statements, taken)
}

/// The first statement of a text, the bytes up to its end, and whether a semicolon ended it.
#[must_use]
pub fn first(text: &str) -> Option<(Statement<'_>, usize, bool)> {
    let mut cutter = Cutter::new(text);
    let (statement, complete) = cutter.next()?;
    Some((statement, cutter.at, complete))
}

/// Whether text holds nothing but blanks and comments.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    Cutter::new(text).next().is_none()
}

/// The first word of a statement, in capitals: what sort of statement it is.
#[must_use]
pub fn first_word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_ascii_alphabetic()).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Whether a statement begins or ends a transaction.
#[must_use]
pub fn is_transaction_control(text: &str) -> bool {
    matches!(first_word(text).as_str(), "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT")
}

/// Whether a statement is a COPY that takes its rows from standard input.
#[must_use]
pub fn copies_in(text: &str) -> bool {
    if first_word(text) != "COPY" {
        return false;
    }
    let (mut cutter, mut depth, mut before) = (Cutter::new(text), 0_usize, String::new());
    loop {
        cutter.skip_blank();
        match cutter.rest().chars().next() {
            None => return false,
            Some('(') => depth += 1,
            Some(')') => depth = depth.saturating_sub(1),
            Some(letter) if letter.is_alphanumeric() || letter == '_' => {
                let rest = cutter.rest();
                let is_part = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '$'));
                let word = &rest[..rest.find(is_part).unwrap_or(rest.len())];
                if depth == 0 && before == "FROM" && word.eq_ignore_ascii_case("STDIN") {
                    return true;
                }
                before = if depth == 0 { word.to_ascii_uppercase() } else { before };
                cutter.advance(word.len());
                continue;
            }
            Some(_) => before.clear(),
        }
        let length = cutter.token();
        cutter.advance(length);
    }
}

struct Cutter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Cutter<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, column: 1 }
    }

    /// The next statement, and whether a semicolon ended it.
    fn next(&mut self) -> Option<(Statement<'a>, bool)> {
        loop {
            self.skip_blank();
            if self.rest().starts_with(';') {
                self.advance(1);
            } else {
                break;
            }
        }
        if self.at == self.text.len() {
            return None;
        }
        let (start, line, column) = (self.at, self.line, self.column);
        while self.at < self.text.len() && !self.rest().starts_with(';') {
            let length = self.token();
            self.advance(length);
        }
        let end = self.at;
        let complete = self.at < self.text.len();
        if complete {
            self.advance(1);
        }
        Some((Statement { text: self.text[start..end].trim_end(), line, column }, complete))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn advance(&mut self, bytes: usize) {
        let end = self.at + bytes;
        (self.line, self.column) = behind(&self.text[self.at..end], self.line, self.column);
        self.at = end;
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let length = if blank > 0 { blank } else { comment(rest) };
            if length == 0 {
                return;
            }
            self.advance(length);
        }
    }

    /// Bytes of what begins here: a quoted text, a comment, or one letter.
    fn token(&self) -> usize {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return 0 };
        match first {
            '\'' => quoted(rest, b'\'', self.escapes()),
            '"' => quoted(rest, b'"', false),
            '$' if !self.follows_name() => dollar_quoted(rest),
            '-' | '/' if comment(rest) > 0 => comment(rest),
            _ => first.len_utf8(),
        }
    }

    /// Whether the quote that begins here is that of E'…', in which backslashes escape.
    fn escapes(&self) -> bool {
        let before = &self.text.as_bytes()[..self.at];
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$';
        matches!(before.last(), Some(b'e' | b'E')) && !before.len().checked_sub(2).is_some_and(|i| name(&before[i]))
    }

    fn follows_name(&self) -> bool {
        self.text.as_bytes()[..self.at].last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }
}

/// The line and the letter of it that come behind a text that begins there.
#[must_use]
pub fn behind(text: &str, line: usize, column: usize) -> (usize, usize) {
    match text.rsplit_once('\n') {
        None => (line, column + text.chars().count()),
        Some((lines, last)) => {
            (line + 1 + lines.bytes().filter(|byte| *byte == b'\n').count(), last.chars().count() + 1)
        }
    }
}

fn quoted(text: &str, quote: u8, escapes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        let escaped = escapes && bytes[at] == b'\\';
        if escaped || (bytes[at] == quote && bytes.get(at + 1) == Some(&quote)) {
            at += 2;
        } else if bytes[at] == quote {
            return at + 1;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$') else { return 1 };
    let tag = &text[..end + 2];
    let name = &tag[1..tag.len() - 1];
    let begins_well = !name.starts_with(|letter: char| letter.is_ascii_digit());
    if !begins_well || !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        return 1;
    }
    match text[tag.len()..].find(tag) {
        Some(at) => tag.len() + at + tag.len(),
        None => text.len(),
    }
}

fn comment(text: &str) -> usize {
    if text.starts_with("--") {
        return text.find('\n').unwrap_or(text.len());
    }
    if !text.starts_with("/*") {
        return 0;
    }
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (2, 1);
    while at < bytes.len() && depth > 0 {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (b'*', Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn semicolons_in_texts_and_comments_do_not_count() {
        assert_eq!(texts("a; b"), ["a", "b"]);
        assert_eq!(texts("select ';' ; x"), ["select ';'", "x"]);
        assert_eq!(texts("select 'it''s;' ; x"), ["select 'it''s;'", "x"]);
        assert_eq!(texts(r"select E'\';' ; x"), [r"select E'\';'", "x"]);
        assert_eq!(texts(r"select '\' ; x"), [r"select '\'", "x"]);
        assert_eq!(texts("select $a$;$b$;$a$; x"), ["select $a$;$b$;$a$", "x"]);
        assert_eq!(texts("select $1; x"), ["select $1", "x"]);
        assert_eq!(texts("a -- ;\n b; c"), ["a -- ;\n b", "c"]);
        assert_eq!(texts("a /* ; /* ; */ ; */ b; c"), ["a /* ; /* ; */ ; */ b", "c"]);
        assert_eq!(texts("select \"a;b\"; c"), ["select \"a;b\"", "c"]);
        assert_eq!(texts(";; -- nothing\n;"), Vec::<&str>::new());
        assert_eq!(texts("select 'ä;€"), ["select 'ä;€"]);
    }

    #[test]
    fn copies_in_are_known_however_they_are_written() {
        for sql in [
            "COPY t FROM STDIN",
            "copy t(a, b)from stdin(FORMAT csv)",
            "COPY/**/t FROM/* x */STDIN",
            "COPY \"from stdin\" FROM STDIN WITH (NULL '')",
        ] {
            assert!(copies_in(sql), "{sql}");
        }
        for sql in [
            "COPY (SELECT 1 WHERE 'a' <> ' FROM STDIN ') TO STDOUT",
            "COPY (SELECT a FROM STDIN) TO STDOUT",
            "COPY t FROM 'STDIN'",
            "COPY t FROM '/tmp/stdin'",
            "SELECT 1 FROM STDIN",
            "COPY t TO STDOUT",
        ] {
            assert!(!copies_in(sql), "{sql}");
        }
    }

    #[test]
    fn lines_are_those_of_the_first_letter() {
        let lines: Vec<usize> = split("a;\n\n-- x\nb\n;c").iter().map(|statement| statement.line).collect();
        assert_eq!(lines, [1, 4, 5]);
        let columns: Vec<usize> = split("a; bé; c\n  d;\n/* */ e").iter().map(|statement| statement.column).collect();
        assert_eq!(columns, [1, 4, 8, 7]);
    }

    #[test]
    fn what_grows_is_cut_at_semicolons_only() {
        let (statements, taken) = split_complete("a; b; c");
        assert_eq!(statements.len(), 2);
        assert_eq!(&"a; b; c"[taken..], " c");
        assert_eq!(split_complete("select 'a;").0, []);
        assert!(is_blank(" -- x\n /* y */ "));
        assert!(!is_blank("x"));
    }

    #[test]
    fn any_bytes_are_cut_without_a_panic() {
        let letters = ["'", "\"", "$", "a", ";", "--", "/*", "*/", "\n", "\\", "E", "€", " "];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let text: String = (0..12)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    letters[(seed >> 33) as usize % letters.len()]
                })
                .collect();
            let whole: usize = split(&text).iter().map(|statement| statement.text.len()).sum();
            assert!(whole <= text.len());
            let _ = split_complete(&text);
        }
    }
}
