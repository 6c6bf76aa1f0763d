//! Completion of keywords, tables and columns.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

const KEYWORDS: &[&str] = &[
    "ALTER",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "BYTEA",
    "CASCADE",
    "CASE",
    "CAST",
    "CHECK",
    "COLUMN",
    "COMMIT",
    "CONFLICT",
    "CONSTRAINT",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DATE",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DO",
    "DOUBLE PRECISION",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FOREIGN",
    "FROM",
    "FULL",
    "GENERATED",
    "GROUP",
    "HAVING",
    "IDENTITY",
    "IN",
    "INDEX",
    "INNER",
    "INSERT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NOTHING",
    "NULL",
    "NUMERIC",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRIMARY",
    "REFERENCES",
    "RENAME",
    "RETURNING",
    "RIGHT",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "SMALLINT",
    "TABLE",
    "TEXT",
    "THEN",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TO",
    "TRUE",
    "TRUNCATE",
    "UNION",
    "UNIQUE",
    "UPDATE",
    "USING",
    "UUID",
    "VACUUM",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

const COMMANDS: &[&str] = &["\\?", "\\d", "\\history", "\\i", "\\q", "\\timing"];

/// What completion knows.
#[derive(Default)]
pub struct Completion {
    names: Vec<String>,
}

impl Completion {
    /// Forgets the names it knew for those of now.
    pub fn learn(&mut self, mut names: Vec<String>) {
        names.sort();
        names.dedup();
        self.names = names;
    }

    /// What a word could become.
    fn candidates(&self, word: &str) -> Vec<String> {
        if word.is_empty() {
            return Vec::new();
        }
        if word.starts_with('\\') {
            return COMMANDS
                .iter()
                .filter(|command| command.starts_with(word))
                .map(|command| command.to_string())
                .collect();
        }
        let begins = |name: &str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let names = self.names.iter().filter(|name| begins(name)).cloned();
        let lower = word.chars().all(|letter| !letter.is_uppercase());
        let keywords = KEYWORDS.iter().filter(|keyword| begins(keyword));
        let keywords = keywords.map(|keyword| if lower { keyword.to_lowercase() } else { keyword.to_string() });
        names.chain(keywords).collect()
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '\\';
        let before = line.get(..at).unwrap_or_default();
        let start = before
            .rfind(|letter| !part(letter))
            .map_or(0, |found| found + before[found..].chars().next().map_or(1, char::len_utf8));
        Ok((start, self.candidates(&before[start..])))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_names_and_keywords() {
        let mut completion = Completion::default();
        completion.learn(vec!["flights".into(), "flight".into(), "flights".into()]);
        assert_eq!(completion.candidates("fli"), ["flight", "flights"]);
        assert_eq!(completion.candidates("sel"), ["select"]);
        assert_eq!(completion.candidates("SEL"), ["SELECT"]);
        assert_eq!(completion.candidates("\\ti"), ["\\timing"]);
        assert_eq!(completion.candidates("€"), Vec::<String>::new());
    }
}
