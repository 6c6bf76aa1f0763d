//! What clouds learn, as code: what CREATE prints, what EXPLAIN LEAKAGE answers, and what tests hold real clouds to.
//!
//! A coalition learns the union of what its clouds learn, joined by position: when a row arrives at two clouds at the same time, they
//! know that it is the same row, however their places differ. So joining is never counted on to fail.
//!
//! Beside what is learned of values every cloud sees how a table is used, whatever is in it:
//! 1. how many columns it holds and as what each is coded, by which it can be told which operations were declared;
//! 2. how many rows there are, which of them come, move and go at the same time, and when. Rows that move together are not told from one
//!    another, but by what their codings show;
//! 3. of each question of which columns it is, which rows it concerns, for how many values or characters it asks, whether bounds count, and
//!    which questions ask for the same; of orders also in how many blocks of four bits two bounds agree; and where a cloud does not show
//!    rows that it has, or is owed some, which these are: the others are asked for just those;
//! 4. of the catalogue when it changes, how many entries come and go, and the classes of their lengths, by which it sees about how many
//!    letters names have and how scattered row numbers are. It has one name at all clouds of a database.
//!
//! tests/dispersed/simulator.rs makes views of just this.

use std::collections::BTreeSet;
use std::fmt;

use crate::coder::PREFIX_CHARACTERS_MAX;
use crate::declaration::{Column, Declaration, Kind};
use crate::placement::{Coding, Placement};

/// What is learned of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The class of each value's length.
    Length,
    /// Which values are NULL.
    Nulls,
    /// Which values are equal, and how often each comes.
    Equality,
    /// Which texts begin alike, up to six characters.
    Prefixes,
    /// How each value compares with what was asked for, and the first four bits in which they differ.
    Order,
    /// The order of all values, which are equal, and about the upper half of each one's bits.
    TotalOrder,
    /// The first letters of texts, of which that half of the bits is.
    Beginnings,
    /// The values.
    Values,
}

/// When it is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// From what lies there.
    AtRest,
    /// From questions, more with each.
    Asked,
}

/// Something that is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Learned {
    /// The column's number.
    pub column: u16,
    /// What.
    pub what: What,
    /// When.
    pub when: When,
}

/// What of a table's values a coalition of clouds learns, at rest and from any number of questions. What every cloud learns beside it is
/// said above.
#[must_use]
pub fn learned(declaration: &Declaration, placement: &Placement, coalition: &[usize]) -> BTreeSet<Learned> {
    let mut learned = BTreeSet::new();
    for column in &declaration.columns {
        for fragment in placement.fragments.iter().filter(|fragment| fragment.column == column.id) {
            let holders = fragment.holders.iter().filter(|holder| coalition.contains(holder)).count();
            if holders > 0 {
                learned.extend(of_coding(declaration, column, fragment.coding, holders));
            }
        }
    }
    learned
}

fn of_coding(declaration: &Declaration, column: &Column, coding: Coding, holders: usize) -> Vec<Learned> {
    let (at_rest, asked) = match coding {
        // A piece says how long its cell is.
        Coding::Cell | Coding::Piece(_) if column.kind.width().is_none() => (Some(What::Length), None),
        Coding::Cell | Coding::Piece(_) => (None, None),
        // Under one pad all clouds have the same, and learn nothing from one another.
        Coding::Share(_) | Coding::Present if declaration.threshold() == 1 => (None, None),
        Coding::Share(_) if holders >= declaration.threshold() => (Some(What::Values), None),
        Coding::Present if holders >= declaration.threshold() => (Some(What::Nulls), None),
        Coding::Share(_) | Coding::Present => (None, None),
        Coding::Tag => (Some(What::Equality), None),
        Coding::Prefix => (Some(What::Prefixes), None),
        Coding::Order => (column.nullable.then_some(What::Nulls), Some(What::Order)),
        Coding::DangerOrder => (Some(What::TotalOrder), None),
    };
    let is_danger = coding == Coding::DangerOrder;
    // Codes of values are not those of NULL, which is an empty one.
    let nulls = (is_danger && column.nullable).then_some(What::Nulls);
    let beginnings = (is_danger && matches!(column.kind, Kind::Text | Kind::Uuid)).then_some(What::Beginnings);
    let learned = |what, when| Learned { column: column.id, what, when };
    let at_rest = at_rest.into_iter().chain(nulls).chain(beginnings).map(|what| learned(what, When::AtRest));
    at_rest.chain(asked.map(|what| learned(what, When::Asked))).collect()
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("lengths, in classes"),
            Self::Nulls => f.write_str("which are NULL"),
            Self::Equality => f.write_str("which are equal (and how often each comes)"),
            Self::Prefixes => write!(f, "which begin alike (up to {PREFIX_CHARACTERS_MAX} characters, and how often)"),
            Self::Order => {
                f.write_str("how they compare with each question (and the first four bits in which they differ)")
            }
            Self::TotalOrder => f.write_str("the order of all of them and nearly how large each is (danger)"),
            Self::Beginnings => f.write_str("their first letters, about four, and short ones whole (danger)"),
            Self::Values => f.write_str("the values"),
        }
    }
}

/// A column in a line for people: what each cloud learns of it.
#[must_use]
pub fn line(declaration: &Declaration, placement: &Placement, column: &Column) -> String {
    let told = |coalition: &[usize]| {
        let learned = learned(declaration, placement, coalition);
        let what: Vec<String> =
            learned.iter().filter(|of| of.column == column.id).map(|of| of.what.to_string()).collect();
        if what.is_empty() { "nothing".to_owned() } else { what.join(" and ") }
    };
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (cloud, name) in declaration.clouds.iter().enumerate() {
        let told = told(&[cloud]);
        match groups.iter_mut().find(|(own, _)| *own == told) {
            Some((_, clouds)) => clouds.push(name),
            None => groups.push((told, vec![name])),
        }
    }
    let mut said: Vec<String> = groups.iter().map(|(told, clouds)| format!("{} {told}", learns(clouds))).collect();
    if declaration.limbs(column).is_some() && declaration.threshold() > 1 {
        said.push(format!("{} together learn the values", declaration.threshold()));
    }
    format!("{}: {}", column.name, said.join("; "))
}

fn learns(clouds: &[&str]) -> String {
    match clouds {
        [one] => format!("{one} learns"),
        [first @ .., last] => format!("{} and {last} each learn", first.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Learned, What, When, learned, line};
    use crate::declaration::Operations;
    use crate::placement::Placement;
    use crate::placement::tests::people;

    #[test]
    fn no_coalition_of_the_declared_size_learns_values() {
        for (clouds, may_fail, may_collude) in [(3, 1, 1), (4, 1, 2), (5, 2, 2), (5, 0, 4), (2, 1, 0), (1, 0, 0)] {
            let declaration = people(clouds, may_fail, may_collude);
            let placement = Placement::plan(&declaration).expect("a placement");
            for mask in 0..1_u32 << clouds {
                let coalition: Vec<usize> = (0..clouds).filter(|cloud| mask >> cloud & 1 == 1).collect();
                let learned = learned(&declaration, &placement, &coalition);
                let knows = learned.iter().any(|of| of.what == What::Values);
                // Where one cloud alone is not to learn anything all have one pad, which no coalition takes away.
                assert_eq!(knows, may_collude > 0 && coalition.len() > may_collude, "{coalition:?} of {clouds}");
                // A column without operations gives lengths, and that where its cells are.
                assert!(learned.iter().filter(|of| of.column == 3).all(|of| of.what == What::Length));
            }
        }
    }

    #[test]
    fn a_coalition_learns_the_union() {
        let declaration = people(3, 1, 1);
        let placement = Placement::plan(&declaration).expect("a placement");
        let of = |coalition: &[usize]| learned(&declaration, &placement, coalition);
        let union: std::collections::BTreeSet<Learned> = &of(&[0]) | &of(&[1]);
        assert!(union.is_subset(&of(&[0, 1])));
        assert!(of(&[0, 1]).contains(&Learned { column: 2, what: What::Values, when: When::AtRest }));
        assert!(!union.contains(&Learned { column: 2, what: What::Values, when: When::AtRest }));
    }

    #[test]
    fn who_says_danger_is_told_of_what() {
        let mut declaration = people(3, 1, 1);
        let operations = &mut declaration.columns[2].operations;
        (operations.range, operations.danger_order) = (false, true);
        let placement = Placement::plan(&declaration).expect("a placement");
        assert_eq!(
            line(&declaration, &placement, &declaration.columns[2]),
            "salary: a and b each learn which are NULL and the order of all of them and nearly how large each is (danger); c learns \
             nothing; 2 together learn the values"
        );
        let operations = &mut declaration.columns[1].operations;
        *operations = Operations { danger_order: true, ..Operations::default() };
        let placement = Placement::plan(&declaration).expect("a placement");
        let told = line(&declaration, &placement, &declaration.columns[1]);
        assert!(told.contains("nearly how large each is (danger) and their first letters, about four"), "{told}");
        declaration.columns[2].operations.range = true;
        let refused = Placement::plan(&declaration).expect_err("one of them is enough").to_string();
        assert!(refused.contains("FOR (danger order)") && refused.contains("declare one of them"), "{refused}");
    }

    #[test]
    fn a_line_says_what_each_cloud_learns() {
        let declaration = people(3, 1, 1);
        let placement = Placement::plan(&declaration).expect("a placement");
        let lines: Vec<String> =
            declaration.columns.iter().map(|column| line(&declaration, &placement, column)).collect();
        assert_eq!(
            lines,
            [
                "id: a learns nothing; b and c each learn which are equal (and how often each comes)",
                "name: a learns which are equal (and how often each comes) and which begin alike (up to 6 characters, and how often); b learns \
                 lengths, in classes and which begin alike (up to 6 characters, and how often); c learns lengths, in classes and which are \
                 equal (and how often each comes)",
                "salary: a and b each learn which are NULL and how they compare with each question (and the first four bits in which \
                 they differ); c learns nothing; 2 together learn the values",
                "note: a and b each learn lengths, in classes; c learns nothing",
            ]
        );
    }
}
