//! What is said of clouds in SQL: CREATE CLOUD, ALTER CLOUD (readdressed.rs), DROP CLOUD, SHOW CLOUDS, REPAIR TABLE, EXPLAIN LEAKAGE; of columns: words.rs.
//!
//! ```text
//! CREATE CLOUD [IF NOT EXISTS] a OPTIONS (url 'dir:/mnt/a')        ALTER CLOUD a OPTIONS (...)        DROP CLOUD [IF EXISTS] a
//! SHOW CLOUDS
//! REPAIR TABLE t [TAKE OVER | GIVE WAY | EXTENDED | LET GO]             EXPLAIN LEAKAGE SELECT ...
//! record of space SETTING: "cloud/" name       01 | url [ | 0a | secret_file]
//! ```
//! The library's tree of statements has no place for them: there they stand as a CALL of a function that this floor alone runs.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_disperse::fragments::Question;
use counterfoil_disperse::{self as disperse, ByErrands, Failure, Provider, Secret};
use counterfoil_log::{View, Writer, record_space};
use datafusion::sql::sqlparser::ast::{Function, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use zeroize::Zeroizing;

use super::apart;
use super::closed::Closed;
use super::define::{Waits, all_are_there, names};
use super::distribution::distribution;
use super::dropped;
use super::folders::FILE;
use super::goals;
use super::readdressed::{self, Readdressed};
use super::repair::How;
use super::words::{self, Relaid, Used};
use super::{CloudSecret, Dispersed};
use crate::error::{Error, Result};
use crate::planner;
use crate::publishing::{call, is_call, parse_table, parse_text, said, takes, wants};
use crate::session::{Outcome, Session};
use crate::show;
use crate::statement::fold;

const RECORDS: &[u8] = b"cloud/";
const VERSION: u8 = 1;
/// So long a new cloud is waited for.
const GREETING: Duration = Duration::from_secs(5);
const CREATE: [&str; 2] = [crate::OWN, "create_cloud"];
const DROP: [&str; 2] = [crate::OWN, "drop_cloud"];
const REPAIR: [&str; 2] = [crate::OWN, "repair_table"];
pub(super) const URL: &str = "url";
pub(super) const SECRET_FILE: &str = "secret_file";
const LEAKAGE: [&str; 2] = [crate::OWN, "explain_leakage"];

/// A cloud, as it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cloud {
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// A file with what is kept secret of it: a password.
    pub secret_file: Option<String>,
}

impl Cloud {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [&[VERSION], self.url.as_bytes()].concat();
        self.secret_file.iter().for_each(|file| bytes.extend([b"\n", file.as_bytes()].concat()));
        bytes
    }

    fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let (_, told) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        let told = std::str::from_utf8(told).ok()?;
        let (url, file) = told.split_once('\n').map_or((told, None), |(url, file)| (url, Some(file.to_owned())));
        Some(Cloud { name: name.to_owned(), url: url.to_owned(), secret_file: file })
    }
}

/// A cloud that may be asked, and is told by errands.
pub(super) fn open(dispersed: &Dispersed, cloud: &Cloud, key: Secret) -> Result<Arc<dyn Provider>> {
    let reached = reach(dispersed, cloud, key)?;
    Ok(Arc::new(ByErrands::new(reached, dispersed.errands(&cloud.url))))
}

/// A cloud as it is: for whoever is on an errand to it.
fn reach(dispersed: &Dispersed, cloud: &Cloud, key: Secret) -> Result<Arc<dyn Provider>> {
    let secret = cloud.secret_file.as_ref().map(|file| {
        let secret = std::fs::read_to_string(file).map(|text| Zeroizing::new(text.trim_end().to_owned()));
        secret.map_err(|error| {
            Error::Host(format!("the secret of cloud {} cannot be read from {file}: {error}", cloud.name))
        })
    });
    let secret = secret.transpose()?;
    let secret = cloud.secret_file.as_deref().zip(secret.as_ref().map(|secret| &secret[..]));
    let secret = secret.map(|(file, text)| CloudSecret { file, text });
    let far = dispersed.clouds.get().and_then(|clouds| clouds.open(&cloud.url, secret, key.clone()));
    far.unwrap_or_else(|| disperse::open_cloud(&cloud.url, key)).map_err(Error::NotSupported)
}

/// One whose secret cannot be read is one that fails.
fn or_closed(opened: Result<Arc<dyn Provider>>) -> Result<Arc<dyn Provider>> {
    match opened {
        Err(Error::Host(why)) => Ok(Arc::new(Closed(why))),
        opened => opened,
    }
}

/// A cloud that may be asked, whether or not its secret can be read.
pub(super) fn open_or_closed(dispersed: &Dispersed, cloud: &Cloud, key: Secret) -> Result<Arc<dyn Provider>> {
    or_closed(open(dispersed, cloud, key))
}

/// The same, for whoever is on an errand to it.
pub(super) fn reach_or_closed(dispersed: &Dispersed, cloud: &Cloud, key: Secret) -> Result<Arc<dyn Provider>> {
    or_closed(reach(dispersed, cloud, key))
}

/// An address as it is kept.
pub(super) fn whole_url(dispersed: &Dispersed, url: &str) -> Result<String> {
    let far = dispersed.clouds.get().and_then(|clouds| clouds.whole_url(url));
    let is_folder = url.strip_prefix("dir:").is_some_and(|path| !path.is_empty());
    let refused = if is_folder { Error::NotFound } else { Error::NotSupported };
    let url = far.unwrap_or_else(|| disperse::whole_url(url)).map_err(refused)?;
    match url.contains('\n') {
        false => Ok(url),
        true => Err(Error::Sql("an address of two lines".into())),
    }
}

/// What is asked of clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Create {
        cloud: Cloud,
        may_be_there: bool,
    },
    Readdress {
        name: String,
        said: Readdressed,
    },
    Drop {
        name: String,
        may_be_gone: bool,
    },
    Repair {
        table: String,
        how: How,
    },
    Leakage {
        sql: String,
    },
    Relay {
        table: String,
        relaid: Relaid,
    },
    /// Where tables that are made from here on lie; none: here.
    Use(Option<Used>),
}

fn record_name(name: &str) -> Vec<u8> {
    [RECORDS, name.as_bytes()].concat()
}

/// A cloud by its name.
pub(super) fn named(view: &dyn View, name: &str) -> Result<Option<Cloud>> {
    let Some(bytes) = view.record(record_space::SETTING, &record_name(name)) else { return Ok(None) };
    let later = || Error::NotSupported(format!("cloud {name}, which a later version declared"));
    Cloud::of(name, &bytes).map(Some).ok_or_else(later)
}

/// Keeps a cloud.
pub(super) fn put(writer: &mut Writer, cloud: &Cloud) -> Result<()> {
    Ok(writer.put_record(record_space::SETTING, &record_name(&cloud.name), &cloud.to_bytes())?)
}

/// All of them.
pub(super) fn all(view: &dyn View) -> Result<Vec<Cloud>> {
    let names = view.records(record_space::SETTING, RECORDS).into_iter();
    let names = names.map(|(name, _)| String::from_utf8_lossy(&name[RECORDS.len()..]).into_owned());
    names.filter_map(|name| named(view, &name).transpose()).collect()
}

/// The statements that declare all clouds anew.
///
/// # Errors
/// Those of reading.
pub fn clouds_sql(view: &dyn View) -> Result<String> {
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let told = all(view)?.into_iter().map(|Cloud { name, url, secret_file }| {
        let secret = secret_file.map_or_else(String::new, |file| format!(", secret_file {}", text(&file)));
        let name = name.replace('"', "\"\"");
        format!("CREATE CLOUD IF NOT EXISTS \"{name}\" OPTIONS (url {}{secret});\n", text(&url))
    });
    Ok(told.collect())
}

/// Reads one of the statements, if the text begins with its words.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let statement = match () {
        () if begins(parser, "CREATE", "CLOUD") => parse_create,
        () if begins(parser, "ALTER", "CLOUD") => readdressed::parse,
        () if begins(parser, "DROP", "CLOUD") => parse_drop,
        () if begins(parser, "REPAIR", "TABLE") => parse_repair,
        () if begins(parser, "EXPLAIN", "LEAKAGE") => {
            return Some(parse_leakage_if_asked(parser)?.map(|asked| leakage(asked.to_string())));
        }
        () if begins(parser, "OPTIMIZE", "FOR") => return Some(goals::parse(parser)),
        () => return words::parse(parser),
    };
    (0..2).for_each(|_| drop(parser.next_token()));
    Some(statement(parser))
}

fn begins(parser: &Parser<'_>, verb: &str, noun: &str) -> bool {
    let is = |at: usize, word: &str| {
        matches!(&parser.peek_nth_token(at).token,
            Token::Word(next) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word))
    };
    is(0, verb) && is(1, noun)
}

fn parse_create(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let mut said = Vec::new();
    if takes(parser, "IF") {
        wants(parser, &["NOT", "EXISTS"])?;
        said.push(("if", "exists".to_owned()));
    }
    said.insert(0, ("name", fold(&parser.parse_identifier()?)));
    wants(parser, &["OPTIONS"])?;
    parser.expect_token(&Token::LParen)?;
    let options = parser.parse_comma_separated(|parser| {
        let name = fold(&parser.parse_identifier()?);
        Ok((name, parse_text(parser)?))
    })?;
    parser.expect_token(&Token::RParen)?;
    let mut statement = said;
    for (name, value) in &options {
        statement.push((name, value.clone()));
    }
    Ok(call(CREATE, statement))
}

fn parse_drop(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let is_lenient = takes(parser, "IF");
    if is_lenient {
        wants(parser, &["EXISTS"])?;
    }
    let mut said = vec![("name", fold(&parser.parse_identifier()?))];
    said.extend(is_lenient.then(|| ("if", "exists".to_owned())));
    Ok(call(DROP, said))
}

fn parse_repair(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let mut said = vec![("name", parse_table(parser)?)];
    if takes(parser, "TAKE") {
        wants(parser, &["OVER"])?;
        said.push(("take", "over".to_owned()));
    } else if takes(parser, "GIVE") {
        wants(parser, &["WAY"])?;
        said.push(("give", "way".to_owned()));
    } else if takes(parser, "LET") {
        wants(parser, &["GO"])?;
        said.push(("let", "go".to_owned()));
    } else if takes(parser, "EXTENDED") {
        said.push(("extended", "on".to_owned()));
    }
    Ok(call(REPAIR, said))
}

/// What EXPLAIN LEAKAGE asks of, if it comes next.
pub(super) fn parse_leakage_if_asked(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    begins(parser, "EXPLAIN", "LEAKAGE").then(|| {
        (0..2).for_each(|_| drop(parser.next_token()));
        parser.parse_statement()
    })
}

/// EXPLAIN LEAKAGE of a statement.
pub(super) fn leakage(sql: String) -> Statement {
    call(LEAKAGE, vec![("name", sql)])
}

/// What a call stands for; nothing for one of another function.
pub(crate) fn read(function: &Function) -> Result<Option<Asked>> {
    if let Some((table, relaid)) = words::read(function)? {
        return Ok(Some(Asked::Relay { table, relaid }));
    }
    if let Some(used) = words::read_use(function)? {
        return Ok(Some(Asked::Use(used)));
    }
    let is_named = |name: [&str; 2]| is_call(function, name);
    if ![CREATE, readdressed::ALTER, DROP, REPAIR, LEAKAGE].into_iter().any(is_named) {
        return Ok(None);
    }
    let wrong = || Error::Sql("use CREATE CLOUD, ALTER CLOUD, DROP CLOUD, REPAIR TABLE and EXPLAIN LEAKAGE".into());
    let said = said(function).ok_or_else(wrong)?;
    let Some(("name", name)) = said.first().cloned() else { return Err(wrong()) };
    if is_named(REPAIR) {
        let how = match said.get(1) {
            None => How::Rows,
            Some(("extended", _)) => How::Contents,
            Some(("give", _)) => How::GiveWay,
            Some(("let", _)) => How::LetGo,
            Some(_) => How::TakeOver,
        };
        return Ok(Some(Asked::Repair { table: name, how }));
    }
    if is_named(LEAKAGE) {
        return Ok(Some(Asked::Leakage { sql: name }));
    }
    if is_named(readdressed::ALTER) {
        return Ok(Some(Asked::Readdress { name, said: Readdressed::of(&said[1..])? }));
    }
    let (lenient, options): (Vec<_>, Vec<_>) = said[1..].iter().cloned().partition(|(name, _)| *name == "if");
    if is_named(DROP) {
        return Ok(Some(Asked::Drop { name, may_be_gone: !lenient.is_empty() }));
    }
    let (mut url, mut secret_file) = (None, None);
    for (option, value) in options {
        match option {
            URL if url.is_none() => url = Some(value),
            SECRET_FILE if secret_file.is_none() => secret_file = Some(whole_path(&value)?),
            URL | SECRET_FILE => return Err(Error::Sql(format!("{option} is said twice"))),
            other => return Err(Error::NotSupported(format!("the option {other} of a cloud"))),
        }
    }
    let url = url.ok_or_else(|| Error::Sql(format!("where is cloud {name}? OPTIONS (url 'dir:/mnt/{name}')")))?;
    Ok(Some(Asked::Create { cloud: Cloud { name, url, secret_file }, may_be_there: !lenient.is_empty() }))
}

/// A file by its whole path, so that it is the same wherever the program runs.
pub(super) fn whole_path(path: &str) -> Result<String> {
    let whole = std::path::absolute(path).map_err(|error| Error::Host(format!("file {path}: {error}")))?;
    let whole = whole.into_os_string().into_string().ok().filter(|path| !path.contains('\n'));
    whole.ok_or_else(|| Error::NotSupported(format!("the file name {path}")))
}

impl Session {
    /// Does what is asked of clouds.
    pub(crate) fn ask_clouds(&mut self, asked: Asked) -> Result<Outcome> {
        if let Asked::Leakage { sql } = &asked {
            return self.explain_leakage(sql);
        }
        // Whoever comes in from outside may do with clouds what may be done with tables, but says of none where it is.
        match &asked {
            Asked::Create { .. } | Asked::Readdress { .. } | Asked::Drop { .. } => {
                self.rights.to_reach_out().and_then(|()| self.to_write())?
            }
            // It is for what comes.
            Asked::Use(_) => self.rights.to_write()?,
            _ => self.to_write()?,
        }
        match asked {
            Asked::Use(Some(Used { clouds: Some(clouds), coding })) if clouds.contains(FILE) => {
                let clouds = Some(self.with_folders_named(&clouds)?);
                self.ask_clouds(Asked::Use(Some(Used { clouds, coding })))
            }
            Asked::Use(used) => {
                // What no table could be made with is told now.
                if let Some(words) = used.as_ref().and_then(|used| used.coding.as_deref()) {
                    distribution("USE CLOUDS", words)?;
                }
                if let Some(clouds) = used.as_ref().and_then(|used| used.clouds.as_deref()) {
                    all_are_there(&self.view()?, names(clouds))?;
                }
                self.change_settings(false, |settings| {
                    settings.clouds.clone_from(&used);
                    Ok(())
                })?;
                Ok(Outcome::Done("USE CLOUDS"))
            }
            Asked::Repair { table, how } => self.repair(&table, how),
            Asked::Relay { table, relaid: Relaid::Use { column, used: Used { clouds: Some(clouds), coding } } }
                if clouds.contains(FILE) =>
            {
                // A table that is not there declares no cloud.
                let view = self.view()?;
                let there = planner::table(self.engine(), &view, &table)?;
                there.column(&column).ok_or_else(|| Error::NoColumn(format!("no column {column} in table {table}")))?;
                let clouds = Some(self.with_folders_named(&clouds)?);
                self.relay(&table, &Relaid::Use { column, used: Used { clouds, coding } })
            }
            Asked::Relay { table, relaid } => self.relay(&table, &relaid),
            Asked::Leakage { .. } => unreachable!("answered above"),
            Asked::Readdress { name, said } => self.readdress(&name, &said),
            Asked::Create { cloud, may_be_there } => self.create_cloud(cloud, may_be_there),
            Asked::Drop { name, may_be_gone } => {
                self.change(|session, change| {
                    if named(&*change.lease, &name)?.is_none() {
                        let absent = || Error::NotFound(format!("no cloud {name}"));
                        return if may_be_gone { Ok(()) } else { Err(absent()) };
                    }
                    super::define::keep_clouds(session.engine(), &*change.lease, &name)?;
                    let left = super::define::forget_cloud(session.engine(), change, &name)?;
                    let keeps = dropped::forget_cloud(change, &name)?;
                    let may_keep = [(left, "have moved away"), (keeps, "were dropped")].into_iter();
                    session.notices.extend(may_keep.filter(|(tables, _)| *tables > 0).map(|(tables, what)| {
                        format!("cloud {name} may keep tables that {what} ({tables}): whoever has shares of the key can read them there")
                    }));
                    Ok(change.lease.delete_record(record_space::SETTING, &record_name(&name))?)
                })?;
                Ok(Outcome::Done("DROP CLOUD"))
            }
        }
    }

    /// Declares a cloud.
    pub(super) fn create_cloud(&mut self, cloud: Cloud, may_be_there: bool) -> Result<Outcome> {
        if may_be_there && named(&self.view()?, &cloud.name)?.is_some() {
            return Ok(Outcome::Done("CREATE CLOUD"));
        }
        let url = whole_url(&self.engine().dispersed, &cloud.url)?;
        let cloud = Cloud { url, ..cloud };
        // What cannot be opened is told now.
        let opened = open(&self.engine().dispersed, &cloud, Secret::new([0; 32]))?;
        let name = cloud.name.clone();
        let others = all(&self.view()?)?;
        if others.iter().all(|other| other.name != name) {
            apart::by_address(&others, &cloud)?;
            apart::by_what_they_show(&self.engine().dispersed.clone(), &others, &cloud)?;
        }
        self.change(|_, change| {
            if named(&*change.lease, &name)?.is_some() {
                let taken = || Error::Misuse(format!("there is a cloud {name} already"));
                return if may_be_there { Ok(()) } else { Err(taken()) };
            }
            apart::by_address(&all(&*change.lease)?, &cloud)?;
            put(&mut change.lease, &cloud)
        })?;
        self.greet(&cloud, opened)?;
        Ok(Outcome::Done("CREATE CLOUD"))
    }

    /// Asks a new cloud for a table that it cannot have, to say now if it does not answer, or wants another token. It may be down all the
    /// same: what waits for it is told later.
    pub(super) fn greet(&mut self, cloud: &Cloud, opened: Arc<dyn Provider>) -> Result<()> {
        let nothing = disperse::Catalogue::new(Secret::new(super::define::random()?)).name();
        let errands = self.engine().dispersed.errands(&cloud.url);
        let answered =
            errands.run(None, GREETING, move || match opened.ask(&nothing, &Question::default(), &mut |_| Ok(())) {
                Err(Failure::NoTable) => Ok(()),
                answered => answered,
            });
        if let Err(failure) = answered {
            self.notices.push(format!("cloud {} does not answer as it should: {failure}", cloud.name));
        }
        Ok(())
    }

    /// SHOW CLOUDS: what they are, and what they have not been told yet.
    pub(crate) fn show_clouds(&mut self) -> Result<Outcome> {
        let view = self.view()?;
        let clouds = all(&view)?;
        let waiting = super::define::waiting(self.engine(), &view)?;
        let is_ours = self.rights.host_files;
        let some = |texts: Vec<String>| texts.into_iter().map(Some).collect::<Vec<_>>();
        let count = |of: &dyn Fn(&Waits) -> u64| {
            clouds.iter().map(|cloud| Some(waiting.get(&cloud.name).map_or(0, of).to_string())).collect()
        };
        show::table(vec![
            ("cloud", some(clouds.iter().map(|cloud| cloud.name.clone()).collect())),
            // Who comes in from outside need not know where they are.
            ("url", clouds.iter().map(|cloud| is_ours.then(|| cloud.url.clone())).collect()),
            ("tables", count(&|of| of.tables)),
            ("rows_to_put", count(&|of| of.to_put)),
            ("rows_to_remove", count(&|of| of.to_remove)),
            ("rows_to_move", count(&|of| of.to_move)),
            ("tables_to_drop", count(&|of| of.to_drop)),
        ])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::statement;

    pub(crate) fn read_one(sql: &str) -> Result<Asked> {
        let statements = statement::parse(sql)?;
        let [Statement::Call(function)] = &statements[..] else { panic!("{statements:?}") };
        read(function).map(|asked| asked.expect("one of ours"))
    }

    #[test]
    fn clouds_are_read() {
        let cloud = Cloud { name: "a".into(), url: "dir:/x".into(), secret_file: None };
        let secret = Cloud { secret_file: Some("/etc/a".into()), ..cloud.clone() };
        for cloud in [&cloud, &secret] {
            assert_eq!(Cloud::of("a", &cloud.to_bytes()).as_ref(), Some(cloud));
        }
        assert_eq!(Cloud::of("a", &[2, b'x']), None);
        let with = "CREATE CLOUD a OPTIONS (secret_file '/etc/a', url 'dir:/x')";
        assert_eq!(read_one(with), Ok(Asked::Create { cloud: secret, may_be_there: false }));
        let create = |may_be_there| Ok(Asked::Create { cloud: cloud.clone(), may_be_there });
        assert_eq!(read_one("create cloud A options (URL 'dir:/x')"), create(false));
        assert_eq!(read_one("CREATE CLOUD IF NOT EXISTS a OPTIONS (url 'dir:/x')"), create(true));
        let drop = |may_be_gone| Ok(Asked::Drop { name: "a".into(), may_be_gone });
        assert_eq!(read_one("DROP CLOUD a"), drop(false));
        assert_eq!(read_one("DROP CLOUD IF EXISTS a"), drop(true));
        for sql in ["CREATE CLOUD a", "CREATE CLOUD a OPTIONS ()", "CREATE CLOUD a OPTIONS (url dir)", "DROP CLOUD"] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        let repair = |how| Ok(Asked::Repair { table: "t".into(), how });
        assert_eq!(read_one("REPAIR TABLE T"), repair(How::Rows));
        assert_eq!(read_one("REPAIR TABLE t TAKE OVER"), repair(How::TakeOver));
        assert_eq!(read_one("REPAIR TABLE t extended"), repair(How::Contents));
        assert_eq!(read_one("repair table t give way"), repair(How::GiveWay));
        assert_eq!(read_one("repair table t let go"), repair(How::LetGo));
        for sql in ["REPAIR TABLE t GIVE", "REPAIR TABLE t LET"] {
            assert!(statement::parse(sql).is_err(), "{sql}");
        }
        assert_eq!(read_one("EXPLAIN LEAKAGE SELECT 1"), Ok(Asked::Leakage { sql: "SELECT 1".into() }));
        for goal in ["reliability QUORUM 2", "reliability", "performance"] {
            let sql = format!("SELECT 1 OPTIMIZE FOR {goal}");
            assert_eq!(read_one(&format!("EXPLAIN LEAKAGE {sql}")), Ok(Asked::Leakage { sql }));
        }
        for sql in ["CREATE CLOUD a OPTIONS (key 'x')", "CREATE CLOUD a OPTIONS (url 'x', url 'y')"] {
            assert!(read_one(sql).is_err(), "{sql}");
        }
    }
}
