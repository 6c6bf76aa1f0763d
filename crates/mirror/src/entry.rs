//! A signed record, head or tail, with all that it takes to prove it.

use counterfoil_proof::attributes::{self, Salt};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Definition, Digest, FIRST_RID, Hint, Malformed, Position, Scheme, Signature, Value};

/// What a record has and heads and tails have not.
#[derive(Clone, PartialEq)]
pub struct Record {
    /// The values of all columns.
    pub values: Vec<Value>,
    /// The seed of their salts; zeros where nothing hides values, PER ATTRIBUTE.
    pub seed: Salt,
}

/// Something signed.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// Its values; none of heads and tails.
    pub record: Option<Record>,
    /// Its link in each order; heads and tails have one.
    pub links: Vec<Digest>,
    /// The owner's signatures, each with what makes checking it fast: of its place and all of its values; or of its place and
    /// then of each value, PER ATTRIBUTE; none of a record in a group.
    pub signed: Vec<(Signature, Hint)>,
}

impl Record {
    /// The leaves of its values' tree.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn leaves(&self, definition: &Definition) -> Result<Vec<Digest>, Malformed> {
        let mut leaves = Vec::with_capacity(self.values.len());
        for (at, (column, value)) in definition.columns.iter().zip(&self.values).enumerate() {
            let mut encoded = Vec::new();
            column
                .kind
                .encode(value, &mut encoded)
                .map_err(|_| Malformed("a value of a type that its column has not"))?;
            leaves.push(attributes::leaf(at as u16, &attributes::salt(&self.seed, at as u16), &encoded));
        }
        Ok(leaves)
    }
}

impl Entry {
    /// The signature of its place, and of its values if they are under it; a record in a group has none.
    #[must_use]
    pub fn signature(&self) -> Option<Signature> {
        self.signed.first().map(|(signature, _)| *signature)
    }

    /// Where it stands in an order; heads and tails stand in their own alone.
    ///
    /// # Errors
    /// [`Malformed`]: its values are none of this table.
    pub fn position(&self, definition: &Definition, order: u8) -> Result<Position, Malformed> {
        match &self.record {
            Some(record) if record.values.len() == definition.columns.len() => {
                definition.position(usize::from(order), |at| &record.values[usize::from(at)], self.stamp.rid)
            }
            Some(_) => Err(Malformed("a record with other columns than its table")),
            None if self.stamp.rid.is_multiple_of(2) => Ok(Position::head()),
            None => Ok(Position::tail()),
        }
    }

    /// As bytes, to be kept.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn to_bytes(&self, definition: &Definition) -> Result<Vec<u8>, Malformed> {
        let mut writer = Writer::default();
        self.stamp.write(&mut writer);
        if let Some(record) = &self.record {
            for (column, value) in definition.columns.iter().zip(&record.values) {
                let wrong = |_| Malformed("a value of a type that its column has not");
                column.kind.encode(value, &mut writer.0).map_err(wrong)?;
            }
            if definition.scheme != Scheme::PerAttribute {
                writer.raw(&record.seed);
            }
        }
        writer.raw(self.links.as_flattened());
        for (signature, hint) in &self.signed {
            writer.raw(&signature.to_uncompressed()).raw(&hint.0);
        }
        Ok(writer.0)
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a signed record");
        let stamp = Stamp::read(&mut reader)?;
        let mut record = None;
        if stamp.rid >= FIRST_RID {
            let kinds = definition.columns.iter().map(|column| column.kind);
            let values = kinds.map(|kind| kind.decode(&mut reader)).collect::<Result<_, _>>()?;
            let is_salted = definition.scheme != Scheme::PerAttribute;
            record = Some(Record { values, seed: if is_salted { reader.array()? } else { Salt::default() } });
        }
        let links = if record.is_some() { definition.orders.len() } else { 1 };
        let links = (0..links).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let signatures = if record.is_some() { definition.signatures_of_record() } else { 1 };
        let signed = (0..signatures).map(|_| signed(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { stamp, record, links, signed })
    }
}

fn signed(reader: &mut Reader<'_>) -> Result<(Signature, Hint), Malformed> {
    let signature = Signature::from_bytes(reader.raw(96)?).map_err(|_| Malformed("the signature of a record"))?;
    Ok((signature, Hint(reader.array()?)))
}
