//! From a text to the parts of one SELECT. Whatever is in none of the parts is refused: nothing is left out in silence.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause, ObjectName, ObjectNamePart,
    OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Value as Written,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use crate::error::{Error, not_supported};

/// Bytes of a text at most.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Words and signs in one run, lists counted once: so deep may a tree of operators become.
const RUN_MAX: usize = 4096;

/// Parentheses within each other. The parser tries some of them twice, so that time doubles with each.
const NESTING_MAX: usize = 12;

/// The parts of a SELECT.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) table: String,
    pub(crate) alias: Option<String>,
    pub(crate) join: Option<Joined>,
    pub(crate) items: Vec<SelectItem>,
    pub(crate) is_distinct: bool,
    pub(crate) condition: Option<Expr>,
    pub(crate) group_by: Vec<Expr>,
    pub(crate) order_by: Vec<OrderByExpr>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
}

impl Statement {
    pub(crate) fn parse(sql: &str) -> Result<Self, Error> {
        let query = query(sql)?;
        let Query {
            with: None,
            body,
            order_by,
            limit_clause,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = query
        else {
            return not_supported("WITH, FETCH, and other clauses around a SELECT");
        };
        if !locks.is_empty() || !pipe_operators.is_empty() {
            return not_supported("FOR UPDATE and pipes");
        }
        let SetExpr::Select(select) = *body else { return not_supported("anything but one SELECT") };
        let order_by = match order_by {
            None => Vec::new(),
            Some(order_by) if order_by.interpolate.is_none() => match order_by.kind {
                OrderByKind::Expressions(keys) => keys,
                OrderByKind::All(_) => return not_supported("ORDER BY ALL"),
            },
            Some(_) => return not_supported("INTERPOLATE"),
        };
        let (limit, offset) = limit_and_offset(limit_clause)?;
        let mut statement = Self::of_select(*select)?;
        (statement.order_by, statement.limit, statement.offset) = (order_by, limit, offset);
        Ok(statement)
    }

    fn of_select(mut select: Select) -> Result<Self, Error> {
        refuse_clauses(&select)?;
        let group_by = match std::mem::replace(&mut select.group_by, GroupByExpr::Expressions(Vec::new(), Vec::new())) {
            GroupByExpr::Expressions(columns, modifiers) if modifiers.is_empty() => columns,
            _ => return not_supported("GROUP BY of this form"),
        };
        let is_distinct = match select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return not_supported("DISTINCT ON"),
        };
        let from = select.from.pop().filter(|_| select.from.is_empty());
        let Some(mut from) = from else { return not_supported("tables in FROM without JOIN and ON between them") };
        let join = from.joins.pop().map(Joined::of).transpose()?;
        if !from.joins.is_empty() {
            return not_supported("joins of more than two tables");
        }
        let (table, alias) = table(from.relation)?;
        Ok(Self {
            table,
            alias,
            join,
            items: select.projection,
            is_distinct,
            condition: select.selection,
            group_by,
            order_by: Vec::new(),
            limit: None,
            offset: 0,
        })
    }

    /// The same, unless it is a join.
    pub(crate) fn of_one_table(self) -> Result<Self, Error> {
        if self.join.is_some() { not_supported("a join where one table is asked") } else { Ok(self) }
    }
}

/// A table that another one is joined with.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) table: String,
    pub(crate) alias: Option<String>,
    /// Whether rows without a match stay.
    pub(crate) is_left: bool,
    pub(crate) on: Expr,
}

impl Joined {
    fn of(join: Join) -> Result<Self, Error> {
        let (is_left, constraint) = match join.join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (false, constraint),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (true, constraint),
            _ => return not_supported("joins but JOIN and LEFT JOIN"),
        };
        let JoinConstraint::On(on) = constraint else { return not_supported("a join without ON") };
        let (table, alias) = table(join.relation)?;
        if join.global { not_supported("GLOBAL") } else { Ok(Self { table, alias, is_left, on }) }
    }
}

/// The name of a table in FROM, and what it is called there.
fn table(factor: TableFactor) -> Result<(String, Option<String>), Error> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return not_supported("anything but a table in FROM");
    };
    let is_plain = with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty();
    let alias = match alias {
        None => None,
        Some(alias) if alias.columns.is_empty() && alias.at.is_none() => Some(folded(&alias.name)),
        Some(_) => return not_supported("other names for a table's columns"),
    };
    if !is_plain {
        return not_supported("hints and partitions");
    }
    Ok((single_name(&name)?, alias))
}

/// A name as SQL understands it: small letters unless it is quoted.
pub(crate) fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_ascii_lowercase() }
}

pub(crate) fn single_name(name: &ObjectName) -> Result<String, Error> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(name)] => Ok(folded(name)),
        _ => not_supported("names of several parts"),
    }
}

fn refuse_clauses(select: &Select) -> Result<(), Error> {
    let is_any = [
        (select.having.is_some(), "HAVING"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.named_window.is_empty() || select.qualify.is_some(), "windows"),
        (select.top.is_some() || select.top_before_distinct, "TOP"),
        (select.prewhere.is_some() || !select.connect_by.is_empty(), "PREWHERE and CONNECT BY"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY and DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.exclude.is_some() || select.value_table_mode.is_some(), "EXCLUDE and SELECT AS"),
        (!select.optimizer_hints.is_empty() || select.select_modifiers.is_some(), "hints"),
        (select.flavor != sqlparser::ast::SelectFlavor::Standard, "FROM before SELECT"),
        (select.projection.is_empty(), "a SELECT of nothing"),
    ];
    is_any.iter().find(|(is_there, _)| *is_there).map_or(Ok(()), |(_, what)| not_supported(*what))
}

fn limit_and_offset(clause: Option<LimitClause>) -> Result<(Option<u64>, u64), Error> {
    match clause {
        None => Ok((None, 0)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let limit = limit.map_or(Ok(None), |limit| count(&limit))?;
            let offset = offset.map_or(Ok(None), |offset| count(&offset.value))?;
            Ok((limit, offset.unwrap_or(0)))
        }
        Some(_) => not_supported("LIMIT of this form"),
    }
}

/// A number of rows; none for NULL.
fn count(expression: &Expr) -> Result<Option<u64>, Error> {
    match expression {
        Expr::Value(value) => match &value.value {
            Written::Null => Ok(None),
            Written::Number(text, false) => match text.parse() {
                Ok(count) => Ok(Some(count)),
                Err(_) => not_supported("LIMIT and OFFSET that are no whole numbers"),
            },
            _ => not_supported("LIMIT and OFFSET that are no numbers"),
        },
        _ => not_supported("LIMIT and OFFSET that are no numbers"),
    }
}

fn query(sql: &str) -> Result<Query, Error> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLong("64 KiB at most"));
    }
    let dialect = PostgreSqlDialect {};
    let tokens =
        Tokenizer::new(&dialect, sql).tokenize_with_location().map_err(|error| Error::Syntax(error.to_string()))?;
    bound(&tokens)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    // Statements of other kinds are not even parsed.
    if !matches!(parser.peek_token().token, Token::Word(word) if word.keyword == Keyword::SELECT) {
        return not_supported("anything but one SELECT");
    }
    let query = parser.parse_query().map_err(syntax)?;
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token().token {
        Token::EOF => Ok(*query),
        _ => Err(Error::Syntax(format!("something behind the end of the SELECT{}", parser.peek_token().span.start))),
    }
}

fn syntax(error: ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::TooLong("nested too deeply"),
        ParserError::TokenizerError(what) | ParserError::ParserError(what) => Error::Syntax(what),
    }
}

/// Refuses what would become a tree deeper than a stack bears: the parser counts its own calls, not operators in a row,
/// nor types within types.
fn bound(tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let mut open: Vec<usize> = Vec::new();
    let mut run = 0;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_) => {}
            Token::LParen | Token::LBracket | Token::LBrace => open.push(run),
            Token::RParen | Token::RBracket | Token::RBrace => run = open.pop().unwrap_or(0) + 1,
            Token::Comma => run = open.last().copied().unwrap_or(0),
            // The parser's own limit does not count these, and each may stand in the next.
            Token::Word(Word { keyword: Keyword::ARRAY, .. }) => return not_supported("ARRAY"),
            Token::Word(Word { keyword: Keyword::INTERVAL, .. }) => return not_supported("intervals of time"),
            _ => run += 1,
        }
        if open.len() > NESTING_MAX {
            return Err(Error::TooLong("parentheses nested too deeply"));
        }
        if run > RUN_MAX {
            return Err(Error::TooLong("4096 words and signs in a row at most"));
        }
    }
    Ok(())
}
