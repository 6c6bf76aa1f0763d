//! COPY.

use datafusion::sql::sqlparser::ast::Statement;

use crate::error::{Error, Result};
use crate::session::{Outcome, Session};

impl Session {
    pub(crate) fn copy(&mut self, _statement: &Statement) -> Result<Outcome> {
        Err(Error::NotSupported("COPY".into()))
    }
}
