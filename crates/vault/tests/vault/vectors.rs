//! The vectors of SPEC, "vault", written by another implementation (`tests/vectors/make.py`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use counterfoil_vault::{
    ArgonCost, DatabaseId, Entropy, Epoch, FileCounter, KeptSecret, KeyFile, KeyKeeper, Kind, NoEntropy, OPENING_BYTES,
    Place, Plain, RecoveryCode, RootDigests, Sealed, Secret, Share, SlotsDigest, Suite, TAG_BYTES, TpmError, Vault,
    VolumeKey, join, read_headers, split,
};
use zeroize::Zeroizing;

use crate::medium::Bytes;

struct Vector(BTreeMap<String, String>);

impl Vector {
    fn all(name: &str) -> Vec<Vector> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
        let text = fs::read_to_string(path).unwrap();
        let paragraphs = text.split("\n\n").skip(1);
        let field = |line: &str| line.split_once(" = ").map(|(name, value)| (name.into(), value.trim().into()));
        let vectors: Vec<_> = paragraphs.map(|text| Vector(text.lines().filter_map(field).collect())).collect();
        assert!(!vectors.is_empty());
        vectors
    }

    fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let digits = self.text(name);
        (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn array<const BYTES: usize>(&self, name: &str) -> [u8; BYTES] {
        self.bytes(name).try_into().unwrap()
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap()
    }

    fn vault(&self) -> Vault {
        let suite = Suite::from_number(self.number("suite") as u8).unwrap();
        Vault::new(&VolumeKey::from_bytes(&self.array("volume_key")), DatabaseId(self.array("database")), suite)
    }

    fn epoch(&self) -> Epoch {
        Epoch { number: self.number("epoch"), salt: self.array("salt") }
    }

    fn position(&self) -> u32 {
        self.number("position") as u32
    }
}

fn kind(number: u64) -> Kind {
    [Kind::Frame, Kind::Container, Kind::Nameless].into_iter().find(|kind| u64::from(kind.number()) == number).unwrap()
}

#[test]
fn pages() {
    for vector in Vector::all("pages.txt") {
        let (kind, allocation) = (kind(vector.number("kind")), vector.number("allocation"));
        let (position, number) = (vector.position(), vector.number("number"));
        let mut page = vector.bytes("payload");
        page.extend([0; TAG_BYTES]);
        let vault = vector.vault();
        let key = vault.page_key(kind, allocation, &vector.epoch());
        if kind == Kind::Nameless {
            key.seal_nameless(position, number, Plain::new(&mut page));
        } else {
            let place = Place { kind, allocation, position, epoch: vector.epoch() };
            vault.seal(&place, Plain::new(&mut page));
        }
        assert_eq!(page, vector.bytes("page"), "suite {}", vector.text("suite"));
        let page = Sealed::from_medium(&mut page);
        let opened =
            if kind == Kind::Nameless { key.open_nameless(position, number, page) } else { key.open(position, page) };
        assert_eq!(opened.unwrap().payload(), vector.bytes("payload"));
    }
}

#[test]
fn openings() {
    for vector in Vector::all("openings.txt") {
        let (allocation, version) = (vector.number("allocation"), vector.number("version"));
        let mut page = vector.bytes("payload");
        page.extend([0; OPENING_BYTES]);
        vector.vault().seal_opening(allocation, vector.position(), version, Plain::new(&mut page));
        assert_eq!(page, vector.bytes("page"), "suite {}", vector.text("suite"));
        let vault = vector.vault();
        let opened = vault.open_opening(allocation, vector.position(), version, Sealed::from_medium(&mut page));
        assert_eq!(opened.unwrap().payload(), vector.bytes("payload"));
    }
}

#[test]
fn cells() {
    for vector in Vector::all("cells.txt") {
        let key = vector.vault().cell_key(&vector.epoch());
        let page = key.page(vector.number("allocation"), vector.position());
        let (slot, payload) = (vector.number("slot") as u16, vector.bytes("payload"));
        assert_eq!(page.seal(slot, &payload).to_vec(), vector.bytes("cell"));
        let opened = page.open(slot, &vector.array("cell"), payload.len()).unwrap();
        assert_eq!(opened.payload::<10>()[..payload.len()], payload);
        assert_eq!(page.mac(&vector.bytes("cells")), vector.array("mac"));
    }
}

/// A TPM that knows one secret.
struct Keeper<'a>(&'a Vector);

impl KeyKeeper for Keeper<'_> {
    fn make(&self, _: &[u8; 32]) -> Result<KeptSecret, TpmError> {
        Err(TpmError::Absent)
    }

    fn find(
        &self,
        purpose: &[u8; 32],
        point: &[u8; 64],
        pin: &[u8; 32],
    ) -> Result<Option<Zeroizing<[u8; 32]>>, TpmError> {
        assert_eq!(*purpose, self.0.array("purpose"));
        let shown = [&point[..], pin].concat() == self.0.bytes("shown");
        Ok(shown.then(|| Zeroizing::new(self.0.array("kept"))))
    }
}

#[test]
fn headers() {
    for vector in Vector::all("headers.txt") {
        let mut bytes = vec![0; 2 * 64 * 4096];
        for start in [0, 64 * 4096] {
            bytes[start..start + 2048].copy_from_slice(&vector.bytes("header"));
        }
        let copies = read_headers(&Bytes { page_bytes: 4096, bytes }).unwrap();
        let passphrase = vector.bytes("passphrase");
        let key_file = KeyFile::parse(&vector.bytes("key_file")).unwrap();
        let code = RecoveryCode::parse(vector.text("recovery_code")).unwrap();
        let keeper = Keeper(&vector);
        let secrets = [
            Secret::Passphrase(&passphrase),
            Secret::KeyFile(&key_file),
            Secret::Recovery(&code),
            Secret::Tpm(&keeper),
        ];
        for (slot, secret) in secrets.into_iter().enumerate() {
            let unlocked = copies.unlock(&[secret], &ArgonCost::HOST).unwrap();
            assert!(*unlocked.volume_key.expose() == vector.array("volume_key"));
            let settled = unlocked.settle(&RootDigests::settled(SlotsDigest(vector.array("digest")))).unwrap();
            assert_eq!(settled.slot, Some(slot));
            assert_eq!(settled.header.encode(&unlocked.volume_key)[..2048], vector.bytes("header"));
        }
    }
}

#[test]
fn recovery_codes() {
    for vector in Vector::all("codes.txt") {
        assert_eq!(RecoveryCode::parse(vector.text("text")).unwrap().text().as_str(), vector.text("text"));
    }
}

#[test]
fn counters() {
    for vector in Vector::all("counters.txt") {
        let directory = tempfile::TempDir::new().unwrap();
        fs::write(FileCounter::path_in(directory.path(), DatabaseId(vector.array("database"))), vector.bytes("file"))
            .unwrap();
        let record = FileCounter::new(directory.path(), Path::new(""), &vector.vault()).record().unwrap();
        assert_eq!((record.value, record.tag), (vector.number("value"), vector.array("tag")));
        assert_eq!((record.time, record.path.as_str()), (vector.number("time"), vector.text("path")));
        assert_eq!(u64::from(record.rollbacks), vector.number("rollbacks"));
    }
}

/// The example of shares stands in SPEC itself.
#[test]
fn shares() {
    let spec = include_str!("../../../../SPEC.md");
    let lines: Vec<&str> = spec.lines().filter(|line| line.starts_with("counterfoil-share-1 ")).collect();
    let written: Vec<Share> = lines.iter().map(|line| Share::parse(line).unwrap()).collect();
    let key: [u8; 32] = std::array::from_fn(|index| index as u8);
    assert_eq!(*join(&written).unwrap().expose(), key);
    let id = DatabaseId([0x11; 32]);
    let made = split(&VolumeKey::from_bytes(&key), id, 2, 2, &mut Always(0x33)).unwrap();
    assert_eq!(made.iter().map(|share| share.text().to_string()).collect::<Vec<_>>(), lines);
}

/// A generator that always gives one byte.
struct Always(u8);

impl Entropy for Always {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(self.0);
        Ok(())
    }
}
