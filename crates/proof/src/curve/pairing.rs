//! What blst does for points: pairings, and tests of the subgroup.

use blst::{Pairing, blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine, min_sig};

use super::field::Fp;
use super::point::Affine;

/// The generator of G2.
const GENERATOR: blst_p2_affine = blst_p2_affine {
    x: blst_fp2 {
        fp: [
            blst_fp {
                l: [
                    0xf5f28fa202940a10,
                    0xb3f5fb2687b4961a,
                    0xa1a893b53e2ae580,
                    0x9894999d1a3caee9,
                    0x6f67b7631863366b,
                    0x058191924350bcd7,
                ],
            },
            blst_fp {
                l: [
                    0xa5a9c0759e23f606,
                    0xaaa0c59dbccd60c3,
                    0x3bb17e18e2867806,
                    0x1b1ab6cc8541b367,
                    0xc2b6ed0ef2158547,
                    0x11922a097360edf3,
                ],
            },
        ],
    },
    y: blst_fp2 {
        fp: [
            blst_fp {
                l: [
                    0x4c730af860494c4a,
                    0x597cfa1f5e369c5a,
                    0xe7e6856caa0a635a,
                    0xbbefb5e96e0d495f,
                    0x07d3a975f0ef25a2,
                    0x0083fd8e7e80dae5,
                ],
            },
            blst_fp {
                l: [
                    0xadc0fc92df64b05d,
                    0x18aa270a2b1461dc,
                    0x86adac6a3be4eba0,
                    0x79495c4ec93da33a,
                    0xe7175850a43ccaed,
                    0x0b2bc2a163de1bf2,
                ],
            },
        ],
    },
};

/// A key and the sum of what it signed.
pub(crate) struct Pair<'a> {
    pub key: &'a blst_p2_affine,
    pub hashes: Affine,
}

impl From<Affine> for blst_p1_affine {
    fn from(point: Affine) -> blst_p1_affine {
        blst_p1_affine { x: blst_fp { l: point.x.0 }, y: blst_fp { l: point.y.0 } }
    }
}

impl From<blst_p1_affine> for Affine {
    fn from(point: blst_p1_affine) -> Affine {
        Affine { x: Fp(point.x.l), y: Fp(point.y.l) }
    }
}

/// The signature's half of the check; None if the point is not in G1.
pub(crate) fn signature_side(signature: Affine) -> Option<Pairing<'static>> {
    let point = blst_p1_affine::from(signature);
    if !min_sig::Signature::from(point).subgroup_check() {
        return None;
    }
    let mut side = Pairing::new(true, super::expand::DOMAIN);
    side.raw_aggregate(&GENERATOR, &signature.negate().into());
    Some(side)
}

/// Whether e(signature, g2) is the product of e(hashes, key) over all pairs.
pub(crate) fn verifies(mut signature: Pairing<'static>, pairs: &[Pair]) -> bool {
    for pair in pairs {
        signature.raw_aggregate(pair.key, &pair.hashes.into());
    }
    signature.commit();
    signature.finalverify(None)
}

#[cfg(test)]
pub(crate) fn generator() -> blst_p2_affine {
    GENERATOR
}
