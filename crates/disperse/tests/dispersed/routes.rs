//! Which clouds an owner asks for cells and sums: it follows from where they lie, and is public.

use counterfoil_disperse::{Coding, Declaration, Goal, Placement};

/// What one cloud is asked for.
pub type Route = (usize, Vec<(u16, Coding)>);

/// Where the fragments of a table lie.
pub struct Routes<'a> {
    pub declaration: &'a Declaration,
    pub placement: &'a Placement,
}

impl Routes<'_> {
    /// Who is asked for cells, and for which: one time after the other, at each time several clouds.
    pub fn asked_for_cells(&self, columns: &[u16], goal: Goal) -> Vec<Vec<Route>> {
        let mut times: Vec<(Vec<usize>, Vec<u16>)> = Vec::new();
        for column in columns {
            let is_whole = self.placement.fragment(*column, Coding::Cell).is_some();
            let holders = if is_whole { Vec::new() } else { self.placement.cell_holders(*column) };
            match times.iter_mut().find(|(own, _)| *own == holders) {
                Some((_, own)) => own.push(*column),
                None => times.push((holders, vec![*column])),
            }
        }
        times
            .into_iter()
            .map(|(holders, own)| match (holders.is_empty(), goal) {
                (true, Goal::Ordinary) => self.of_whole(own),
                (true, _) => self.of_all(&own),
                (false, _) => self.of_pieces(&holders, &own, goal),
            })
            .collect()
    }

    fn has_cells(&self, cloud: usize, column: u16) -> bool {
        self.placement.fragment(column, Coding::Cell).is_some_and(|of| of.holders.contains(&cloud))
    }

    /// Those who have the most of them, first ones first.
    fn of_whole(&self, mut columns: Vec<u16>) -> Vec<Route> {
        let mut asked = Vec::new();
        while !columns.is_empty() {
            let held = |cloud: usize| columns.iter().copied().filter(move |of| self.has_cells(cloud, *of));
            let most = (0..self.declaration.clouds.len()).map(|cloud| held(cloud).count()).max().expect("clouds");
            let cloud = (0..).find(|cloud| held(*cloud).count() == most).expect("one of them");
            let own: Vec<u16> = held(cloud).collect();
            columns.retain(|of| !own.contains(of));
            asked.push((cloud, own.into_iter().map(|of| (of, Coding::Cell)).collect()));
        }
        asked
    }

    /// All that have some.
    fn of_all(&self, columns: &[u16]) -> Vec<Route> {
        let own = |cloud: usize| columns.iter().copied().filter(move |of| self.has_cells(cloud, *of));
        let all =
            (0..self.declaration.clouds.len()).map(|cloud| (cloud, own(cloud).map(|of| (of, Coding::Cell)).collect()));
        all.filter(|(_, own): &Route| !own.is_empty()).collect()
    }

    /// As many as give cells back, or all.
    fn of_pieces(&self, holders: &[usize], columns: &[u16], goal: Goal) -> Vec<Route> {
        let column = self.declaration.column(columns[0]).expect("a column");
        let needed = self.declaration.pieces(column).expect("pieces").needed();
        let needed = if goal == Goal::Ordinary { needed } else { holders.len() };
        let own = |number: u8| columns.iter().map(|of| (*of, Coding::Piece(number))).collect();
        holders.iter().zip(0..).take(needed).map(|(cloud, number)| (*cloud, own(number))).collect()
    }

    /// What a cloud adds up of a column; none: it is not asked.
    pub fn added(&self, column: u16, cloud: usize, goal: Goal) -> Option<Vec<Coding>> {
        let holders = &self.placement.fragment(column, Coding::Share(0))?.holders;
        let asked = if goal == Goal::Ordinary { &holders[..self.declaration.may_fail + 1] } else { &holders[..] };
        let shares = self.placement.fragments.iter().filter(|of| of.column == column).map(|of| of.coding);
        let shares = shares.filter(|coding| matches!(coding, Coding::Share(_) | Coding::Present)).collect();
        asked.contains(&cloud).then_some(shares)
    }
}
