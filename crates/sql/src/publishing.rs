//! PUBLISH, UNPUBLISH and SHOW PUBLICATIONS: what they say, and who does it.
//!
//! ```text
//! PUBLISH TABLE quotes ORDER BY symbol, day [ORDER BY price] [EVERY '1 hour'] [RENEW '30 days'] [MAX AGE '60 days']
//!     [SIGN PER RECORD | SIGN PER ATTRIBUTE | SIGN [PER] GROUP [(16)]] [WITHOUT TOTALS] [WITHOUT FILTERS]
//!     TO 'dir:/srv/quotes' [, 's3://bucket/quotes' [, 'https://example.com']]
//! UNPUBLISH quotes [FORGET KEYS]
//! ```
//! This floor reads them and knows which tables are published, which nobody alters meanwhile. Signing is a matter of the
//! floor above, which gives the engine a [`Publisher`]. The library's tree of statements has no place for them: there they
//! stand as a CALL of a function that this floor alone runs.
//!
//! A table is published if the record `publication/NAME` of space SETTING is there; its bytes are the publisher's.

use std::time::Duration;

use counterfoil_log::{View, record_space};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, Value as Literal,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dispersed;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::session::{Outcome, Session};
use crate::show;
use crate::statement::{fold, quoted, table_name};

/// How the tables are called in which a publisher keeps its keys. Nobody names them in SQL.
const LEDGER_NAMES: &str = "__counterfoil_published_";

const RECORDS: &[u8] = b"publication/";

/// The schema and the names of the functions that stand for the statements.
const PUBLISH: [&str; 2] = [crate::OWN, "publish"];
const UNPUBLISH: [&str; 2] = [crate::OWN, "unpublish"];

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// After which signatures are made again, if PUBLISH does not say: so long, or so many lists of changes, each of which readers fetch.
const RENEW: Duration = Duration::from_secs(90 * 24 * 3600);
const LISTS: u32 = 10_000;

/// Rows of a group at most, if PUBLISH says no number.
const GROUP_ROWS: u8 = 16;

/// How much one signature covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// A row.
    PerRecord,
    /// A value.
    PerAttribute,
    /// So many rows at most.
    Group(u8),
}

/// What PUBLISH asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The table.
    pub table: String,
    /// Columns by which readers ask.
    pub orders: Vec<Vec<String>>,
    /// Between two lists of changes.
    pub every: Duration,
    /// After which signatures are made again.
    pub renew: Duration,
    /// After which signatures do not count any more, if they ever do not.
    pub max_age: Option<Duration>,
    /// How rows are signed, if that is said: of a table that is published already it stays.
    pub signing: Option<Signing>,
    /// Whether totals along the first order are signed beside the rows.
    pub totals: bool,
    /// Whether filters of the orders' first columns are, for joins.
    pub filters: bool,
    /// Who is told.
    pub targets: Vec<String>,
}

/// What is asked of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// Publish a table, or publish it otherwise.
    Publish(Publish),
    /// End it.
    Unpublish {
        /// The table.
        table: String,
        /// Whether the keys go too: the owner's name is lost with them.
        forgets_keys: bool,
    },
    /// List what is published.
    Show,
}

/// What a publisher answers.
#[derive(Debug, Default)]
pub struct Published {
    /// A table of texts: names and values of columns.
    pub columns: Vec<(&'static str, Vec<Option<String>>)>,
    /// What is to be said beside it.
    pub notices: Vec<String>,
}

/// Who signs tables and brings them to others.
pub trait Publisher: Send + Sync {
    /// Does it, outside of any transaction, unless it is called off.
    ///
    /// # Errors
    /// Whatever speaks against it; [`Error::Interrupted`].
    fn publish(&self, asked: &Publishing, interrupt: &Interrupt) -> Result<Published>;
}

/// The table in which the keys of a published one are kept.
#[must_use]
pub fn ledger_name(table: &str) -> String {
    format!("{LEDGER_NAMES}{table}")
}

/// Whether a table of this name is one that nobody lists, exports or names in SQL.
#[must_use]
pub fn is_hidden(table: &str) -> bool {
    table.starts_with(LEDGER_NAMES)
}

/// The name of the record that says that a table is published.
#[must_use]
pub fn record_name(table: &str) -> Vec<u8> {
    [RECORDS, table.as_bytes()].concat()
}

/// The tables that are published, and what their publisher keeps of them.
#[must_use]
pub fn publications(view: &dyn View) -> Vec<(String, Vec<u8>)> {
    let records = view.records(record_space::SETTING, RECORDS);
    let table = |name: &[u8]| String::from_utf8_lossy(&name[RECORDS.len()..]).into_owned();
    records.into_iter().map(|(name, value)| (table(&name), value.to_vec())).collect()
}

/// Refuses what would change the columns of a published table, or end it: its signatures tell of them.
pub(crate) fn keep_published(view: &dyn View, table: &str) -> Result<()> {
    match view.record(record_space::SETTING, &record_name(table)) {
        None => Ok(()),
        Some(_) => Err(Error::Misuse(format!("table {table} is published: UNPUBLISH {} first", show::quoted(table)))),
    }
}

/// Refuses texts that name a hidden table.
pub(crate) fn refuse_hidden<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> Result<()> {
    let hides = |token: &Token| matches!(token, Token::Word(word) if is_hidden(&word.value.to_lowercase()));
    match tokens.into_iter().any(hides) {
        true => Err(Error::Sql(format!("names that begin with {LEDGER_NAMES} are reserved"))),
        false => Ok(()),
    }
}

/// Reads one of the statements, if the text begins with its word.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    if takes(parser, "PUBLISH") {
        Some(parse_publish(parser))
    } else if takes(parser, "UNPUBLISH") {
        Some(parse_unpublish(parser))
    } else {
        None
    }
}

/// Whether the next token is this word, which is taken then. A quoted name is none.
pub(crate) fn takes(parser: &mut Parser<'_>, word: &str) -> bool {
    let is = matches!(&parser.peek_token().token,
        Token::Word(next) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word));
    if is {
        parser.next_token();
    }
    is
}

pub(crate) fn wants(parser: &mut Parser<'_>, words: &[&str]) -> Result<(), ParserError> {
    for word in words {
        if !takes(parser, word) {
            return parser.expected(word, parser.peek_token());
        }
    }
    Ok(())
}

fn parse_publish(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    wants(parser, &["TABLE"])?;
    let mut said = vec![("table", parse_table(parser)?)];
    loop {
        if takes(parser, "ORDER") {
            wants(parser, &["BY"])?;
            let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
            let names = std::iter::once("by").chain(std::iter::repeat("then"));
            said.extend(names.zip(columns.iter().map(fold)));
        } else if takes(parser, "EVERY") {
            said.push(("every", parse_text(parser)?));
        } else if takes(parser, "RENEW") {
            said.push(("renew", parse_text(parser)?));
        } else if takes(parser, "MAX") {
            wants(parser, &["AGE"])?;
            said.push(("age", parse_text(parser)?));
        } else if takes(parser, "SIGN") {
            said.push(("sign", parse_signing(parser)?));
        } else if takes(parser, "WITHOUT") {
            said.push(("without", parser.parse_identifier()?.value.to_lowercase()));
        } else {
            wants(parser, &["TO"])?;
            let targets = parser.parse_comma_separated(parse_text)?;
            said.extend(targets.into_iter().map(|target| ("to", target)));
            return Ok(call(PUBLISH, said));
        }
    }
}

/// PER RECORD, PER ATTRIBUTE, [PER] GROUP or [PER] GROUP (16): `record`, `attribute`, `group`, `16`.
fn parse_signing(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let is_per = takes(parser, "PER");
    if !takes(parser, "GROUP") {
        return match is_per {
            true => Ok(parser.parse_identifier()?.value.to_lowercase()),
            false => parser.expected("PER RECORD, PER ATTRIBUTE or GROUP", parser.peek_token()),
        };
    }
    if parser.peek_token().token != Token::LParen {
        return Ok("group".into());
    }
    parser.expect_token(&Token::LParen)?;
    let rows = parser.parse_literal_uint()?;
    parser.expect_token(&Token::RParen)?;
    Ok(rows.to_string())
}

/// A text in quotes. The library would take a name for one.
pub(crate) fn parse_text(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    match parser.next_token() {
        TokenWithSpan { token: Token::SingleQuotedString(text), .. } => Ok(text),
        other => parser.expected("a text in quotes", other),
    }
}

/// The name of a table, with its schema or without.
pub(crate) fn parse_table(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let name = parser.parse_object_name(false)?;
    table_name(&name).map_err(|error| ParserError::ParserError(error.to_string()))
}

fn parse_unpublish(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    takes(parser, "TABLE");
    let mut said = vec![("table", parse_table(parser)?)];
    if takes(parser, "FORGET") {
        wants(parser, &["KEYS"])?;
        said.push(("forget", "keys".into()));
    }
    Ok(call(UNPUBLISH, said))
}

pub(crate) fn call(name: [&str; 2], said: Vec<(&str, String)>) -> Statement {
    let argument = |(name, value): (&str, String)| FunctionArg::Named {
        name: Ident::new(name),
        arg: FunctionArgExpr::Expr(quoted(value)),
        operator: FunctionArgOperator::RightArrow,
    };
    let args = said.into_iter().map(argument).collect();
    Statement::Call(Function {
        name: ObjectName::from(name.map(Ident::new).to_vec()),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Whether a call is of this function.
pub(crate) fn is_call(function: &Function, name: [&str; 2]) -> bool {
    function.name == ObjectName::from(name.map(Ident::new).to_vec())
}

/// What [`call`] was given, if nobody else wrote the call.
pub(crate) fn said(function: &Function) -> Option<Vec<(&str, String)>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    fn one(argument: &FunctionArg) -> Option<(&str, String)> {
        match argument {
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(Expr::Value(value)), .. } => match &value.value {
                Literal::SingleQuotedString(text) => Some((name.value.as_str(), text.clone())),
                _ => None,
            },
            _ => None,
        }
    }
    list.args.iter().map(one).collect()
}

/// What a call stands for; nothing for one of another function.
fn read(function: &Function) -> Result<Option<Publishing>> {
    let named = |name: [&str; 2]| is_call(function, name);
    if !named(PUBLISH) && !named(UNPUBLISH) {
        return Ok(None);
    }
    let wrong = || Error::Sql("use PUBLISH and UNPUBLISH".into());
    let said = said(function).ok_or_else(wrong)?;
    let Some(("table", table)) = said.first().cloned() else { return Err(wrong()) };
    let rest = &said[1..];
    if named(UNPUBLISH) {
        return Ok(Some(Publishing::Unpublish { table, forgets_keys: !rest.is_empty() }));
    }
    read_publish(table, rest).map(|publish| Some(Publishing::Publish(publish)))
}

fn read_publish(table: String, said: &[(&str, String)]) -> Result<Publish> {
    let (orders, targets) = (Vec::<Vec<String>>::new(), Vec::new());
    let (every, mut renew) = (HOUR, None);
    let (max_age, signing) = (None, None);
    let mut publish =
        Publish { table, orders, every, renew: RENEW, max_age, signing, totals: true, filters: true, targets };
    for (place, (name, value)) in said.iter().enumerate() {
        let is_once = ["every", "renew", "age", "sign"].contains(name);
        if is_once && said[..place].iter().any(|(before, _)| before == name) {
            let clause = if *name == "age" { "MAX AGE".into() } else { name.to_uppercase() };
            return Err(Error::Sql(format!("{clause} is said twice: say it once")));
        }
        match *name {
            "by" => publish.orders.push(vec![value.clone()]),
            "then" => publish.orders.last_mut().into_iter().for_each(|order| order.push(value.clone())),
            "every" => publish.every = duration(value)?,
            "renew" => renew = Some(duration(value)?),
            "age" => publish.max_age = Some(duration(value)?),
            "sign" => publish.signing = Some(self::signing(value)?),
            "without" if value == "totals" => publish.totals = false,
            "without" if value == "filters" => publish.filters = false,
            "without" => return Err(Error::Sql(format!("WITHOUT {}: TOTALS or FILTERS", value.to_uppercase()))),
            _ => publish.targets.push(value.clone()),
        }
    }
    publish.renew = renew.unwrap_or(RENEW.min(publish.every.saturating_mul(LISTS)));
    if publish.orders.is_empty() {
        return Err(Error::Sql("by which columns will readers ask? PUBLISH TABLE ... ORDER BY ...".into()));
    }
    Ok(publish)
}

/// What [`parse_signing`] gave.
fn signing(text: &str) -> Result<Signing> {
    match text {
        "record" => return Ok(Signing::PerRecord),
        "attribute" => return Ok(Signing::PerAttribute),
        "group" => return Ok(Signing::Group(GROUP_ROWS)),
        _ => {}
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(Error::Sql(format!(
            "SIGN PER {}: rows are signed PER RECORD or PER ATTRIBUTE",
            text.to_uppercase()
        )));
    }
    let rows = text.parse().ok().filter(|rows| (2..=64).contains(rows));
    rows.map(Signing::Group).ok_or_else(|| Error::Sql(format!("SIGN GROUP ({text}): groups have 2 to 64 rows")))
}

/// `1 hour`, `30 days`, `90s`.
fn duration(text: &str) -> Result<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let wrong = || Error::Sql(format!("{text} is no duration such as '1 hour' or '30 days'"));
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = text[digits..].trim().to_ascii_lowercase();
    let unit = match unit.strip_suffix('s').filter(|unit| unit.len() > 1).unwrap_or(&unit) {
        "s" | "sec" | "second" => Duration::from_secs(1),
        "min" | "minute" => Duration::from_secs(60),
        "h" | "hour" => HOUR,
        "d" | "day" => DAY,
        "week" => 7 * DAY,
        _ => return Err(wrong()),
    };
    let number = u32::try_from(number).map_err(|_| wrong())?;
    // Ten years are enough, and no sum of them overflows.
    let duration = unit.checked_mul(number).filter(|duration| !duration.is_zero() && *duration <= 3660 * DAY);
    duration.ok_or_else(wrong)
}

impl Session {
    /// Runs a CALL: of what stands for PUBLISH, UNPUBLISH, CREATE CLOUD and DROP CLOUD.
    pub(crate) fn call(&mut self, function: &Function) -> Result<Outcome> {
        if let Some(asked) = dispersed::read(function)? {
            return self.ask_clouds(asked);
        }
        let Some(asked) = read(function)? else {
            return Err(Error::NotSupported(format!("CALL {}", function.name)));
        };
        self.guard.transaction.allows_alone("PUBLISH or UNPUBLISH")?;
        self.rights.to_publish()?;
        self.to_write()?;
        self.ask_publisher(&asked)
    }

    /// SHOW PUBLICATIONS.
    pub(crate) fn show_publications(&mut self) -> Result<Outcome> {
        self.ask_publisher(&Publishing::Show)
    }

    fn ask_publisher(&mut self, asked: &Publishing) -> Result<Outcome> {
        let engine = self.engine().clone();
        let publisher = engine.publisher.get();
        let publisher =
            publisher.ok_or_else(|| Error::NotSupported("publishing, in a program built without it".into()))?;
        let published = publisher.publish(asked, &self.interrupt())?;
        self.notices.extend(published.notices);
        show::table(published.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement;

    fn read_one(sql: &str) -> Result<Publishing> {
        let statements = statement::parse(sql)?;
        let [Statement::Call(function)] = &statements[..] else { panic!("{statements:?}") };
        read(function).map(|asked| asked.expect("one of ours"))
    }

    #[test]
    fn all_that_can_be_said_is_read() {
        let sql = "publish TABLE Quotes ORDER BY symbol, \"Day\" ORDER BY price EVERY '5 min' RENEW '30 days' \
                   SIGN PER RECORD TO 'dir:/srv/it''s', 'https://example.com'";
        let Ok(Publishing::Publish(publish)) = read_one(sql) else { panic!("not read") };
        let orders = [vec!["symbol".to_owned(), "Day".into()], vec!["price".into()]];
        assert_eq!((publish.table.as_str(), &publish.orders[..]), ("quotes", &orders[..]));
        assert_eq!((publish.every, publish.renew), (Duration::from_secs(300), 30 * DAY));
        assert_eq!(publish.targets, ["dir:/srv/it's", "https://example.com"]);
        let Ok(Publishing::Publish(publish)) = read_one("PUBLISH TABLE t ORDER BY a TO 'dir:x'") else { panic!() };
        assert_eq!((publish.every, publish.renew, publish.signing), (HOUR, 90 * DAY, None));
        assert!(publish.totals && publish.filters && publish.max_age.is_none());
        let Ok(Publishing::Publish(publish)) = read_one("PUBLISH TABLE t ORDER BY a EVERY '1 min' TO 'dir:x'") else {
            panic!()
        };
        assert_eq!(publish.renew, Duration::from_secs(600_000));
        let sql = "PUBLISH TABLE t ORDER BY a RENEW '30 days' MAX AGE '60 days' TO 'dir:x'";
        let Ok(Publishing::Publish(publish)) = read_one(sql) else { panic!("{sql}") };
        assert_eq!((publish.renew, publish.max_age), (30 * DAY, Some(60 * DAY)));
        for (words, kept) in [("TOTALS", (false, true)), ("FILTERS", (true, false))] {
            let sql = format!("PUBLISH TABLE t ORDER BY a WITHOUT {words} TO 'dir:x'");
            let Ok(Publishing::Publish(publish)) = read_one(&sql) else { panic!("{sql}") };
            assert_eq!((publish.totals, publish.filters), kept, "{sql}");
        }
        for (text, wanted) in [
            ("per record", Signing::PerRecord),
            ("PER Attribute", Signing::PerAttribute),
            ("GROUP", Signing::Group(16)),
            ("group (2)", Signing::Group(2)),
            ("GROUP(64)", Signing::Group(64)),
            ("PER GROUP (16)", Signing::Group(16)),
            ("PER GROUP", Signing::Group(16)),
        ] {
            let sql = format!("PUBLISH TABLE t ORDER BY a SIGN {text} EVERY '1 h' TO 'dir:x'");
            let Ok(Publishing::Publish(publish)) = read_one(&sql) else { panic!("{sql}") };
            assert_eq!((publish.signing, publish.every), (Some(wanted), HOUR), "{sql}");
        }
        let unpublish = |forgets_keys| Publishing::Unpublish { table: "t".into(), forgets_keys };
        assert_eq!(read_one("UNPUBLISH t").ok(), Some(unpublish(false)));
        assert_eq!(read_one("UNPUBLISH TABLE t FORGET KEYS").ok(), Some(unpublish(true)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for sql in [
            "PUBLISH t TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a",
            "PUBLISH TABLE t ORDER a TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a TO dir",
            "PUBLISH TABLE t ORDER BY a EVERY 5 TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a MAX '1 day' TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN GROUP (x) TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN GROUP 16 TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN RECORD TO 'dir:x'",
            "UNPUBLISH t FORGET",
            "UNPUBLISH",
        ] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        for sql in [
            "PUBLISH TABLE t TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a EVERY 'hour' TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a EVERY '0 s' TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a RENEW '99999999999 days' TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN PER ROW TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN GROUP (1) TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a SIGN GROUP (65) TO 'dir:x'",
            "PUBLISH TABLE t ORDER BY a WITHOUT KEYS TO 'dir:x'",
            "CALL counterfoil.publish('t')",
            "CALL counterfoil.unpublish()",
        ] {
            assert!(read_one(sql).is_err(), "{sql}");
        }
        assert!(statement::parse("SELECT publish FROM t").is_ok(), "a column of that name");
    }

    #[test]
    fn hidden_tables_cannot_be_named() {
        for sql in [
            "SELECT * FROM __counterfoil_published_t",
            "SELECT * FROM \"__counterfoil_published_t\"",
            "DROP TABLE __COUNTERFOIL_PUBLISHED_T",
            "INSERT INTO public.__counterfoil_published_t VALUES (1)",
            "COPY __counterfoil_published_t TO STDOUT",
        ] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        assert!(statement::parse("SELECT '__counterfoil_published_t'").is_ok());
    }
}
