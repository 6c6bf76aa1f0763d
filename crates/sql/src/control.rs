//! BEGIN, COMMIT, ROLLBACK and savepoints, as statements.

use datafusion::sql::sqlparser::ast::{
    BeginTransactionKind, DiscardObject, Set, Statement, TransactionAccessMode, TransactionIsolationLevel,
    TransactionMode,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Error, Result};
use crate::modes::Modes;
use crate::session::{Outcome, Session};
use crate::statement::fold;
use crate::transaction::{Block, Guard};

impl Session {
    pub(crate) fn control(&mut self, statement: &Statement) -> Result<Outcome> {
        let synchronous = self.settings.synchronous_commit;
        if matches!(statement, Statement::Commit { .. }) {
            let leased = self.of_itself(Session::are_leased_still);
            leased.inspect_err(|_| {
                self.guard.transaction.rollback(&self.guard.engine);
                self.end_cursors(false);
                // What is told is why it was undone.
                let _ = self.end_settings(false);
            })?;
        }
        let usual = self.settings.modes;
        let Guard { transaction, engine } = &mut self.guard;
        match statement {
            Statement::StartTransaction { modes, modifier: None, statements, exception: None, .. }
                if statements.is_empty() =>
            {
                if transaction.in_block() && !transaction.has_failed() {
                    self.notices.push("there is a transaction already, which goes on".into());
                    if !modes.is_empty() {
                        self.set_transaction(modes)?;
                    }
                    return Ok(Outcome::Done("BEGIN"));
                }
                transaction.begin(Block::of(usual.and(modes)?))?;
                self.keep_settings(!modes.is_empty());
                Ok(Outcome::Done("BEGIN"))
            }
            Statement::Commit { chain: false, .. } => {
                let committed = transaction.commit(engine, synchronous);
                self.end_cursors(matches!(committed, Ok(true)));
                let ended = self.end_settings(matches!(committed, Ok(true)));
                let committed = committed?;
                ended?;
                Ok(Outcome::Done(if committed { "COMMIT" } else { "ROLLBACK" }))
            }
            Statement::Rollback { chain: false, savepoint: None } => {
                transaction.rollback(engine);
                self.end_cursors(false);
                self.end_settings(false)?;
                Ok(Outcome::Done("ROLLBACK"))
            }
            Statement::Rollback { chain: false, savepoint: Some(name) } => {
                transaction.rollback_to(engine, &fold(name))?;
                self.undo_cursors();
                self.undo_settings()?;
                Ok(Outcome::Done("ROLLBACK"))
            }
            Statement::Savepoint { name } => {
                transaction.savepoint(fold(name))?;
                self.mark_settings();
                Ok(Outcome::Done("SAVEPOINT"))
            }
            Statement::ReleaseSavepoint { name } => {
                transaction.release(&fold(name))?;
                self.release_cursors();
                self.release_settings();
                Ok(Outcome::Done("RELEASE"))
            }
            other => Err(Error::NotSupported(other.to_string())),
        }
    }
}

impl Session {
    /// DISCARD: the session is as if it were new.
    pub(crate) fn discard(&mut self, what: &DiscardObject) -> Result<Outcome> {
        match what {
            DiscardObject::ALL => {
                self.guard.transaction.allows_alone("DISCARD ALL")?;
                self.cursors.clear();
                self.prepared.clear();
                self.reset_all()?;
                Ok(Outcome::Done("DISCARD ALL"))
            }
            // There are none of them, or nothing that anybody would notice.
            DiscardObject::PLANS => Ok(Outcome::Done("DISCARD PLANS")),
            DiscardObject::SEQUENCES => Ok(Outcome::Done("DISCARD SEQUENCES")),
            DiscardObject::TEMP => Ok(Outcome::Done("DISCARD TEMP")),
        }
    }
}

impl Session {
    /// SET TRANSACTION: what the transaction is that is open.
    pub(crate) fn set_transaction(&mut self, said: &[TransactionMode]) -> Result<()> {
        let Some(block) = self.guard.transaction.block() else {
            self.notices.push("SET TRANSACTION is for a transaction, and there is none".into());
            return Ok(());
        };
        block.modes = block.modes.become_of(said, block.has_asked)?;
        self.change_transaction();
        Ok(())
    }

    /// The same as settings: transaction_read_only, transaction_isolation. Without a transaction there is nothing to change.
    pub(crate) fn become_of(&mut self, wanted: impl FnOnce(Modes) -> Modes) -> Result<()> {
        if let Some(block) = self.guard.transaction.block() {
            block.modes = block.modes.become_these(wanted(block.modes), block.has_asked)?;
        }
        self.change_transaction();
        Ok(())
    }

    /// What the transaction is that is open, or the statement that runs without one.
    pub(crate) fn modes(&self) -> Modes {
        self.guard.transaction.modes().unwrap_or(self.settings.modes)
    }

    /// Whether anything may be changed now, by this session.
    pub(crate) fn to_write(&self) -> Result<()> {
        self.rights.to_write()?;
        if self.modes().read_only && !self.is_of_itself { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Does what no statement says: what was committed is told, and noted, also where the transactions of a session only read.
    pub(crate) fn of_itself<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_of_itself, true);
        let done = body(self);
        self.is_of_itself = before;
        done
    }
}

/// Statements that say what a transaction is: the library's, and \[NOT\] DEFERRABLE, which it does not read. That says whether a
/// transaction that only reads may wait until nothing can be in its way; nothing ever is.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let characteristics = [Keyword::SET, Keyword::SESSION, Keyword::CHARACTERISTICS, Keyword::AS, Keyword::TRANSACTION];
    if parser.parse_keyword(Keyword::BEGIN) {
        let transaction = match parser.parse_one_of_keywords(&[Keyword::TRANSACTION, Keyword::WORK]) {
            Some(Keyword::TRANSACTION) => Some(BeginTransactionKind::Transaction),
            Some(_) => Some(BeginTransactionKind::Work),
            None => None,
        };
        return Some(modes(parser).map(|modes| started(true, transaction, modes)));
    }
    if parser.parse_keywords(&[Keyword::START, Keyword::TRANSACTION]) {
        let transaction = Some(BeginTransactionKind::Transaction);
        return Some(modes(parser).map(|modes| started(false, transaction, modes)));
    }
    let session = parser.parse_keywords(&characteristics);
    if !session {
        let is_set = parser.parse_keywords(&[Keyword::SET, Keyword::TRANSACTION]);
        if !is_set {
            return None;
        }
        if parser.peek_keyword(Keyword::SNAPSHOT) {
            return Some(parser.expected("a mode of a transaction", parser.peek_token()));
        }
    }
    Some(modes(parser).map(|modes| Statement::Set(Set::SetTransaction { modes, snapshot: None, session })))
}

fn started(begin: bool, transaction: Option<BeginTransactionKind>, modes: Vec<TransactionMode>) -> Statement {
    let (modifier, statements, exception, has_end_keyword) = (None, Vec::new(), None, false);
    Statement::StartTransaction { modes, begin, transaction, modifier, statements, exception, has_end_keyword }
}

/// Modes, with or without commas between them.
fn modes(parser: &mut Parser<'_>) -> Result<Vec<TransactionMode>, ParserError> {
    let mut modes = Vec::new();
    let mut is_wanted = false;
    loop {
        if parser.parse_keywords(&[Keyword::ISOLATION, Keyword::LEVEL]) {
            modes.push(TransactionMode::IsolationLevel(level(parser)?));
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::ONLY]) {
            modes.push(TransactionMode::AccessMode(TransactionAccessMode::ReadOnly));
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::WRITE]) {
            modes.push(TransactionMode::AccessMode(TransactionAccessMode::ReadWrite));
        } else if !parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE])
            && !parser.parse_keyword(Keyword::DEFERRABLE)
        {
            return if is_wanted { parser.expected("a mode of a transaction", parser.peek_token()) } else { Ok(modes) };
        }
        is_wanted = parser.consume_token(&Token::Comma);
    }
}

fn level(parser: &mut Parser<'_>) -> Result<TransactionIsolationLevel, ParserError> {
    use TransactionIsolationLevel::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
    let levels = [
        (&[Keyword::READ, Keyword::UNCOMMITTED][..], ReadUncommitted),
        (&[Keyword::READ, Keyword::COMMITTED], ReadCommitted),
        (&[Keyword::REPEATABLE, Keyword::READ], RepeatableRead),
        (&[Keyword::SERIALIZABLE], Serializable),
    ];
    match levels.into_iter().find(|(words, _)| parser.parse_keywords(words)) {
        Some((_, level)) => Ok(level),
        None => parser.expected("a level of isolation", parser.peek_token()),
    }
}
