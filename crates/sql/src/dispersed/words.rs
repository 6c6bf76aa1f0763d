//! What is said of the columns of a dispersed table, and how that is changed.
//!
//! ```text
//! CREATE TABLE t (c INT FOR (equality, sum) USE CLOUDS 'a' AND 'b', ...) WITH (engine = 'dispersed', ...)
//! ALTER TABLE t ALTER [COLUMN] c FOR (equality, sum)          ALTER TABLE t ALTER [COLUMN] c USE CLOUDS 'a' AND 'b' | 'auto'
//! ALTER TABLE t SET (clouds = 'a, b, d', may_fail = 1)        REFRESH TABLE t
//! ```
//! `USE CLOUDS` is the paper's (section III.A, Listing 2), `cloud://` before a name may be left out.

use datafusion::sql::sqlparser::ast::{ColumnOption, Function, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::define::{option_for, option_use};
use crate::error::{Error, Result};
use crate::publishing::{call, is_call, parse_text, said, takes, wants};
use crate::statement::fold;

const ALTER: [&str; 2] = [crate::OWN, "alter_dispersed"];
const REFRESH: [&str; 2] = [crate::OWN, "refresh_table"];
/// All of the table's clouds.
const AUTO: &str = "auto";

/// How a dispersed table is to lie from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relaid {
    /// As it does, all of it made anew.
    Refreshed,
    /// A column for these operations.
    For { column: String, words: String },
    /// A column at these clouds; none: wherever the table lies.
    Use { column: String, clouds: Option<String> },
    /// With these options.
    Options(Vec<(String, String)>),
}

fn is_word(parser: &Parser<'_>, at: usize, word: &str) -> bool {
    matches!(&parser.peek_nth_token(at).token,
        Token::Word(next) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word))
}

/// Whether ALTER TABLE name ALTER [COLUMN] name is followed by words of ours.
fn begins_alter(parser: &Parser<'_>) -> bool {
    let column = if is_word(parser, 4, "COLUMN") { 5 } else { 4 };
    let is_ours = is_word(parser, column + 1, "USE") || is_word(parser, column + 1, "FOR");
    is_word(parser, 0, "ALTER") && is_word(parser, 1, "TABLE") && is_word(parser, 3, "ALTER") && is_ours
}

/// Reads one of the statements, if the text begins with its words.
pub(super) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    if is_word(parser, 0, "REFRESH") && is_word(parser, 1, "TABLE") {
        (0..2).for_each(|_| drop(parser.next_token()));
        return Some(parser.parse_identifier().map(|name| call(REFRESH, vec![("name", fold(&name))])));
    }
    begins_alter(parser).then(|| parse_alter(parser))
}

fn parse_alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    wants(parser, &["ALTER", "TABLE"])?;
    let mut said = vec![("name", fold(&parser.parse_identifier()?))];
    wants(parser, &["ALTER"])?;
    takes(parser, "COLUMN");
    said.push(("column", fold(&parser.parse_identifier()?)));
    said.push(match takes(parser, "FOR") {
        true => ("for", parse_for(parser)?.join(", ")),
        false => {
            wants(parser, &["USE", "CLOUDS"])?;
            ("use", parse_clouds(parser)?.join(", "))
        }
    });
    Ok(call(ALTER, said))
}

/// (equality, sum): behind FOR.
fn parse_for(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_token(&Token::RParen)?;
    Ok(names.iter().map(fold).collect())
}

/// 'a' AND 'b': behind USE CLOUDS.
fn parse_clouds(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    let mut clouds = Vec::new();
    loop {
        let name = parse_text(parser)?;
        clouds.push(name.trim().strip_prefix("cloud://").unwrap_or(name.trim()).to_lowercase());
        if !takes(parser, "AND") {
            return Ok(clouds);
        }
    }
}

/// FOR (...) or USE CLOUDS ... of a column: as a word, and what it is followed by.
pub(crate) fn parse_column_option(parser: &mut Parser<'_>) -> Result<Option<ColumnOption>, ParserError> {
    let is_for = is_word(parser, 0, "FOR") && parser.peek_nth_token(1).token == Token::LParen;
    let is_use = is_word(parser, 0, "USE") && is_word(parser, 1, "CLOUDS");
    if !is_for && !is_use {
        return Ok(None);
    }
    let mut tokens = vec![parser.next_token().token];
    if is_for {
        tokens.extend(parse_for(parser)?.iter().map(|word| Token::make_word(word, None)));
    } else {
        wants(parser, &["CLOUDS"])?;
        tokens.extend(parse_clouds(parser)?.into_iter().map(Token::SingleQuotedString));
    }
    Ok(Some(ColumnOption::DialectSpecific(tokens)))
}

/// The option that stands for what a column says; none: it says nothing that is not so anyway.
pub(super) fn option_of(column: &str, tokens: &[Token]) -> Option<(String, String)> {
    let (first, words) = tokens.split_first()?;
    let word = |token: &Token| match token {
        Token::SingleQuotedString(word) => Some(word.clone()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    };
    let words = words.iter().filter_map(word).collect::<Vec<_>>().join(", ");
    match first {
        Token::Word(word) if word.value.eq_ignore_ascii_case("for") => Some(option_for(column, &words)),
        _ if words == AUTO => None,
        _ => Some(option_use(column, &words)),
    }
}

/// What a call stands for: a table, and how it is to lie; nothing for one of another function.
pub(super) fn read(function: &Function) -> Result<Option<(String, Relaid)>> {
    let is_refresh = is_call(function, REFRESH);
    if !is_refresh && !is_call(function, ALTER) {
        return Ok(None);
    }
    let wrong = || Error::Sql("use ALTER TABLE and REFRESH TABLE".into());
    let said = said(function).ok_or_else(wrong)?;
    match &said[..] {
        [("name", table)] if is_refresh => Ok(Some((table.clone(), Relaid::Refreshed))),
        [("name", table), ("column", column), ("for", words)] => {
            Ok(Some((table.clone(), Relaid::For { column: column.clone(), words: words.clone() })))
        }
        [("name", table), ("column", column), ("use", clouds)] => {
            let clouds = Some(clouds.clone()).filter(|clouds| clouds != AUTO);
            Ok(Some((table.clone(), Relaid::Use { column: column.clone(), clouds })))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement;

    fn read_one(sql: &str) -> (String, Relaid) {
        let statements = statement::parse(sql).expect("a statement");
        let [Statement::Call(function)] = &statements[..] else { panic!("{statements:?}") };
        read(function).expect("one of ours").expect("one of ours")
    }

    #[test]
    fn changes_are_read() {
        let column = || "salary".to_owned();
        let of = |relaid| ("people".to_owned(), relaid);
        assert_eq!(read_one("refresh table People"), of(Relaid::Refreshed));
        let sql = "ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'cloud://A' AND 'b'";
        let clouds = Some("a, b".to_owned());
        assert_eq!(read_one(sql), of(Relaid::Use { column: column(), clouds }));
        let sql = "ALTER TABLE people ALTER salary USE CLOUDS 'auto'";
        assert_eq!(read_one(sql), of(Relaid::Use { column: column(), clouds: None }));
        let sql = "alter table people alter column Salary for (SUM, range)";
        assert_eq!(read_one(sql), of(Relaid::For { column: column(), words: "sum, range".into() }));
        for sql in ["ALTER TABLE t ALTER c USE CLOUDS", "ALTER TABLE t ALTER c USE CLOUDS 'a' AND", "REFRESH TABLE"] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        // What others say of columns is theirs.
        let others = statement::parse("ALTER TABLE t ALTER COLUMN c SET NOT NULL").expect("a statement");
        assert!(matches!(others[..], [Statement::AlterTable(_)]));
    }

    #[test]
    fn columns_say_what_they_are_for_and_where_they_lie() {
        let sql = "CREATE TABLE t (a TEXT FOR (Equality, prefix) NOT NULL, b INT USE CLOUDS 'x' AND 'y', c INT USE CLOUDS 'auto')";
        let statements = statement::parse(sql).expect("a statement");
        let [Statement::CreateTable(create)] = &statements[..] else { panic!("a table") };
        let option = |at: usize| {
            let ColumnOption::DialectSpecific(tokens) = &create.columns[at].options[0].option else {
                panic!("an option")
            };
            option_of("it", tokens)
        };
        assert_eq!(option(0), Some(("for it".into(), "equality, prefix".into())));
        assert_eq!(option(1), Some(("use it".into(), "x, y".into())));
        assert_eq!(option(2), None);
        assert_eq!(create.columns[0].options.len(), 2);
        assert!(statement::parse("CREATE TABLE t (a TEXT FOR ())").is_err());
    }
}
