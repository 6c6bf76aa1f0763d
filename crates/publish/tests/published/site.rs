//! A folder of files as a mirror.

use counterfoil_mirror::site::{Folder, Site, write};
use counterfoil_mirror::{Shelf as _, answer};
use counterfoil_proof::{Chain, Question, Refusal, Trust, TrustedManifest, Verified, check};
use counterfoil_publish::Edit;

use crate::world::{World, expected, row};

fn publish(world: &mut World, folder: &std::path::Path) -> (u64, u64) {
    let summaries = world.publication.summaries().expect("summaries");
    write(world.publication.shelf(), world.publication.manifest(), &summaries, folder).expect("a site")
}

fn ask(world: &World, folder: &std::path::Path, question: &Question) -> Result<Verified, Refusal> {
    let (mut site, manifest) = Site::open(Folder(folder.to_path_buf())).expect("a site");
    let manifest = TrustedManifest::check(&manifest, &world.owner, 0)?;
    site.define(manifest.manifest().definition.clone());
    let summaries = site.summaries(0).expect("summaries");
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    let answer = answer(&mut site, question).expect("an answer");
    let bytes = answer.to_bytes(site.definition(), question).expect("bytes");
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    check(&trust, question, &bytes)
}

#[test]
fn a_folder_answers_like_the_owner_and_changes_little_at_an_update() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new();
    world.insert((0..2000).map(|at| row(["A", "B", "C"][at % 3], at as i64 / 3, Some(at as i128), "a note")).collect());
    world.close();
    let (files, bytes) = publish(&mut world, folder.path());
    for question in [world.of_symbol("B", &[0, 1, 2, 3]), world.of_symbol("Z", &[0]), world.all().hinted()] {
        let verified = ask(&world, folder.path(), &question).expect("an honest folder");
        assert!(verified.rows == expected(world.publication.shelf(), &question));
    }
    world.insert(vec![row("B", 300, Some(1), "one more")]);
    world.close();
    let (files_later, bytes_later) = publish(&mut world, folder.path());
    println!("{files} files, {bytes} bytes; one row more: {files_later} files, {bytes_later} bytes");
    assert!(files_later * 8 < files && bytes_later * 8 < bytes, "an update writes a part of the pages");
    let question = world.of_symbol("B", &[0, 1]);
    assert_eq!(ask(&world, folder.path(), &question).expect("an honest folder").rows.len(), 668);
}

#[test]
fn any_file_put_back_or_damaged_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new();
    world.insert((0..60).map(|at| row("A", at, Some(at.into()), "a note")).collect());
    world.close();
    publish(&mut world, folder.path());
    let head = std::fs::read(folder.path().join("head")).expect("a head");
    let rid = world.publication.shelf().rids(0).nth(5).expect("a record");
    world
        .publication
        .edit(Edit { update: vec![(rid, row("A", 4, Some(9), "new"))], ..Edit::default() })
        .expect("an edit");
    world.close();
    publish(&mut world, folder.path());
    let question = world.all();
    assert!(ask(&world, folder.path(), &question).is_ok());
    // Yesterday's rows with today's summaries: the head of before, made to name the last period.
    let mut yesterday = head;
    yesterday[1] = 1;
    std::fs::write(folder.path().join("head"), &yesterday).expect("a head");
    assert!(matches!(ask(&world, folder.path(), &question), Err(Refusal::Stale(_))));
}
