//! A number for what an answer says, whatever order its rows come in: that of a device is held against that of the host.

use counterfoil_relation::{Error, RowBatch, ValueRef};

/// FNV-1a's.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The sum over all rows of a number for their values.
pub fn of(batch: &RowBatch) -> Result<u64, Error> {
    let mut sum = 0_u64;
    for row in 0..batch.count() {
        let mut number = OFFSET;
        for column in 0..batch.layout().columns().len() {
            match batch.value(row, column)? {
                ValueRef::Null => take(&mut number, &[0]),
                ValueRef::BigInt(value) => take(&mut number, &value.to_le_bytes()),
                ValueRef::Numeric(value) => take(&mut number, &value.to_le_bytes()),
                ValueRef::Text(value) => take(&mut number, value.as_bytes()),
                _ => return Err(Error::misuse("a type that the questions of the paper have not")),
            }
        }
        sum = sum.wrapping_add(number);
    }
    Ok(sum)
}

/// Takes the bytes of a value and what ends it.
fn take(number: &mut u64, bytes: &[u8]) {
    for byte in bytes.iter().chain(&[0xFF]) {
        *number = (*number ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}
