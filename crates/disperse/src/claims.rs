//! Which of several clients tells clouds of a table: leases, for which no cloud is believed about time.
//!
//! ```text
//! claim    an entry of the catalogue (catalogue.rs): table | client | version | so many seconds it may stand still
//! 1  whoever is to change a table puts a claim at every cloud that answers, of the version of the table that he knows
//! 2  then he looks at all of them                    a later version is there: he takes his claim back, and learns it first
//!                                                    somebody else's claim is there: he takes his own back, and waits
//! 3  otherwise he has the lease: he tells clouds, the next version of the catalogue last, and takes his claim back
//! ```
//! - Of two who claim at once one looks after both have put theirs, at every cloud that both reach. It may be that both see the other's:
//!   then none has the lease, and they try again after times of chance.
//! - A claim is over as soon as a cloud shows a later version, so nothing counts that a cloud shows again from before. (That somebody knows of
//!   a later one does not end it: he may have taken it for himself.)
//! - One that stands still for as long as it says, by the clock of whoever waits, is over, too: its client was cut. He himself counts half
//!   of that, from before he put it, and claims anew then. Whoever takes over from him goes on so far above ([`above`]) that what he tells
//!   nevertheless, who was only slow, is no later version; he learns of the other one with his next claim.
//! - Whoever has the lease and claims anew, for a longer time or for other clouds, may meet claims of others that are in vain, as his first one
//!   stands ([`beside_standing`]): to give way to them would leave what he has committed untold.
//! - Where two reach no cloud in common both have leases, and whoever sees the one's version may go on from there while the other holds
//!   his. What each client has told is in what he tells (`Kept::writers`): that they have gone apart is seen by whoever sees both, and
//!   nothing of either is taken for the other's past.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Of a client: drawn once, for as long as its database is not put back.
pub type Client = [u8; 16];

/// A client's claim to be the one who tells clouds of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whose it is.
    pub client: Client,
    /// The version that he knows.
    pub version: u64,
    /// How many seconds it may stand still.
    pub still: u32,
}

/// So many versions above whoever took over goes on.
const AHEAD: u64 = 1 << 10;

impl Claim {
    /// How long whoever waits looks at it before it is over.
    #[must_use]
    pub fn outlives(&self) -> Duration {
        Duration::from_secs(self.still.into())
    }

    /// How long its client counts on it, from before it was put.
    #[must_use]
    pub fn holds(&self) -> Duration {
        self.outlives() / 2
    }
}

/// Of claims by their places, those that keep a client waiting: of others, and not over with the latest version that clouds show.
#[must_use]
pub fn rivals(claims: &BTreeMap<u64, Claim>, own: &Client, version: u64) -> BTreeMap<u64, Claim> {
    let rivals = claims.iter().filter(|(_, claim)| claim.client != *own && claim.version >= version);
    rivals.map(|(place, claim)| (*place, *claim)).collect()
}

/// Of the claims at a cloud where one of this version stands, of whoever looks: those that are not in vain. Whoever claims behind it sees it and
/// gives way, but for one who took over from it, and goes on above.
#[must_use]
pub fn beside_standing(mut rivals: BTreeMap<u64, Claim>, version: u64) -> BTreeMap<u64, Claim> {
    rivals.retain(|_, claim| claim.version > version);
    rivals
}

/// The version from which on whoever takes over from these goes on, who knew this one: one that none of them tells, nor whoever took over
/// from them and was cut himself.
#[must_use]
pub fn above(rivals: &BTreeMap<u64, Claim>, version: u64) -> u64 {
    let versions = rivals.values().map(|claim| claim.version);
    versions.max().unwrap_or(0).max(version) + AHEAD
}

#[cfg(test)]
mod tests {
    //! All orders in which two clients and their clouds may do what they do, of which one may be cut or slow at any moment.

    use std::collections::{BTreeMap, HashSet};

    use super::{Claim, above, beside_standing, rivals};

    const CLOUDS: usize = 2;
    const CLIENTS: usize = 2;
    /// What a client does at most.
    const TRIES: u8 = 3;

    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct Cloud {
        claims: Vec<(u64, u64, u8)>,
        /// Of the newest catalogue: its version, and whose it is.
        newest: (u64, u8),
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    enum At {
        /// Puts claims at clouds from this one on.
        Puts(usize),
        /// Looks at clouds from this one on; the latest version seen, and whether somebody else's claim was.
        Looks(usize, u64, bool),
        /// Has the lease: rows come and go.
        Holds,
        /// Claims anew, at clouds from this one on, and looks there: whether somebody else's claim was met.
        Again(usize, bool),
        /// Tells clouds the next version from this one on: others may go on from there as soon as one cloud shows it.
        Tells(usize),
        /// Takes its claim back from clouds from this one on.
        Leaves(usize),
        Done,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    struct Client {
        at: At,
        /// The version that it knows, and that it tells.
        known: u64,
        place: u64,
        /// Where it claimed anew, and whether it counts on the claim before no longer.
        again: Option<u64>,
        first_has_lapsed: bool,
        tries: u8,
        /// Whether it counts on its claim no longer, and others may see that it stands still.
        has_lapsed: bool,
        /// Claims that stood still, a bit for each place.
        over: u32,
        /// Whether it lost its lease while it counted on it.
        is_out: bool,
    }

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        clouds: [Cloud; CLOUDS],
        clients: [Client; CLIENTS],
        next_place: u64,
    }

    /// What is left out of the protocol, to be noticed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        None,
        ClaimsNothing,
        OverlooksClaims,
        TakesOverInPlace,
        GoesOnWithWhatItKnew,
        GivesWayToClaimsInVain,
    }

    impl Client {
        /// Whether one of its claims may be seen to stand still.
        fn stands_still(&self, place: u64) -> bool {
            self.has_lapsed || (self.again.is_some() && place == self.place && self.first_has_lapsed)
        }
    }

    impl World {
        fn new() -> Self {
            let client = |place| Client {
                at: At::Puts(0),
                known: 0,
                place,
                again: None,
                first_has_lapsed: false,
                tries: 0,
                has_lapsed: false,
                over: 0,
                is_out: false,
            };
            Self { clouds: Default::default(), clients: [client(1), client(2)], next_place: 3 }
        }

        fn claims(cloud: &Cloud) -> BTreeMap<u64, Claim> {
            let claim = |(place, version, client): &(u64, u64, u8)| {
                (*place, Claim { client: [*client; 16], version: *version, still: 30 })
            };
            cloud.claims.iter().map(claim).collect()
        }

        /// What a client's next step may lead to: the second cloud may not answer it, if that `may_fail`.
        fn steps(&self, me: usize, fault: Fault) -> Vec<Self> {
            let own = [me as u8; 16];
            let mut next = Vec::new();
            let mut push = |change: &dyn Fn(&mut World)| {
                let mut world = self.clone();
                change(&mut world);
                next.push(world);
            };
            let client = &self.clients[me];
            match client.at {
                At::Puts(cloud) if cloud < CLOUDS => {
                    push(&|world| {
                        let Client { known, place, .. } = world.clients[me];
                        if fault != Fault::ClaimsNothing {
                            world.clouds[cloud].claims.push((place, known, me as u8));
                        }
                        world.clients[me].at = At::Puts(cloud + 1);
                    });
                    if cloud > 0 {
                        push(&|world| world.clients[me].at = At::Puts(cloud + 1));
                    }
                }
                At::Puts(_) => push(&|world| world.clients[me].at = At::Looks(0, 0, false)),
                At::Looks(cloud, seen, is_met) if cloud < CLOUDS => {
                    let there = &self.clouds[cloud];
                    let mut met = rivals(&Self::claims(there), &own, seen.max(there.newest.0));
                    met.retain(|place, _| client.over & 1 << place == 0);
                    // Of a client that was cut or is slow it is seen sooner or later that its claim stands still.
                    let mut takes_over = vec![false];
                    let stands_still = |(place, claim): (&u64, &Claim)| {
                        self.clients[usize::from(claim.client[0])].stands_still(*place)
                    };
                    if !met.is_empty() && met.iter().all(stands_still) {
                        takes_over.push(true);
                    }
                    for over in takes_over {
                        push(&|world| {
                            let own = &mut world.clients[me];
                            let is_met = is_met || !(met.is_empty() || fault == Fault::OverlooksClaims);
                            own.at = if over {
                                At::Leaves(0)
                            } else {
                                At::Looks(cloud + 1, seen.max(there.newest.0), is_met)
                            };
                            if over {
                                met.keys().for_each(|place| own.over |= 1 << place);
                                own.known =
                                    if fault == Fault::TakesOverInPlace { own.known } else { above(&met, own.known) };
                            }
                        });
                    }
                    if cloud > 0 {
                        push(&|world| world.clients[me].at = At::Looks(cloud + 1, seen, is_met));
                    }
                }
                At::Looks(_, seen, is_met) => push(&|world| {
                    let is_behind = seen > client.known && fault != Fault::GoesOnWithWhatItKnew;
                    let own = &mut world.clients[me];
                    own.known = own.known.max(if is_behind { seen } else { 0 });
                    let has_it = !(is_behind || is_met || own.has_lapsed);
                    own.at = if has_it { At::Holds } else { At::Leaves(0) };
                }),
                At::Holds => {
                    push(&|world| world.clients[me].at = At::Tells(0));
                    // The two are alike: that one of them does is enough.
                    if me == 0 && client.again.is_none() && client.tries == 0 {
                        push(&|world| {
                            let own = &mut world.clients[me];
                            own.again = Some(world.next_place);
                            (own.first_has_lapsed, own.has_lapsed) = (own.has_lapsed, false);
                            own.at = At::Again(0, false);
                            world.next_place += 1;
                        });
                    }
                }
                At::Again(cloud, is_met) if cloud < CLOUDS => {
                    push(&|world| {
                        let Client { known, again, .. } = world.clients[me];
                        let there = &mut world.clouds[cloud];
                        there.claims.push((again.expect("a place"), known, me as u8));
                        let stands = there.claims.iter().any(|claim| claim.0 == client.place);
                        let mut met = rivals(&Self::claims(there), &own, there.newest.0);
                        met.retain(|place, _| client.over & 1 << place == 0);
                        if stands && fault != Fault::GivesWayToClaimsInVain {
                            met = beside_standing(met, known);
                        }
                        let is_met = is_met || !met.is_empty() || there.newest.0 > known;
                        let own = &mut world.clients[me];
                        own.is_out |= stands && is_met && !own.stands_still(own.place);
                        own.at = At::Again(cloud + 1, is_met);
                    });
                    if cloud > 0 {
                        push(&|world| world.clients[me].at = At::Again(cloud + 1, is_met));
                    }
                }
                At::Again(_, is_met) => push(&|world| {
                    let own = &mut world.clients[me];
                    own.at = if is_met || own.has_lapsed { At::Leaves(0) } else { At::Holds };
                }),
                At::Tells(cloud) if cloud < CLOUDS => push(&|world| {
                    let told = (world.clients[me].known + 1, me as u8);
                    let there = &mut world.clouds[cloud].newest;
                    // What it tells is told; whoever looks takes the later version.
                    *there = (*there).max(told);
                    world.clients[me].at = At::Tells(cloud + 1);
                }),
                At::Tells(_) => push(&|world| {
                    let own = &mut world.clients[me];
                    own.known += 1;
                    own.tries = TRIES;
                    own.at = At::Leaves(0);
                }),
                At::Leaves(cloud) if cloud < CLOUDS => push(&|world| {
                    let Client { place, again, .. } = world.clients[me];
                    world.clouds[cloud].claims.retain(|claim| claim.0 != place && Some(claim.0) != again);
                    world.clients[me].at = At::Leaves(cloud + 1);
                }),
                At::Leaves(_) => push(&|world| {
                    let place = world.next_place;
                    world.next_place += 1;
                    let own = &mut world.clients[me];
                    own.tries += 1;
                    own.place = place;
                    (own.again, own.first_has_lapsed) = (None, false);
                    own.has_lapsed = false;
                    own.at = if own.tries >= TRIES { At::Done } else { At::Puts(0) };
                }),
                At::Done => {}
            }
            // Its time is over before others see that it is: it tells nothing from then on but what is under way.
            if !client.has_lapsed && !matches!(client.at, At::Leaves(_) | At::Done) {
                push(&|world| {
                    let own = &mut world.clients[me];
                    match own.again.is_some() && !own.first_has_lapsed {
                        true => own.first_has_lapsed = true,
                        false => own.has_lapsed = true,
                    }
                });
            }
            next
        }

        /// Whether two hold it at once who both count on it, or one has lost it who does, or somebody's version is taken for somebody else's.
        fn is_broken(&self) -> bool {
            let counts = |client: &&Client| client.at == At::Holds && !client.has_lapsed;
            let both = self.clients.iter().filter(counts).count() > 1;
            let is_out = self.clients.iter().any(|client| client.is_out);
            let [one, other] = &self.clouds;
            both || is_out || (one.newest.0 == other.newest.0 && one.newest.1 != other.newest.1)
        }
    }

    /// Whether there is an order in which it breaks, and how many states there are.
    fn breaks(fault: Fault) -> (bool, usize) {
        let (mut seen, mut left) = (HashSet::from([World::new()]), vec![World::new()]);
        while let Some(world) = left.pop() {
            if world.is_broken() {
                return (true, seen.len());
            }
            for next in (0..CLIENTS).flat_map(|me| world.steps(me, fault)) {
                if seen.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        (false, seen.len())
    }

    #[test]
    fn one_client_tells_clouds_at_a_time_in_every_order() {
        let (is_broken, states) = breaks(Fault::None);
        assert!(!is_broken && states > 1_000_000, "{states} states");
    }

    #[test]
    fn every_part_of_the_protocol_is_wanted() {
        for fault in [
            Fault::ClaimsNothing,
            Fault::OverlooksClaims,
            Fault::TakesOverInPlace,
            Fault::GoesOnWithWhatItKnew,
            Fault::GivesWayToClaimsInVain,
        ] {
            assert!(breaks(fault).0, "{fault:?}");
        }
    }
}
