//! The three statements of InfluxQL that loaders and collectors send before they write.

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    ShowDatabases,
    CreateDatabase(String),
    DropDatabase(String),
}

/// The most statements of one request.
const STATEMENTS_MAX: usize = 64;

/// Reads statements with semicolons between them.
///
/// # Errors
/// What was read, and what can be.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let mut words = Words { text, at: 0 };
    let mut statements = Vec::new();
    loop {
        match words.next()? {
            None => break,
            Some(Word::Semicolon) => continue,
            Some(first) if statements.len() < STATEMENTS_MAX => statements.push(statement(first, &mut words)?),
            Some(_) => return Err(format!("too many statements: at most {STATEMENTS_MAX}")),
        }
    }
    if statements.is_empty() { Err("no statement".to_owned()) } else { Ok(statements) }
}

fn statement(first: Word, words: &mut Words<'_>) -> Result<Statement, String> {
    let second = words.next()?;
    match (first.keyword().as_deref(), second.as_ref().and_then(Word::keyword).as_deref()) {
        (Some("SHOW"), Some("DATABASES")) => {
            words.end()?;
            Ok(Statement::ShowDatabases)
        }
        (Some("CREATE"), Some("DATABASE")) => {
            let name = words.name()?;
            words.options()?;
            Ok(Statement::CreateDatabase(name))
        }
        (Some("DROP"), Some("DATABASE")) => {
            let name = words.name()?;
            words.end()?;
            Ok(Statement::DropDatabase(name))
        }
        _ => Err(not_supported(&first)),
    }
}

fn not_supported(word: &Word) -> String {
    let word = word.shown();
    format!("not supported: {word}: send SHOW DATABASES, CREATE DATABASE or DROP DATABASE here, and queries as SQL")
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Bare(String),
    Quoted(String),
    Semicolon,
}

impl Word {
    fn keyword(&self) -> Option<String> {
        match self {
            Word::Bare(word) => Some(word.to_ascii_uppercase()),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Word::Bare(word) | Word::Quoted(word) => word.chars().take(40).collect(),
            Word::Semicolon => ";".to_owned(),
        }
    }
}

struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Word>, String> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        match rest.chars().next() {
            None => Ok(None),
            Some(';') => {
                self.at += 1;
                Ok(Some(Word::Semicolon))
            }
            Some('"') => self.quoted().map(Some),
            Some(_) => {
                let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, ';' | '"'));
                let word = &rest[..end.unwrap_or(rest.len())];
                self.at += word.len();
                Ok(Some(Word::Bare(word.to_owned())))
            }
        }
    }

    /// A name in double quotes, where a backslash precedes a quote, a backslash, or the n of a newline.
    fn quoted(&mut self) -> Result<Word, String> {
        let mut word = String::new();
        let mut letters = self.text[self.at..].char_indices().skip(1);
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at += offset + 1;
                    return Ok(Word::Quoted(word));
                }
                '\\' => match letters.next() {
                    Some((_, 'n')) => word.push('\n'),
                    Some((_, escaped @ ('"' | '\\' | '\''))) => word.push(escaped),
                    _ => return Err("a backslash before something else than a quote, a backslash or n".to_owned()),
                },
                letter => word.push(letter),
            }
        }
        Err("a name without its closing quote".to_owned())
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next()? {
            Some(Word::Quoted(name)) if !name.is_empty() => Ok(name),
            Some(Word::Bare(name)) if bare_name(&name) => Ok(name),
            Some(Word::Bare(name)) => Err(format!("a name has letters, digits and _: write \"{name}\"")),
            _ => Err("the name of the database is missing".to_owned()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.next()? {
            None | Some(Word::Semicolon) => Ok(()),
            Some(word) => Err(not_supported(&word)),
        }
    }

    /// `WITH REPLICATION n` and `SHARD DURATION d` say nothing here and are passed over; a name or duration of a
    /// retention policy would, and is refused.
    fn options(&mut self) -> Result<(), String> {
        match self.next()? {
            None | Some(Word::Semicolon) => return Ok(()),
            Some(word) if word.keyword().as_deref() == Some("WITH") => (),
            Some(word) => return Err(not_supported(&word)),
        }
        loop {
            let Some(word) = self.next()? else { return Ok(()) };
            let values = match word.keyword().as_deref() {
                Some("REPLICATION") => 1,
                Some("SHARD") => 2,
                _ if word == Word::Semicolon => return Ok(()),
                _ => return Err(not_supported(&word)),
            };
            for _ in 0..values {
                self.next()?;
            }
        }
    }
}

fn bare_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loaders_send() {
        let create = |name: &str| Statement::CreateDatabase(name.to_owned());
        assert_eq!(parse("show databases"), Ok(vec![Statement::ShowDatabases]));
        assert_eq!(parse("CREATE DATABASE benchmark WITH REPLICATION 1"), Ok(vec![create("benchmark")]));
        assert_eq!(parse(r#"CREATE DATABASE "tele\"graf""#), Ok(vec![create("tele\"graf")]));
        assert_eq!(
            parse("drop database a; ;CREATE DATABASE a WITH SHARD DURATION 1d;"),
            Ok(vec![Statement::DropDatabase("a".to_owned()), create("a")])
        );
    }

    #[test]
    fn anything_else_names_what_is_supported() {
        for text in
            ["SELECT * FROM cpu", "SHOW MEASUREMENTS", "CREATE DATABASE a WITH DURATION 1d", "DROP DATABASE a b"]
        {
            assert!(parse(text).unwrap_err().starts_with("not supported: "), "{text}");
        }
        for text in ["", " ;", "CREATE DATABASE", "CREATE DATABASE a-b", r#"DROP DATABASE "a"#, r#"DROP DATABASE "\x""#]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"show databases;".repeat(65)).is_err());
    }
}
