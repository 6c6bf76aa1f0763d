//! Clouds that only keep objects: private servers of these tests' own, which are killed, stopped and lied about as well.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_clouds::{CloudSecret, open_store_with_patience, whole_store_url};
use counterfoil_disperse::{Failure, MemoryProvider, Provider, Secret, Store, StoredProvider};
use counterfoil_test_servers::{S3Server, SftpServer, WebDavServer, certificates};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::questions::{Said, Step, done, steps, table};

const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(3);

/// A server of one of the three kinds.
enum Server {
    S3(S3Server),
    WebDav(WebDavServer),
    Sftp(SftpServer),
}

macro_rules! of_each {
    ($name:ident $(, $kind:tt)?) => {
        fn $name(&$($kind)? self) {
            match self {
                Self::S3(server) => server.$name(),
                Self::WebDav(server) => server.$name(),
                Self::Sftp(server) => server.$name(),
            }
        }
    };
}

impl Server {
    of_each!(kill, mut);
    of_each!(run, mut);
    of_each!(stop);
    of_each!(go_on);

    /// Its address, with another folder than the one that is there if one is named.
    fn url(&self, other: Option<&str>) -> String {
        match self {
            Self::S3(server) => {
                let bucket = other.unwrap_or(S3Server::BUCKET);
                format!("s3://{bucket}/of%20mine?endpoint={}", server.endpoint())
            }
            Self::WebDav(server) => {
                let folder = other.unwrap_or(WebDavServer::FOLDER);
                format!("webdav://{}@{}:{}/{folder}", WebDavServer::USER, "127.0.0.1", server.port())
            }
            Self::Sftp(server) => {
                let folder = other.map_or(server.files(), |other| server.files().with_file_name(other));
                let known = server.known_hosts();
                let (host, folder, known) = (format!("127.0.0.1:{}", server.port()), folder.display(), known.display());
                format!("sftp://{}@{host}{folder}?known_hosts={known}", server.user)
            }
        }
    }

    fn secret(&self) -> (String, String) {
        match self {
            Self::S3(_) => (String::new(), format!("{}\n{}", S3Server::KEY, S3Server::SECRET)),
            Self::WebDav(_) => (String::new(), WebDavServer::PASSWORD.into()),
            Self::Sftp(server) => (server.key_file().display().to_string(), String::new()),
        }
    }

    fn store_at(&self, url: &str, patience: Duration) -> Arc<dyn Store> {
        let (file, text) = self.secret();
        open_store_with_patience(url, Some(CloudSecret { file: &file, text: &text }), patience).expect("an address")
    }

    fn store(&self, patience: Duration) -> Arc<dyn Store> {
        self.store_at(&self.url(None), patience)
    }

    fn cloud(&self) -> StoredProvider<Arc<dyn Store>> {
        provider(self.store(PATIENCE))
    }

    /// Where it keeps what it was given.
    fn files(&self) -> PathBuf {
        match self {
            Self::S3(server) => server.objects().join("of mine"),
            Self::WebDav(server) => server.files(),
            Self::Sftp(server) => server.files(),
        }
    }

    fn has_folders(&self) -> bool {
        !matches!(self, Self::S3(_))
    }
}

fn provider(store: Arc<dyn Store>) -> StoredProvider<Arc<dyn Store>> {
    StoredProvider::new(store, Secret::new([7; 32]))
}

fn servers() -> impl Iterator<Item = Server> {
    let starts: [fn() -> Option<Server>; 3] = [
        || S3Server::start().map(Server::S3),
        || WebDavServer::start().map(Server::WebDav),
        || SftpServer::start().map(Server::Sftp),
    ];
    starts.into_iter().filter_map(|start| start())
}

fn all() -> Step {
    Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false }
}

fn places(said: &Said) -> Vec<u64> {
    said.0.iter().map(|(place, _)| *place).collect()
}

/// The files of a table.
fn files_of(server: &Server, number: u8) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(server.files().join(table(number).as_str())).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn their_objects_answer_as_memory_does() {
    for server in servers() {
        let (cloud, number) = (server.cloud(), std::cell::Cell::new(0_u8));
        let mut runner = TestRunner::new(Config { cases: 8, max_shrink_iters: 16, ..Config::default() });
        runner
            .run(&steps(), |steps| {
                number.set(number.get().wrapping_add(1));
                let (table, memory) = (table(number.get()), MemoryProvider::default());
                for step in std::iter::once(&Step::Put(vec![1 << 63])).chain(&steps) {
                    let expected = done(&memory, &table, step);
                    prop_assert_eq!(done(&cloud, &table, step), expected, "{:?}", step);
                }
                cloud.drop_table(&table).expect("dropped");
                prop_assert!(!server.files().join(table.as_str()).exists(), "nothing is left");
                Ok(())
            })
            .expect("alike");
    }
}

#[test]
fn what_is_told_again_is_there_once() {
    for server in servers() {
        let cloud = server.cloud();
        for _ in 0..2 {
            let said = done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
            assert_eq!((places(&said), files_of(&server, 1).len()), (vec![1, 2, 4], 1));
        }
        // A row of two files counts once, and is gone from both.
        assert_eq!(places(&done(&cloud, &table(1), &Step::Put(vec![4, 5])).expect("put")), [1, 2, 4, 5]);
        for _ in 0..2 {
            assert_eq!(places(&done(&cloud, &table(1), &Step::Remove(vec![4])).expect("removed")), [1, 2, 5]);
        }
        for _ in 0..2 {
            cloud.drop_table(&table(1)).expect("dropped");
        }
        assert_eq!(done(&cloud, &table(1), &all()).map(|said| said.1), Err(Failure::NoTable));
    }
}

#[test]
fn a_large_file_comes_back_as_it_went() {
    let bytes: Vec<u8> = (0..5_000_001_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for server in servers() {
        let store = server.store(PATIENCE);
        store.put("large", "x", &bytes).expect("put");
        let end = bytes.len() as u64;
        for range in [0..end, 0..1, end - 1..end, 100_000..100_001, 1_000_000..4_000_000] {
            let wanted = &bytes[range.start as usize..range.end as usize];
            assert!(store.get("large", "x", range.clone()).expect("got").is_some_and(|got| got == wanted), "{range:?}");
        }
        assert_eq!(store.get("large", "y", 0..1), Ok(None));
        assert_eq!(store.get("nowhere", "y", 0..1), Ok(None));
        assert_eq!(store.delete("nowhere", "y"), Ok(()));
        assert_eq!(store.delete_folder("nowhere"), Ok(()));
    }
}

#[test]
fn a_server_that_is_killed_is_out_of_reach_until_it_is_back() {
    for mut server in servers() {
        let cloud = server.cloud();
        done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
        server.kill();
        assert!(matches!(done(&cloud, &table(1), &all()), Err(Failure::Unreachable(_))));
        assert!(matches!(done(&cloud, &table(1), &Step::Put(vec![7])), Err(Failure::Unreachable(_))));
        assert!(matches!(cloud.drop_table(&table(1)), Err(Failure::Unreachable(_))));
        server.run();
        assert_eq!(done(&cloud, &table(1), &all()).map(|said| places(&said)), Ok(vec![1, 2, 4]));
    }
}

#[test]
fn a_server_that_says_nothing_is_out_of_reach_in_time() {
    for server in servers() {
        let cloud = provider(server.store(SHORT));
        done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
        server.stop();
        // On the connection that waited, and on a new one.
        assert!(matches!(done(&cloud, &table(1), &all()), Err(Failure::Unreachable(_))));
        assert!(matches!(provider(server.store(SHORT)).remove(&table(1), &[1]), Err(Failure::Unreachable(_))));
        server.go_on();
        assert_eq!(done(&server.cloud(), &table(1), &all()).map(|said| said.1), Ok(3));
    }
}

#[test]
fn a_server_that_restarts_again_and_again_loses_nothing() {
    for mut server in servers() {
        let (cloud, memory) = (provider(server.store(SHORT)), MemoryProvider::default());
        for round in 0..2_u64 {
            let steps = [Step::Put((round * 10..round * 10 + 8).collect()), Step::Remove(vec![round * 10 + 1])];
            for step in &steps {
                let expected = done(&memory, &table(1), step).expect("memory");
                let told = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        server.kill();
                        server.run();
                    });
                    // As its owner does: what failed is told again.
                    (0..200).find_map(|_| match done(&cloud, &table(1), step) {
                        Err(Failure::Unreachable(_)) => None,
                        other => Some(other),
                    })
                });
                assert_eq!(told, Some(Ok(expected)), "{step:?}");
            }
        }
    }
}

#[test]
fn what_was_changed_or_cut_behind_our_back_is_told_by_its_name() {
    for server in servers() {
        let cloud = server.cloud();
        let changes: [fn(&mut Vec<u8>); 3] = [|file| file[100] ^= 1, |file| file.truncate(50), Vec::clear];
        for (at, change) in changes.iter().enumerate() {
            let number = at as u8 + 1;
            done(&cloud, &table(number), &Step::Put(vec![1, 2, 4])).expect("put");
            let files = files_of(&server, number);
            let mut file = std::fs::read(&files[0]).expect("a file");
            change(&mut file);
            std::fs::write(&files[0], file).expect("written");
            let name = files[0].file_name().unwrap_or_default().to_string_lossy().into_owned();
            let told = done(&cloud, &table(number), &all());
            assert!(matches!(&told, Err(Failure::Malformed(what)) if what.contains(&name)), "{told:?}");
            // Told again, it is whole.
            assert_eq!(done(&cloud, &table(number), &Step::Put(vec![1, 2, 4])).map(|said| said.1), Ok(3));
        }
    }
}

#[test]
fn what_else_lies_there_is_somebody_elses() {
    for server in servers() {
        let cloud = server.cloud();
        done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).expect("put");
        let folder = files_of(&server, 1)[0].parent().map(Path::to_path_buf).expect("a folder");
        let odd = ["what \u{e9} name.txt", "%2e%2e%2fx", "a&b;c\"d.parquet"];
        odd.iter().for_each(|name| std::fs::write(folder.join(name), "x").expect("a file"));
        std::fs::create_dir(folder.join("below")).expect("a folder");
        assert_eq!(done(&cloud, &table(1), &all()).map(|said| said.1), Ok(3));
        let names = server.store(PATIENCE).list(table(1).as_str()).expect("names");
        odd.iter().for_each(|name| assert!(names.iter().any(|known| known == name), "{name} in {names:?}"));
        assert!(names.iter().all(|name| !name.contains('/')), "{names:?}");
        cloud.drop_table(&table(1)).expect("dropped");
        odd.iter().for_each(|name| assert!(folder.join(name).exists(), "{name} is not ours"));
        assert_eq!(done(&cloud, &table(1), &all()).map(|said| said.1), Err(Failure::NoTable));
    }
}

#[test]
fn what_cuts_leave_goes_with_the_next_file_or_the_table() {
    for server in servers().filter(Server::has_folders) {
        let cloud = server.cloud();
        done(&cloud, &table(1), &Step::Put(vec![1])).expect("put");
        let folder = files_of(&server, 1)[0].parent().map(Path::to_path_buf).expect("a folder");
        let leave = |name: &str| std::fs::write(folder.join(name), "half").expect("a file");
        leave("0123.parquet.part");
        // The first put lists after itself, the second one has seen it.
        done(&cloud, &table(1), &Step::Put(vec![2])).expect("put");
        done(&cloud, &table(1), &Step::Put(vec![3])).expect("put");
        assert!(!folder.join("0123.parquet.part").exists());
        leave("4567.parquet.part");
        cloud.drop_table(&table(1)).expect("dropped");
        assert!(!folder.exists());
    }
}

#[test]
fn what_cuts_left_goes_although_the_next_file_is_refused() {
    for server in servers().filter(Server::has_folders) {
        let store = server.store(PATIENCE);
        store.put("folder", "first", b"whole").expect("put");
        let folder = server.files().join("folder");
        std::fs::write(folder.join("0123.parquet.part"), "half").expect("a file");
        // Nobody writes a file where there is a folder.
        std::fs::create_dir_all(folder.join("second.part").join("other")).expect("a folder");
        store.list("folder").expect("listed");
        let told = store.put("folder", "second", b"whole");
        assert!(matches!(told, Err(Failure::Refused(_))), "{told:?}");
        assert!(!folder.join("0123.parquet.part").exists());
        assert_eq!(store.get("folder", "first", 0..5), Ok(Some(b"whole".to_vec())));
    }
}

#[test]
fn what_was_refused_itself_leaves_nothing() {
    for server in servers().filter(|server| matches!(server, Server::Sftp(_))) {
        let store = server.store(PATIENCE);
        store.put("folder", "first", b"whole").expect("put");
        let folder = server.files().join("folder");
        // It is written beside its place, and cannot be put there.
        std::fs::create_dir_all(folder.join("second").join("other")).expect("a folder");
        let told = store.put("folder", "second", b"whole");
        assert!(matches!(told, Err(Failure::Refused(_))), "{told:?}");
        assert!(!folder.join("second.part").exists());
    }
}

#[test]
fn whom_the_server_does_not_know_is_refused_and_told_nothing() {
    let refused = |url: &str, file: &str, text: &str, word: &str| {
        let store = open_store_with_patience(url, Some(CloudSecret { file, text }), PATIENCE).expect("an address");
        let cloud = provider(store);
        for step in [Step::Put(vec![1]), all()] {
            let told = done(&cloud, &table(1), &step).expect_err("refused");
            assert!(matches!(&told, Failure::Refused(what) if what.contains(word)), "{told}");
            assert!(!told.to_string().contains("hush") && !told.to_string().contains(S3Server::KEY), "{told}");
        }
    };
    for server in servers() {
        let url = server.url(None);
        match &server {
            Server::S3(_) => {
                refused(&url, "", &format!("{}\nhush-hush", S3Server::KEY), "SignatureDoesNotMatch");
                refused(&url, "", "hush\nhush", "404");
            }
            Server::WebDav(_) => refused(&url, "", "hush", "401"),
            Server::Sftp(server) => {
                refused(&url, &server.strangers_key_file().display().to_string(), "", "secret_file");
                let (known, wrong) = (server.known_hosts(), server.wrong_hosts());
                let unknown = url.replace(&known.display().to_string(), &wrong.display().to_string());
                refused(&unknown, &server.key_file().display().to_string(), "", "known_hosts");
                let nothing = url.replace(&known.display().to_string(), "/nowhere/at/all");
                refused(&nothing, &server.key_file().display().to_string(), "", "known_hosts");
            }
        }
    }
}

#[test]
fn a_place_that_is_not_there_is_no_table_without_rows() {
    for server in servers() {
        let cloud = provider(server.store_at(&server.url(Some("elsewhere")), PATIENCE));
        for step in [Step::Put(vec![1]), all(), Step::Remove(vec![1])] {
            let told = done(&cloud, &table(1), &step);
            assert!(matches!(told, Err(Failure::Refused(_))), "{step:?}: {told:?}");
        }
        assert!(!server.files().with_file_name("elsewhere").exists());
    }
}

#[test]
fn a_server_that_lets_nobody_write_refuses() {
    let starts: [fn() -> Option<Server>; 3] = [
        || S3Server::start_read_only().map(Server::S3),
        || WebDavServer::start_read_only().map(Server::WebDav),
        || SftpServer::start_read_only().map(Server::Sftp),
    ];
    for server in starts.into_iter().filter_map(|start| start()) {
        let cloud = server.cloud();
        assert_eq!(done(&cloud, &table(1), &all()).map(|said| said.1), Err(Failure::NoTable));
        let told = done(&cloud, &table(1), &Step::Put(vec![1]));
        assert!(matches!(told, Err(Failure::Refused(_))), "{}: {told:?}", server.url(None));
    }
}

#[test]
fn nobody_at_an_address_is_out_of_reach() {
    for url in ["s3://bucket?endpoint=http://127.0.0.1:1", "webdav://me@127.0.0.1:1/x", "sftp://me@127.0.0.1:1/x"] {
        let secret = CloudSecret { file: "/nowhere/at/all", text: "a\nb" };
        let store = open_store_with_patience(url, Some(secret), SHORT).expect("an address");
        assert!(matches!(store.list("x"), Err(Failure::Unreachable(_))), "{url}: {:?}", store.list("x"));
        assert!(matches!(store.put("x", "y", b"z"), Err(Failure::Unreachable(_))), "{url}");
    }
}

#[test]
fn a_web_server_is_believed_to_be_itself_if_somebody_vouches_for_it() {
    let made = certificates(&["127.0.0.1", "localhost"]);
    let Some(server) = WebDavServer::start_with_tls(&made.certificate, &made.key) else { return };
    let told = |authority: Option<&Path>| {
        let ca = authority.map(|file| format!("?tls_ca={}", file.display())).unwrap_or_default();
        let url =
            format!("webdavs://{}@{}:{}/{}{ca}", WebDavServer::USER, "localhost", server.port(), WebDavServer::FOLDER);
        let secret = CloudSecret { file: "", text: WebDavServer::PASSWORD };
        let cloud = provider(open_store_with_patience(&url, Some(secret), PATIENCE).expect("an address"));
        done(&cloud, &table(1), &Step::Put(vec![1, 2, 4])).map(|said| said.1)
    };
    assert_eq!(told(Some(&made.authority)), Ok(3));
    let stranger = certificates(&["localhost"]);
    for authority in [None, Some(stranger.authority.as_path())] {
        let failure = told(authority).expect_err("nobody vouches");
        assert!(matches!(&failure, Failure::Unreachable(what) if what.contains("certificate")), "{failure}");
    }
}

#[test]
fn a_hostile_server_of_sftp_is_held_within_bounds() {
    // Its greeting, and then: a packet of four gigabytes; silence; a listing of four thousand million names in a few bytes.
    let greeting = r"printf '\000\000\000\005\002\000\000\000\003'";
    let handle = r"printf '\000\000\000\012\146\000\000\000\001\000\000\000\001x'";
    let names = r"printf '\000\000\000\011\150\000\000\000\002\377\377\377\377'";
    let speaks = [
        (r"printf '\377\377\377\377x'; sleep 100".to_owned(), false),
        (format!("{greeting}; printf '\\377\\377\\377\\377x'; sleep 100"), false),
        (format!("{greeting}; sleep 1; {handle}; sleep 1; {names}; sleep 100"), false),
        (format!("{greeting}; sleep 100"), true),
        ("sleep 100".to_owned(), true),
        (format!("{greeting}; exit 1"), true),
    ];
    for (speaks, is_silent) in speaks {
        let Some(server) = SftpServer::start_speaking(&speaks) else { return };
        let told = Server::Sftp(server).store(SHORT).list("x");
        match told {
            Err(Failure::Unreachable(_)) => {}
            // Whether the library waits for an answer when noise comes is chance: if not, whoever waits next hears nothing.
            Err(Failure::Malformed(_)) if !is_silent => {}
            other => panic!("{speaks}: {other:?}"),
        }
    }
}

#[test]
fn addresses_are_written_one_way_or_refused() {
    for (url, whole) in [
        ("s3://bucket/", "s3://bucket"),
        (
            "s3://bucket/a/b/?region=eu-1&endpoint=https://example.com/",
            "s3://bucket/a/b?endpoint=https://example.com&region=eu-1",
        ),
        ("s3://bucket/a%20b", "s3://bucket/a%20b"),
        (concat!("webdavs://", "Me@EXAMPLE.com:8443/x/"), "webdavs://Me@example.com:8443/x"),
        ("webdavs://example.com", "webdavs://example.com"),
        (
            concat!("webdavs://", "me%40example.org@example.com/x"),
            concat!("webdavs://", "me%40example.org@example.com/x"),
        ),
        ("webdav://me@localhost/x", "webdav://me@localhost/x"),
        ("webdav://me@[::1]:80/x", "webdav://me@[::1]:80/x"),
        ("sftp://me@example.com/srv/x", "sftp://me@example.com/srv/x"),
        ("sftp://me@example.com:2222/~/x/?known_hosts=/etc/k", "sftp://me@example.com:2222/~/x?known_hosts=/etc/k"),
    ] {
        assert_eq!(whole_store_url(url).as_deref(), Ok(whole));
        assert_eq!(whole_store_url(whole).as_deref(), Ok(whole));
    }
    for (wrong, word) in [
        ("s3://", "bucket"),
        ("s3://Bucket", "bucket"),
        ("s3://a", "bucket"),
        ("s3://key:hush@bucket", "secret_file"),
        ("s3://key@bucket", "secret_file"),
        ("s3://bucket:9000/x", "endpoint="),
        ("s3://bucket/../x", "folder"),
        ("s3://bucket/%2e%2e/x", "folder"),
        ("s3://bucket/a//b", "folder"),
        ("s3://bucket/a%0ab", "folder"),
        ("s3://bucket/a b", "%20"),
        ("s3://bucket?endpoint=ftp://example.com", "endpoint="),
        ("s3://bucket?endpoint=https://me:hush@example.com", "endpoint="),
        ("s3://bucket?endpoint=https://example.com/x", "endpoint="),
        ("s3://bucket?region=a/b", "region="),
        ("s3://bucket?region=a&region=b", "twice"),
        ("s3://bucket?secret=hush", "secret="),
        ("s3://bucket/x#y", "%23"),
        ("webdav://me@example.com/x", "webdavs://"),
        ("webdavs://me:hush@example.com/x", "secret_file"),
        ("webdavs:///x", "host"),
        ("sftp://example.com/x", "USER"),
        (concat!("sftp://", "-oProxyCommand=x@example.com/x"), "USER"),
        (concat!("sftp://", "me@-oProxyCommand=x/x"), "USER"),
        ("sftp://me@example.com", "FOLDER"),
        ("sftp://me@example.com/", "FOLDER"),
        ("sftp://me@example.com/x?known_hosts=", "known_hosts="),
        ("ftp://example.com", "s3://"),
    ] {
        let told = whole_store_url(wrong).expect_err(wrong);
        assert!(told.contains(word), "{wrong}: {told}");
        assert!(!told.contains("hush"), "{wrong}: {told}");
    }
    assert!(open_store_with_patience("s3://bucket", None, SHORT).is_err_and(|told| told.contains("secret_file")));
}
