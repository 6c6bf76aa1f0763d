//! What the database keeps of a published table beside its keys: how often, and who is told.
//!
//! ```text
//! record `publication/NAME` of space SETTING: 01, every (ms), renewal (ms), owner (32), count and orders (count and names),
//! count and targets; numbers and strings as `proof` has them
//! ```

use std::time::Duration;

use counterfoil_log::{View, record_space};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Malformed, Owner};
use counterfoil_sql as sql;

use super::target::Target;
use crate::error::{Error, Kind, Result};

/// A published table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publicized {
    pub every: Duration,
    pub renew: Duration,
    pub owner: Owner,
    pub orders: Vec<Vec<String>>,
    pub targets: Vec<Target>,
}

impl Publicized {
    /// Of a table, if it is published.
    pub fn of(view: &dyn View, table: &str) -> Result<Option<Self>> {
        let record = view.record(record_space::SETTING, &sql::publication_record(table));
        record.map(|bytes| Self::from_bytes(&bytes)).transpose()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(|_| Error::new(Kind::Corrupt, "what is known of a published table makes no sense"))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).number(milliseconds(self.every)).number(milliseconds(self.renew)).raw(self.owner.bytes());
        writer.number(self.orders.len() as u64);
        for order in &self.orders {
            writer.number(order.len() as u64);
            order.iter().for_each(|name| {
                writer.string(name.as_bytes());
            });
        }
        writer.number(self.targets.len() as u64);
        self.targets.iter().for_each(|target| {
            writer.string(target.to_string().as_bytes());
        });
        writer.0
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a published table");
        if reader.byte()? != 1 {
            return Err(reader.malformed());
        }
        let (every, renew) = (reader.number()?, reader.number()?);
        let (every, renew) = (Duration::from_millis(every), Duration::from_millis(renew));
        let owner = Owner::from_bytes(reader.array()?);
        let mut orders = Vec::new();
        for _ in 0..reader.count()? {
            let names = (0..reader.count()?).map(|_| text(&mut reader)).collect::<Result<_, _>>()?;
            orders.push(names);
        }
        let mut targets = Vec::new();
        for _ in 0..reader.count()? {
            targets.push(Target::parse(&text(&mut reader)?).map_err(|_| reader.malformed())?);
        }
        reader.end()?;
        Ok(Self { every, renew, owner, orders, targets })
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let bytes = reader.string()?.to_vec();
    String::from_utf8(bytes).map_err(|_| reader.malformed())
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let publicized = Publicized {
            every: Duration::from_secs(60),
            renew: Duration::from_secs(86_400),
            owner: Owner::from_bytes([7; 32]),
            orders: vec![vec!["a".into(), "b".into()], vec!["c".into()]],
            targets: vec![
                Target::Folder("/srv/it's".into()),
                Target::Mirror("http://example.com".into()),
                Target::parse("s3://prices/daily").expect("a bucket"),
                Target::Mirror("https://example.com/mirror".into()),
            ],
        };
        let bytes = publicized.to_bytes();
        assert_eq!(Publicized::from_bytes(&bytes).ok(), Some(publicized));
        for length in 0..bytes.len() {
            assert!(Publicized::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Publicized::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
