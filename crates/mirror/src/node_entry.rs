//! A signed node, with all that it takes to prove it.
//!
//! ```text
//! number, version, period; order, level, low string, high string, totals; signature (96); hint (96)
//! ```

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Definition, Hint, Malformed, Node, Signature, is_node};

/// A signed node as it is kept.
#[derive(Clone, PartialEq)]
pub struct NodeEntry {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// What it says.
    pub node: Node,
    /// The owner's signature.
    pub signature: Signature,
    /// What makes checking fast.
    pub hint: Hint,
}

impl NodeEntry {
    /// As bytes, to be kept.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn to_bytes(&self, definition: &Definition) -> Result<Vec<u8>, Malformed> {
        let mut writer = Writer::default();
        self.stamp.write(&mut writer);
        self.node.write(definition, &mut writer)?;
        writer.raw(&self.signature.to_uncompressed()).raw(&self.hint.0);
        Ok(writer.0)
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a signed node");
        let stamp = Stamp::read(&mut reader)?;
        if !is_node(stamp.rid) {
            return Err(Malformed("a node with a number that is no node's"));
        }
        let node = Node::read(definition, &mut reader)?;
        let signature = Signature::from_bytes(reader.raw(96)?).map_err(|_| Malformed("the signature of a node"))?;
        let hint = Hint(reader.array()?);
        reader.end()?;
        Ok(Self { stamp, node, signature, hint })
    }

    /// Whether an entry's bytes are those of a node, as its number says.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        Reader::new(bytes, "").number().is_ok_and(is_node)
    }

    /// Where it is kept: stores hold an order's nodes like entries of another order ([`nodes_of`]).
    #[must_use]
    pub fn place(&self) -> Vec<u8> {
        place(self.node.level, self.node.part.start())
    }
}

/// The number under which stores keep the nodes of an order, as if they were an order of entries.
#[must_use]
pub fn nodes_of(order: u8) -> u8 {
    order | 0x80
}

/// Where the node of a level that begins at `low` is kept: by level, since whoever climbs through levels finds neighbours of
/// one level together. The first byte is that of a record's position, so that head and tail stay around it.
#[must_use]
pub fn place(level: u8, low: &[u8]) -> Vec<u8> {
    [&[1, level], low].concat()
}
