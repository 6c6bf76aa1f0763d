//! What was measured, line by line.

use std::fmt::Write as _;
use std::path::Path;

use crate::Failure;
use crate::query::{Answer, Query};

/// What a line is of: a query of the paper by its name, or something that the paper does not have.
pub mod extra {
    /// Inserts of which 5 of 100 come late.
    pub const LATE: &str = "late";
    /// Point deletions.
    pub const DELETE: &str = "delete";
    /// Ending what was put off.
    pub const SETTLE: &str = "settle";
    /// Bytes on the medium at the end of the ordered inserts; the seconds are none.
    pub const BYTES: &str = "bytes";
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub system: String,
    pub what: String,
    pub executions: u64,
    pub seconds: f64,
    /// Tuples of all executions, and what came out of them together.
    pub answer: Answer,
}

impl Line {
    /// Tuples a second.
    pub fn capacity(&self) -> f64 {
        self.answer.tuples as f64 / self.seconds.max(1e-9)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results(pub Vec<Line>);

impl Results {
    /// The systems, in the order in which they were measured.
    pub fn systems(&self) -> Vec<&str> {
        let mut systems: Vec<&str> = Vec::new();
        for line in &self.0 {
            if !systems.contains(&line.system.as_str()) {
                systems.push(&line.system);
            }
        }
        systems
    }

    /// What a system did.
    pub fn find(&self, system: &str, what: &str) -> Option<&Line> {
        self.0.iter().find(|line| line.system == system && line.what == what)
    }

    /// Tuples a second of a query.
    pub fn capacity(&self, system: &str, query: Query) -> Option<f64> {
        self.find(system, query.name()).map(Line::capacity)
    }

    /// Queries that somebody answered otherwise than the system that came first, of as many tuples.
    pub fn disagreements(&self) -> Vec<String> {
        let mut found = Vec::new();
        for query in Query::ALL {
            let mut lines = self.0.iter().filter(|line| line.what == query.name());
            let Some(first) = lines.next() else { continue };
            for line in lines.filter(|line| line.executions == first.executions) {
                if !line.answer.agrees(&first.answer) {
                    found.push(format!(
                        "{}: {} {:?}, {} {:?}",
                        query.name(),
                        first.system,
                        first.answer,
                        line.system,
                        line.answer
                    ));
                }
            }
        }
        found
    }

    /// As text, a line each.
    pub fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, line| {
            let Line { system, what, executions, seconds, answer } = line;
            let _ = writeln!(text, "{system}\t{what}\t{executions}\t{seconds}\t{}\t{}", answer.tuples, answer.number);
            text
        })
    }

    /// Reads what `text` wrote.
    pub fn read(path: &Path) -> Result<Results, Failure> {
        let text = std::fs::read_to_string(path)?;
        let line = |line: &str| -> Result<Line, Failure> {
            let [system, what, executions, seconds, tuples, number] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("{}: a line that is none of ours", path.display()).into());
            };
            Ok(Line {
                system: system.into(),
                what: what.into(),
                executions: executions.parse()?,
                seconds: seconds.parse()?,
                answer: Answer { tuples: tuples.parse()?, number: number.parse()? },
            })
        };
        Ok(Results(text.lines().map(line).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() -> Result<(), Failure> {
        let answer = Answer { tuples: 9, number: 0.125 };
        let line =
            |system: &str| Line { system: system.into(), what: "Q4".into(), executions: 3, seconds: 0.5, answer };
        let results = Results(vec![line("ours"), line("Berkeley DB")]);
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), results.text())?;
        assert_eq!(Results::read(file.path())?.0, results.0);
        assert_eq!(results.systems(), ["ours", "Berkeley DB"]);
        assert_eq!(results.disagreements(), Vec::<String>::new());
        Ok(())
    }

    #[test]
    fn a_wrong_answer_is_noticed() {
        let line = |system: &str, number| Line {
            system: system.into(),
            what: "Q4".into(),
            executions: 3,
            seconds: 0.5,
            answer: Answer { tuples: 9, number },
        };
        assert_eq!(Results(vec![line("ours", 1.0), line("LMDB", 1.1)]).disagreements().len(), 1);
    }
}
