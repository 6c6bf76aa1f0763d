//! A folder of files as a mirror.

use std::collections::HashMap;

use counterfoil_mirror::site::{Destination, Fetch, Folder, OwnFolder, SiteError, Unread, write, write_to};
use counterfoil_mirror::{AnswerError, Shelf as _, answer};
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Chain, Question, Refusal, Scheme, Trust, TrustedManifest, Verified, check};
use counterfoil_publish::Edit;
use sha2::{Digest as _, Sha256};

use crate::world::{SCHEMES, World, expected, row};

fn publish(world: &mut World, folder: &std::path::Path) -> (u64, u64) {
    let summaries = world.publication.summaries().expect("summaries");
    write(world.publication.shelf(), world.publication.manifest(), &summaries, folder).expect("a site")
}

fn ask(world: &World, folder: &std::path::Path, question: &Question) -> Result<Verified, Refusal> {
    let (site, manifest) = Unread::open(Folder(folder.to_path_buf())).expect("a site");
    let manifest = TrustedManifest::check(&manifest, &world.owner, 0)?;
    let mut site = site.of(manifest.manifest().definition.clone());
    let summaries = site.summaries(0).expect("summaries");
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    let answer = answer(&mut site, question).expect("an answer");
    let bytes = answer.to_bytes(site.definition(), question).expect("bytes");
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    check(&trust, question, &bytes)
}

#[test]
fn a_folder_answers_like_the_owner_and_changes_little_at_an_update() {
    SCHEMES.into_iter().for_each(a_folder_of);
}

fn a_folder_of(scheme: Scheme) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::signing(scheme);
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
    println!("{scheme:?}: {files} files, {bytes} bytes; one row more: {files_later} files, {bytes_later} bytes");
    // A page of groups is a tenth of all bytes there.
    let part = if matches!(scheme, Scheme::Group(_)) { 6 } else { 8 };
    assert!(files_later * part < files && bytes_later * part < bytes, "an update writes a part of the pages");
    let question = world.of_symbol("B", &[0, 1]);
    assert_eq!(ask(&world, folder.path(), &question).expect("an honest folder").rows.len(), 668);
}

/// A folder that notes what is asked of it.
struct Noted {
    folder: OwnFolder,
    done: Vec<String>,
}

impl Destination for Noted {
    fn has(&mut self, path: &str, bytes: &[u8]) -> std::io::Result<bool> {
        self.folder.has(path, bytes)
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.done.push(path.into());
        self.folder.put(path, bytes)
    }

    fn settle(&mut self) -> std::io::Result<()> {
        self.done.push("settled".into());
        self.folder.settle()
    }

    fn read(&mut self, path: &str) -> std::io::Result<Option<Vec<u8>>> {
        self.folder.read(path)
    }

    fn pages(&mut self) -> std::io::Result<Vec<String>> {
        self.folder.pages()
    }

    fn remove(&mut self, path: &str) -> std::io::Result<()> {
        self.done.push(format!("removed {path}"));
        self.folder.remove(path)
    }
}

#[test]
fn the_head_comes_when_all_that_it_names_is_there_and_goes_before_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new();
    for version in 0..4 {
        let rows = (0..300).map(|at| row("A", at, Some(version), "a note")).collect();
        let edit = world.publication.difference(rows).expect("an edit");
        world.publication.edit(edit).expect("rows");
        world.close();
        let mut noted = Noted { folder: OwnFolder::make(folder.path()).expect("a folder"), done: Vec::new() };
        let summaries = world.publication.summaries().expect("summaries");
        write_to(world.publication.shelf(), world.publication.manifest(), &summaries, &mut noted).expect("a site");
        let head = noted.done.iter().position(|done| done == "head").expect("a head");
        assert!(head > 10 && noted.done[head - 1] == "settled" && noted.done[head + 1] == "settled");
        let removed = noted.done.iter().filter(|done| done.starts_with("removed pages/")).count();
        assert_eq!(removed, noted.done.len() - head - 2, "what goes goes last");
        // Those of the head before stay, so that the first to go are those of two before.
        assert_eq!(removed > 0, version >= 2, "{version}: {removed}");
    }
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

/// Files that a hostile mirror makes up, by path; one of them may stand for all that are not there.
#[derive(Default)]
struct Hostile {
    files: HashMap<String, Vec<u8>>,
    otherwise: Option<Vec<u8>>,
}

impl Fetch for Hostile {
    fn fetch(&mut self, path: &str, _: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(self.files.get(path).or(self.otherwise.as_ref()).cloned())
    }
}

impl Hostile {
    /// Puts a page in its place and gives its name.
    fn page(&mut self, is_leaf: bool, parts: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut page = Writer::default();
        page.byte(is_leaf.into()).number(parts.len() as u64);
        for (position, part) in parts {
            page.string(position).string(part);
        }
        let name = Sha256::digest(&page.0)[..16].to_vec();
        let text: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        self.files.insert(format!("pages/{}/{}", &text[..2], &text[2..]), page.0);
        name
    }

    fn head(&mut self, last: u64, root: &[u8]) {
        let mut head = Writer::default();
        head.byte(1).number(last).number(0).number(2).raw(root).raw(root);
        self.files.insert("head".into(), head.0);
    }
}

#[test]
fn pages_that_name_one_page_again_and_again_end_in_an_error() {
    let world = World::new();
    let mut hostile = Hostile::default();
    hostile.files.insert("manifest".into(), world.publication.manifest().to_vec());
    let head = world.publication.shelf().entry(0).expect("a head");
    let mut name = hostile.page(true, &[(vec![0], head.to_bytes(world.publication.definition()).expect("bytes"))]);
    // Fifteen levels of a hundred names each, which are all of the page below: 10^30 walks, were they taken.
    for _ in 0..15 {
        let parts: Vec<_> = (0..100).map(|at| (if at == 0 { vec![0] } else { vec![0, at] }, name.clone())).collect();
        name = hostile.page(false, &parts);
    }
    hostile.head(0, &name);
    let (site, _) = Unread::open(hostile).expect("files");
    let mut site = site.of(world.publication.definition().clone());
    let refused = answer(&mut site, &world.all());
    assert!(matches!(refused, Err(AnswerError::Shelf(SiteError::Damaged(..)))));
}

#[test]
fn a_head_of_the_last_period_of_all_ends_in_an_error() {
    let world = World::new();
    let mut hostile = Hostile::default();
    hostile.files.insert("manifest".into(), world.publication.manifest().to_vec());
    hostile.head(u64::MAX, &[0; 16]);
    // Nothing, and then sixty-four summaries of no bytes, wherever one is asked for.
    for otherwise in [Vec::new(), vec![0; 64]] {
        let files = Hostile { files: hostile.files.clone(), otherwise: Some(otherwise) };
        let (site, _) = Unread::open(files).expect("files");
        assert!(site.of(world.publication.definition().clone()).summaries(0).is_err());
    }
}
