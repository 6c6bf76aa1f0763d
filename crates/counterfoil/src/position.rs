//! A place in a text: a statement, a script, the lines of a file.

use std::fmt;

/// A line of a text, from 1, and a letter of it, from 1, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// Which of its letters.
    pub column: Option<u64>,
}

impl Position {
    /// A line as a whole.
    #[must_use]
    pub fn of_line(line: u64) -> Self {
        Self { line, column: None }
    }

    /// Where this position of a part lies in a text, in which the part begins there.
    #[must_use]
    pub fn within(self, begins: Position) -> Self {
        let column = match self.line {
            1 => self.column.map(|column| column + begins.column.unwrap_or(1) - 1),
            _ => self.column,
        };
        Self { line: begins.line + self.line - 1, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "line {}, column {column}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_where_it_begins() {
        let begins = Position { line: 3, column: Some(11) };
        let at = |line, column| Position { line, column: Some(column) }.within(begins).to_string();
        assert_eq!(at(1, 1), "line 3, column 11");
        assert_eq!(at(1, 4), "line 3, column 14");
        assert_eq!(at(2, 4), "line 4, column 4");
        assert_eq!(Position::of_line(2).within(begins).to_string(), "line 4");
    }
}
