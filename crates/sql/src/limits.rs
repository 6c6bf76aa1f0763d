//! What a text may have, so that reading and planning it takes neither all memory nor all time.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position, Result};
use crate::grammar::Grammar;
use crate::statement::Places;

/// How many operators one expression may have side by side, and one query UNIONs and JOINs.
const OPERATORS_MAX: usize = 1000;

/// Words, numbers and signs of a text, about, at most: each takes up to a kilobyte of memory as it is read and planned.
const TOKENS_MAX: usize = 1 << 20;

/// Bytes that are read at a time to count.
const PIECE_BYTES: usize = 1 << 20;

/// Columns of a SELECT or RETURNING, at most: as many as PostgreSQL has. Planning takes the square of their number.
const COLUMNS_MAX: usize = 1664;

/// Refuses what would nest too deep or be too wide.
///
/// # Errors
/// [`Error::Sql`] and [`Error::NotSupported`].
pub(crate) fn of_tokens(tokens: &[TokenWithSpan]) -> Result<()> {
    refuse_long_chains(tokens)?;
    refuse_many_columns(tokens)
}

/// `1 + 1 + 1` is parsed in a loop but nests as deep as it is long, and what nests is walked by recursion.
fn refuse_long_chains(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut outer: Vec<usize> = Vec::new();
    let mut count = 0_usize;
    for token in tokens {
        match &token.token {
            Token::LParen => outer.push(std::mem::take(&mut count)),
            Token::RParen => count = outer.pop().unwrap_or(0),
            Token::Comma | Token::SemiColon => count = 0,
            Token::Word(word) => count += usize::from(is_operator(word.keyword)),
            Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {}
            _ => count += 1,
        }
        if count > OPERATORS_MAX {
            let at = token.span.start;
            let error = Error::Sql(format!("more than {OPERATORS_MAX} operators in one expression"));
            return Err(error.at(Position::Statement { line: at.line, column: at.column }));
        }
    }
    Ok(())
}

/// Refuses a text of too many words before memory is taken for them.
///
/// # Errors
/// [`Error::NotSupported`].
pub(crate) fn of_text(sql: &str) -> Result<()> {
    if words(sql) <= TOKENS_MAX || tokens(sql) <= TOKENS_MAX {
        return Ok(());
    }
    Err(Error::NotSupported(format!(
        "a text of more than {TOKENS_MAX} words, numbers and signs: send it in parts, or rows with COPY"
    )))
}

/// What a text has at most, whatever of it stands in quotes.
fn words(sql: &str) -> usize {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let goes_on = |before: u8, byte: u8| byte.is_ascii_whitespace() || (is_word(byte) && is_word(before));
    std::iter::once(b' ').chain(sql.bytes()).zip(sql.bytes()).filter(|(before, byte)| !goes_on(*before, *byte)).count()
}

/// What a text has in the eyes of the tokenizer itself, which reads it piece by piece: whoever counted by rules of quotes of his
/// own could be told that all of it stands in some.
fn tokens(sql: &str) -> usize {
    let (mut at, mut bytes, mut count) = (0, PIECE_BYTES, 0);
    loop {
        let end = sql.floor_char_boundary(at + bytes);
        let piece = &sql[at..end];
        let mut tokens = Vec::new();
        let is_whole = Tokenizer::new(&Grammar, piece).tokenize_with_location_into_buf(&mut tokens).is_ok();
        if end == sql.len() || count > TOKENS_MAX {
            return count + tokens.len();
        }
        // The last one may go on behind the piece, and so may what the tokenizer did not understand.
        let last =
            if is_whole { tokens.pop().map(|token| token.span.start) } else { tokens.last().map(|it| it.span.end) };
        match last.map(|place| Places::new(piece).byte(place)) {
            Some(read) if read > 0 => (at, bytes, count) = (at + read, PIECE_BYTES, count + tokens.len()),
            _ => bytes += 2 * PIECE_BYTES,
        }
    }
}

fn refuse_many_columns(tokens: &[TokenWithSpan]) -> Result<()> {
    // The columns counted so far, while there are some to be counted; and those of the parentheses around.
    let (mut columns, mut outer): (Option<usize>, Vec<Option<usize>>) = (None, Vec::new());
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => outer.push(columns.take()),
            Token::RParen | Token::RBracket => columns = outer.pop().flatten(),
            Token::SemiColon => columns = None,
            Token::Word(word) => match word.keyword {
                Keyword::SELECT | Keyword::RETURNING => columns = Some(1),
                Keyword::FROM | Keyword::WHERE | Keyword::GROUP | Keyword::ORDER => columns = None,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => columns = None,
                _ => {}
            },
            Token::Comma => columns = columns.map(|columns| columns + 1),
            _ => {}
        }
        if columns.is_some_and(|columns| columns > COLUMNS_MAX) {
            return Err(Error::NotSupported(format!("more than {COLUMNS_MAX} columns in one SELECT")));
        }
    }
    Ok(())
}

fn is_operator(keyword: Keyword) -> bool {
    use Keyword::{AND, AT, COLLATE, EXCEPT, ILIKE, IN, INTERSECT, IS, JOIN, LIKE, NOT, OR, OVERLAPS, UNION};
    matches!(
        keyword,
        AND | OR | NOT | IS | IN | LIKE | ILIKE | UNION | EXCEPT | INTERSECT | JOIN | AT | COLLATE | OVERLAPS
    )
}

#[cfg(test)]
mod tests {
    use crate::statement::parse;

    #[test]
    fn texts_that_would_take_all_memory_are_refused() {
        let list = |columns: usize| vec!["1"; columns].join(",");
        assert!(parse(&format!("SELECT {}", list(super::COLUMNS_MAX))).is_ok());
        assert!(parse(&format!("SELECT {}", list(super::COLUMNS_MAX + 1))).is_err());
        assert!(parse(&format!("SELECT * FROM (SELECT {}) AS s", list(super::COLUMNS_MAX + 1))).is_err());
        assert!(parse(&format!("DELETE FROM t RETURNING {}", list(super::COLUMNS_MAX + 1))).is_err());
        // Lists that are no columns may be longer.
        assert!(parse(&format!("SELECT a, f({0}) FROM t WHERE a IN ({0})", list(5000))).is_ok());
        assert!(parse(&format!("INSERT INTO t VALUES {}", vec!["(1)"; 5000].join(","))).is_ok());
        assert!(parse(&format!("INSERT INTO t VALUES ({})", list(super::TOKENS_MAX))).is_err());
        assert!(parse(&format!("SELECT ARRAY[{}]", list(5000))).is_ok());
    }

    /// Whoever writes a quote where none begins does not get past it, and what stands in quotes is one word.
    #[test]
    fn words_are_counted_as_they_are_read() {
        let many = vec!["1"; super::TOKENS_MAX].join(",");
        for before in ["", "/*'*/", "--'\n", "\"'\" ", "$a$'$a$ ", "E'\\'' ", "X'\\'' ", "$1$'$1$ "] {
            let sql = format!("SELECT {before} IN ({many})");
            assert!(super::of_text(&sql).is_err(), "{before}");
        }
        for quoted in ["'a '' 1, 2; '", "$$a ' 1, 2; $$", "E'\\' 1, 2, '", "/* ' 1, 2, */"] {
            let text = quoted.replace("1, 2", &"1, 2 ".repeat(super::TOKENS_MAX / 2));
            assert!(super::of_text(&format!("SELECT {text}")).is_ok(), "{quoted}");
        }
    }
}
