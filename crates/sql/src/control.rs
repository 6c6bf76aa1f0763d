//! BEGIN, COMMIT, ROLLBACK and savepoints, as statements.

use datafusion::sql::sqlparser::ast::{
    DiscardObject, Statement, TransactionAccessMode, TransactionIsolationLevel, TransactionMode,
};

use crate::error::{Error, Result};
use crate::session::{Outcome, Session};
use crate::statement::fold;
use crate::transaction::{Block, Guard};

impl Session {
    pub(crate) fn control(&mut self, statement: &Statement) -> Result<Outcome> {
        let synchronous = self.settings.synchronous_commit;
        if matches!(statement, Statement::Commit { .. }) {
            let leased = self.are_leased_still();
            leased.inspect_err(|_| {
                self.guard.transaction.rollback(&self.guard.engine);
                self.end_cursors(false);
            })?;
        }
        let Guard { transaction, engine } = &mut self.guard;
        match statement {
            Statement::StartTransaction { modes, modifier: None, statements, exception: None, .. }
                if statements.is_empty() =>
            {
                if transaction.in_block() && !transaction.has_failed() {
                    self.notices.push("there is a transaction already, which goes on".into());
                    return Ok(Outcome::Done("BEGIN"));
                }
                transaction.begin(block(modes))?;
                Ok(Outcome::Done("BEGIN"))
            }
            Statement::Commit { chain: false, .. } => {
                let committed = transaction.commit(engine, synchronous);
                self.end_cursors(matches!(committed, Ok(true)));
                let committed = committed?;
                Ok(Outcome::Done(if committed { "COMMIT" } else { "ROLLBACK" }))
            }
            Statement::Rollback { chain: false, savepoint: None } => {
                transaction.rollback(engine);
                self.end_cursors(false);
                Ok(Outcome::Done("ROLLBACK"))
            }
            Statement::Rollback { chain: false, savepoint: Some(name) } => {
                transaction.rollback_to(engine, &fold(name))?;
                self.undo_cursors();
                Ok(Outcome::Done("ROLLBACK"))
            }
            Statement::Savepoint { name } => {
                transaction.savepoint(fold(name))?;
                Ok(Outcome::Done("SAVEPOINT"))
            }
            Statement::ReleaseSavepoint { name } => {
                transaction.release(&fold(name))?;
                self.release_cursors();
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

/// What the modes of BEGIN ask for.
pub(crate) fn block(modes: &[TransactionMode]) -> Block {
    let mut block = Block::default();
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(mode) => block.read_only = matches!(mode, TransactionAccessMode::ReadOnly),
            TransactionMode::IsolationLevel(level) => {
                block.stable = !matches!(
                    level,
                    TransactionIsolationLevel::ReadCommitted | TransactionIsolationLevel::ReadUncommitted
                );
            }
        }
    }
    block
}
