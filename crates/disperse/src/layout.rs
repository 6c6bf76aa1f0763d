//! A layout: how a table's rows lie at its clouds, and under which keys. While a table moves it has several, and each row lies in one.
//!
//! ```text
//! ALTER TABLE, REFRESH TABLE    a new layout, under a secret of its own; rows come to it from then on
//! a row moves                   live in the old one -> noted as lacking everywhere in the new one -> put there -> live there alone
//! the last one has moved        clouds let go of the old one's tables; when all have, its secret is forgotten
//! ```
//! 1. A row's values belong to its number for ever, wherever it lies: whoever reads an older snapshot reads them from where they are now.
//! 2. A new layout's first epoch is drawn when it begins, and is that of all rows that there are then: in whatever copy of the database
//!    the layout is known these rows are the same ones, so that moving them twice seals the same twice. What comes later has
//!    epochs of whoever writes it, as ever.
//! 3. Names, places, seals, codes and shares are all under the new secret: nothing of the old layout can be found again in the new one.
//!    What a cloud has kept of the old one stays readable under the old secret.

use std::collections::BTreeSet;

use crate::coder::Coder;
use crate::declaration::Declaration;
use crate::keys::Secret;
use crate::placement::{Placement, Refusal};
use crate::state::{Rows, State};

/// How rows lie at clouds.
#[derive(Clone)]
pub struct Layout {
    /// Counts the layouts of a table, from 0 on.
    pub number: u32,
    /// All of its keys come from it.
    pub secret: Secret,
    /// What was declared.
    pub declaration: Declaration,
    /// Which rows lie so, and what clouds have not been told.
    pub state: State,
    /// Places of the clouds that have let go of it, once it has no rows any more.
    pub dropped: BTreeSet<u16>,
}

impl Layout {
    /// What codes it.
    ///
    /// # Errors
    /// [`Refusal`]: it cannot be kept as it was declared.
    pub fn coder(&self) -> Result<Coder, Refusal> {
        let placement = Placement::plan(&self.declaration)?;
        Ok(Coder::new(self.declaration.clone(), placement, self.secret.clone()))
    }

    /// Whether it is the same one: two that went on from one copy may each have laid rows anew.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.number == other.number && self.secret.expose() == other.secret.expose()
    }

    /// Whether it is over: all of its clouds have let go of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.dropped.len() == self.declaration.clouds.len()
    }

    /// The clouds that have not let go of it, by their names.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        let clouds = self.declaration.clouds.iter().zip(0_u16..);
        clouds.filter(|(_, at)| !self.dropped.contains(at)).map(|(name, _)| name.as_str())
    }

    /// Rows that are on their way, and lie nowhere yet.
    #[must_use]
    pub fn on_their_way(&self) -> Rows {
        self.state.untold.iter().fold(Rows::new(), |all, untold| all | &untold.lacks)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::fragments::{Data, Fragments};
    use crate::kept::Kept;
    use crate::keys::{Epoch, Secret};
    use crate::layout::Layout;
    use crate::placement::tests::people;
    use crate::plain::Plain;

    /// What the clouds of a layout hold of some rows.
    fn held(layout: &Layout) -> Vec<Fragments> {
        let coder = layout.coder().expect("a placement");
        let (rows, count) = ([0, 1, 5], 3);
        let numbers = || Plain::Numbers((0..count).map(|at| Some(i128::from(at))).collect());
        let strings = || {
            let mut values = crate::fragments::Strings::default();
            (0..count).for_each(|at| values.push(&[b'a', at as u8]));
            Plain::Strings { values, nulls: vec![false; count as usize] }
        };
        let columns = [numbers(), strings(), numbers(), strings()];
        let common = coder.common(&layout.state.epochs, &rows, &columns).expect("coded");
        let own = |cloud| coder.fragments(&layout.state.epochs, cloud, &rows, (&columns, &common)).expect("fragments");
        (0..3).map(own).collect()
    }

    /// Everything by which a row or a value of it could be known again.
    fn marks(fragments: &Fragments) -> BTreeSet<Vec<u8>> {
        let mut marks: BTreeSet<Vec<u8>> = fragments.places.iter().map(|place| place.to_be_bytes().to_vec()).collect();
        for (name, data) in &fragments.columns {
            marks.insert(name.as_str().as_bytes().to_vec());
            match data {
                Data::Shares(shares) => marks.extend(shares.iter().map(|share| share.to_be_bytes().to_vec())),
                Data::Strings(strings) => marks.extend(strings.iter().map(<[u8]>::to_vec)),
            }
        }
        marks
    }

    #[test]
    fn nothing_of_a_layout_is_found_again_in_the_next_one() {
        let mut kept = Kept::new(Secret::new([1; 32]), people(3, 1, 1), 0);
        kept.current_mut().state.epochs.begin(0, Epoch([1; 16]));
        kept.begin(Secret::new([2; 32]), people(3, 1, 1), Epoch([1; 16]));
        let [before, after] = kept.layouts() else { panic!("two layouts") };
        for (before, after) in held(before).iter().zip(held(after)) {
            assert_eq!(marks(before).intersection(&marks(&after)).count(), 0);
        }
        // In the same one everything is: what is put again is the same.
        assert_eq!(held(after), held(after));
    }
}
