//! Condensed RSA with 3072 bits: signatures over a full-domain hash, whose product modulo n verifies as one.
//!
//! The exponent is 65537 and the modulus is the owner's: nobody else says what they are. A condensed signature is over a
//! strictly increasing set of messages; without that, one message counted e times would verify against its own hash, which
//! needs no key.

use counterfoil_proof::Message;
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{NonZero, Odd, U64, U1536, U3072};
use sha2::{Digest, Sha256};

pub const BYTES: usize = 384;

const E: u64 = 65537;
const E_BITS: u32 = 17;

/// Two primes, made for these tables and used nowhere else.
const P: &str = concat!(
    "d788c10701211028922500cc0821f9297a0c0a624ed3cc70350b6944e57dae2245a104e6cd3c49a4ab6e32444e4e7d91",
    "e411659388ef06d537a152189a5bfda181d8528bfb7e45743a6977842dc44e71f0709656cfa542afe16b5a4a88e01a7b",
    "38bfd461e7c7847ead4a075e0cb59b05783cb1cd0726034a13fd59ee906db944b7e906cc20ea3f30ebc509ad9388089e",
    "d3efc97e414f1d6fc542a623e90027593675cd8a6750c8f0db69fbf4471aee2f138034c1ffa84e374333c2939fc04af1",
);
const Q: &str = concat!(
    "cfee3174df88f0fc906f78a8e67e296570e848ca0e268a935f809d41602404b4034f7111b7bda34eeca7335120eda0ba",
    "021815168fad0b31bb323b45fc3f635b3c5995731e7beaca88ccad614a6f5386ade937e9b085f7c39ae9c82f756d00c4",
    "d8d17c39ecf19b8ec0c94c89ccbb77642464a80258b4dcc40be40f22a3b2e92f6277d440757a7152b43d5e3af88e5dc0",
    "8a31b92753772e38917492a195c4dabe8e1d93f08246b05cb0bbf77a4420a52b8b2b7f31c36cfd326826dcfa728f81ed",
);

type Residue = FixedMontyForm<{ U3072::LIMBS }>;
type Half = FixedMontyForm<{ U1536::LIMBS }>;

/// What readers have of the owner.
#[derive(Clone)]
pub struct PublicKey(FixedMontyParams<{ U3072::LIMBS }>);

/// A signature, or the product of some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condensed(U3072);

/// What the owner signs with: for each prime the residues, and the exponent.
pub struct SecretKey {
    public: PublicKey,
    halves: [(FixedMontyParams<{ U1536::LIMBS }>, U1536); 2],
    /// Q to the power -1, modulo P.
    inverse: Half,
}

/// The message's hash in all of Z/n: 3071 bits, so that it is below n, which has 3072.
fn hash(key: &PublicKey, message: &Message) -> Residue {
    let mut bytes = [0; BYTES];
    for (counter, block) in bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        *block = Sha256::new()
            .chain_update(b"condensed")
            .chain_update([counter as u8])
            .chain_update(message.0)
            .finalize()
            .into();
    }
    bytes[0] &= 0x7f;
    Residue::new(&U3072::from_be_slice(&bytes), &key.0)
}

impl SecretKey {
    /// The one that is written down above.
    pub fn of_tables() -> Option<Self> {
        let primes = [P, Q].map(U1536::from_be_hex);
        let n: U3072 = primes[0].concatenating_mul(&primes[1]);
        let public = PublicKey(FixedMontyParams::new_vartime(Option::from(Odd::new(n))?));
        let half = |prime: &U1536| {
            let params = FixedMontyParams::new_vartime(Option::from(Odd::new(*prime))?);
            let order: NonZero<U1536> = Option::from(NonZero::new(prime.wrapping_sub(&U1536::ONE)))?;
            Some((params, Option::from(U1536::from_u64(E).invert_mod(&order))?))
        };
        let halves = [half(&primes[0])?, half(&primes[1])?];
        let inverse = Option::from(Half::new(&primes[1], &halves[0].0).invert())?;
        Some(Self { public, halves, inverse })
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The hash to the secret power, modulo each prime, and put together.
    pub fn sign(&self, message: &Message) -> Condensed {
        let hash = hash(&self.public, message).retrieve();
        let [p, q] = [0, 1].map(|at| {
            let (params, exponent) = &self.halves[at];
            let rest = hash.rem(params.modulus().as_nz_ref());
            Half::new(&rest, params).pow(exponent)
        });
        let q = q.retrieve();
        let params = &self.halves[0].0;
        let high = p.sub(&Half::new(&q, params)).mul(&self.inverse).retrieve();
        let product: U3072 = high.concatenating_mul(self.halves[1].0.modulus().as_ref());
        Condensed(product.wrapping_add(&q.resize()))
    }
}

impl PublicKey {
    /// The product of signatures; none of nothing.
    pub fn condense<'a>(&self, signatures: impl Iterator<Item = &'a Condensed>) -> Option<Condensed> {
        let product = signatures.map(|one| Residue::new(&one.0, &self.0)).reduce(|product, one| product.mul(&one))?;
        Some(Condensed(product.retrieve()))
    }

    /// Whether the signature is the product of the owner's signatures of these messages, each once.
    pub fn verify(&self, messages: &[Message], signature: &Condensed) -> bool {
        let is_set = !messages.is_empty() && messages.is_sorted_by(|before, after| before < after);
        is_set && &signature.0 < self.0.modulus().as_ref() && self.is_product(messages, signature)
    }

    fn is_product(&self, messages: &[Message], signature: &Condensed) -> bool {
        let hashes = messages.iter().map(|message| hash(self, message)).reduce(|product, one| product.mul(&one));
        let power = Residue::new(&signature.0, &self.0).pow_bounded_exp(&U64::from_u64(E), E_BITS);
        hashes.is_some_and(|hashes| hashes == power)
    }
}

impl Condensed {
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(self.0.to_be_bytes().as_ref());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        Self(U3072::from_be_slice(bytes))
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::Message;

    use super::{Condensed, E, SecretKey, hash};

    fn messages() -> Vec<Message> {
        (1..6).map(|byte| Message([byte; 32])).collect()
    }

    #[test]
    fn a_product_verifies_against_its_set_alone() {
        let key = SecretKey::of_tables().expect("a key");
        let (public, messages) = (key.public(), messages());
        let signed: Vec<Condensed> = messages.iter().map(|message| key.sign(message)).collect();
        let product = public.condense(signed.iter()).expect("some");
        assert!(public.verify(&messages, &product) && public.verify(&messages[..1], &signed[0]));
        assert!(Condensed::from_bytes(&product.to_bytes()) == product);
        let mut changed = messages.clone();
        changed[4] = Message([77; 32]);
        let mut turned = messages.clone();
        turned.reverse();
        for wrong in [&messages[1..], &changed, &turned, &[]] {
            assert!(!public.verify(wrong, &product));
        }
        // The same number plus n is another text for it.
        let more = Condensed(signed[0].0.wrapping_add(public.0.modulus().as_ref()));
        assert!(more == signed[0] || !public.verify(&messages[..1], &more));
    }

    #[test]
    fn a_message_that_counts_e_times_needs_no_key_and_is_refused() {
        let key = SecretKey::of_tables().expect("a key");
        let never_signed = Message([200; 32]);
        let forged = Condensed(hash(key.public(), &never_signed).retrieve());
        let often = vec![never_signed; E as usize];
        assert!(key.public().is_product(&often, &forged), "the attack is real: the arithmetic alone accepts it");
        assert!(!key.public().verify(&often, &forged));
        assert!(!key.public().verify(&often[..1], &forged));
    }
}
