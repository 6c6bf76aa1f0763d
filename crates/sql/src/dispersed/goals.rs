//! What a query says behind its end about the answer: `SELECT ... OPTIMIZE FOR RELIABILITY [QUORUM n] | PERFORMANCE` (the paper's II.D).
//!
//! The library's grammar has no place behind a query, and takes the first word for the name of a table. So the words are put in front
//! of the statement before it is parsed, and ride on the query as a setting until it is planned.

use counterfoil_disperse::Goal;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Setting, Statement, Value};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::clouds;
use crate::error::{Error, Result};
use crate::publishing::{takes, wants};

/// What the setting is called: no setting that anybody may write has a blank in it.
const GOAL: &str = "optimize for";
const RELIABILITY: &str = "reliability";
const PERFORMANCE: &str = "performance";

pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

/// Where the words about the goal begin, at the end of a statement; `words` are the places of what is neither blank nor comment.
pub(crate) fn said_goal(statement: &[TokenWithSpan], words: &[usize]) -> Option<usize> {
    let is = |place: usize, word: &str| words.get(place).is_some_and(|at| is_word(&statement[*at].token, word));
    // OPTIMIZE FOR RELIABILITY QUORUM 3 ; at most.
    let from = words.len().saturating_sub(6).max(1);
    // A table that is called `optimize` may be locked: FOR UPDATE, FOR SHARE, FOR KEY SHARE, FOR NO KEY UPDATE.
    let is_lock = |place: usize| ["UPDATE", "SHARE", "KEY", "NO"].iter().any(|word| is(place, word));
    let is_any_word = |place: usize| words.get(place).is_some_and(|at| matches!(statement[*at].token, Token::Word(_)));
    let goal = |place: usize| is_any_word(place + 2) && !is_lock(place + 2);
    let place = (from..words.len()).find(|place| is(*place, "OPTIMIZE") && is(place + 1, "FOR") && goal(*place))?;
    Some(words[place])
}

/// Reads the words, which stand in front by now, and the statement.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    wants(parser, &["OPTIMIZE", "FOR"])?;
    let goal = parse_goal(parser)?;
    if let Some(asked) = clouds::parse_leakage_if_asked(parser) {
        // What is asked is kept as a text, and the words belong to its end.
        let words = goal.replace(' ', " QUORUM ");
        return asked.map(|asked| clouds::leakage(format!("{asked} OPTIMIZE FOR {words}")));
    }
    let mut statement = parser.parse_statement()?;
    let Some(query) = query(&mut statement) else {
        return Err(ParserError::ParserError("OPTIMIZE FOR stands behind a query".into()));
    };
    let value = Expr::Value(Value::SingleQuotedString(goal).into());
    query.settings = Some(vec![Setting { key: Ident::new(GOAL), value }]);
    Ok(statement)
}

/// The words, as the setting has them.
fn parse_goal(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    if takes(parser, PERFORMANCE) {
        return Ok(PERFORMANCE.to_owned());
    }
    if !takes(parser, RELIABILITY) {
        let text = format!("OPTIMIZE FOR {}: RELIABILITY [QUORUM n] or PERFORMANCE", parser.peek_token());
        return Err(ParserError::ParserError(text));
    }
    if !takes(parser, "QUORUM") {
        return Ok(RELIABILITY.to_owned());
    }
    let said = parser.peek_token().token;
    let wants = |_| format!("OPTIMIZE FOR RELIABILITY QUORUM {said}: how many clouds are to show the same? QUORUM 2");
    let quorum = parser.parse_literal_uint().map_err(|error| ParserError::ParserError(wants(error)))?;
    Ok(format!("{RELIABILITY} {quorum}"))
}

fn query(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Explain { statement, .. } => match &mut **statement {
            Statement::Query(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// Takes what a query says about its answer off it.
pub(crate) fn take_goal(statement: &mut Statement) -> Result<Goal> {
    let Some(query) = query(statement) else { return Ok(Goal::Ordinary) };
    let Some([Setting { key, value: Expr::Value(value) }]) = query.settings.as_deref() else {
        return Ok(Goal::Ordinary);
    };
    let Value::SingleQuotedString(said) = &value.value else { return Ok(Goal::Ordinary) };
    if key.value != GOAL {
        return Ok(Goal::Ordinary);
    }
    let goal = match said.split_once(' ') {
        None if said == PERFORMANCE => Goal::Performance,
        None => Goal::Reliability(None),
        Some((_, quorum)) => {
            let quorum = quorum.parse().ok().filter(|quorum| *quorum > 0);
            let none = || Error::Sql("OPTIMIZE FOR RELIABILITY QUORUM n: one cloud at least".into());
            Goal::Reliability(Some(quorum.ok_or_else(none)?))
        }
    };
    query.settings = None;
    Ok(goal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement;

    fn goal(sql: &str) -> Result<Goal> {
        let mut statements = statement::parse(sql)?;
        let goal = take_goal(&mut statements[0])?;
        // What is left is the query alone.
        assert_eq!(statements[0], statement::parse(sql.split(" OPTIMIZE").next().expect("a query"))?[0]);
        Ok(goal)
    }

    #[test]
    fn goals_stand_behind_queries() {
        for (words, expected) in [
            ("", Goal::Ordinary),
            (" OPTIMIZE FOR PERFORMANCE", Goal::Performance),
            (" OPTIMIZE FOR reliability;", Goal::Reliability(None)),
            (" OPTIMIZE for RELIABILITY QUORUM 3", Goal::Reliability(Some(3))),
        ] {
            for query in
                ["SELECT a FROM t", "SELECT a FROM t WHERE b = 1 ORDER BY a LIMIT 3", "EXPLAIN SELECT sum(a) FROM t x"]
            {
                assert_eq!(goal(&format!("{query}{words}")), Ok(expected), "{query}{words}");
            }
        }
        for sql in [
            "SELECT a FROM t OPTIMIZE FOR RELIABILITY QUORUM 0",
            "SELECT a FROM t OPTIMIZE FOR RELIABILITY QUORUM many",
            "INSERT INTO t SELECT 1 OPTIMIZE FOR PERFORMANCE",
            "SELECT a FROM t OPTIMIZE FOR COST",
        ] {
            assert!(goal(sql).is_err(), "{sql}");
        }
        let told = goal("SELECT a FROM t OPTIMIZE FOR speed").expect_err("no goal").to_string();
        assert!(told.contains("OPTIMIZE FOR speed: RELIABILITY [QUORUM n] or PERFORMANCE"), "{told}");
        // Elsewhere they are names.
        assert_eq!(goal("SELECT optimize.a FROM t optimize"), Ok(Goal::Ordinary));
    }
}
