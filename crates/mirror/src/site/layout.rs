//! The bytes of the files of a site.

use crate::wire::Standing;
use counterfoil_proof::Malformed;
use counterfoil_proof::bytes::{Reader, Writer};
use sha2::{Digest as _, Sha256};

/// The hash by which a page is named.
pub(super) type Name = [u8; 16];

/// Bytes of a file at most: readers take no larger ones.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Parts of a page at most: writers end pages long before.
pub(super) const PAGE_PARTS_MAX: usize = 1 << 16;

/// Summaries in a file.
pub const SUMMARIES_PER_FILE: u64 = 64;

/// Pages between the root and an entry at most: far more than any table has.
pub(super) const HEIGHT_MAX: usize = 16;

/// Where a reader begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last period whose summary is here.
    pub last: u64,
    /// That of the oldest signature: from there on it takes all summaries to check an answer.
    pub first: u64,
    pub(super) roots: Vec<Name>,
    /// Whether a program is behind it that answers questions itself ([`crate::wire::Standing`]): there are no pages then.
    pub(super) answers: bool,
}

impl Head {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer
            .byte(1)
            .number(self.last)
            .number(self.first)
            .number(self.roots.len() as u64)
            .raw(self.roots.as_flattened());
        writer.0
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "the head of a site");
        match reader.byte()? {
            1 => {}
            2 => {
                let Standing { last, first } = Standing::from_bytes(bytes)?;
                return Ok(Self { last, first, roots: Vec::new(), answers: true });
            }
            _ => return Err(Malformed("a site of a version that is not known")),
        }
        let (last, first) = (reader.number()?, reader.number()?);
        let roots = (0..reader.count()?).map(|_| reader.array()).collect::<Result<_, _>>()?;
        reader.end()?;
        if first > last {
            return Err(Malformed("the head of a site"));
        }
        Ok(Self { last, first, roots, answers: false })
    }
}

/// A page: entries with their positions, or other pages with the first position in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub is_leaf: bool,
    pub parts: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Page {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(u8::from(self.is_leaf)).number(self.parts.len() as u64);
        for (position, part) in &self.parts {
            writer.string(position).string(part);
        }
        writer.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a page of a site");
        let is_leaf = match reader.byte()? {
            0 => false,
            1 => true,
            _ => return Err(reader.malformed()),
        };
        let mut parts: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let count = reader.count()?;
        if count > PAGE_PARTS_MAX {
            return Err(Malformed("a page of a site with more parts than pages have"));
        }
        for _ in 0..count {
            parts.push((reader.string()?.to_vec(), reader.string()?.to_vec()));
        }
        reader.end()?;
        if parts.is_empty() || !parts.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(Malformed("a page of a site that is empty or not in order"));
        }
        Ok(Self { is_leaf, parts })
    }
}

pub(super) fn name_of(bytes: &[u8]) -> Name {
    let mut name = [0; 16];
    name.copy_from_slice(&Sha256::digest(bytes)[..16]);
    name
}

/// Where a page lies.
pub(super) fn path_of(name: &Name) -> String {
    let text: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("pages/{}/{}", &text[..2], &text[2..])
}

pub(super) fn summaries_path(period: u64) -> String {
    format!("summaries/{}", period / SUMMARIES_PER_FILE)
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::Malformed;

    use super::{PAGE_PARTS_MAX, Page};

    #[test]
    fn a_page_has_no_more_parts_than_pages_have() {
        let part = |at: usize| (at.to_be_bytes().to_vec(), Vec::new());
        let mut page = Page { is_leaf: true, parts: (0..PAGE_PARTS_MAX).map(part).collect() };
        assert_eq!(Page::from_bytes(&page.to_bytes()).as_ref(), Ok(&page));
        page.parts.push(part(PAGE_PARTS_MAX));
        let told = Err(Malformed("a page of a site with more parts than pages have"));
        assert_eq!(Page::from_bytes(&page.to_bytes()), told);
    }
}
