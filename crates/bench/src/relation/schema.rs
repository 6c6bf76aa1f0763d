//! The definitions of Figure 7's tables in SQL, alike for every database.

use super::figure7::{INDEXED, Table};

impl Table {
    /// CREATE TABLE; foreign keys are declared, the attributes' indexes come after the load.
    pub fn create(&self) -> String {
        let references = self.references.iter().map(|other| format!(", {other} BIGINT REFERENCES {other} (id)"));
        let indexed = INDEXED.map(|name| format!(", {name} CHAR(10)")).concat();
        format!(
            "CREATE TABLE {} (id BIGINT PRIMARY KEY{}{indexed}, a1 CHAR({}))",
            self.name,
            references.collect::<String>(),
            self.a1_bytes()
        )
    }

    /// CREATE INDEX for every indexed attribute, and where they are not there already for references.
    pub fn indexes(&self, with_references: bool) -> Vec<String> {
        let references = self.references.iter().copied().filter(|_| with_references);
        let index = |column: &str| format!("CREATE INDEX {}_{column} ON {} ({column})", self.name, self.name);
        INDEXED.into_iter().chain(references).map(index).collect()
    }
}
