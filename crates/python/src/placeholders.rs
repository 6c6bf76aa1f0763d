//! `?` and `:name` in statements, which the database knows as `$1`, `$2`; and what sort of statement it is.
//!
//! Strings, quoted names, comments and dollar quotes are stepped over, as PostgreSQL reads them.

use counterfoil::Error;

use crate::errors::misuse;

/// What a statement's text has in it.
pub struct Text {
    /// The text, with `$1`, `$2` for what stood there.
    pub sql: String,
    /// Names of the parameters in order, where they have names.
    pub names: Vec<String>,
    /// How many `?` it had.
    pub questions: usize,
    /// Whether one of its statements may change something, and so belongs into a transaction; not if it begins one itself.
    pub changes: bool,
}

/// Which placeholders are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// None: no parameters were given.
    None,
    /// `?`, or `$1` as it is.
    Questions,
    /// `:name`.
    Names,
}

/// First words of statements that change nothing, or that are no part of a transaction. SAVEPOINT wants one.
const READING: &[&str] = &[
    "ABORT",
    "BEGIN",
    "COMMIT",
    "DEALLOCATE",
    "DESC",
    "DESCRIBE",
    "END",
    "EXPLAIN",
    "PREPARE",
    "PUBLISH",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "TABLE",
    "UNPUBLISH",
    "VACUUM",
    "VALUES",
];

/// Words of statements that change something.
const CHANGING: &[&str] = &["DELETE", "INSERT", "MERGE", "UPDATE"];

/// Reads a text.
///
/// # Errors
/// [`counterfoil::Kind::Misuse`] where `?` and `$1` are mixed.
pub fn read(sql: &str, style: Style) -> Result<Text, Error> {
    let mut text = Text { sql: String::with_capacity(sql.len() + 8), names: Vec::new(), questions: 0, changes: false };
    let mut at = 0;
    let (mut begins, mut begun) = (true, false);
    let (mut dollars, mut is_with) = (false, false);
    while at < sql.len() {
        let piece = &sql[at..at + piece_bytes(&sql[at..], sql[..at].chars().next_back())];
        at += piece.len();
        match piece {
            ";" => begins = true,
            "?" if style == Style::Questions => {
                text.questions += 1;
                text.sql.push_str(&format!("${}", text.questions));
                continue;
            }
            _ if style == Style::Names && is_name(piece) => {
                let place = place_of(&mut text.names, &piece[1..]);
                text.sql.push_str(&format!("${place}"));
                continue;
            }
            _ if piece.starts_with('$') && piece[1..].starts_with(|digit: char| digit.is_ascii_digit()) => {
                dollars = true;
            }
            _ if begins && piece.starts_with(is_letter) => {
                let word = piece.to_ascii_uppercase();
                begun |= matches!(word.as_str(), "BEGIN" | "START");
                text.changes |= !begun && word != "WITH" && !READING.contains(&word.as_str());
                (begins, is_with) = (false, word == "WITH");
            }
            // A query that begins with names for others changes something if one of them, or itself, does.
            _ if is_with && CHANGING.iter().any(|word| piece.eq_ignore_ascii_case(word)) => text.changes |= !begun,
            _ => {}
        }
        text.sql.push_str(piece);
    }
    if dollars && (text.questions > 0 || !text.names.is_empty()) {
        return Err(
            misuse("the statement has two sorts of parameters").advise("write all as ?, all as $1 or all as :name")
        );
    }
    Ok(text)
}

/// Whether a text is one COPY that ends with TO STDOUT, or goes on with options from there.
pub fn copies_out(sql: &str) -> bool {
    let (mut at, mut depth) = (0, 0_usize);
    let mut words: Vec<String> = Vec::new();
    while at < sql.len() {
        let piece = &sql[at..at + piece_bytes(&sql[at..], sql[..at].chars().next_back())];
        at += piece.len();
        match piece {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            ";" if !sql[at..].trim().is_empty() => return false,
            _ if depth == 0 && piece.starts_with(is_letter) => words.push(piece.to_ascii_uppercase()),
            _ => {}
        }
    }
    words.first().is_some_and(|word| word == "COPY") && words.windows(2).any(|pair| pair == ["TO", "STDOUT"])
}

fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    }) + 1
}

fn is_name(piece: &str) -> bool {
    piece.strip_prefix(':').is_some_and(|name| name.starts_with(is_letter))
}

fn is_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn continues_word(letter: char) -> bool {
    is_letter(letter) || letter.is_ascii_digit() || letter == '$'
}

/// Bytes of the piece that a text begins with: a string, a comment, a word, or one letter. `before` stands before it.
pub fn piece_bytes(text: &str, before: Option<char>) -> usize {
    let word = || text.find(|letter| !continues_word(letter)).unwrap_or(text.len());
    match text.as_bytes() {
        [b'\'', ..] => quoted(text, '\'', false),
        [b'"', ..] => quoted(text, '"', false),
        [b'e' | b'E', b'\'', ..] => 1 + quoted(&text[1..], '\'', true),
        [b'-', b'-', ..] => text.find('\n').map_or(text.len(), |end| end + 1),
        [b'/', b'*', ..] => comment(text),
        [b'$', ..] => dollar(text),
        // A cast is no name, and neither is what follows its colons.
        [b':', b':', ..] => 2,
        [b':', ..] if before != Some(':') => {
            1 + text[1..].find(|letter: char| !is_letter(letter) && !letter.is_ascii_digit()).unwrap_or(text.len() - 1)
        }
        [first, ..] if first.is_ascii() && !is_letter(*first as char) => 1,
        _ => word().max(text.chars().next().map_or(0, char::len_utf8)),
    }
}

fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if escapes && (letter == '\\' || text[at..].starts_with("''")) {
            letters.next();
        } else if letter == quote {
            // Doubled, it stands for itself: the next piece is the rest of the same string.
            return at + 1;
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

/// `$tag$ ... $tag$`, or `$1`, or a dollar.
fn dollar(text: &str) -> usize {
    let word =
        1 + text[1..].find(|letter: char| !is_letter(letter) && !letter.is_ascii_digit()).unwrap_or(text.len() - 1);
    let tag = &text[..word];
    let is_tag = text[word..].starts_with('$') && !tag[1..].starts_with(|digit: char| digit.is_ascii_digit());
    if !is_tag {
        return word;
    }
    let mark = &text[..=word];
    text[mark.len()..].find(mark).map_or(text.len(), |end| mark.len() + end + mark.len())
}
