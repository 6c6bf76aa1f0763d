//! What answers are made of.

use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Boundary, Filter, Mark, Members, Row, Tile};

pub enum Part<'a> {
    Row(&'a mut Row),
    Boundary(&'a mut Boundary),
    Mark(&'a mut Mark),
    Tile(&'a mut Tile),
    Filter(&'a mut (Stamp, Filter)),
    Group(&'a mut Members),
}

impl<'a> Part<'a> {
    pub fn into_stamp(self) -> &'a mut Stamp {
        match self {
            Self::Row(row) => &mut row.stamp,
            Self::Boundary(boundary) => &mut boundary.stamp,
            Self::Mark(mark) => &mut mark.stamp,
            Self::Tile(tile) => &mut tile.stamp,
            Self::Filter((stamp, _)) => stamp,
            Self::Group(group) => &mut group.stamp,
        }
    }

    pub fn stamp(&self) -> &Stamp {
        match self {
            Self::Row(row) => &row.stamp,
            Self::Boundary(boundary) => &boundary.stamp,
            Self::Mark(mark) => &mark.stamp,
            Self::Tile(tile) => &tile.stamp,
            Self::Filter((stamp, _)) => stamp,
            Self::Group(group) => &group.stamp,
        }
    }

    pub fn number(&self) -> u64 {
        self.stamp().rid
    }

    /// Whether it is a record, which in groups has no signature of its own.
    pub fn is_record(&self) -> bool {
        match self {
            Self::Row(_) => true,
            Self::Boundary(boundary) => boundary.position.key().is_some(),
            Self::Mark(mark) => mark.position.key().is_some(),
            _ => false,
        }
    }

    /// Becomes what the other one is, where that is of the same kind and can stand in its place; whether it is another one then.
    pub fn become_like(&mut self, other: &Part<'_>) -> bool {
        self.fits(other) && !self.is_like(other) && {
            match (self, other) {
                (Self::Row(own), Part::Row(other)) => **own = (**other).clone(),
                (Self::Boundary(own), Part::Boundary(other)) => **own = (**other).clone(),
                (Self::Mark(own), Part::Mark(other)) => **own = (**other).clone(),
                (Self::Tile(own), Part::Tile(other)) => **own = (**other).clone(),
                (Self::Filter(own), Part::Filter(other)) => **own = (**other).clone(),
                _ => unreachable!("it fits"),
            }
            true
        }
    }

    /// Whether the other one is of the same kind and can stand in its place.
    pub fn fits(&self, other: &Part<'_>) -> bool {
        match (self, other) {
            (Self::Row(_), Part::Row(_)) => true,
            (Self::Boundary(own), Part::Boundary(other)) => own.position == other.position,
            (Self::Mark(own), Part::Mark(other)) => own.position == other.position,
            (Self::Tile(own), Part::Tile(other)) => own.end == other.end,
            (Self::Filter(own), Part::Filter(other)) => (own.1.low(), own.1.high()) == (other.1.low(), other.1.high()),
            _ => false,
        }
    }

    fn is_like(&self, other: &Part<'_>) -> bool {
        match (self, other) {
            (Self::Row(own), Part::Row(other)) => own == other,
            (Self::Boundary(own), Part::Boundary(other)) => own == other,
            (Self::Mark(own), Part::Mark(other)) => own == other,
            (Self::Tile(own), Part::Tile(other)) => own == other,
            (Self::Filter(own), Part::Filter(other)) => own == other,
            _ => false,
        }
    }
}
