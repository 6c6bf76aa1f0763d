//! Errors as clients of PostgreSQL know them.

use counterfoil::{BrokenRule, Error};

use crate::body::Malformed;
use crate::wire::{Ended, Stream, Wire, put_text};

/// The schema of all tables.
const SCHEMA: &str = "public";

/// What a client is told.
#[derive(Clone, Debug)]
pub struct Refusal {
    code: &'static str,
    text: String,
    is_fatal: bool,
    /// Why the database cannot go on, where that is what went wrong.
    end: Option<Error>,
    /// The rule of a table that a row would break, where that is what went wrong.
    rule: Option<Box<BrokenRule>>,
}

impl Refusal {
    /// A refusal after which the connection goes on.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Refusal { code, text: text.into(), is_fatal: false, end: None, rule: None }
    }

    /// A refusal that ends the connection.
    pub fn fatal(code: &'static str, text: impl Into<String>) -> Self {
        Refusal { code, text: text.into(), is_fatal: true, end: None, rule: None }
    }

    /// A message that cannot be understood.
    pub fn malformed(what: &str) -> Self {
        Refusal::fatal("08P01", format!("a message cannot be understood: {what}"))
    }

    /// Whether the connection ends.
    pub fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// Why the database cannot go on, where that is what went wrong.
    pub fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// Tells the client.
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn send<S: Stream>(&self, wire: &mut Wire<S>) -> Result<(), Ended> {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        wire.send(b'E', |out| {
            fields(out, severity, self.code, &self.text);
            self.rule.iter().for_each(|rule| name_rule(out, rule));
            out.push(0);
        })
    }
}

/// Why an answer stopped: the client is gone, or it is to be told something.
#[derive(Debug)]
pub enum Stopped {
    /// The connection is over.
    Ended(Ended),
    /// The client is to be told.
    Refused(Refusal),
}

impl From<Ended> for Stopped {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Malformed(what) => Stopped::Refused(Refusal::malformed(what)),
            gone @ Ended::Gone => Stopped::Ended(gone),
        }
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Stopped::Refused(refusal)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Refused(error.into())
    }
}

impl From<Malformed> for Stopped {
    fn from(malformed: Malformed) -> Self {
        Stopped::Refused(Refusal::malformed(malformed.0))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let refusal = Refusal::new(error.sqlstate(), error.to_string());
        let rule = error.rule().cloned().map(Box::new);
        Refusal { end: error.kind().ends_serving().then_some(error), rule, ..refusal }
    }
}

/// Tells the client something beside an answer.
///
/// # Errors
/// [`Ended::Gone`].
pub fn notice<S: Stream>(wire: &mut Wire<S>, text: &str) -> Result<(), Ended> {
    wire.send(b'N', |out| {
        fields(out, "NOTICE", "00000", text);
        out.push(0);
    })
}

fn fields(out: &mut Vec<u8>, severity: &str, code: &str, text: &str) {
    for (field, text) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', text)] {
        out.push(field);
        put_text(out, text);
    }
}

/// Which rule it is, in fields of its own. Values are not among them: what clients log is read by others.
fn name_rule(out: &mut Vec<u8>, rule: &BrokenRule) {
    let named = [(b's', Some(SCHEMA)), (b't', Some(&rule.table)), (b'c', rule.column.as_deref())];
    for (field, name) in named.into_iter().chain([(b'n', rule.constraint.as_deref())]) {
        if let Some(name) = name {
            out.push(field);
            put_text(out, name);
        }
    }
}
