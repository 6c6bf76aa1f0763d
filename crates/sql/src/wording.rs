//! The query library's messages in the words of SQL.
//!
//! The library speaks of its own types and functions (`Int64(1)`, `Utf8View`, "coercion from ... to the signature
//! ..."), and quotes values of rows. People wrote SQL, and values do not belong into messages that may be logged.

use datafusion::sql::sqlparser::ast::{BinaryOperator, UnaryOperator};

use crate::error::{Error, first_line};
use crate::types::arrow_name;

/// An error of the library that stands for another one.
pub(crate) fn known(text: &str) -> Option<Error> {
    not_supported(text).map(Error::NotSupported).or_else(|| wrong_value(text)).or_else(|| wrong(text).map(Error::Sql))
}

/// What is said of something that the library has not got.
fn not_supported(text: &str) -> Option<String> {
    let between = |before: &str, after: &str| {
        let rest = text.split_once(before)?.1;
        Some(rest.split_once(after).map_or(rest, |(part, _)| part).to_owned())
    };
    if text.contains("InSubquery") || text.contains("Exists") || text.contains("SetComparison") {
        return Some("IN (SELECT ...) and EXISTS in this place: they stand in conditions".into());
    }
    if text.contains("ScalarSubquery") {
        return Some("a subquery in this place".into());
    }
    if text.contains("OuterReferenceColumn") {
        return Some("this use of a column of the query around it (LATERAL, correlated subquery)".into());
    }
    if let Some(name) = between("Invalid function '", "'") {
        return Some(format!("function {name}"));
    }
    if let Some(name) = between("Unsupported SQL type ", "\n") {
        return Some(format!("type {name}"));
    }
    if let Some(name) =
        between("Unsupported SQL unary operator ", "\n").or(between("Unsupported binary operator: ", "\n"))
    {
        return Some(format!("operator {}", operator(&name)));
    }
    if let Some(part) = between("Date part '", "'") {
        return Some(format!("the part {} of a date", part.to_lowercase()));
    }
    if text.starts_with("Query ") && text.contains(" not implemented yet") {
        return Some("INSERT, UPDATE and DELETE inside a query".into());
    }
    if text.contains("Cannot get result type for temporal operation") {
        let operation = between("temporal operation ", ": ")?;
        return Some(plain(&operation));
    }
    None
}

/// What is said of a value that is none of its type.
fn wrong_value(text: &str) -> Option<Error> {
    const RANGE: &[&str] =
        &["too large to store in", "out of range", "Overflow", "overflow", "an't cast value", "decimal scale"];
    if text.contains("Cannot cast value '") && text.contains("' to value of ") {
        let kind = text.rsplit("' to value of ").next()?.split(" type").next()?;
        return Some(Error::NotValid(format!("a text is not a valid {}", arrow_name(kind))));
    }
    if text.contains("rror parsing timestamp from") {
        return Some(Error::NotValid("a text is not a timestamp in the form that is given".into()));
    }
    if text.contains("nable to parse date from") {
        return Some(Error::NotValid("there is no such date".into()));
    }
    if text.contains("square root of a negative number") || text.contains("negative power is undefined") {
        return Some(Error::Undefined(text.to_owned()));
    }
    RANGE.iter().any(|part| text.contains(part)).then_some(Error::OutOfRange)
}

/// What is said of something that is wrong.
fn wrong(text: &str) -> Option<String> {
    if text.contains("Cannot create filter with non-boolean predicate") {
        return Some("WHERE, HAVING and ON take conditions, not other values".into());
    }
    if let Some((_, rest)) = text.split_once("While expanding wildcard, column \"") {
        let column = rest.split('"').next()?;
        return Some(format!("column {column} must appear in GROUP BY, or in an aggregate function"));
    }
    if text.starts_with("Too many columns! The subquery should only return one column") {
        return Some("a subquery in an expression must have one column".into());
    }
    if let Some((_, rest)) = text.split_once("Table references not found: ") {
        return Some(format!("no table {rest}"));
    }
    arguments(text)
}

/// What is said of the arguments of functions and operators.
fn arguments(text: &str) -> Option<String> {
    for (before, after) in [
        ("Cannot coerce arithmetic expression ", " to valid types"),
        ("Cannot infer common argument type for comparison operation ", "\n"),
        ("Cannot infer common argument type for logical boolean operation ", "\n"),
        ("Cannot infer common string type for string concat operation ", "\n"),
        ("Cannot infer common argument type for ", "\n"),
    ] {
        if let Some((_, rest)) = text.split_once(before) {
            let operation = plain(rest.split(after).next()?.trim_end());
            return Some(format!("there is no {operation}: cast one side"));
        }
    }
    if let Some((_, rest)) = text.split_once("There isn't a common type to coerce ") {
        let kinds = rest.split(" in ").next()?;
        return Some(format!("LIKE compares texts, not {}", plain(kinds)));
    }
    let about_arguments = [
        "coerce arguments",
        "failed to match any signature",
        "' requires ",
        "' expects ",
        "does not support",
        "user-defined coercion failed",
    ];
    if about_arguments.iter().any(|part| text.contains(part)) {
        let name = text.split('\'').nth(1)?;
        let named = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        return named.then(|| format!("function {name} does not take these arguments"));
    }
    None
}

/// An operator as it is written, by the name that the library has for it.
fn operator(name: &str) -> String {
    const BINARY: &[BinaryOperator] = &[
        BinaryOperator::AndGt,
        BinaryOperator::AndLt,
        BinaryOperator::AndLtPipe,
        BinaryOperator::Assignment,
        BinaryOperator::At,
        BinaryOperator::DoubleHash,
        BinaryOperator::GtCaret,
        BinaryOperator::LtCaret,
        BinaryOperator::LtDashGt,
        BinaryOperator::LtLtPipe,
        BinaryOperator::Match,
        BinaryOperator::Overlaps,
        BinaryOperator::PGExp,
        BinaryOperator::PGOverlap,
        BinaryOperator::PGStartsWith,
        BinaryOperator::PipeAndGt,
        BinaryOperator::PipeGtGt,
        BinaryOperator::QuestionDash,
        BinaryOperator::QuestionDashPipe,
        BinaryOperator::QuestionDoublePipe,
        BinaryOperator::QuestionHash,
        BinaryOperator::Regexp,
        BinaryOperator::TildeEq,
    ];
    const UNARY: &[UnaryOperator] = &[
        UnaryOperator::AtDashAt,
        UnaryOperator::BangNot,
        UnaryOperator::BitwiseNot,
        UnaryOperator::DoubleAt,
        UnaryOperator::Hash,
        UnaryOperator::PGAbs,
        UnaryOperator::PGCubeRoot,
        UnaryOperator::PGPostfixFactorial,
        UnaryOperator::PGPrefixFactorial,
        UnaryOperator::PGSquareRoot,
        UnaryOperator::QuestionDash,
        UnaryOperator::QuestionPipe,
    ];
    let binary = BINARY.iter().find(|op| format!("{op:?}") == name).map(ToString::to_string);
    let unary = || UNARY.iter().find(|op| format!("{op:?}") == name).map(ToString::to_string);
    // `PGCustomBinaryOperator(["public", "<->"])`
    let parts = || name.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(".");
    binary.or_else(unary).unwrap_or_else(|| if name.contains('"') { parts() } else { name.to_owned() })
}

/// A text with the library's literals and types as SQL has them: `Int64(1)` is 1, `Utf8View` is text.
pub(crate) fn plain(text: &str) -> String {
    const KINDS: &[&str] = &[
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float32",
        "Float64",
        "Utf8",
        "LargeUtf8",
        "Utf8View",
        "Binary",
        "BinaryView",
        "Date32",
        "Date64",
        "Decimal128",
        "Decimal256",
        "Timestamp",
        "Time64",
        "Interval",
        "Duration",
        "List",
    ];
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        if length == 0 {
            let letter = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..letter]);
            rest = &rest[letter..];
        } else if KINDS.contains(&word) {
            let (inner, tail) = parenthesized(after).map_or((None, after), |(inner, tail)| (Some(inner), tail));
            let of_type =
                matches!(word, "Decimal128" | "Decimal256" | "Timestamp" | "Time64" | "Interval" | "Duration" | "List");
            match inner {
                Some(value) if !of_type => out.push_str(&value.replace('"', "'")),
                _ => out.push_str(&match word {
                    "Interval" | "Duration" => "interval".to_owned(),
                    "List" => "array".to_owned(),
                    "Timestamp" if inner.is_some_and(|inner| inner.contains(',')) => {
                        "timestamp with time zone".to_owned()
                    }
                    _ => arrow_name(word),
                }),
            }
            rest = tail;
        } else {
            out.push_str(word);
            rest = after;
        }
    }
    out
}

/// What stands in the parentheses that a text begins with, and what comes after them.
fn parenthesized(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('(')?;
    let mut depth = 1;
    for (at, letter) in inner.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}

/// What the parser says, and the line and column where it stopped.
pub(crate) fn parse_error(text: &str) -> (String, Option<(u64, u64)>) {
    let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
    let bare =
        |text: &str| first_line(text).replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    let Some((what, place)) = text.rsplit_once(" at Line: ") else { return (bare(text), None) };
    let Some((line, column)) = place.split_once(", Column: ") else { return (bare(text), None) };
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    let position = line.parse().ok().zip(column.parse().ok());
    (bare(what), position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_named_as_they_are_written() {
        for (name, written) in [
            ("PGOverlap", "&&"),
            ("PGSquareRoot", "|/"),
            ("Custom(\"==>\")", "==>"),
            ("PGCustomBinaryOperator([\"public\", \"<->\"])", "public.<->"),
        ] {
            let told = known(&format!("This feature is not implemented: Unsupported binary operator: {name}"));
            assert_eq!(told.map(|error| error.to_string()), Some(format!("not supported: operator {written}")));
        }
    }

    #[test]
    fn literals_and_types_are_those_of_sql() {
        assert_eq!(plain("Int64(1) + Utf8(\"x\")"), "1 + 'x'");
        assert_eq!(plain("Utf8View = Decimal128(5, 2)"), "text = numeric");
        assert_eq!(plain("Timestamp(µs, \"+00:00\") - Interval(MonthDayNano)"), "timestamp with time zone - interval");
        assert_eq!(
            parse_error("sql parser error: Expected: a, found: b at Line: 1, Column: 4"),
            ("expected a, found b".to_owned(), Some((1, 4)))
        );
    }
}
