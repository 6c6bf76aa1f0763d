//! What our codecs would take if they knew two things more, both cheap to read: integers that are multiples of a common
//! factor, and columns of few different values, as places in the sorted list of these.
//!
//! ```text
//! 0 kind u8: 0 as it is | 1 factor: factor u64, first i64, integers | 2 places: how many u16, the sorted values, integers
//! ```
//! The leaf format has neither.

use std::collections::HashSet;
use std::hash::Hash;

use counterfoil_series::codec::integers;

use crate::{Codec, Failure, Ours};

const AS_IT_IS: u8 = 0;
const FACTOR: u8 = 1;
const PLACES: u8 = 2;
/// Values that a different one stands for on average at least, where places are written.
const REPEATED: usize = 8;

/// Our codecs, and the two.
pub struct Thrifty;

/// The values that differ, sorted; none if they are too many.
fn different<T: Copy, K: Copy + Ord + Hash>(values: &[T], key: impl Fn(&T) -> K) -> Option<Vec<K>> {
    let most = (values.len() / REPEATED).min(usize::from(u16::MAX));
    let mut seen = HashSet::new();
    for value in values {
        if seen.insert(key(value)) && seen.len() > most {
            return None;
        }
    }
    let mut sorted: Vec<K> = seen.into_iter().collect();
    sorted.sort_unstable();
    Some(sorted)
}

/// The greatest number of which all distances from the first value are multiples.
fn factor(values: &[i64]) -> u64 {
    let first = values.first().copied().unwrap_or(0);
    let mut factor = 0;
    for value in values {
        let mut rest = value.abs_diff(first);
        while rest != 0 {
            (factor, rest) = (rest, factor % rest);
        }
        if factor == 1 {
            break;
        }
    }
    factor
}

/// Integers whose order is that of doubles, NaN and all.
fn ordered(value: &f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

fn double(ordered: i64) -> f64 {
    f64::from_bits((ordered ^ ((ordered >> 63) as u64 >> 1) as i64) as u64)
}

/// The shorter of two.
fn shorter(one: Vec<u8>, other: Option<Vec<u8>>) -> Vec<u8> {
    other.filter(|other| other.len() < one.len()).unwrap_or(one)
}

fn places<K: Ord>(sorted: &[K], keys: impl Iterator<Item = K>, out: &mut Vec<u8>) {
    let places: Vec<i64> = keys.map(|key| sorted.binary_search(&key).unwrap_or(0) as i64).collect();
    integers::encode(&places, out);
}

fn begun(kind: u8, different: usize) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&(different as u16).to_le_bytes());
    out
}

fn taken<const BYTES: usize>(bytes: &mut &[u8]) -> Result<[u8; BYTES], Failure> {
    let (taken, rest) = bytes.split_first_chunk().ok_or("too short")?;
    *bytes = rest;
    Ok(*taken)
}

fn read_places<T: Copy>(mut bytes: &[u8], count: usize, sorted: &[T], out: &mut Vec<T>) -> Result<(), Failure> {
    let mut places = Vec::new();
    integers::decode(&mut bytes, count, &mut places).map_err(|_| "nonsense")?;
    for place in places {
        out.push(*sorted.get(place as usize).ok_or("no such place")?);
    }
    Ok(())
}

impl Codec<i64> for Thrifty {
    fn write(&self, values: &[i64], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut plain = vec![AS_IT_IS];
        integers::encode(values, &mut plain);
        let factor = factor(values);
        let multiples = (factor > 1).then(|| {
            let first = values.first().copied().unwrap_or(0);
            let mut multiples = vec![FACTOR];
            multiples.extend_from_slice(&factor.to_le_bytes());
            multiples.extend_from_slice(&first.to_le_bytes());
            let less = |value: &i64| value.wrapping_sub(first) / factor as i64;
            integers::encode(&values.iter().map(less).collect::<Vec<_>>(), &mut multiples);
            multiples
        });
        let listed = different(values, |value| *value).map(|sorted| {
            let mut listed = begun(PLACES, sorted.len());
            integers::encode(&sorted, &mut listed);
            places(&sorted, values.iter().copied(), &mut listed);
            listed
        });
        out.extend(shorter(shorter(plain, multiples), listed));
        Ok(())
    }

    fn read(&self, mut bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Failure> {
        match taken::<1>(&mut bytes)? {
            [FACTOR] => {
                let factor = u64::from_le_bytes(taken(&mut bytes)?) as i64;
                let first = i64::from_le_bytes(taken(&mut bytes)?);
                Ours.read(bytes, count, out)?;
                out.iter_mut().for_each(|value| *value = first.wrapping_add(value.wrapping_mul(factor)));
                Ok(())
            }
            [PLACES] => {
                let different = u16::from_le_bytes(taken(&mut bytes)?);
                let mut sorted = Vec::new();
                integers::decode(&mut bytes, usize::from(different), &mut sorted).map_err(|_| "nonsense")?;
                read_places(bytes, count, &sorted, out)
            }
            _ => Ours.read(bytes, count, out),
        }
    }
}

impl Codec<f64> for Thrifty {
    fn write(&self, values: &[f64], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut plain = vec![AS_IT_IS];
        Ours.write(values, &mut plain)?;
        let listed = different(values, ordered).map(|sorted| -> Result<Vec<u8>, Failure> {
            let mut listed = begun(PLACES, sorted.len());
            // Their length first, since what reads them is told where they end.
            let mut doubles = Vec::new();
            Ours.write(&sorted.iter().map(|value| double(*value)).collect::<Vec<_>>(), &mut doubles)?;
            listed.extend_from_slice(&(doubles.len() as u16).to_le_bytes());
            listed.extend(doubles);
            places(&sorted, values.iter().map(ordered), &mut listed);
            Ok(listed)
        });
        out.extend(shorter(plain, listed.transpose()?));
        Ok(())
    }

    fn read(&self, mut bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Result<(), Failure> {
        match taken::<1>(&mut bytes)? {
            [PLACES] => {
                let different = u16::from_le_bytes(taken(&mut bytes)?);
                let length = usize::from(u16::from_le_bytes(taken(&mut bytes)?));
                let (doubles, rest) = bytes.split_at_checked(length).ok_or("too short")?;
                let mut sorted = Vec::new();
                Ours.read(doubles, usize::from(different), &mut sorted)?;
                read_places(rest, count, &sorted, out)
            }
            _ => Ours.read(bytes, count, out),
        }
    }
}
