//! Keys that a TPM makes from the seed of its owner: the same one from the same template, until the TPM is cleared.
//!
//! ```text
//! TPMT_PUBLIC: type u16 = ECC | name hash u16 = SHA-256 | attributes u32 | policy TPM2B = empty
//!            | cipher: AES u16, 128 u16, CFB u16, or NULL u16 | scheme NULL u16 | curve u16 = P-256 | KDF NULL u16
//!            | x TPM2B | y TPM2B
//! name = name hash || SHA-256(TPMT_PUBLIC)
//! ```

use std::vec::Vec;

use p256::PublicKey;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::curve::{first_coordinate, point_bytes, read_point};
use super::link::Link;
use super::session::{Command, Secrecy, Session, flush};
use super::wire::{Reader, Writer};
use super::{Name, OWNER};
use crate::TpmError;

const CREATE_PRIMARY: u32 = 0x131;
const AGREE: u32 = 0x154;

/// What a key is made from.
pub(super) struct Template<'a> {
    attributes: u32,
    has_cipher: bool,
    /// Another one of these is another key.
    unique: &'a [u8],
}

impl<'a> Template<'a> {
    /// A key that opens what is sealed for it, and the salts of sessions: what the TCG calls a storage key.
    pub(super) const SALT: Template<'static> = Template { attributes: 0x0003_0472, has_cipher: true, unique: &[] };

    /// A key that agrees with any point it is shown.
    pub(super) fn agreement(unique: &'a [u8; 32]) -> Template<'a> {
        Template { attributes: 0x0002_0472, has_cipher: false, unique }
    }

    /// Its public part, around the point, or around what is in its place in a template.
    fn public(&self, point: &[u8]) -> Zeroizing<Vec<u8>> {
        const ECC: u16 = 0x0023;
        const NULL: u16 = 0x0010;
        let public = Writer::new().u16(ECC).u16(0x000B).u32(self.attributes).sized(&[]);
        let public = if self.has_cipher { public.u16(0x0006).u16(128).u16(0x0043) } else { public.u16(NULL) };
        public.u16(NULL).u16(0x0003).u16(NULL).bytes(point).finish()
    }
}

/// A key loaded into the TPM. Whoever loads it lets go of it.
pub(super) struct Primary {
    pub(super) handle: u32,
    pub(super) point: PublicKey,
    pub(super) name: Name,
}

impl Primary {
    pub(super) fn load(
        link: &mut Link,
        session: &mut Session,
        owner: &[u8],
        template: &Template<'_>,
    ) -> Result<Primary, TpmError> {
        let operation = "asked for a key";
        let in_place_of_point = Writer::new().sized(template.unique).sized(&[]).finish();
        // No secret of its own, no data, nothing about the state of the machine.
        let parameters = Writer::new().sized(&[0; 4]).sized(&template.public(&in_place_of_point)).sized(&[]).u32(0);
        let command = Command {
            code: CREATE_PRIMARY,
            operation,
            about: &[(OWNER, &OWNER.to_be_bytes())],
            parameters: &parameters.finish(),
            secrecy: Secrecy::Nothing,
            makes_handle: true,
        };
        let answer = session.run(link, owner, &command)?;
        let read = Self::read(&answer.parameters, template, operation);
        if read.is_err() {
            flush(link, answer.handle)?;
        }
        let (point, name) = read?;
        Ok(Primary { handle: answer.handle, point, name })
    }

    /// The point and the name of a key that is what the template asked for.
    fn read(answer: &[u8], template: &Template<'_>, operation: &'static str) -> Result<(PublicKey, Name), TpmError> {
        let public = Reader::new(answer, operation).sized()?;
        let mut reader = Reader::new(public, operation);
        let head = template.public(&[]);
        if reader.bytes(head.len())? != &head[..] {
            return Err(reader.malformed());
        }
        let point = read_point(&mut reader)?;
        reader.end()?;
        Ok((point, name_of(public)))
    }

    /// The first coordinate of this key's secret times a point; nobody on the bus sees it if the session is salted.
    pub(super) fn agree(
        &self,
        link: &mut Link,
        session: &mut Session,
        point: &[u8; 64],
    ) -> Result<Zeroizing<[u8; 32]>, TpmError> {
        let operation = "asked to open a key slot";
        let command = Command {
            code: AGREE,
            operation,
            about: &[(self.handle, &self.name)],
            parameters: &Writer::new().sized(&point_bytes(point)).finish(),
            secrecy: Secrecy::Answer,
            makes_handle: false,
        };
        let answer = session.run(link, &[], &command)?;
        let mut reader = Reader::new(Reader::new(&answer.parameters, operation).sized()?, operation);
        let point = read_point(&mut reader)?;
        reader.end()?;
        Ok(first_coordinate(&point))
    }
}

/// What a TPM calls a thing with this public part.
pub(super) fn name_of(public: &[u8]) -> Name {
    let mut name = [0; 34];
    name[..2].copy_from_slice(&0x000B_u16.to_be_bytes());
    name[2..].copy_from_slice(&Sha256::digest(public));
    name
}
