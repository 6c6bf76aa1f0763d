//! Values of each type, NULL now and then.

use super::super::scripts::Dice;
use super::table::{Table, key_parts};

pub fn reference_to(dice: &mut Dice, parent: &Table, enforced: bool) -> Vec<String> {
    if dice.below(9) == 0 || (enforced && parent.keys == 0) {
        let mut parts = key_parts(0, parent.key.len());
        // One part that is NULL is enough to reference nothing.
        parts[0] = "NULL".into();
        return parts;
    }
    // Where nobody enforces it, some that are not there, or not yet.
    let keys = if enforced { parent.keys } else { parent.keys + 6 };
    key_parts(dice.below(keys), parent.key.len())
}

pub fn value(dice: &mut Dice) -> String {
    if dice.below(9) == 0 { "NULL".into() } else { dice.below(40).to_string() }
}

pub fn text(dice: &mut Dice) -> String {
    if dice.below(9) == 0 {
        "NULL".into()
    } else {
        format!("'{}{}'", dice.pick(&["ab", "abc", "b", "Ä"]), dice.below(9))
    }
}

/// Numbers whose sums are exact.
pub fn quarters(dice: &mut Dice) -> String {
    let quarters = dice.below(160);
    if dice.below(9) == 0 { "NULL".into() } else { format!("{}.{:02}", quarters / 4, quarters % 4 * 25) }
}

pub fn date(dice: &mut Dice) -> String {
    if dice.below(9) == 0 { "NULL".into() } else { format!("'2013-0{}-{:02}'", 1 + dice.below(3), 1 + dice.below(28)) }
}

pub fn truth(dice: &mut Dice) -> String {
    (dice.pick(&["NULL", "TRUE", "TRUE", "FALSE"])).into()
}
