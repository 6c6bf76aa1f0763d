//! ALTER CLOUD: a cloud that is somewhere else by now, has another key, or takes another token.
//!
//! ```text
//! ALTER CLOUD a OPTIONS (url 'provider://other.example:7443?pin=...', secret_file 'new.token')      what is not said stays
//! ALTER CLOUD a OPTIONS (DROP secret_file)
//! ```
//! ```text
//! 1  what is at the new address is no other cloud (apart.rs)          cut: nothing has changed
//! 2  commit: it is there; what it is to let go of it lets go of there  cut before: likewise
//! 3  clouds hear of it, for whoever is to bring their tables back      cut: with the next change
//! ```
//! What it had it is to have there: whoever moves a cloud takes it along, and REPAIR TABLE gives it what it lacks.

use counterfoil_disperse::Secret;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::clouds::{self, Cloud, SECRET_FILE, URL};
use super::{apart, define, dropped, shared};
use crate::error::{Error, Result};
use crate::publishing::{call, parse_text, takes, wants};
use crate::session::{Outcome, Session};
use crate::statement::fold;

pub(super) const ALTER: [&str; 2] = [crate::OWN, "alter_cloud"];
const DROP: &str = "drop";

/// How a cloud is reached from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readdressed {
    /// Where it is; none: where it was.
    pub url: Option<String>,
    /// The file with its secret, or that it has none; nothing: as it was.
    pub secret_file: Option<Option<String>>,
}

/// Behind ALTER CLOUD.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = fold(&parser.parse_identifier()?);
    wants(parser, &["OPTIONS"])?;
    parser.expect_token(&Token::LParen)?;
    let options = parser.parse_comma_separated(|parser| {
        if takes(parser, "DROP") {
            return Ok((DROP.to_owned(), fold(&parser.parse_identifier()?)));
        }
        // As of servers of foreign tables in PostgreSQL.
        let _is_said = takes(parser, "SET") || takes(parser, "ADD");
        Ok((fold(&parser.parse_identifier()?), parse_text(parser)?))
    })?;
    parser.expect_token(&Token::RParen)?;
    let options = options.iter().map(|(name, value)| (name.as_str(), value.clone()));
    Ok(call(ALTER, std::iter::once(("name", name)).chain(options).collect()))
}

impl Readdressed {
    /// What the options of the statement say.
    pub(super) fn of(options: &[(&str, String)]) -> Result<Self> {
        let mut said = Self::default();
        for (option, value) in options {
            let name = if *option == DROP { value.as_str() } else { *option };
            let is_new = match (name, *option == DROP) {
                (URL, false) => said.url.replace(value.clone()).is_none(),
                (SECRET_FILE, false) => said.secret_file.replace(Some(clouds::whole_path(value)?)).is_none(),
                (SECRET_FILE, true) => said.secret_file.replace(None).is_none(),
                (URL, true) => return Err(Error::Sql("a cloud without an address: DROP CLOUD lets go of it".into())),
                (other, _) => return Err(Error::NotSupported(format!("the option {other} of a cloud"))),
            };
            if !is_new {
                return Err(Error::Sql(format!("{name} is said twice")));
            }
        }
        Ok(said)
    }

    fn applied(&self, before: Cloud) -> Cloud {
        Cloud {
            name: before.name,
            url: self.url.clone().unwrap_or(before.url),
            secret_file: self.secret_file.clone().unwrap_or(before.secret_file),
        }
    }
}

impl Session {
    /// Has a cloud reached otherwise from here on.
    pub(super) fn readdress(&mut self, name: &str, said: &Readdressed) -> Result<Outcome> {
        self.guard.transaction.allows_alone("ALTER CLOUD")?;
        let dispersed = shared(self.engine()).clone();
        let absent = || Error::NotFound(format!("no cloud {name}: SHOW CLOUDS lists them"));
        let view = self.view()?;
        let cloud = said.applied(clouds::named(&view, name)?.ok_or_else(absent)?);
        let mut others = clouds::all(&view)?;
        drop(view);
        let cloud = Cloud { url: clouds::whole_url(&dispersed, &cloud.url)?, ..cloud };
        // What cannot be opened is told now.
        let opened = clouds::open(&dispersed, &cloud, Secret::new([0; 32]))?;
        others.retain(|other| other.name != name);
        apart::by_address(&others, &cloud)?;
        apart::by_what_they_show(&dispersed, &others, &cloud)?;
        {
            // Nobody is on the way to where it was.
            let _one_at_a_time = dispersed.telling.lock();
            self.change(|session, change| {
                clouds::named(&*change.lease, name)?.ok_or_else(absent)?;
                others = clouds::all(&*change.lease)?;
                others.retain(|other| other.name != name);
                apart::by_address(&others, &cloud)?;
                clouds::put(&mut change.lease, &cloud)?;
                dropped::readdress(change, &cloud)?;
                for table in define::lying_at(session.engine(), &*change.lease, name)? {
                    session.note_untold(table);
                }
                Ok(())
            })?;
            dispersed.dropped.hasten();
        }
        self.greet(&cloud, opened)?;
        Ok(Outcome::Done("ALTER CLOUD"))
    }
}

#[cfg(test)]
mod tests {
    use super::Readdressed;
    use crate::dispersed::clouds::{Asked, Cloud, tests::read_one};
    use crate::error::Error;

    #[test]
    fn what_is_not_said_stays() {
        let before = Cloud { name: "a".into(), url: "dir:/x".into(), secret_file: Some("/etc/a".into()) };
        let after = |sql: &str| match read_one(sql) {
            Ok(Asked::Readdress { name, said }) => {
                assert_eq!(name, "a");
                said.applied(before.clone())
            }
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(after("ALTER CLOUD a OPTIONS (url 'dir:/y')"), Cloud { url: "dir:/y".into(), ..before.clone() });
        assert_eq!(after("alter cloud A options (DROP secret_file)"), Cloud { secret_file: None, ..before.clone() });
        let both = Cloud { url: "dir:/y".into(), secret_file: Some("/etc/b".into()), ..before.clone() };
        assert_eq!(after("ALTER CLOUD a OPTIONS (SET secret_file '/etc/b', SET url 'dir:/y')"), both);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (sql, text) in [
            ("ALTER CLOUD a OPTIONS (url 'x', url 'y')", "said twice"),
            ("ALTER CLOUD a OPTIONS (secret_file 'x', DROP secret_file)", "said twice"),
            ("ALTER CLOUD a OPTIONS (DROP url)", "DROP CLOUD"),
            ("ALTER CLOUD a OPTIONS (key 'x')", "the option key"),
        ] {
            let told = read_one(sql).map_err(|error: Error| error.to_string());
            assert!(told.as_ref().is_err_and(|told| told.contains(text)), "{sql}: {told:?}");
        }
        for sql in ["ALTER CLOUD a", "ALTER CLOUD a OPTIONS ()", "ALTER CLOUD OPTIONS (url 'x')"] {
            assert!(crate::statement::parse(sql).is_err(), "{sql}");
        }
        assert_eq!(Readdressed::of(&[]), Ok(Readdressed::default()));
    }
}
