//! What a hostile mirror tries where values or groups are signed: versions mixed, values and digests exchanged, rows dropped.

use counterfoil_mirror::{Entry, MemoryShelf, SignedGroup, answer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Answer, Definition, End, FIRST_GROUP, FIRST_RID, Interval, Member, Members, Question, Refusal, Row, Scheme,
    Signature, SignatureSum, Value,
};
use counterfoil_publish::Edit;

use crate::world::{SCHEMES, World, definition, row};

/// Prices 0 to so many, of one symbol, a day apart.
fn filled(scheme: Scheme, rows: i64) -> World {
    let mut world = World::signing(scheme);
    world.insert((0..rows).map(|at| row("A", at, Some(at.into()), &format!("note {at}"))).collect());
    world.close();
    world.close();
    world
}

/// The record of the row that came as so manieth.
fn rid(at: u64) -> u64 {
    FIRST_RID + at
}

fn update(world: &mut World, at: u64, price: i128) {
    let update = vec![(rid(at), row("A", at as i64, Some(price), "another"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
}

fn entry(shelf: &MemoryShelf, rid: u64) -> &Entry {
    shelf.entry(rid).expect("an entry")
}

fn group_of(shelf: &MemoryShelf, rid: u64) -> &SignedGroup {
    shelf.groups.from(&[]).find(|group| group.holds(rid)).expect("a group")
}

fn rows_of(answer: &mut Answer) -> &mut Vec<Row> {
    &mut answer.runs[0].rows
}

/// A sum with one signature in the place of another one.
fn instead(world: &World, answer: &Answer, question: &Question, old: Signature, new: Signature) -> Signature {
    let mut sum = SignatureSum::default();
    let mut is_there = false;
    for signature in all_of(world.publication.shelf(), answer, question) {
        is_there |= signature == old;
        sum.add(if signature == old { &new } else { &signature });
    }
    assert!(is_there, "a signature that is not in the answer");
    sum.finish().expect("a sum")
}

/// The signatures of an answer PER ATTRIBUTE.
fn all_of(shelf: &MemoryShelf, answer: &Answer, question: &Question) -> Vec<Signature> {
    let mut all = Vec::new();
    for run in &answer.runs {
        for end in [&run.left, &run.right] {
            let End::Boundary(boundary) = end else { continue };
            all.extend(entry(shelf, boundary.stamp.rid).signature());
        }
        for row in &run.rows {
            let signed = &entry(shelf, row.stamp.rid).signed;
            all.push(signed[0].0);
            all.extend(question.columns().iter().map(|column| signed[1 + usize::from(*column)].0));
        }
    }
    all
}

#[test]
fn each_value_of_another_version() {
    let mut world = filled(Scheme::PerAttribute, 6);
    let question = world.all().hinted();
    let old = world.answer(&question);
    let before = world.publication.shelf().clone();
    update(&mut world, 3, 77);
    world.close();
    let honest = world.answer(&question);
    assert_eq!(world.check(&question, &honest).expect("honest").signatures, 2 + 6 * 5);
    assert!(matches!(world.check(&question, &old), Err(Refusal::Stale(_))));
    let signed = |shelf: &MemoryShelf, part: usize| entry(shelf, rid(3)).signed[part].0;
    for column in 0..4u16 {
        // The old value under its own signature, among the new ones of the same row; without hints, which tell of messages.
        let plain = world.all();
        let mut mixed = world.answer(&plain);
        let part = 1 + usize::from(column);
        let (was, is) = (signed(&before, part), signed(world.publication.shelf(), part));
        mixed.signature = instead(&world, &mixed, &plain, is, was);
        rows_of(&mut mixed)[3].values[usize::from(column)] = old.runs[0].rows[3].values[usize::from(column)].clone();
        let refused = world.check(&plain, &mixed).err();
        assert!(matches!(refused, Some(Refusal::Forged(_))), "column {column}: {refused:?}");
    }
    // The old place with the new values, and the whole row of before.
    let plain = world.all();
    let mut mixed = world.answer(&plain);
    mixed.signature = instead(&world, &mixed, &plain, signed(world.publication.shelf(), 0), signed(&before, 0));
    assert!(matches!(world.check(&plain, &mixed), Err(Refusal::Forged(_))));
    let mut mixed = world.answer(&plain);
    rows_of(&mut mixed)[3] = old.runs[0].rows[3].clone();
    assert!(matches!(world.check(&plain, &mixed), Err(Refusal::Stale(_))));
}

#[test]
fn values_exchanged_between_columns_and_rows() {
    let mut world = filled(Scheme::PerAttribute, 6);
    // By price, so that neither the symbol nor the note says where a row stands: the signatures stay all the same.
    let question = Question::new(world.publication.definition(), 1, vec![Interval::all()], &[0, 2, 3]);
    let question = question.expect("a question");
    let honest = world.answer(&question);
    assert!(world.check(&question, &honest).is_ok());
    let mut columns = honest.clone();
    rows_of(&mut columns)[2].values.swap(0, 2);
    assert!(matches!(world.check(&question, &columns), Err(Refusal::Forged(_))));
    let mut rows = honest.clone();
    let note = rows_of(&mut rows)[1].values[2].clone();
    rows_of(&mut rows)[1].values[2] = honest.runs[0].rows[4].values[2].clone();
    rows_of(&mut rows)[4].values[2] = note;
    assert!(matches!(world.check(&question, &rows), Err(Refusal::Forged(_))));
    // A value that nobody signed, and none at all.
    let mut other = honest;
    rows_of(&mut other)[0].values[2] = Value::Null;
    assert!(matches!(world.check(&question, &other), Err(Refusal::Forged(_))));
}

#[test]
fn what_is_not_asked_for_takes_no_byte_per_attribute() {
    let world = filled(Scheme::PerAttribute, 40);
    let bytes = |columns: &[u16]| {
        let question = Question::new(world.publication.definition(), 0, vec![Interval::all()], columns);
        let question = question.expect("a question");
        world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes").len()
    };
    // A price is 17 bytes, and a note of seven letters at most 10.
    assert_eq!(bytes(&[0, 1, 2]) - bytes(&[0, 1]), 40 * 17);
    assert!(bytes(&[0, 1, 3]) - bytes(&[0, 1]) <= 40 * 10);
}

#[test]
fn a_row_dropped_by_every_scheme() {
    for scheme in SCHEMES {
        let mut world = filled(scheme, 9);
        let question = world.all();
        let honest = world.answer(&question);
        assert!(world.check(&question, &honest).is_ok());
        for at in 0..9 {
            let mut answer = honest.clone();
            let gone = rows_of(&mut answer).remove(at).stamp.rid;
            let mut sum = SignatureSum::default();
            let shelf = world.publication.shelf();
            for rid in shelf.rids(0).filter(|rid| *rid != gone) {
                entry(shelf, rid).signed.iter().for_each(|(signature, _)| sum.add(signature));
            }
            // A group's signature stays, and its list says what the row's digest is.
            for group in &mut answer.groups {
                let kept = shelf.groups.of_number(group.stamp.rid).expect("a group");
                for (member, (rid, digest)) in group.list.iter_mut().zip(&kept.members) {
                    if *rid == gone {
                        *member = Member::Hidden(*digest);
                    }
                }
            }
            answer.groups.retain(|group| group.list.iter().any(|member| matches!(member, Member::Shown(_))));
            answer.groups.iter().for_each(|group| {
                sum.add(&shelf.groups.of_number(group.stamp.rid).expect("a group").signature);
            });
            answer.signature = sum.finish().expect("a sum");
            let refused = world.check(&question, &answer).err();
            assert!(matches!(refused, Some(Refusal::Forged(_))), "{scheme:?}, row {at}: {refused:?}");
        }
    }
}

/// An answer of which groups show a part.
fn partly_shown() -> (World, Question, Answer) {
    let world = filled(Scheme::Group(8), 30);
    let mut key = Vec::new();
    let definition = world.publication.definition();
    definition.columns[2].kind.encode(&Value::Numeric(10), &mut key).expect("a price");
    let interval = Interval::new(counterfoil_proof::Edge::before(&key)..counterfoil_proof::Edge::behind(&key));
    let question = Question::new(definition, 1, vec![interval.expect("an interval")], &[]).expect("a question");
    let answer = world.answer(&question);
    (world, question, answer)
}

#[test]
fn digests_of_groups_exchanged_left_out_and_added() {
    let (mut world, question, honest) = partly_shown();
    assert!(world.check(&question, &honest).is_ok());
    let is_hidden = |member: &Member| matches!(member, Member::Hidden(_));
    let at = honest.groups.iter().position(|group| group.list.iter().filter(|it| is_hidden(it)).count() > 1);
    let at = at.expect("a group with two hidden members");
    let hidden: Vec<usize> =
        (0..honest.groups[at].list.len()).filter(|it| is_hidden(&honest.groups[at].list[*it])).collect();
    let changed = |change: &dyn Fn(&mut Vec<Member>)| {
        let mut answer = honest.clone();
        change(&mut answer.groups[at].list);
        answer
    };
    for answer in [
        changed(&|list| list.swap(hidden[0], hidden[1])),
        changed(&|list| list.swap(hidden[0], (hidden[0] + 1) % 6)),
        changed(&|list| _ = list.remove(hidden[0])),
        changed(&|list| list.push(list[hidden[0]])),
        changed(&|list| list[hidden[0]] = Member::Hidden([7; 32])),
    ] {
        let refused = world.check(&question, &answer).err();
        assert!(matches!(refused, Some(Refusal::Forged(_))), "{refused:?}");
    }
}

#[test]
fn groups_that_are_none_of_an_answer() {
    let (mut world, question, honest) = partly_shown();
    let shelf = world.publication.shelf().clone();
    let shown = honest.runs[0].rows[0].stamp.rid;
    let own = honest.groups.iter().position(|group| group.list.contains(&Member::Shown(shown))).expect("its group");
    let mut malformed = |what: &str, change: &dyn Fn(&mut Answer)| {
        let mut answer = honest.clone();
        change(&mut answer);
        let refused = world.check(&question, &answer).err();
        assert!(matches!(refused, Some(Refusal::Malformed(_))), "{what}: {refused:?}");
    };
    let place = |answer: &mut Answer| {
        answer.groups[own].list.iter().position(|member| *member == Member::Shown(shown)).expect("the row")
    };
    malformed("a record without its group", &|answer| drop(answer.groups.remove(own)));
    malformed("a record hidden in its own group", &|answer| {
        let at = place(answer);
        answer.groups[own].list[at] = Member::Hidden(group_of(&shelf, shown).digests()[at]);
    });
    malformed("a record twice in a group", &|answer| answer.groups[own].list.push(Member::Shown(shown)));
    malformed("a record that is not there", &|answer| {
        let at = place(answer);
        answer.groups[own].list[at] = Member::Shown(shown + 1000);
    });
    malformed("a group twice", &|answer| answer.groups.push(answer.groups[own].clone()));
    malformed("too many records", &|answer| {
        let more = Member::Hidden([1; 32]);
        answer.groups[own].list.resize(9, more);
    });
    malformed("a group of which nothing is shown", &|answer| {
        let stamp = Stamp { rid: FIRST_GROUP + 1000, version: 1, period: 0 };
        answer.groups.push(Members { stamp, list: vec![Member::Hidden([1; 32])] });
    });
    malformed("a group of none", &|answer| {
        let stamp = Stamp { rid: FIRST_GROUP + 1000, version: 1, period: 0 };
        answer.groups.push(Members { stamp, list: Vec::new() });
    });
    // Another one's number, for which its signature was not made.
    let mut answer = honest.clone();
    answer.groups[own].stamp.version += 1;
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Forged(_))));
}

#[test]
fn groups_of_before_are_stale() {
    for scheme in [Scheme::Group(2), Scheme::Group(8)] {
        let mut world = filled(scheme, 30);
        let question = world.of_symbol("A", &[0, 1, 2]);
        let old = world.publication.shelf().clone();
        update(&mut world, 11, 500);
        // As of the last summary it is right.
        let of_before = answer(&mut old.clone(), &question).expect("an answer");
        assert!(world.check(&question, &of_before).is_ok());
        let first = world.publication.shelf().clone();
        update(&mut world, 11, 501);
        world.close();
        let mut refused = |shelf: &mut MemoryShelf, what: &str| {
            let made = answer(shelf, &question).expect("an answer");
            let refused = world.check(&question, &made).err();
            assert!(matches!(refused, Some(Refusal::Stale(_))), "{scheme:?}, {what}: {refused:?}");
        };
        refused(&mut old.clone(), "the table of before");
        refused(&mut first.clone(), "the first of two versions of a period");
        let now = world.publication.shelf().clone();
        // One group of before with its records, among those of now.
        let mut mixed = now.clone();
        let group = group_of(&old, rid(11)).clone();
        for (member, _) in &group.members {
            mixed.put(entry(&old, *member).clone()).expect("an entry");
        }
        mixed.groups.put(group);
        let made = answer(&mut mixed, &question).expect("an answer");
        assert!(matches!(world.check(&question, &made), Err(Refusal::Stale(_))));
        // The row of before in the group of now.
        let mut mixed = now.clone();
        mixed.put(entry(&old, rid(11)).clone()).expect("an entry");
        let made = answer(&mut mixed, &question).expect("an answer");
        assert!(matches!(world.check(&question, &made), Err(Refusal::Forged(_))));
    }
}

#[test]
fn a_group_that_was_cut_or_joined_away_counts_no_more() {
    let mut world = filled(Scheme::Group(8), 30);
    let mut question = world.all();
    let mut seen = Vec::new();
    let mut gone = 0;
    for round in 0..6 {
        seen.push(world.publication.shelf().clone());
        if round % 2 == 0 {
            world.insert((0..9).map(|at| row("A", 10, Some(1000 + at), "more")).collect());
        } else {
            let delete = world.publication.shelf().rids(0).filter(|rid| rid % 3 == 0 && *rid >= FIRST_RID).collect();
            world.publication.edit(Edit { delete, ..Edit::default() }).expect("an edit");
        }
        world.close();
        question = world.all();
        for shelf in &seen {
            let made = answer(&mut shelf.clone(), &question).expect("an answer");
            assert!(matches!(world.check(&question, &made), Err(Refusal::Stale(_))));
            let now = world.publication.shelf();
            gone += shelf.groups.from(&[]).filter(|old| now.groups.of_number(old.stamp.rid).is_none()).count();
        }
    }
    assert!(gone > 0);
    let honest = world.answer(&question);
    assert!(world.check(&question, &honest).is_ok());
}

/// An answer out of one group that is gone: no other signature in it could be the one that is too old.
#[test]
fn a_group_that_is_gone_shows_none_of_its_rows() {
    let mut world = World::signing(Scheme::Group(8));
    world.insert((0..30).map(|at| row(&format!("s{at:02}"), at, Some(1), "n")).collect());
    world.close();
    let old = world.publication.shelf().clone();
    let delete = old.rids(0).filter(|rid| *rid >= FIRST_RID).collect();
    world.publication.edit(Edit { delete, ..Edit::default() }).expect("an edit");
    world.close();
    let mut alone = 0;
    for at in 0..30 {
        let question = world.of_symbol(&format!("s{at:02}"), &[0, 1, 2]);
        let made = answer(&mut old.clone(), &question).expect("an answer");
        let first = group_of(&old, made.runs[0].rows[0].stamp.rid);
        let ends = [&made.runs[0].left, &made.runs[0].right];
        alone += usize::from(ends.iter().all(|end| matches!(end, End::Boundary(at) if first.holds(at.stamp.rid))));
        let told = world.check(&question, &made);
        assert!(matches!(told, Err(Refusal::Stale(_))), "{at}: {:?}", told.err());
    }
    assert!(alone > 0, "no answer is of one group alone");
}

#[test]
fn what_a_changed_row_costs() {
    let signed = |scheme, update: Vec<Value>| {
        let mut world = filled(scheme, 30);
        let update = vec![(rid(11), update)];
        world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit").signed
    };
    // What no order is by, and then the price: its neighbours by price are signed too, where it stood and where it stands.
    let note = |scheme| signed(scheme, row("A", 11, Some(11), "another"));
    let price = |scheme| signed(scheme, row("A", 11, Some(2050), "another"));
    assert_eq!((note(Scheme::PerRecord), price(Scheme::PerRecord)), (1, 5));
    assert_eq!((note(Scheme::PerAttribute), price(Scheme::PerAttribute)), (5, 4 * 5 + 1));
    // The neighbours stand beside it, in one group with it, and at the end; so does the tail, which is signed by itself.
    assert_eq!((note(Scheme::Group(16)), price(Scheme::Group(16))), (1, 3));
}

#[test]
fn definitions_of_schemes_come_back_and_others_are_refused() {
    for scheme in SCHEMES {
        let world = World::signing(scheme);
        assert_eq!(world.manifest().manifest().definition.scheme, scheme);
    }
    for rows_max in [0, 1, 65, 255] {
        let definition = Definition { scheme: Scheme::Group(rows_max), ..definition("prices") };
        assert!(definition.check().is_err(), "groups of {rows_max}");
    }
    // No two of them are one table.
    let digests = SCHEMES.map(|scheme| Definition { scheme, ..definition("prices") }.digest());
    assert!((1..4).all(|at| !digests[..at].contains(&digests[at])));
}

#[test]
fn a_group_may_be_the_oldest_signature_of_all_and_its_records_are_not() {
    let mut world = filled(Scheme::Group(8), 30);
    let mut shelf = world.publication.shelf().clone();
    for end in 0..4 {
        let mut entry = entry(&shelf, end).clone();
        entry.stamp.period = 1;
        shelf.put(entry).expect("its place");
    }
    assert_eq!(shelf.oldest(), 0, "the groups are of the first period");
    // Renewed, groups stand for records that changed longer ago.
    let renewed = world.publication.renew_before(u64::MAX, 1000).expect("signatures");
    assert_eq!(renewed.signed as usize, 4 + world.publication.shelf().groups.from(&[]).count());
    world.close();
    assert_eq!((world.publication.shelf().oldest(), world.publication.oldest_period()), (2, 2));
    let question = world.all();
    let honest = world.answer(&question);
    assert_eq!(world.check(&question, &honest).expect("honest").rows.len(), 30);
}
