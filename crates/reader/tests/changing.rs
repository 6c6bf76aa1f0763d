//! A mirror that is brought up to date while it is asked: whatever was fetched before and after, its reader is told what the
//! owner had at one moment, and nobody is called a forger.

use std::path::{Path, PathBuf};

use counterfoil_mirror::site::{Fetch, Folder, write};
use counterfoil_mirror::wire::Standing;
use counterfoil_mirror::{MemoryShelf, reply};
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Column, Definition, FIRST_RID, GROUP_ROWS, NodesOf, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Terms, read, read_join};

/// What one signature covers: each of it at full size, records and groups otherwise.
fn played() -> Vec<Scheme> {
    let mut schemes = vec![Scheme::PerRecord, Scheme::Group(GROUP_ROWS)];
    if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full") {
        schemes.extend([Scheme::PerAttribute, Scheme::Group(2)]);
    }
    schemes
}

struct Owner {
    publication: Publication<MemoryLedger>,
    now: u64,
    folder: tempfile::TempDir,
}

impl Owner {
    fn signing(scheme: Scheme) -> Self {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let definition = Definition {
            table: [4; 16],
            name: "levels".into(),
            columns: vec![column("place", Type::Integer), column("level", Type::Integer)],
            orders: vec![vec![0]],
            scheme,
            nodes: vec![NodesOf { order: 0, columns: vec![1] }],
            filters: vec![0],
        };
        let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        let mut owner = Self { publication, now: 1000, folder: tempfile::tempdir().expect("a folder") };
        let rows = (0..60).map(|place| vec![Value::Integer(place), Value::Integer(1000)]);
        owner.publication.edit(Edit { insert: rows.collect(), ..Edit::default() }).expect("rows");
        owner.close();
        owner
    }

    fn close(&mut self) {
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
    }

    /// Every level is another one then.
    fn raise(&mut self, level: i64) {
        let rids = self.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID);
        let raised = rids.enumerate().map(|(at, rid)| (rid, vec![Value::Integer(at as i64), Value::Integer(level)]));
        let update = raised.collect();
        self.publication.edit(Edit { update, ..Edit::default() }).expect("rows");
        self.close();
    }

    fn key(&mut self, number: u8) -> NewKey {
        NewKey::from_entropy(&[number; 32], 1 << 50).expect("a key")
    }

    fn served(&mut self) -> Program {
        let summaries = self.publication.summaries().expect("summaries");
        Program { manifest: self.publication.manifest().to_vec(), summaries, shelf: self.publication.shelf().clone() }
    }

    /// The folder as it is now, elsewhere.
    fn written(&mut self, name: &str) -> PathBuf {
        let (here, there) = (self.folder.path().join("site"), self.folder.path().join(name));
        let summaries = self.publication.summaries().expect("summaries");
        write(self.publication.shelf(), self.publication.manifest(), &summaries, &here).expect("a site");
        copy(&here, &there);
        there
    }

    fn terms(&self) -> Terms {
        let owner = self.publication.owner();
        Terms { owner, now: self.now + 10, clock_error: 5, max_age: u64::MAX, hints: true }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = std::fs::copy(entry.path(), to).expect("a copy"),
        }
    }
}

/// A mirror that answers itself.
#[derive(Clone)]
struct Program {
    manifest: Vec<u8>,
    summaries: Vec<Vec<u8>>,
    shelf: MemoryShelf,
}

impl Fetch for Program {
    fn fetch(&mut self, path: &str, _most: usize) -> Result<Option<Vec<u8>>, String> {
        let last = self.summaries.len() as u64 - 1;
        Ok(match path {
            "manifest" => Some(self.manifest.clone()),
            "head" => Some(Standing { last, first: self.shelf.oldest().min(last) }.to_bytes()),
            "summaries/0" => {
                let mut writer = Writer::default();
                self.summaries.iter().for_each(|summary| {
                    writer.string(summary);
                });
                Some(writer.0)
            }
            _ => None,
        })
    }

    fn ask(&mut self, _path: &str, question: &[u8], _most: usize) -> Result<Option<Vec<u8>>, String> {
        reply(&mut self.shelf, question).map(Some).map_err(|error| error.to_string())
    }
}

/// What was there, and what is there from so many requests on.
struct Changing<F> {
    before: F,
    now: F,
    left: usize,
}

impl<F: Fetch> Changing<F> {
    fn served(&mut self) -> &mut F {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                &mut self.before
            }
            None => &mut self.now,
        }
    }
}

impl<F: Fetch> Fetch for Changing<F> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.served().fetch(path, most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.served().ask(path, question, most)
    }
}

type Rows = Vec<Vec<Value>>;

fn ask(fetch: &mut dyn Fetch, other: &mut dyn Fetch, sql: &str, terms: &Terms) -> Result<Rows, Error> {
    if sql.contains("JOIN") {
        read_join(fetch, other, sql, terms, [&mut None, &mut None]).map(|reading| reading.table.rows)
    } else {
        read(fetch, sql, terms, &mut None).map(|reading| reading.table.rows)
    }
}

const ASKED: [&str; 5] = [
    "SELECT * FROM levels WHERE place BETWEEN 10 AND 20",
    "SELECT level FROM levels ORDER BY place DESC LIMIT 3",
    "SELECT count(*), sum(level) FROM levels WHERE place < 50",
    "SELECT place, count(*), min(level) FROM levels GROUP BY place",
    "SELECT a.place, b.level FROM levels a LEFT JOIN levels b ON a.place = b.place WHERE a.place < 9",
];

/// Changed after each number of requests, until there are no more.
fn changed_at_each_request<F: Fetch + Clone>(before: &F, now: &F, terms: &Terms) {
    let mut tried = 0;
    for sql in ASKED {
        let [then, today] = [before, now].map(|it| ask(&mut it.clone(), &mut it.clone(), sql, terms));
        let [then, today] = [then.expect("honest"), today.expect("honest")];
        assert!(then != today);
        for left in 0.. {
            let changing = |left| Changing { before: before.clone(), now: now.clone(), left };
            let (mut first, mut second) = (changing(left), changing(left));
            let rows = ask(&mut first, &mut second, sql, terms);
            let rows = rows.unwrap_or_else(|error| panic!("{sql}, changed after {left} requests: {error}"));
            assert!(rows == then || rows == today || sql.contains("JOIN"), "{sql}: of two moments");
            if first.left > 0 && second.left > 0 {
                assert!(rows == then);
                break;
            }
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried} changes");
}

/// Rows, a key, and more rows: several periods that come at once, as when a mirror was out of reach for a while.
#[test]
fn a_mirror_that_catches_up_under_a_reader_is_no_forger() {
    played().into_iter().for_each(catches_up);
}

fn catches_up(scheme: Scheme) {
    for revokes in [false, true] {
        let mut owner = Owner::signing(scheme);
        let (program, folder) = (owner.served(), owner.written("before"));
        owner.raise(2000);
        let key = owner.key(9);
        if revokes {
            let stolen = owner.publication.status().keys[0].0.key;
            owner.publication.revoke(owner.now, &stolen, key, &[]).expect("a key");
        } else {
            owner.publication.rotate(owner.now, key, &[]).expect("a key");
        }
        owner.close();
        owner.raise(3000);
        let terms = owner.terms();
        changed_at_each_request(&program, &owner.served(), &terms);
        let folder_now = owner.written("now");
        changed_at_each_request(&Folder(folder), &Folder(folder_now), &terms);
    }
}

/// What nobody answers any more once it has been asked for rows.
struct Leaving<F>(F, bool);

impl<F: Fetch> Fetch for Leaving<F> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        if self.1 { Err("nobody answers".into()) } else { self.0.fetch(path, most) }
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        let answer = self.0.ask(path, question, most);
        self.1 = true;
        answer
    }
}

#[test]
fn a_mirror_that_catches_up_and_is_gone_is_out_of_reach_and_no_forger() {
    played().into_iter().for_each(catches_up_and_is_gone);
}

fn catches_up_and_is_gone(scheme: Scheme) {
    let mut owner = Owner::signing(scheme);
    let before = owner.served();
    owner.raise(2000);
    let key = owner.key(9);
    owner.publication.rotate(owner.now, key, &[]).expect("a key");
    owner.close();
    owner.raise(3000);
    let (now, terms) = (owner.served(), owner.terms());
    let mut refused = 0;
    for sql in ASKED {
        for left in 0..5 {
            let leaving = || Leaving(Changing { before: before.clone(), now: now.clone(), left }, false);
            match ask(&mut leaving(), &mut leaving(), sql, &terms) {
                Ok(_) => {}
                Err(Error::Unreachable(_)) => refused += 1,
                Err(error) => panic!("{sql}, changed after {left} requests: {error}"),
            }
        }
    }
    assert!(refused > 5, "{refused}");
}

/// A folder that was changed twice by the time that its pages are asked for.
struct Restless {
    folders: [PathBuf; 2],
    heads: usize,
}

impl Fetch for Restless {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let served = Folder(self.folders[self.heads % 2].clone()).fetch(path, most);
        self.heads += usize::from(path == "head");
        served
    }

    fn ask(&mut self, _path: &str, _question: &[u8], _most: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }
}

#[test]
fn of_a_folder_that_changes_faster_than_it_is_read_that_is_said() {
    let mut owner = Owner::signing(Scheme::PerRecord);
    let before = owner.written("before");
    // Pages of the head before are kept, so it is changed twice.
    owner.raise(2000);
    owner.written("between");
    owner.raise(3000);
    let (folders, terms) = ([before, owner.written("now")], owner.terms());
    for sql in ASKED {
        let restless = || Restless { folders: folders.clone(), heads: 0 };
        let told = ask(&mut restless(), &mut restless(), sql, &terms).expect_err(sql);
        assert!(matches!(&told, Error::Moving(_)), "{sql}: {told}");
        let text = told.to_string();
        assert!(text.ends_with("it stood elsewhere each of the 4 times that it was asked"), "{sql}: {text}");
    }
}

/// A key is withdrawn, and a folder has the manifest that says so, and not what was signed again: whoever serves it has done nothing
/// wrong, and may be a thief.
#[test]
fn a_folder_that_was_not_renewed_since_a_key_was_withdrawn_is_stale_and_not_forged() {
    played().into_iter().for_each(is_stale_until_renewed);
}

fn is_stale_until_renewed(scheme: Scheme) {
    let mut owner = Owner::signing(scheme);
    let before = owner.written("before");
    let (stolen, key) = (owner.publication.status().keys[0].0.key, owner.key(9));
    owner.publication.revoke(owner.now + 1, &stolen, key, &[]).expect("a key");
    let (half, renewed, terms) = (owner.written("half"), owner.written("renewed"), owner.terms());
    std::fs::remove_dir_all(&half).expect("a folder");
    copy(&before, &half);
    std::fs::copy(renewed.join("manifest"), half.join("manifest")).expect("the manifest");
    for sql in ASKED {
        let ask = |folder: &Path| ask(&mut Folder(folder.into()), &mut Folder(folder.into()), sql, &terms);
        assert!(ask(&before).is_ok(), "{sql}: nobody has said that the key is stolen");
        let told = ask(&half).expect_err(sql);
        assert_eq!(told.word(), Some("stale"), "{sql}: {told}");
        assert!(told.to_string().contains("withdrawn since: ask again"), "{sql}: {told}");
        assert_eq!(ask(&renewed), ask(&before), "{sql}");
    }
    // Who has heard of it elsewhere takes nothing of before any more, for the same reason.
    let (mut memory, sql) = (None, ASKED[0]);
    read(&mut Folder(renewed), sql, &terms, &mut memory).expect("rows");
    let told = read(&mut Folder(before), sql, &terms, &mut memory).map(|reading| reading.table).expect_err(sql);
    assert_eq!(told.word(), Some("stale"), "{told}");
}
