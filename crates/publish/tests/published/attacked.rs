//! A hostile mirror: whatever it does to an answer, the reader refuses it, and says why.

use counterfoil_mirror::{Entry, MemoryShelf};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{
    Answer, Chain, Direction, End, FIRST_RID, Interval, Question, Refusal, Scheme, SignatureSum, Trust,
    TrustedManifest, Value, check,
};
use counterfoil_publish::Edit;

use crate::world::{SCHEMES, World, definition, row};

fn filled() -> World {
    signing(Scheme::PerRecord)
}

fn signing(scheme: Scheme) -> World {
    let mut world = World::signing(scheme);
    let equal = (0..3).map(|at| row("B", 1, Some(at), "equal keys"));
    world.insert([row("A", 1, Some(5), "first")].into_iter().chain(equal).chain([row("C", 9, None, "last")]).collect());
    world.close();
    world.close();
    world
}

/// The signature that an attacker can make: the sum of those of some records.
fn sum(shelf: &MemoryShelf, rids: &[u64]) -> counterfoil_proof::Signature {
    let mut sum = SignatureSum::default();
    rids.iter().for_each(|rid| sum.add(&shelf.entry(*rid).and_then(Entry::signature).expect("an entry")));
    sum.finish().expect("a sum")
}

#[test]
fn rows_dropped_changed_doubled_and_moved() {
    let mut world = filled();
    let question = world.all();
    let honest = world.answer(&question);
    let all: Vec<u64> = world.publication.shelf().rids(0).collect();
    assert_eq!(world.check(&question, &honest).expect("honest").signatures, all.len());
    for at in 0..honest.runs[0].rows.len() {
        // One row goes, and its signature with it: the middle one of three equal keys too.
        let mut answer = honest.clone();
        let gone = answer.runs[0].rows.remove(at).stamp.rid;
        let rest: Vec<u64> = all.iter().copied().filter(|rid| *rid != gone).collect();
        answer.signature = sum(world.publication.shelf(), &rest);
        assert!(matches!(world.check(&question, &answer), Err(Refusal::Forged(_))), "row {at} dropped");
    }
    let mut answer = honest.clone();
    answer.runs[0].rows[1].values[3] = Value::Text("another".into());
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Forged(_))));
    let mut answer = honest.clone();
    let twice = answer.runs[0].rows[1].clone();
    answer.runs[0].rows.insert(1, twice);
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Malformed(_))), "a row twice");
    let mut answer = honest.clone();
    answer.runs[0].rows.swap(1, 2);
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Malformed(_))), "rows in another order");
    let mut answer = honest;
    answer.runs[0].rows[0].stamp.version += 1;
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Forged(_))), "another version");
}

#[test]
fn ends_of_intervals() {
    let mut world = filled();
    let whole = world.all();
    let narrow = world.of_symbol("B", &[0, 1, 2, 3]);
    let mut answer = world.answer(&narrow);
    // The answer to a narrow question for a wide one.
    answer.question = whole.digest();
    assert!(matches!(world.check(&whole, &answer), Err(Refusal::Incomplete(_))));
    answer.question = narrow.digest();
    assert!(world.check(&narrow, &answer).is_ok());
    let mut other = answer.clone();
    other.question = whole.digest();
    assert_eq!(world.check(&narrow, &other).err(), Some(Refusal::OtherQuestion));
    // A row of its own as the boundary behind it.
    let mut short = answer.clone();
    short.runs[0].rows.pop();
    short.runs[0].right = End::Cut(answer_position(&world, &answer));
    assert!(matches!(world.check(&narrow, &short), Err(Refusal::Incomplete(_))), "cut without a limit");
    answer.runs.clear();
    assert!(matches!(world.check(&narrow, &answer), Err(Refusal::Malformed(_))), "no run at all");
}

fn answer_position(world: &World, answer: &Answer) -> counterfoil_proof::Position {
    let last = answer.runs[0].rows.last().expect("a row");
    world
        .publication
        .shelf()
        .entry(last.stamp.rid)
        .expect("an entry")
        .position(world.publication.definition(), 0)
        .expect("a position")
}

#[test]
fn limits_and_directions() {
    let mut world = filled();
    let two = world.all().limited(2, Direction::Ascending).expect("a limit");
    let last_two = world.all().limited(2, Direction::Descending).expect("a limit");
    let mut answer = world.answer(&last_two);
    assert!(world.check(&last_two, &answer).expect("honest").is_cut);
    // The last two rows as if they were the first two.
    answer.question = two.digest();
    assert!(matches!(world.check(&two, &answer), Err(Refusal::Incomplete(_))));
    // Fewer rows than the limit, and the next one told.
    let one = world.all().limited(1, Direction::Ascending).expect("a limit");
    let mut answer = world.answer(&one);
    answer.question = two.digest();
    assert!(matches!(world.check(&two, &answer), Err(Refusal::Incomplete(_))));
}

#[test]
fn rows_of_before_a_change() {
    SCHEMES.into_iter().for_each(rows_of_before);
}

fn rows_of_before(scheme: Scheme) {
    let mut world = signing(scheme);
    let question = world.of_symbol("B", &[0, 2]);
    let old = world.answer(&question);
    let rid = old.runs[0].rows[1].stamp.rid;
    let update = vec![(rid, row("B", 1, Some(77), "new"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    // Within the open period the old row is as of the last summary: that is what the verdict says.
    assert!(world.check(&question, &old).is_ok());
    world.close();
    assert!(matches!(world.check(&question, &old), Err(Refusal::Stale(_))));
    // An insert hidden behind old neighbours, a deletion undone, and twice changed in one period.
    let old = world.answer(&question);
    world.insert(vec![row("B", 1, Some(1), "new")]);
    world.close();
    assert!(matches!(world.check(&question, &old), Err(Refusal::Stale(_))), "an insert was hidden");
    let old = world.answer(&question);
    world.publication.edit(Edit { delete: vec![rid], ..Edit::default() }).expect("an edit");
    world.close();
    assert!(matches!(world.check(&question, &old), Err(Refusal::Stale(_))), "a deletion was undone");
    world.insert(vec![row("B", 1, Some(2), "in the open period")]);
    let first = world.answer(&question);
    world.insert(vec![row("B", 1, Some(3), "in the same period")]);
    world.close();
    assert!(matches!(world.check(&question, &first), Err(Refusal::Stale(_))), "the first of two versions of a period");
    let now = world.answer(&question);
    assert!(world.check(&question, &now).is_ok());
}

#[test]
fn one_row_of_each_of_two_moments() {
    let mut world = filled();
    let question = world.of_symbol("B", &[0, 2]);
    let old = world.answer(&question);
    let rid = old.runs[0].rows[0].stamp.rid;
    let update = vec![(rid, row("B", 1, Some(77), "new"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    world.close();
    let mut mixed = world.answer(&question);
    let old_rows = &old.runs[0].rows;
    let at = mixed.runs[0].rows.iter().position(|row| row.stamp.rid == rid).expect("the row");
    let from = old_rows.iter().position(|row| row.stamp.rid == rid).expect("the row");
    mixed.runs[0].rows[at] = old_rows[from].clone();
    assert!(matches!(world.check(&question, &mixed), Err(Refusal::Stale(_))));
}

#[test]
fn an_empty_table_and_empty_intervals() {
    SCHEMES.into_iter().for_each(an_empty_table);
}

fn an_empty_table(scheme: Scheme) {
    let mut world = World::signing(scheme);
    world.close();
    let question = world.all();
    let answer = world.answer(&question);
    assert!(world.check(&question, &answer).expect("honest").rows.is_empty());
    world.insert(vec![row("A", 1, None, "x")]);
    world.close();
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Stale(_))), "the table is not empty any more");
    let nothing = world.of_symbol("Z", &[0]);
    let answer = world.answer(&nothing);
    assert!(world.check(&nothing, &answer).expect("honest").rows.is_empty());
}

#[test]
fn summaries_missing_swapped_and_of_others() {
    let mut world = filled();
    let question = world.all();
    let answer = world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes");
    let manifest = world.manifest();
    let summaries = world.publication.summaries().expect("summaries");
    let parts: Vec<&[u8]> = summaries.iter().map(Vec::as_slice).collect();
    let refused = |parts: &[&[u8]]| Chain::check(&manifest, parts.iter().copied()).err();
    assert!(matches!(refused(&[parts[1], parts[0]]), Some(Refusal::Incomplete(_))));
    assert!(matches!(refused(&[]), Some(Refusal::Malformed(_))));
    let mut damaged = parts[0].to_vec();
    damaged[40] ^= 1;
    assert!(refused(&[&damaged, parts[1]]).is_some());
    // Without the summary of the rows' own period nothing says which version of it was the last.
    let late = Chain::check(&manifest, [parts[1]]).expect("a chain");
    let trust = |chain, now| Trust { manifest: &manifest, chain, now, clock_error: 5, max_age: 100 };
    assert!(matches!(check(&trust(&late, world.now), &question, &answer), Err(Refusal::Incomplete(_))));
    let chain = Chain::check(&manifest, parts.iter().copied()).expect("a chain");
    assert!(check(&trust(&chain, world.now), &question, &answer).is_ok());
    assert!(matches!(check(&trust(&chain, world.now + 200), &question, &answer), Err(Refusal::Stale(_))));
    assert!(
        matches!(check(&trust(&chain, world.now - 200), &question, &answer), Err(Refusal::Clock(_))),
        "a clock set back"
    );
    // Another owner's summaries, and another table's of the same owner.
    let mut stranger = World::of(definition("prices"), [6; 96]);
    stranger.close();
    let foreign = stranger.publication.summaries().expect("summaries");
    assert!(matches!(refused(&[&foreign[0]]), Some(Refusal::Forged(_))));
    let mut other = World::of(definition("others"), [5; 96]);
    other.close();
    let foreign = other.publication.summaries().expect("summaries");
    assert!(matches!(refused(&[&foreign[0]]), Some(Refusal::Forged(_))));
    assert!(matches!(
        TrustedManifest::check(stranger.publication.manifest(), &world.owner, 0),
        Err(Refusal::Forged(_))
    ));
    assert!(matches!(TrustedManifest::check(world.publication.manifest(), &world.owner, 2), Err(Refusal::Stale(_))));
}

#[test]
fn any_byte_changed_is_refused_or_changes_nothing() {
    SCHEMES.into_iter().for_each(any_byte_changed);
}

fn any_byte_changed(scheme: Scheme) {
    let mut world = signing(scheme);
    let question = world.of_symbol("B", &[0, 2]).hinted();
    let honest = world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes");
    let (manifest, chain) = (world.manifest(), world.chain());
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    let rows = check(&trust, &question, &honest).expect("honest").rows;
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    for at in 0..honest.len() {
        for bit in 0..8 {
            if full || bit == at % 8 {
                let mut bytes = honest.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(verified) = check(&trust, &question, &bytes) {
                    assert!(verified.rows == rows, "{scheme:?}: byte {at}, bit {bit}");
                }
            }
        }
        assert!(check(&trust, &question, &honest[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_head_is_no_record_and_a_record_no_head() {
    let mut world = filled();
    let question = Question::new(world.publication.definition(), 1, vec![Interval::all()], &[2]).expect("a question");
    let mut answer = world.answer(&question);
    assert!(world.check(&question, &answer).is_ok());
    let End::Boundary(head) = &mut answer.runs[0].left else { panic!("a head") };
    head.stamp.rid = FIRST_RID;
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Malformed(_))));
    // The head of another order.
    let End::Boundary(head) = &mut answer.runs[0].left else { panic!("a head") };
    head.stamp.rid = 0;
    assert!(matches!(world.check(&question, &answer), Err(Refusal::Malformed(_))));
}

#[test]
fn summaries_are_not_unfolded_before_they_are_known_to_be_the_owners() {
    let mut world = filled();
    let manifest = world.manifest();
    let served = world.publication.summaries().expect("summaries");
    // The head of an honest one, and behind it a set that makes no sense: an attacker's would be a bit for each of a
    // hundred million records.
    let mut reader = Reader::new(&served[0], "a summary");
    let body = reader.string().expect("a body");
    let signature = reader.raw(48).expect("a signature");
    let mut forged = Writer::default();
    forged.string(&[&body[..body.len() - 8], &[0xff; 64]].concat()).raw(signature);
    let refused = Chain::check(&manifest, [&forged.0[..]]).err();
    assert!(matches!(refused, Some(Refusal::Forged(_))), "{refused:?}");
}

#[test]
fn a_chain_counts_under_the_manifest_that_it_was_checked_under() {
    let mut world = filled();
    let question = world.all();
    let answer = world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes");
    let (manifest, mut chain) = (world.manifest(), world.chain());
    // Another owner of the same table, as a manifest with other keys would be.
    let other = World::of(definition("prices"), [6; 96]).manifest();
    let trust = |manifest| Trust { manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    assert!(check(&trust(&manifest), &question, &answer).is_ok());
    assert!(matches!(check(&trust(&other), &question, &answer), Err(Refusal::NotProvable(_))));
    let late = Trust { now: 1 << 50, ..trust(&manifest) };
    assert!(matches!(check(&late, &question, &answer), Err(Refusal::Stale(_))), "the key has expired");
    assert!(matches!(chain.extend(&other, []), Err(Refusal::NotProvable(_))));
}

#[test]
fn a_chain_goes_on_and_a_refused_summary_leaves_it_as_it_was() {
    let mut world = filled();
    let (manifest, mut chain) = (world.manifest(), world.chain());
    world.insert(vec![row("D", 1, None, "new")]);
    world.close();
    world.close();
    let served = world.publication.summaries().expect("summaries");
    let (last, head) = (chain.last(), *chain.head());
    assert!(matches!(chain.extend(&manifest, [&served[3][..]]), Err(Refusal::Incomplete(_))));
    let mut damaged = served[3].clone();
    *damaged.last_mut().expect("bytes") ^= 1;
    assert!(chain.extend(&manifest, [&served[2][..], &damaged]).is_err());
    assert_eq!((chain.last(), *chain.head()), (last, head));
    chain.extend(&manifest, [&served[2][..], &served[3]]).expect("the next two");
    assert_eq!((chain.last(), *chain.head()), (3, *world.chain().head()));
}
