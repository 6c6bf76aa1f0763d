//! What is said of the columns of a dispersed table, and how that is changed.
//!
//! ```text
//! CREATE TABLE t (c INT FOR (equality, sum) USE CLOUDS 'a' AND 'b', ...) WITH (engine = 'dispersed', ...)
//! ALTER TABLE t ALTER [COLUMN] c FOR (equality, sum)
//! ALTER TABLE t ALTER [COLUMN] c USE CLOUDS 'a' AND 'b' | 'auto' [WITH 'encryption, dispersion']
//! USE CLOUDS 'a' AND 'b' | 'auto' | NONE [WITH ...]           for tables that are made from here on and say nothing else
//! ALTER TABLE t SET (clouds = 'a, b, d', may_fail = 1)        REFRESH TABLE t
//! ```
//! `USE CLOUDS` is the paper's (section III.A, Listings 1 and 2), `cloud://` before a name may be left out; a folder may be called by its
//! address, `'file:///securefolder'` (folders.rs).

use datafusion::sql::sqlparser::ast::{ColumnOption, Function, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::define::{option_for, option_use, option_with};
use super::folders::FILE;
use crate::error::{Error, Result};
use crate::publishing::{call, is_call, parse_table, parse_text, said, takes, wants};
use crate::statement::fold;

const ALTER: [&str; 2] = [crate::OWN, "alter_dispersed"];
const REFRESH: [&str; 2] = [crate::OWN, "refresh_table"];
const USE: [&str; 2] = [crate::OWN, "use_clouds"];
/// Before a word for what shows clouds more than it must.
const DANGER: &str = "danger";
/// All of the table's clouds, or all that there are.
pub(super) const AUTO: &str = "auto";

/// How a dispersed table is to lie from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relaid {
    /// As it does, all of it made anew.
    Refreshed,
    /// A column for these operations.
    For { column: String, words: String },
    /// A column at these clouds.
    Use { column: String, used: Used },
    /// With these options.
    Options(Vec<(String, String)>),
}

/// Clouds, and how something is distributed over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// Which; none: all of them.
    pub clouds: Option<String>,
    /// How; none: nothing is said of it.
    pub coding: Option<String>,
}

impl Used {
    fn of(clouds: &str, coding: Option<&str>) -> Self {
        Self { clouds: Some(clouds.to_owned()).filter(|clouds| clouds != AUTO), coding: coding.map(str::to_owned) }
    }
}

fn is_word(parser: &Parser<'_>, at: usize, word: &str) -> bool {
    matches!(&parser.peek_nth_token(at).token,
        Token::Word(next) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word))
}

/// Whether ALTER TABLE name ALTER [COLUMN] name is followed by words of ours.
fn begins_alter(parser: &Parser<'_>) -> bool {
    // Behind the name, which may have a schema.
    let alter = if parser.peek_nth_token(3).token == Token::Period { 5 } else { 3 };
    let column = if is_word(parser, alter + 1, "COLUMN") { alter + 2 } else { alter + 1 };
    let is_ours = is_word(parser, column + 1, "USE") || is_word(parser, column + 1, "FOR");
    is_word(parser, 0, "ALTER") && is_word(parser, 1, "TABLE") && is_word(parser, alter, "ALTER") && is_ours
}

/// Reads one of the statements, if the text begins with its words.
pub(super) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    if is_word(parser, 0, "REFRESH") && is_word(parser, 1, "TABLE") {
        (0..2).for_each(|_| drop(parser.next_token()));
        return Some(parse_table(parser).map(|name| call(REFRESH, vec![("name", name)])));
    }
    if is_word(parser, 0, "USE") && is_word(parser, 1, "CLOUDS") {
        return Some(parse_use(parser));
    }
    begins_alter(parser).then(|| parse_alter(parser))
}

fn parse_use(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    wants(parser, &["USE", "CLOUDS"])?;
    Ok(call(USE, if takes(parser, "NONE") { Vec::new() } else { parse_used(parser)? }))
}

/// 'a' AND 'b' WITH 'encryption, dispersion': behind USE CLOUDS.
fn parse_used(parser: &mut Parser<'_>) -> Result<Vec<(&'static str, String)>, ParserError> {
    let mut said = vec![("use", parse_clouds(parser)?.join(", "))];
    if takes(parser, "WITH") {
        said.push(("with", parse_text(parser)?));
    }
    Ok(said)
}

fn parse_alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    wants(parser, &["ALTER", "TABLE"])?;
    let mut said = vec![("name", parse_table(parser)?)];
    wants(parser, &["ALTER"])?;
    takes(parser, "COLUMN");
    said.push(("column", fold(&parser.parse_identifier()?)));
    if takes(parser, "FOR") {
        said.push(("for", parse_for(parser)?.join(", ")));
    } else {
        wants(parser, &["USE", "CLOUDS"])?;
        said.extend(parse_used(parser)?);
    }
    Ok(call(ALTER, said))
}

/// (equality, sum): behind FOR.
fn parse_for(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let word = |parser: &mut Parser<'_>, before: &str| {
        let said = parser.peek_token().token;
        let wants = || {
            let text = format!("FOR ({before}{said}: equality, prefix, sum, range or danger order are due");
            ParserError::ParserError(text)
        };
        parser.parse_identifier().map(|name| fold(&name)).map_err(|_| wants())
    };
    let names = parser.parse_comma_separated(|parser| {
        let name = word(parser, "")?;
        // What shows clouds more than it must is said in two words.
        Ok(if name == DANGER { format!("{name} {}", word(parser, "danger ")?) } else { name })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

/// 'a' AND 'b': behind USE CLOUDS.
fn parse_clouds(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    let mut clouds = Vec::new();
    loop {
        clouds.push(cloud_name(parse_text(parser)?.trim())?);
        if !takes(parser, "AND") {
            return Ok(clouds);
        }
    }
}

/// A cloud's name, or a folder's address. Any other address takes more to be known again, which a cloud is declared with.
fn cloud_name(said: &str) -> Result<String, ParserError> {
    let name = said.strip_prefix("cloud://").unwrap_or(said);
    let is_folder = said.strip_prefix(FILE).is_some_and(|path| path.starts_with('/') && !path.contains(','));
    if is_folder {
        return Ok(said.to_owned());
    }
    if !name.contains("://") {
        return Ok(name.to_lowercase());
    }
    let folder = said.strip_prefix(FILE).map(|path| format!("dir:{path}"));
    let url = folder.as_deref().unwrap_or(said);
    Err(ParserError::ParserError(format!(
        "USE CLOUDS '{said}': clouds have names there: CREATE CLOUD a OPTIONS (url '{url}') declares one, and USE CLOUDS 'a' names it"
    )))
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
        tokens.extend(parse_used(parser)?.into_iter().map(|(_, said)| Token::SingleQuotedString(said)));
    }
    Ok(Some(ColumnOption::DialectSpecific(tokens)))
}

/// The options that stand for what a column says; none where it says nothing that is not so anyway.
pub(super) fn options_of(column: &str, tokens: &[Token]) -> Vec<(String, String)> {
    let Some((first, words)) = tokens.split_first() else { return Vec::new() };
    let word = |token: &Token| match token {
        Token::SingleQuotedString(word) => Some(word.clone()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    };
    let words: Vec<String> = words.iter().filter_map(word).collect();
    if matches!(first, Token::Word(word) if word.value.eq_ignore_ascii_case("for")) {
        return vec![option_for(column, &words.join(", "))];
    }
    let (clouds, coding) = (words.first().filter(|clouds| *clouds != AUTO), words.get(1));
    let clouds = clouds.map(|clouds| option_use(column, clouds));
    clouds.into_iter().chain(coding.map(|coding| option_with(column, coding))).collect()
}

/// What a call of USE CLOUDS says of tables to come, if it is one: nothing more, or where they lie.
pub(super) fn read_use(function: &Function) -> Result<Option<Option<Used>>> {
    if !is_call(function, USE) {
        return Ok(None);
    }
    let wrong = || Error::Sql("use USE CLOUDS".into());
    match &said(function).ok_or_else(wrong)?[..] {
        [] => Ok(Some(None)),
        [("use", clouds)] => Ok(Some(Some(Used::of(clouds, None)))),
        [("use", clouds), ("with", coding)] => Ok(Some(Some(Used::of(clouds, Some(coding))))),
        _ => Err(wrong()),
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
        [("name", table), ("column", column), ("use", clouds), with @ ..] => {
            let coding = match with {
                [] => None,
                [("with", coding)] => Some(coding.as_str()),
                _ => return Err(wrong()),
            };
            Ok(Some((table.clone(), Relaid::Use { column: column.clone(), used: Used::of(clouds, coding) })))
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
        assert_eq!(read_one("refresh table Public.People"), of(Relaid::Refreshed));
        assert_eq!(read_one("refresh table People"), of(Relaid::Refreshed));
        let sql = "ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'cloud://A' AND 'b'";
        assert_eq!(read_one(sql), of(Relaid::Use { column: column(), used: Used::of("a, b", None) }));
        let with = format!("{sql} WITH 'encryption, dispersion'");
        let used = Used::of("a, b", Some("encryption, dispersion"));
        assert_eq!(read_one(&with), of(Relaid::Use { column: column(), used }));
        let sql = "ALTER TABLE public.people ALTER salary USE CLOUDS 'auto'";
        assert_eq!(read_one(sql), of(Relaid::Use { column: column(), used: Used { clouds: None, coding: None } }));
        let sql = "alter table people alter column salary for (sum, Danger Order)";
        assert_eq!(read_one(sql), of(Relaid::For { column: column(), words: "sum, danger order".into() }));
        let sql = "alter table people alter column Salary for (SUM, range)";
        assert_eq!(read_one(sql), of(Relaid::For { column: column(), words: "sum, range".into() }));
        for sql in [
            "ALTER TABLE t ALTER c USE CLOUDS",
            "ALTER TABLE t ALTER c FOR (danger)",
            "ALTER TABLE t ALTER c USE CLOUDS 'a' AND",
            "REFRESH TABLE",
            "USE CLOUDS",
            "USE CLOUDS 'a' WITH",
            "USE CLOUDS 'file://example.com/folder' AND 'a'",
            "USE CLOUDS 'file:///secure,folder'",
            "USE CLOUDS 's3://bucket/folder'",
        ] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        // What others say of columns is theirs.
        let others = statement::parse("ALTER TABLE t ALTER COLUMN c SET NOT NULL").expect("a statement");
        assert!(matches!(others[..], [Statement::AlterTable(_)]));
    }

    #[test]
    fn a_session_says_where_tables_are_to_lie() {
        let used = |sql: &str| {
            let statements = statement::parse(sql).expect("a statement");
            let [Statement::Call(function)] = &statements[..] else { panic!("{statements:?}") };
            read_use(function).expect("one of ours").expect("one of ours")
        };
        let said = used("USE CLOUDS 'cloud://ec2' AND 'cloud://ostack-private' WITH 'encryption, dispersion'");
        assert_eq!(said, Some(Used::of("ec2, ostack-private", Some("encryption, dispersion"))));
        let said = used("USE CLOUDS 'file:///SecureFolder' AND 'file:///secureshare'");
        assert_eq!(said, Some(Used::of("file:///SecureFolder, file:///secureshare", None)));
        assert_eq!(used("use clouds 'auto'"), Some(Used { clouds: None, coding: None }));
        assert_eq!(used("USE CLOUDS NONE"), None);
    }

    #[test]
    fn columns_say_what_they_are_for_and_where_they_lie() {
        let sql = "CREATE TABLE t (a TEXT FOR (Equality, prefix) NOT NULL, b INT USE CLOUDS 'x' AND 'y', c INT USE CLOUDS 'auto' WITH 'encryption')";
        let statements = statement::parse(sql).expect("a statement");
        let [Statement::CreateTable(create)] = &statements[..] else { panic!("a table") };
        let option = |at: usize| {
            let ColumnOption::DialectSpecific(tokens) = &create.columns[at].options[0].option else {
                panic!("an option")
            };
            options_of("it", tokens)
        };
        assert_eq!(option(0), [("for it".into(), "equality, prefix".into())]);
        assert_eq!(option(1), [("use it".into(), "x, y".into())]);
        assert_eq!(option(2), [("with it".into(), "encryption".into())]);
        assert_eq!(create.columns[0].options.len(), 2);
        assert!(statement::parse("CREATE TABLE t (a TEXT FOR ())").is_err());
    }
}
