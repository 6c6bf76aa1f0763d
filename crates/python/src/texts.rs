//! Texts of statements that were read before: programs run the same ones again and again.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil::Error;
use parking_lot::Mutex;

use crate::placeholders::{self, Style, Text};

/// Texts that are kept, and bytes of one, at most.
const KEPT_MAX: usize = 100;
const BYTES_MAX: usize = 4096;

/// Texts that were read. Held for a moment, and by nobody who attaches.
#[derive(Default)]
pub struct Texts(Mutex<HashMap<Box<str>, Known>>);

/// How a text was read.
struct Known {
    style: Style,
    text: Arc<Text>,
}

impl Texts {
    /// Reads a text.
    ///
    /// # Errors
    /// Those of [`placeholders::read`].
    pub fn read(&self, sql: &str, style: Style) -> Result<Arc<Text>, Error> {
        if let Some(known) = self.0.lock().get(sql).filter(|known| known.style == style) {
            return Ok(known.text.clone());
        }
        let text = Arc::new(placeholders::read(sql, style)?);
        if sql.len() <= BYTES_MAX {
            let mut kept = self.0.lock();
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(sql.into(), Known { style, text: text.clone() });
        }
        Ok(text)
    }
}
