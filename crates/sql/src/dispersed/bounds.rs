//! What a query says behind its end about how far its answer may be off: `SELECT sum(a) FROM t WITHIN 5`, `WITHIN 5 PERCENT`, `WITHIN '5%'`.
//!
//! Clouds answer exactly or not at all (DESIGN, "No answer is nearly right"), and what is exact is within any bound: the words are taken off.
//! Where one cloud is believed nobody knows how far off it is, so the two are not said of one query.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::goals::is_word;
use crate::error::{Error, Result};

/// A statement without the bound behind its end; none: it says none. `words` are the places of what is neither blank nor comment.
pub(crate) fn without_bound(statement: &[TokenWithSpan], words: &[usize]) -> Result<Option<Vec<TokenWithSpan>>> {
    let mut last = words.iter().rev().copied().filter(|at| statement[*at].token != Token::SemiColon);
    let token = |at: Option<usize>| at.map(|at| &statement[at].token);
    let end = last.next();
    let is_share = token(end).is_some_and(|token| is_word(token, "PERCENT") || *token == Token::Mod);
    let bound = if is_share { last.next() } else { end };
    let said = match token(bound) {
        Some(Token::Number(number, _)) => number.as_str(),
        Some(Token::SingleQuotedString(text)) => text.as_str(),
        _ => return Ok(None),
    };
    let Some(from) = last.next().filter(|at| is_word(&statement[*at].token, "WITHIN")) else { return Ok(None) };
    check(statement, words, said)?;
    let rest = end.map_or(statement.len(), |end| end + 1);
    Ok(Some([&statement[..from], &statement[rest..]].concat()))
}

fn check(statement: &[TokenWithSpan], words: &[usize], said: &str) -> Result<()> {
    let is_query = words.first().is_some_and(|at| match &statement[*at].token {
        Token::LParen => true,
        token => ["SELECT", "WITH", "TABLE", "EXPLAIN"].iter().any(|word| is_word(token, word)),
    });
    if !is_query {
        return Err(Error::Sql("WITHIN a bound stands behind a query".into()));
    }
    let number = said.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>().is_ok_and(f64::is_finite) {
        true => Ok(()),
        false => Err(Error::Sql(format!("WITHIN '{said}': a number (WITHIN 5) or a share (WITHIN '5%')"))),
    }
}

/// Refuses a bound of what one cloud is believed about.
pub(crate) fn refuse_both(goal: &[TokenWithSpan]) -> Result<()> {
    match goal.iter().any(|token| is_word(&token.token, "PERFORMANCE")) {
        true => Err(Error::NotSupported(
            "WITHIN a bound and OPTIMIZE FOR PERFORMANCE of one query: how far off the one cloud is that is believed nobody knows; without \
             the latter answers are exact"
                .into(),
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::statement::parse;

    #[test]
    fn an_exact_answer_is_within_any_bound() {
        let plain = parse("SELECT sum(a) FROM t WHERE b = 1").expect("a query");
        for bound in ["5", "0.5", "5 PERCENT", "5 %", "5;", "'5%'", "'5'", "1e3"] {
            let query = format!("SELECT sum(a) FROM t WHERE b = 1 WITHIN {bound}");
            assert_eq!(parse(&query).expect("a query"), plain, "{bound}");
        }
        let reliable = parse("SELECT a FROM t OPTIMIZE FOR RELIABILITY").expect("a query");
        for query in
            ["SELECT a FROM t WITHIN 5 OPTIMIZE FOR RELIABILITY", "SELECT a FROM t OPTIMIZE FOR RELIABILITY WITHIN 5"]
        {
            assert_eq!(parse(query).expect("a query"), reliable, "{query}");
        }
        for (query, told) in [
            ("SELECT a FROM t WITHIN 'some'", "a number (WITHIN 5)"),
            ("DELETE FROM t WITHIN 5", "behind a query"),
            ("SELECT a FROM t WITHIN 5 OPTIMIZE FOR PERFORMANCE", "nobody knows"),
            ("SELECT a FROM t OPTIMIZE FOR PERFORMANCE WITHIN 5", "nobody knows"),
        ] {
            let error = parse(query).expect_err(query).to_string();
            assert!(error.contains(told), "{query}: {error}");
        }
        // Elsewhere it is a name.
        let named = parse("SELECT within FROM t within LIMIT 5").expect("a query");
        assert_ne!(named, parse("SELECT within FROM t LIMIT 5").expect("a query"));
    }
}
