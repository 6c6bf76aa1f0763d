//! Sessions: what makes a TPM's answer authentic, and keeps what it is told from whoever listens on the bus
//! (TPM 2.0 Library, part 1, 17 to 21).
//!
//! ```text
//! session key   = empty, or KDFa(salt, "ATH", nonce of the TPM, our nonce), the salt agreed on with a key of the TPM
//! command MAC   = HMAC(session key || secret of what is used, hash(command) || our nonce || TPM's nonce || attributes)
//! response MAC  = HMAC(the same, hash(response) || TPM's new nonce || our nonce || attributes)
//! cipher        = AES-128-CFB, key || iv = KDFa(session key || secret, "CFB", newer nonce, older nonce)
//! ```
//! 1. Our nonce is new with each command, so no recorded response is ever accepted.
//! 2. The hash of a command covers the *names* of what it is about, which we compute ourselves.
//! 3. A response is read only after its MAC held.

use std::vec::Vec;

use aes::Aes128;
use aes::cipher::KeyIvInit;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::curve::Agreed;
use super::link::{Link, NO_SESSIONS, SESSIONS};
use super::wire::{Reader, Writer};
use crate::{Entropy, SystemEntropy, TpmError};

const START_SESSION: u32 = 0x176;
const FLUSH: u32 = 0x165;
/// In place of a handle: nothing.
const NULL: u32 = 0x4000_0007;
const SHA256: u16 = 0x000B;
const AES: u16 = 0x0006;
const CFB: u16 = 0x0043;
const NONCE_BYTES: usize = 32;
/// Attributes: go on after this command; the first parameter is ciphertext; the first one of the answer is.
const CONTINUE: u8 = 0x01;
const DECRYPT: u8 = 0x20;
const ENCRYPT: u8 = 0x40;

/// What of a command nobody on the bus may see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    Nothing,
    /// Its first parameter.
    Parameter,
    /// The first parameter of its answer.
    Answer,
}

/// A command about one or two things of the TPM.
pub(super) struct Command<'a> {
    pub(super) code: u32,
    /// For messages: "the TPM could not be …".
    pub(super) operation: &'static str,
    /// Handle and name of each; the first is what is authorized.
    pub(super) about: &'a [(u32, &'a [u8])],
    pub(super) parameters: &'a [u8],
    pub(super) secrecy: Secrecy,
    /// Whether a handle precedes the answer's parameters.
    pub(super) makes_handle: bool,
}

impl<'a> Command<'a> {
    /// A command without secrets, whose answer has no handle.
    pub(super) fn new(
        code: u32,
        operation: &'static str,
        about: &'a [(u32, &'a [u8])],
        parameters: &'a [u8],
    ) -> Command<'a> {
        Command { code, operation, about, parameters, secrecy: Secrecy::Nothing, makes_handle: false }
    }
}

/// What a command gave, its MAC checked.
pub(super) struct Answer {
    pub(super) handle: u32,
    pub(super) parameters: Zeroizing<Vec<u8>>,
}

/// An open session.
pub(super) struct Session {
    handle: u32,
    nonce: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl Session {
    /// Opens a session; salted with what was agreed on with the key of this handle.
    pub(super) fn start(link: &mut Link, salt: Option<(u32, &Agreed)>) -> Result<Session, TpmError> {
        let operation = "talked to";
        let our_nonce = nonce()?;
        let point = salt.map(|(_, agreed)| agreed.point()).unwrap_or_default();
        let body = Writer::new()
            .u32(salt.map_or(NULL, |(key, _)| key))
            .u32(NULL)
            .sized(&our_nonce)
            .sized(&point)
            .u8(0)
            .u16(AES)
            .u16(128)
            .u16(CFB)
            .u16(SHA256)
            .finish();
        let response = link.exchange(&framed(NO_SESSIONS, START_SESSION, &body), operation)?;
        let mut reader = Reader::new(&response, operation);
        let (handle, nonce) = (reader.u32()?, reader.sized()?.to_vec());
        reader.end()?;
        let key = salt.map(|(_, agreed)| kdfa(&*agreed.salt(), b"ATH", &nonce, &our_nonce, 32)).unwrap_or_default();
        Ok(Session { handle, nonce, key })
    }

    /// Runs a command. `secret` is that of the first thing it is about.
    pub(super) fn run(&mut self, link: &mut Link, secret: &[u8], command: &Command<'_>) -> Result<Answer, TpmError> {
        let our_nonce = nonce()?;
        let attributes = match command.secrecy {
            Secrecy::Nothing => CONTINUE,
            Secrecy::Parameter => CONTINUE | DECRYPT,
            Secrecy::Answer => CONTINUE | ENCRYPT,
        };
        let secret = [&self.key[..], without_zeros(secret)].concat();
        let secret = Zeroizing::new(secret);
        let mut parameters = Zeroizing::new(command.parameters.to_vec());
        if command.secrecy == Secrecy::Parameter {
            let (key, iv) = cipher_key(&secret, &our_nonce, &self.nonce);
            let text = first_sized(&mut parameters, command.operation)?;
            cfb_mode::Encryptor::<Aes128>::new(&(*key).into(), &(*iv).into()).encrypt(text);
        }
        let mac = [&command_hash(command, &parameters)[..], &our_nonce, &self.nonce, &[attributes]];
        let mac = authenticate(&secret, &mac).finalize().into_bytes();
        let session = Writer::new().u32(self.handle).sized(&our_nonce).u8(attributes).sized(&mac).finish();
        let handles = command.about.iter().fold(Writer::new(), |writer, (handle, _)| writer.u32(*handle)).finish();
        let body = Writer::new().bytes(&handles).u32(session.len() as u32).bytes(&session).bytes(&parameters).finish();
        let response = link.exchange(&framed(SESSIONS, command.code, &body), command.operation)?;
        self.read(&response, command, &secret, &our_nonce)
    }

    /// Checks the MAC of a response before anything of it is used.
    fn read(
        &mut self,
        response: &[u8],
        command: &Command<'_>,
        secret: &[u8],
        our_nonce: &[u8],
    ) -> Result<Answer, TpmError> {
        let mut reader = Reader::new(response, command.operation);
        let handle = if command.makes_handle { reader.u32()? } else { 0 };
        let count = reader.u32()? as usize;
        let mut parameters = Zeroizing::new(reader.bytes(count)?.to_vec());
        let (nonce, attributes, found) = (reader.sized()?, reader.u8()?, reader.sized()?);
        reader.end()?;
        let hash = Sha256::new().chain_update([0; 4]).chain_update(command.code.to_be_bytes());
        let hash = hash.chain_update(&parameters[..]).finalize();
        let mac = authenticate(secret, &[&hash, nonce, our_nonce, &[attributes]]);
        if mac.verify_slice(found).is_err() || attributes & CONTINUE == 0 {
            return Err(TpmError::NotAuthentic { operation: command.operation });
        }
        self.nonce = nonce.to_vec();
        if command.secrecy == Secrecy::Answer {
            let (key, iv) = cipher_key(secret, &self.nonce, our_nonce);
            let text = first_sized(&mut parameters, command.operation)?;
            cfb_mode::Decryptor::<Aes128>::new(&(*key).into(), &(*iv).into()).decrypt(text);
        }
        Ok(Answer { handle, parameters })
    }

    /// Closes it.
    pub(super) fn end(&self, link: &mut Link) -> Result<(), TpmError> {
        flush(link, self.handle)
    }
}

/// Lets go of a session, or of a key that was loaded.
pub(super) fn flush(link: &mut Link, handle: u32) -> Result<(), TpmError> {
    link.exchange(&framed(NO_SESSIONS, FLUSH, &handle.to_be_bytes()), "let go of").map(|_| ())
}

/// A whole command.
pub(super) fn framed(tag: u16, code: u32, body: &[u8]) -> Zeroizing<Vec<u8>> {
    Writer::new().u16(tag).u32(body.len() as u32 + 10).u32(code).bytes(body).finish()
}

fn nonce() -> Result<[u8; NONCE_BYTES], TpmError> {
    let mut nonce = [0; NONCE_BYTES];
    SystemEntropy.fill(&mut nonce).map_err(|_| TpmError::NoEntropy)?;
    Ok(nonce)
}

fn command_hash(command: &Command<'_>, parameters: &[u8]) -> [u8; 32] {
    let hash = Sha256::new().chain_update(command.code.to_be_bytes());
    let hash = command.about.iter().fold(hash, |hash, (_, name)| hash.chain_update(name));
    hash.chain_update(parameters).finalize().into()
}

/// The bytes of the first TPM2B.
fn first_sized<'a>(parameters: &'a mut [u8], operation: &'static str) -> Result<&'a mut [u8], TpmError> {
    let malformed = TpmError::Malformed { operation };
    let (count, rest) = parameters.split_first_chunk_mut().ok_or(malformed)?;
    rest.get_mut(..usize::from(u16::from_be_bytes(*count))).ok_or(malformed)
}

/// A TPM forgets the zeros at the end of a secret.
fn without_zeros(secret: &[u8]) -> &[u8] {
    let end = secret.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &secret[..end]
}

fn authenticate(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { panic!("HMAC takes keys of every length") };
    parts.iter().for_each(|part| mac.update(part));
    mac
}

type Half = Zeroizing<[u8; 16]>;

fn cipher_key(secret: &[u8], newer: &[u8], older: &[u8]) -> (Half, Half) {
    let bytes = kdfa(secret, b"CFB", newer, older, 32);
    let (mut key, mut iv) = (Half::default(), Half::default());
    key.copy_from_slice(&bytes[..16]);
    iv.copy_from_slice(&bytes[16..]);
    (key, iv)
}

/// Part 1, 11.4.10.2: SP 800-108 in counter mode. At most 32 bytes are asked for, so one block does.
fn kdfa(key: &[u8], label: &[u8], first: &[u8], second: &[u8], bytes: u32) -> Zeroizing<Vec<u8>> {
    let parts = [&1_u32.to_be_bytes()[..], label, &[0], first, second, &(bytes * 8).to_be_bytes()];
    Zeroizing::new(authenticate(key, &parts).finalize().into_bytes()[..bytes as usize].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_lose_the_zeros_at_their_end() {
        assert_eq!(without_zeros(&[0, 1, 0, 0]), [0, 1]);
        assert_eq!(without_zeros(&[0, 0]), []);
        assert_eq!(without_zeros(&[]), []);
    }

    #[test]
    fn a_length_beyond_the_parameters_is_malformed() {
        let malformed = Some(TpmError::Malformed { operation: "read" });
        assert_eq!(first_sized(&mut [0], "read").err(), malformed);
        assert_eq!(first_sized(&mut [0, 2, 9], "read").err(), malformed);
        assert_eq!(first_sized(&mut [0, 1, 9], "read"), Ok(&mut [9][..]));
    }
}
