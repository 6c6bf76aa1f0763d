//! Numbers and strings as bytes, for whoever says them to somebody else: a length and not a number for each.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::coding::orders::Asked;
use crate::fragments::Strings;

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = &'de [u8];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(bytes)
    }
}

/// Numbers of eight bytes each, little-endian.
pub(crate) mod numbers {
    use super::{Bytes, Deserializer, Serializer};
    use serde::de::Error as _;

    pub fn serialize<S: Serializer>(numbers: &[u64], to: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        to.serialize_bytes(&bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
        let (numbers, []) = from.deserialize_bytes(Bytes)?.as_chunks::<8>() else {
            return Err(D::Error::custom("numbers of other lengths"));
        };
        Ok(numbers.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }
}

/// [`numbers`], if there are any.
pub(crate) mod some_numbers {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Packed(#[serde(with = "super::numbers")] Vec<u64>);

    pub fn serialize<S: Serializer>(numbers: &Option<Vec<u64>>, to: S) -> Result<S::Ok, S::Error> {
        numbers.as_ref().map(|numbers| Packed(numbers.clone())).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u64>>, D::Error> {
        Ok(Option::<Packed>::deserialize(from)?.map(|packed| packed.0))
    }
}

/// What is asked of an order.
pub(crate) mod asked {
    use super::{Asked, Bytes, Deserializer, Serializer};
    use serde::de::Error as _;

    pub fn serialize<S: Serializer>(asked: &Asked, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(asked)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Asked>, D::Error> {
        let bytes = from.deserialize_bytes(Bytes)?;
        bytes.try_into().map(Box::new).map_err(|_| D::Error::custom("no question to an order"))
    }
}

/// Bytes as they are.
mod bytes {
    use super::{Bytes, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &&[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<&'a [u8], D::Error> {
        from.deserialize_bytes(Bytes)
    }
}

/// Lengths u32, little-endian | bytes.
#[derive(Serialize, Deserialize)]
struct PackedStrings<'a> {
    #[serde(with = "bytes")]
    lengths: &'a [u8],
    #[serde(with = "bytes")]
    bytes: &'a [u8],
}

impl Serialize for Strings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let lengths: Vec<u8> = self.iter().flat_map(|string| (string.len() as u32).to_le_bytes()).collect();
        PackedStrings { lengths: &lengths, bytes: self.all() }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let PackedStrings { lengths, bytes } = PackedStrings::deserialize(from)?;
        let (lengths, []) = lengths.as_chunks::<4>() else { return Err(D::Error::custom("lengths of other lengths")) };
        let (mut strings, mut rest) = (Self::default(), bytes);
        for length in lengths {
            let (own, others) = rest
                .split_at_checked(u32::from_le_bytes(*length) as usize)
                .ok_or_else(|| D::Error::custom("strings that are longer than their bytes"))?;
            strings.push(own);
            rest = others;
        }
        if rest.is_empty() { Ok(strings) } else { Err(D::Error::custom("bytes of no string")) }
    }
}
