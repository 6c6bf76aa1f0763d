//! Banks of cells as the counters on chips use them: their errors, and whether a bank is blank.

use counterfoil_flash::{BankShape, Banks, BlockNumber, Error, WORD_BYTES_MAX};

use crate::CounterError;

/// A word, in the first of these bytes.
pub(crate) type Word = [u8; WORD_BYTES_MAX as usize];

/// What erased cells read as.
pub(crate) const BLANK: u8 = 0xFF;

/// The other bank.
pub(crate) fn other(bank: u8) -> u8 {
    1 - bank
}

pub(crate) fn number(bank: u8) -> BlockNumber {
    BlockNumber(u64::from(bank))
}

/// What a failed operation of the driver is called.
pub(crate) fn failed(operation: &'static str, error: Error) -> CounterError {
    let code = match error {
        Error::Device { code, .. } => code,
        _ => -1,
    };
    CounterError::Device { operation, code }
}

/// Whether a counter can live in banks of this shape.
pub(crate) fn is_shape(shape: &BankShape, word_bytes_min: u32, bank_bytes_min: u32) -> bool {
    (word_bytes_min..=WORD_BYTES_MAX).contains(&shape.word_bytes)
        && shape.word_bytes.is_power_of_two()
        && shape.bank_bytes.is_multiple_of(shape.word_bytes)
        && (bank_bytes_min..1 << 24).contains(&shape.bank_bytes)
}

/// Erases a bank and looks whether it is.
pub(crate) fn erase<B: Banks>(banks: &mut B, bank: u8) -> Result<(), CounterError> {
    banks.erase(number(bank)).map_err(|error| failed("erased", error))?;
    let shape = banks.shape();
    let mut word: Word = [0; WORD_BYTES_MAX as usize];
    let word = word.get_mut(..shape.word_bytes as usize).unwrap_or_default();
    for offset in (0..shape.bank_bytes).step_by(shape.word_bytes as usize) {
        banks.read(number(bank), offset, word).map_err(|error| failed("read", error))?;
        if word.iter().any(|byte| *byte != BLANK) {
            return Err(CounterError::Device { operation: "erased", code: -1 });
        }
    }
    Ok(())
}

/// Programs a word and looks whether it stands there: whether every bit that it clears reads as cleared, and for `exactly`
/// no other.
pub(crate) fn program<B: Banks>(
    banks: &mut B,
    bank: u8,
    offset: u32,
    word: &[u8],
    exactly: bool,
) -> Result<bool, CounterError> {
    banks.program(number(bank), offset, word).map_err(|error| failed("programmed", error))?;
    let mut back: Word = [0; WORD_BYTES_MAX as usize];
    let back = back.get_mut(..word.len()).unwrap_or_default();
    banks.read(number(bank), offset, back).map_err(|error| failed("read", error))?;
    Ok(back.iter().zip(word).all(|(back, word)| back & !word == 0 && (!exactly || back == word)))
}
