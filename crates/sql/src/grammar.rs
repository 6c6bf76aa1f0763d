//! The grammar in which texts are read: PostgreSQL's, as the library has it, except where that takes exponential time
//! or another thing for what was written; and what this database has beside it.

use std::any::{Any, TypeId};

use datafusion::sql::sqlparser::ast::{ColumnOption, Expr, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::{self, Keyword};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// PostgreSQL's grammar without arguments whose names are expressions (`json_object('a': 1)`).
///
/// Where those may stand, the library reads every argument twice, first as a name and then as a value, so that calls that
/// nest n deep are read 2^n times (sqlparser 0.62, `parse_function_args`). Names that are names (`make_interval(days => 1)`)
/// stay.
#[derive(Debug)]
pub(crate) struct Grammar;

macro_rules! as_postgresql {
    ($($says:ident),+ $(,)?) => {
        $(fn $says(&self) -> bool {
            PostgreSqlDialect {}.$says()
        })+
    };
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        PostgreSqlDialect {}.type_id()
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        let ours = crate::publishing::parse(parser).or_else(|| crate::dispersed::parse(parser));
        ours.or_else(|| crate::control::parse(parser))
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        Ok(crate::dispersed::parse_column_option(parser).transpose().map(|option| option.map(Some)))
    }

    /// IS \[NOT\] DISTINCT FROM, which binds as IS does. The library reads all that stands behind it as its right side, so that
    /// `a IS DISTINCT FROM b OR c` would be asked as `a IS DISTINCT FROM (b OR c)`.
    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        let is_negated = parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]);
        if !is_negated && !parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            return None;
        }
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| match (Box::new(left.clone()), Box::new(right)) {
            (left, right) if is_negated => Expr::IsNotDistinctFrom(left, right),
            (left, right) => Expr::IsDistinctFrom(left, right),
        }))
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    /// `SELECT 1 ON CONFLICT ...` of an INSERT: the library takes ON for the name of the column.
    fn is_column_alias(&self, word: &Keyword, _parser: &mut Parser<'_>) -> bool {
        *word != Keyword::ON && !keywords::RESERVED_FOR_COLUMN_ALIAS.contains(word)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        PostgreSqlDialect {}.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        PostgreSqlDialect {}.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        PostgreSqlDialect {}.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        PostgreSqlDialect {}.is_identifier_part(letter)
    }

    /// Where the library cannot read on behind one of these, because it nests too deep, it would take it for a column.
    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        matches!(word, Keyword::ARRAY | Keyword::CASE | Keyword::CAST | Keyword::NOT)
            || PostgreSqlDialect {}.is_reserved_for_identifier(word)
    }

    /// No letter makes another operator of one that is known: nobody can define any, and the library would take the sign of
    /// `3>-1` and the comment of `3>/* */2` for a part of one, which they are not in PostgreSQL.
    fn is_custom_operator_part(&self, _letter: char) -> bool {
        false
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        PostgreSqlDialect {}.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        PostgreSqlDialect {}.prec_value(precedence)
    }

    as_postgresql!(
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_alter_column_type_using,
        supports_array_typedef_with_brackets,
        supports_bitwise_shift_operators,
        supports_comma_separated_trim,
        supports_comment_on,
        supports_comment_optimizer_hint,
        supports_create_index_with_clause,
        supports_create_table_like_parenthesized,
        supports_empty_projections,
        supports_explain_with_utility_options,
        supports_factorial_operator,
        supports_filter_during_aggregation,
        supports_geometric_types,
        supports_group_by_expr,
        supports_insert_table_alias,
        supports_interval_options,
        supports_listen_notify,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_nested_comments,
        supports_notnull_operator,
        supports_numeric_literal_underscores,
        supports_select_wildcard_with_alias,
        supports_set_names,
        supports_string_escape_constant,
        supports_unicode_string_literal,
        supports_xml_expressions,
    );
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use datafusion::sql::sqlparser::ast::visit_expressions_mut;

    use super::*;

    #[test]
    fn calls_that_nest_are_read_in_linear_time() {
        // 2^90 readings would not end.
        let deep = |inner: &str| format!("SELECT {}{inner}{}", "abs(".repeat(90), ")".repeat(90));
        assert!(crate::statement::parse(&deep("1")).is_ok());
        assert!(crate::statement::parse(&deep("1 +")).is_err());
        let many = format!("SELECT {}1{}", "coalesce(".repeat(90), ", f(1, g(2)))".repeat(90));
        assert!(crate::statement::parse(&many).is_ok());
    }

    #[test]
    fn a_sign_and_a_comment_are_no_part_of_the_operator_before_them() {
        for op in ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "||", "~", "<<", ">>", "&", "|", "->", "@>"] {
            for (close, apart) in [("-b", " -b"), ("+2", " +2"), ("/*c*/b", " b"), ("--it's\nb", " b")] {
                // `--` begins a comment, and `||/` is an operator wherever it stands.
                if (op == "-" && close.starts_with('-')) || (op.ends_with('|') && close.starts_with('/')) {
                    continue;
                }
                let read = |right: &str| {
                    crate::statement::parse(&format!("SELECT a{op}{right}")).map(|all| all[0].to_string())
                };
                assert_eq!(read(close).ok(), read(apart).ok(), "a{op}{close}");
                assert!(read(close).is_ok(), "a{op}{close}");
            }
        }
    }

    #[test]
    fn what_nests_too_deep_is_told_as_such() {
        for (open, close) in [("CASE WHEN true THEN ", " END"), ("CAST(", " AS int)"), ("NOT ", "")] {
            let sql = format!("SELECT {}1{}", open.repeat(150), close.repeat(150));
            let told = crate::statement::parse(&sql).map_err(|error| error.to_string());
            assert_eq!(told.map(drop), Err("the statement is nested too deeply".into()), "{open}");
        }
    }

    #[test]
    fn is_distinct_from_binds_as_is_does() {
        let read = |sql: &str| Parser::new(&Grammar).try_with_sql(sql).and_then(|mut it| it.parse_expr()).unwrap();
        for (sql, meant) in [
            ("a IS NOT DISTINCT FROM b OR c", "(a IS NOT DISTINCT FROM b) OR c"),
            ("a IS DISTINCT FROM b AND c = d", "(a IS DISTINCT FROM b) AND c = d"),
            ("NOT a IS DISTINCT FROM b + 1", "NOT (a IS DISTINCT FROM (b + 1))"),
            ("a = b IS DISTINCT FROM c = d", "(a = b) IS DISTINCT FROM (c = d)"),
        ] {
            assert_eq!(without_brackets(read(sql)), without_brackets(read(meant)), "{sql}");
        }
        let unfinished =
            Parser::new(&Grammar).try_with_sql("a IS NOT DISTINCT FROM").and_then(|mut it| it.parse_expr());
        assert!(unfinished.is_err());
    }

    /// What brackets say, without them; places in the text are the same for all.
    fn without_brackets(mut expr: Expr) -> Expr {
        let _ = visit_expressions_mut(&mut expr, |expr| {
            while let Expr::Nested(inner) = expr {
                *expr = (**inner).clone();
            }
            ControlFlow::<()>::Continue(())
        });
        expr
    }

    #[test]
    fn arguments_may_have_names_and_operators_are_postgresql_s() {
        assert!(crate::statement::parse("SELECT make_interval(days => 1, hours := 2)").is_ok());
        for sql in [
            "SELECT a @> b, c -> 'd', e ~* 'f', 1 << 2, 5 !, E'\\n', U&'\\0041', 1_000, x NOTNULL FROM t",
            "SELECT count(*) FILTER (WHERE a > 1), '{1}'::int[], $$text$$, $1 FROM t",
            "SELECT /* a /* nested */ comment */ 1",
            "EXPLAIN (ANALYZE, VERBOSE) SELECT",
        ] {
            let said = Parser::new(&PostgreSqlDialect {}).try_with_sql(sql).and_then(|mut it| it.parse_statements());
            assert!(said.is_ok(), "{sql}: {said:?}");
            assert_eq!(said, Parser::new(&Grammar).try_with_sql(sql).and_then(|mut it| it.parse_statements()), "{sql}");
        }
    }
}
