//! From text to statements: parsing, splitting scripts, and names.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, Statement, Value as Literal};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::limits;
use crate::publishing;
use crate::tokens;

/// How deep expressions and queries may nest.
const DEPTH_MAX: usize = 100;

/// Texts kept parsed.
const CACHE_STATEMENTS_MAX: usize = 256;

/// Longer texts (bulk INSERTs) are not kept.
const CACHE_TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of the texts of all of them: a statement takes up to a hundred times its text.
const CACHE_BYTES_MAX: usize = 32 << 10;

/// Parses a text of any number of statements.
///
/// # Errors
/// [`Error::Sql`] with line and column of what is wrong.
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    parse_for(sql, false)
}

/// The same; `is_own`: a text of the database itself, which may name tables that are hidden from others.
fn parse_for(sql: &str, is_own: bool) -> Result<Vec<Statement>> {
    limits::of_text(sql)?;
    if sql.as_bytes().contains(&0) {
        return Err(Error::ZeroInText);
    }
    let tokens = Tokenizer::new(&Grammar, sql).tokenize_with_location()?;
    limits::of_tokens(&tokens)?;
    if !is_own {
        publishing::refuse_hidden(tokens.iter().map(|token| &token.token))?;
    }
    let tokens = tokens::adapt(tokens)?;
    let parser = Parser::new(&Grammar).with_recursion_limit(DEPTH_MAX);
    Ok(parser.with_tokens_with_locations(tokens).parse_statements()?)
}

/// A statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The line it begins on, counted from 1.
    pub line: usize,
    /// Its text, without the semicolon.
    pub text: &'a str,
    /// Whether a semicolon ended it: the last piece of an incomplete input has none.
    pub ended: bool,
}

/// Splits a script at its semicolons, minding quotes, comments and dollar quotes.
///
/// # Errors
/// [`Error::Sql`] for a quote or comment that does not end.
pub fn split(script: &str) -> Result<Vec<Piece<'_>>> {
    let tokens = Tokenizer::new(&Grammar, script).tokenize_with_location()?;
    let places = Places::new(script);
    let mut pieces = Vec::new();
    let mut first: Option<(usize, usize)> = None;
    let mut end = 0;
    for token in &tokens {
        match &token.token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => {
                if let Some((line, start)) = first.take() {
                    pieces.push(Piece { line, text: &script[start..end], ended: true });
                }
            }
            _ => {
                first.get_or_insert((token.span.start.line as usize, places.byte(token.span.start)));
                end = places.byte(token.span.end);
            }
        }
    }
    if let Some((line, start)) = first {
        pieces.push(Piece { line, text: &script[start..end.max(start)], ended: false });
    }
    Ok(pieces)
}

/// Byte offsets of the tokenizer's lines and columns (both counted from 1, columns in letters).
pub(crate) struct Places<'a> {
    script: &'a str,
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        let ends = script.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Places { script, lines: std::iter::once(0).chain(ends).collect() }
    }

    pub(crate) fn byte(&self, location: Location) -> usize {
        let line = (location.line as usize).saturating_sub(1);
        let Some(start) = self.lines.get(line).copied() else { return self.script.len() };
        let column = (location.column as usize).saturating_sub(1);
        self.script[start..].char_indices().nth(column).map_or(self.script.len(), |(at, _)| start + at)
    }
}

/// Statements already parsed, by their text.
#[derive(Default)]
pub(crate) struct Cache {
    parsed: HashMap<String, Arc<Vec<Statement>>>,
    /// Bytes of the texts.
    bytes: usize,
    /// Whether the texts are the database's own.
    pub is_own: bool,
}

impl Cache {
    pub(crate) fn parse(&mut self, sql: &str) -> Result<Arc<Vec<Statement>>> {
        if let Some(statements) = self.parsed.get(sql) {
            return Ok(statements.clone());
        }
        let statements = Arc::new(parse_for(sql, self.is_own)?);
        if sql.len() <= CACHE_TEXT_BYTES_MAX {
            if self.parsed.len() >= CACHE_STATEMENTS_MAX || self.bytes + sql.len() > CACHE_BYTES_MAX {
                self.parsed.clear();
                self.bytes = 0;
            }
            self.bytes += sql.len();
            self.parsed.insert(sql.to_owned(), statements.clone());
        }
        Ok(statements)
    }
}

/// A quoted literal.
pub(crate) fn quoted(text: impl Into<String>) -> Expr {
    Expr::Value(Literal::SingleQuotedString(text.into()).into())
}

/// An identifier folded as PostgreSQL does: lower case unless quoted.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        None => ident.value.to_lowercase(),
        Some(_) => ident.value.clone(),
    }
}

/// A name as an identifier that is never folded again.
pub(crate) fn ident(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Before the name of a table: what is kept apart of it, in one word.
const FUTURE_NAMES: &str = "__counterfoil_future_";

/// The one word under which SQL knows what is kept apart of a table: `future.NAME`, where a schema cannot be written.
pub fn kept_apart_name(table: &str) -> String {
    format!("{FUTURE_NAMES}{table}")
}

/// The table of which a name means what is kept apart.
pub(crate) fn kept_apart(name: &str) -> Option<&str> {
    name.strip_prefix(FUTURE_NAMES)
}

/// A table's name without the word for what is kept apart of it.
pub(crate) fn plain(name: &str) -> &str {
    kept_apart(name).unwrap_or(name)
}

/// The last part of a name that is qualified by nothing but our one schema.
///
/// # Errors
/// [`Error::NotFound`] for other schemas.
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let parts = parts(name)?;
    match parts.as_slice() {
        [table] => Ok(table.clone()),
        [schema, table] if schema == crate::SCHEMA => Ok(table.clone()),
        [schema, table] if schema == crate::series::FUTURE => Ok(kept_apart_name(table)),
        [catalog, schema, table] if schema == crate::SCHEMA && catalog == crate::CATALOG => Ok(table.clone()),
        _ => Err(Error::NotFound(format!("no schema in which {name} could be (the one schema is {})", crate::SCHEMA))),
    }
}

/// The folded parts of a name.
pub(crate) fn parts(name: &ObjectName) -> Result<Vec<String>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(fold(ident)),
        ObjectNamePart::Function(_) => Err(Error::NotSupported(format!("the name {name}"))),
    };
    name.0.iter().map(part).collect()
}

/// A name of one part that is never folded again.
pub(crate) fn object(name: &str) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(ident(name))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_split_at_semicolons_outside_quotes() {
        let script = "SELECT 'ä;b' -- ; no\n;\n\n  INSERT INTO t VALUES ($$;$$);SELECT 2";
        let pieces = split(script).unwrap();
        let shown: Vec<_> = pieces.iter().map(|piece| (piece.line, piece.text, piece.ended)).collect();
        assert_eq!(
            shown,
            [(1, "SELECT 'ä;b'", true), (4, "INSERT INTO t VALUES ($$;$$)", true), (4, "SELECT 2", false)]
        );
        assert!(split("SELECT 'open").is_err());
    }

    #[test]
    fn what_is_kept_parsed_is_bounded_by_its_number_and_its_texts() {
        let mut cache = Cache::default();
        for number in 0..2 * CACHE_STATEMENTS_MAX {
            cache.parse(&format!("SELECT {number}")).expect("parses");
            assert!(cache.parsed.len() <= CACHE_STATEMENTS_MAX);
        }
        for number in 0..20 {
            cache.parse(&format!("SELECT {number}, '{}'", "x".repeat(9000))).expect("parses");
            let bytes: usize = cache.parsed.keys().map(String::len).sum();
            assert!(bytes == cache.bytes && bytes <= CACHE_BYTES_MAX, "{bytes}");
        }
        cache.parse(&format!("SELECT '{}'", "x".repeat(CACHE_TEXT_BYTES_MAX))).expect("parses");
        assert_eq!(cache.parsed.len(), 2, "too long to be kept");
    }
}
