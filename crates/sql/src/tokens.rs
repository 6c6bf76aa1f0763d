//! What PostgreSQL writes and the parser does not read, put into words that it does read, before it is parsed.
//!
//! | written | read as |
//! |---|---|
//! | `CREATE TABLE t (a, b) AS query` | `CREATE TABLE t AS SELECT * FROM (query) AS x (a, b)` |
//! | `VACUUM (ANALYZE) t`, `VACUUM FULL VERBOSE t` | `VACUUM t` |
//! | `TABLE t` | `SELECT * FROM t` |
//! | `ABORT` | `ROLLBACK` |
//! | `0x1F` | `31` |
//! | `COPY t FROM STDIN (FREEZE on, HEADER off)` | `COPY t FROM STDIN (FREEZE TRUE, HEADER FALSE)` |
//! | `FETCH c`, `FETCH FROM c`, `FETCH FORWARD FROM c` | `FETCH NEXT FROM c` |
//! | `FETCH ALL c`, `FETCH 5 c` | `FETCH ALL FROM c`, `FETCH 5 FROM c` |
//! | `x IN (VALUES (1), (2))` | `x IN (SELECT * FROM (VALUES (1), (2)) AS v)` |
//! | `FETCH FIRST (1 + 1) ROWS ONLY` | `LIMIT (1 + 1)` |
//! | `query OPTIMIZE FOR goal` | `OPTIMIZE FOR goal query` |
//! | `IDENTITY (START WITH 1 INCREMENT BY 2)` | `IDENTITY (INCREMENT BY 2 START WITH 1)`, the one order it reads |

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::absent;
use crate::dispersed;
use crate::error::{Error, Result};

/// Adapts the statements of a text.
///
/// # Errors
/// [`Error::NotSupported`] for commands that only PostgreSQL has.
pub(crate) fn adapt(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut adapted = Vec::with_capacity(tokens.len());
    let tokens = tokens.into_iter().map(whole_number).collect::<Result<Vec<_>>>()?;
    for statement in tokens.split_inclusive(|token| token.token == Token::SemiColon) {
        let moved = goal_in_front(statement)?;
        let statement = moved.as_deref().unwrap_or(statement);
        let told = rows_told(statement);
        let statement = told.as_deref().unwrap_or(statement);
        let words = places(statement);
        let word = |place: usize| words.get(place).and_then(|at| upper(&statement[*at].token));
        absent::refuse(&word, words.len())?;
        if words.first().is_some_and(|at| statement[*at].token == Token::Backslash) {
            let what = "commands that begin with a backslash, outside the interactive shell";
            return Err(Error::NotSupported(what.into()));
        }
        refuse_within(statement, &words)?;
        match keyword(statement, &words, 0) {
            Some(Keyword::VACUUM) => vacuum(statement, &words, &mut adapted),
            Some(Keyword::ABORT) => {
                let rollback = Token::make_keyword("ROLLBACK");
                adapted.push(TokenWithSpan { token: rollback, span: statement[words[0]].span });
                adapted.extend_from_slice(&statement[words[0] + 1..]);
            }
            Some(Keyword::TABLE) => {
                let span = statement[words[0]].span;
                let star = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
                adapted.extend(star.into_iter().map(|token| TokenWithSpan { token, span }));
                adapted.extend_from_slice(&statement[words[0] + 1..]);
            }
            Some(Keyword::CREATE) => {
                let statement = match keyword(statement, &words, 1) {
                    Some(Keyword::TABLE) => without_with_data(statement)?,
                    _ => statement.to_vec(),
                };
                match columns_before_as(&statement, &places(&statement)) {
                    Some(columns) => create_table_as(&statement, &columns, &mut adapted),
                    None => adapted.extend(identity_options(&statement)),
                }
            }
            Some(Keyword::COPY) => adapted.extend(truth_of_options(statement, &words)),
            Some(Keyword::FETCH) => adapted.extend(fetch_next(statement, &words)),
            Some(Keyword::ALTER) => adapted.extend(identity_options(statement)),
            _ => adapted.extend_from_slice(statement),
        }
    }
    Ok(adapted)
}

/// What is said behind a query about its answer is read in front of it.
fn goal_in_front(statement: &[TokenWithSpan]) -> Result<Option<Vec<TokenWithSpan>>> {
    let bounded = dispersed::without_bound(statement, &places(statement))?;
    let whole = bounded.as_deref().unwrap_or(statement);
    let Some(at) = dispersed::said_goal(whole, &places(whole)) else { return Ok(bounded) };
    let (query, goal) = whole.split_at(at);
    let inner = dispersed::without_bound(query, &places(query))?;
    if bounded.is_some() || inner.is_some() {
        dispersed::refuse_both(goal)?;
    }
    let query = inner.as_deref().unwrap_or(query);
    let end = goal.iter().position(|token| token.token == Token::SemiColon).unwrap_or(goal.len());
    Ok(Some([&goal[..end], query, &goal[end..]].concat()))
}

/// No text has a zero in it, however it is written.
fn refuse_zero(token: &Token) -> Result<()> {
    match token {
        Token::UnicodeStringLiteral(text) if text.contains('\0') => Err(Error::ZeroInText),
        _ => Ok(()),
    }
}

/// `0x1F` is a number; the tokenizer takes it for the bytes `X'1F'`, which are one letter longer.
fn whole_number(mut token: TokenWithSpan) -> Result<TokenWithSpan> {
    refuse_zero(&token.token)?;
    if let Token::HexStringLiteral(digits) = &token.token
        && token.span.end.column.saturating_sub(token.span.start.column) == digits.len() as u64 + 2
    {
        let number = u64::from_str_radix(digits, 16).ok().filter(|number| i64::try_from(*number).is_ok());
        let number = number.ok_or_else(|| Error::Sql("an integer is out of range".into()))?;
        token.token = Token::Number(number.to_string(), false);
    }
    Ok(token)
}

/// Where a statement has something other than blanks and comments.
fn places(statement: &[TokenWithSpan]) -> Vec<usize> {
    (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect()
}

fn keyword(statement: &[TokenWithSpan], words: &[usize], place: usize) -> Option<Keyword> {
    match &statement[*words.get(place)?].token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// What FREEZE and HEADER are told, as the parser knows it.
fn truth_of_options(statement: &[TokenWithSpan], words: &[usize]) -> Vec<TokenWithSpan> {
    let mut adapted = statement.to_vec();
    for pair in words.windows(2) {
        let (option, value) = (&statement[pair[0]].token, &statement[pair[1]].token);
        if !matches!(upper(option).as_deref(), Some("FREEZE" | "HEADER")) {
            continue;
        }
        let truth = match (upper(value).as_deref(), value) {
            (Some("ON"), _) => "TRUE",
            (Some("OFF"), _) => "FALSE",
            (None, Token::Number(digit, _)) if digit == "1" => "TRUE",
            (None, Token::Number(digit, _)) if digit == "0" => "FALSE",
            _ => continue,
        };
        adapted[pair[1]].token = Token::make_keyword(truth);
    }
    adapted
}

/// FETCH with a direction or a number, and with FROM: one that says neither is FETCH NEXT.
fn fetch_next(statement: &[TokenWithSpan], words: &[usize]) -> Vec<TokenWithSpan> {
    let is_end = |at: &usize| matches!(statement[*at].token, Token::SemiColon | Token::EOF);
    let end = words.iter().position(is_end).unwrap_or(words.len());
    let word = |place: usize| words[..end].get(place).and_then(|at| upper(&statement[*at].token));
    let is_from = |place: usize| matches!(word(place).as_deref(), Some("FROM" | "IN"));
    let Some(cursor) = end.checked_sub(1).filter(|place| *place > 0) else { return statement.to_vec() };
    let lacks_from = !is_from(cursor - 1) || cursor == 1;
    // The words between FETCH and FROM.
    let direction = &words[1..if lacks_from { cursor } else { cursor - 1 }];
    let is_next = match direction {
        [] => true,
        [only] => upper(&statement[*only].token).as_deref() == Some("FORWARD"),
        _ => false,
    };
    let span = statement[words[0]].span;
    let keyword = |keyword: &str| TokenWithSpan { token: Token::make_keyword(keyword), span };
    let mut adapted = vec![statement[words[0]].clone()];
    match is_next {
        true => adapted.push(keyword("NEXT")),
        false => adapted.extend(direction.iter().map(|at| statement[*at].clone())),
    }
    adapted.push(keyword("FROM"));
    adapted.extend_from_slice(&statement[words[cursor]..]);
    adapted
}

/// `IN (VALUES ...)` and `FETCH FIRST (...) ROWS ONLY`, if a statement has them.
fn rows_told(statement: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is = |token: &TokenWithSpan, keyword: Keyword| matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword);
    let words = places(statement);
    let mut replaced: Vec<(usize, usize, Vec<Token>)> = Vec::new();
    for (place, window) in words.windows(3).enumerate() {
        let [first, second, third] = [0, 1, 2].map(|at| &statement[window[at]]);
        if is(first, Keyword::IN) && second.token == Token::LParen && is(third, Keyword::VALUES) {
            let Some(close) = closing(statement, &words, place + 1) else { continue };
            let name = Token::make_word("__counterfoil_values", Some('"'));
            let select = ["SELECT", "FROM"].map(Token::make_keyword);
            let [select, from] = select;
            replaced.push((window[2], window[2], vec![select, Token::Mul, from, Token::LParen, third.token.clone()]));
            replaced.push((
                words[close],
                words[close],
                vec![Token::RParen, Token::make_keyword("AS"), name, Token::RParen],
            ));
        }
        let is_fetch = is(first, Keyword::FETCH) && (is(second, Keyword::FIRST) || is(second, Keyword::NEXT));
        if is_fetch && third.token == Token::LParen {
            let Some(close) = closing(statement, &words, place + 2) else { continue };
            let behind = |place: usize| words.get(place).map(|at| &statement[*at]);
            let rows = behind(close + 1).is_some_and(|word| is(word, Keyword::ROW) || is(word, Keyword::ROWS));
            if rows && behind(close + 2).is_some_and(|word| is(word, Keyword::ONLY)) {
                replaced.push((window[0], window[1], vec![Token::make_keyword("LIMIT")]));
                replaced.push((words[close + 1], words[close + 2], Vec::new()));
            }
        }
    }
    (!replaced.is_empty()).then(|| put_in_place(statement, replaced))
}

/// Where the parenthesis at a place is closed.
fn closing(statement: &[TokenWithSpan], words: &[usize], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, at) in words.iter().enumerate().skip(open) {
        match statement[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

/// A statement with other tokens in the place of some, from the first to the last that each tells.
fn put_in_place(statement: &[TokenWithSpan], mut replaced: Vec<(usize, usize, Vec<Token>)>) -> Vec<TokenWithSpan> {
    replaced.sort_by_key(|(first, ..)| *first);
    let mut adapted = Vec::with_capacity(statement.len() + 8);
    let mut from = 0;
    for (first, last, tokens) in replaced {
        adapted.extend_from_slice(&statement[from..first]);
        let span = statement[first].span;
        adapted.extend(tokens.into_iter().map(|token| TokenWithSpan { token, span }));
        from = last + 1;
    }
    adapted.extend_from_slice(&statement[from..]);
    adapted
}

/// Refuses clauses of PostgreSQL that are neither here nor read by the parser, or that it reads and forgets.
fn refuse_within(statement: &[TokenWithSpan], words: &[usize]) -> Result<()> {
    let word = |place: usize| words.get(place).and_then(|at| upper(&statement[*at].token));
    let is_at = |place: usize, wanted: &[&str]| {
        wanted.iter().enumerate().all(|(more, wanted)| word(place + more).as_deref() == Some(wanted))
    };
    let opens = |place: usize| words.get(place).is_some_and(|at| statement[*at].token == Token::LParen);
    match word(0).as_deref() {
        Some("INSERT") => {
            // Rows come behind it, and may be many.
            let is_before = |place: &usize| !matches!(word(*place).as_deref(), Some("VALUES" | "SELECT" | "DEFAULT"));
            for place in
                (1..words.len()).take_while(is_before).filter(|place| word(*place).as_deref() == Some("OVERRIDING"))
            {
                if let Some(whose @ ("SYSTEM" | "USER")) = word(place + 1).as_deref() {
                    return Err(Error::NotSupported(format!("INSERT ... OVERRIDING {whose} VALUE")));
                }
            }
        }
        Some("CREATE" | "ALTER") => {
            for place in 0..words.len() {
                for what in ["NULL", "DEFAULT"] {
                    if is_at(place, &["ON", "DELETE", "SET", what]) && opens(place + 4) {
                        return Err(Error::NotSupported(format!("ON DELETE SET {what} with columns")));
                    }
                }
            }
        }
        Some("EXPLAIN") if opens(1) => {
            for place in (2..words.len()).take_while(|place| statement[words[*place]].token != Token::RParen) {
                match word(place + 1) {
                    Some(form) if is_at(place, &["FORMAT"]) && form != "TEXT" => {
                        return Err(Error::NotSupported(format!("EXPLAIN (FORMAT {form})")));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// An unquoted word in capitals.
fn upper(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        _ => None,
    }
}

/// VACUUM does all that its options ask for anyway.
fn vacuum(statement: &[TokenWithSpan], words: &[usize], adapted: &mut Vec<TokenWithSpan>) {
    let mut place = 1;
    let option = |word: &str| ["FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE"].contains(&word);
    while let Some(at) = words.get(place) {
        match &statement[*at].token {
            Token::Word(word) if word.quote_style.is_none() && option(&word.value.to_ascii_uppercase()) => place += 1,
            Token::LParen if place == 1 => {
                let end = words[place..].iter().position(|at| statement[*at].token == Token::RParen);
                let Some(end) = end else { break };
                place += end + 1;
            }
            _ => break,
        }
    }
    adapted.push(statement[words[0]].clone());
    adapted.extend(words[place..].iter().map(|at| statement[*at].clone()));
}

/// `CREATE TABLE name (columns) AS`: where the list of columns begins and ends, and where the query begins.
struct Columns {
    open: usize,
    close: usize,
    query: usize,
}

fn columns_before_as(statement: &[TokenWithSpan], words: &[usize]) -> Option<Columns> {
    if keyword(statement, words, 1)? != Keyword::TABLE {
        return None;
    }
    let open = words.iter().position(|at| statement[*at].token == Token::LParen)?;
    // Behind AS a parenthesis is of the query: `AS SELECT sum(n) AS n`.
    if (0..open).any(|place| keyword(statement, words, place) == Some(Keyword::AS)) {
        return None;
    }
    let close = open + words[open..].iter().position(|at| statement[*at].token == Token::RParen)?;
    let names = &words[open + 1..close];
    let listed = names.iter().enumerate().all(|(place, at)| match &statement[*at].token {
        Token::Word(_) => place % 2 == 0,
        Token::Comma => place % 2 == 1,
        _ => false,
    });
    let is_query = keyword(statement, words, close + 1)? == Keyword::AS;
    (listed && names.len() % 2 == 1 && is_query).then(|| Columns {
        open: words[open],
        close: words[close],
        query: words[close + 1] + 1,
    })
}

fn create_table_as(statement: &[TokenWithSpan], columns: &Columns, adapted: &mut Vec<TokenWithSpan>) {
    let span = statement[columns.open].span;
    let mut push = |token: Token| adapted.push(TokenWithSpan { token, span });
    statement[..columns.open].iter().for_each(|token| push(token.token.clone()));
    for word in ["AS", "SELECT"] {
        push(Token::make_keyword(word));
    }
    push(Token::Mul);
    push(Token::make_keyword("FROM"));
    push(Token::LParen);
    let rest = &statement[columns.query..];
    let end = query_end(rest);
    adapted.extend_from_slice(&rest[..end]);
    let mut push = |token: Token| adapted.push(TokenWithSpan { token, span });
    push(Token::RParen);
    push(Token::make_keyword("AS"));
    push(Token::make_word("__counterfoil_columns", Some('"')));
    adapted.extend_from_slice(&statement[columns.open..=columns.close]);
    adapted.extend_from_slice(&rest[end..]);
}

/// CREATE TABLE AS without WITH DATA, which says what is done anyway.
fn without_with_data(statement: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let (query, after) = statement.split_at(query_end(statement));
    let no = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::NO);
    if after.iter().any(no) {
        return Err(Error::NotSupported("CREATE TABLE ... AS ... WITH NO DATA".into()));
    }
    let end = after.iter().filter(|token| !matches!(token.token, Token::Word(_)));
    Ok(query.iter().chain(end).cloned().collect())
}

/// Where the query of CREATE TABLE AS ends: before WITH [NO] DATA, the semicolon, or the end.
fn query_end(rest: &[TokenWithSpan]) -> usize {
    let words: Vec<usize> = (0..rest.len())
        .filter(|at| !matches!(rest[*at].token, Token::Whitespace(_) | Token::SemiColon | Token::EOF))
        .collect();
    let end = words.last().map_or(0, |at| at + 1);
    let word = |back: usize| {
        let place = words.len().checked_sub(back)?;
        match &rest[words[place]].token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        }
    };
    if word(1).as_deref() != Some("DATA") {
        return end;
    }
    match (word(2).as_deref(), word(3).as_deref()) {
        (Some("WITH"), _) => words[words.len() - 2],
        (Some("NO"), Some("WITH")) => words[words.len() - 3],
        _ => end,
    }
}

/// The order in which the parser reads the options of an identity column.
const OPTIONS: &[&str] = &["INCREMENT", "MINVALUE", "MAXVALUE", "START", "CACHE", "CYCLE"];

fn identity_options(statement: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut adapted: Vec<TokenWithSpan> = Vec::with_capacity(statement.len());
    let words: Vec<&TokenWithSpan> =
        statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let mut place = 0;
    while place < words.len() {
        adapted.push(words[place].clone());
        let opens = matches!(&words[place].token, Token::Word(word) if word.value.eq_ignore_ascii_case("IDENTITY"))
            && words.get(place + 1).is_some_and(|token| token.token == Token::LParen);
        place += 1;
        let Some(end) = words[place..].iter().position(|token| token.token == Token::RParen).filter(|_| opens) else {
            continue;
        };
        adapted.push(words[place].clone());
        adapted.extend(sorted_options(&words[place + 1..place + end]));
        place += end;
    }
    adapted
}

fn sorted_options(words: &[&TokenWithSpan]) -> Vec<TokenWithSpan> {
    let rank = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => OPTIONS.iter().position(|option| word.value.eq_ignore_ascii_case(option)),
        _ => None,
    };
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let negated = |at: usize| words.get(at).is_some_and(|word| word.token.to_string().eq_ignore_ascii_case("NO"));
        // NO stands before the option that it negates.
        let begins = match rank(word) {
            Some(rank) if place == 0 || !negated(place - 1) => Some(rank),
            None if negated(place) => words.get(place + 1).and_then(|next| rank(next)),
            _ => None,
        };
        match (begins, options.last_mut()) {
            (None, Some((_, option))) => option.push((*word).clone()),
            (rank, _) => options.push((rank.unwrap_or(0), vec![(*word).clone()])),
        }
    }
    options.sort_by_key(|(rank, _)| *rank);
    options.into_iter().flat_map(|(_, option)| option).collect()
}
