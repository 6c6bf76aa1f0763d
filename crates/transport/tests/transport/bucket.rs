//! A site in a bucket: whole whenever a reader looks, whatever goes wrong.

use std::time::{Duration, SystemTime};

use counterfoil_mirror::site;
use counterfoil_proof::{Column, Definition, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader as reader;
use counterfoil_transport::{Account, Authorities, BucketAddress, BucketSite, Denial, Error, Http};

use crate::buckets::{Buckets, KEY, Object, REGION, SECRET, TOKEN, refused};
use crate::certificates::{Authority, Valid};
use crate::server::{Reply, serve};

/// Rows of a table that takes some pages.
const ROWS: i64 = 300;

/// An owner whose table's rows are all of one version.
struct World {
    publication: Publication<MemoryLedger>,
    now: u64,
}

impl World {
    fn new() -> Self {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let definition = Definition {
            table: [3; 16],
            name: "prices".into(),
            columns: vec![column("day", Type::Integer), column("price", Type::Integer)],
            orders: vec![vec![0]],
            scheme: Scheme::PerRecord,
            nodes: Vec::new(),
            filters: Vec::new(),
        };
        let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[5; 96]).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        let mut world = Self { publication, now: 1000 };
        world.set(0);
        world
    }

    fn set(&mut self, version: i64) {
        let rows = (0..ROWS).map(|day| vec![Value::Integer(day), Value::Integer(version)]).collect();
        let edit: Edit = self.publication.difference(rows).expect("an edit");
        self.now += 1000;
        self.publication.edit_in_parts(edit, self.now).expect("signed");
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
    }

    fn publish(&mut self, server: &Server) -> Result<(u64, u64), Error> {
        let mut site = BucketSite::open(&server.account(SECRET), &address(), &server.authorities)?;
        let summaries = self.publication.summaries().expect("summaries");
        site::write_to(self.publication.shelf(), self.publication.manifest(), &summaries, &mut site)
            .map_err(|error| error.downcast().expect("one of the bucket"))
    }

    /// What a reader without a key sees: the version of all rows, if there is a table.
    fn seen(&self, server: &Server) -> Result<Vec<i64>, reader::Error> {
        let mut http =
            Http::vouched_for(&format!("{}/prices/of/today", server.url), &server.authorities).expect("an address");
        let terms = reader::Terms {
            owner: self.publication.owner(),
            now: self.now + 10,
            clock_error: 5,
            max_age: u64::MAX,
            hints: true,
        };
        let reading = reader::read(&mut http, "SELECT price FROM prices", &terms, &mut None)?;
        let mut prices: Vec<i64> = reading
            .table
            .rows
            .iter()
            .map(|row| if let Value::Integer(price) = row[0] { price } else { panic!("a price") })
            .collect();
        assert_eq!(prices.len(), ROWS as usize);
        prices.dedup();
        Ok(prices)
    }
}

struct Server {
    buckets: Buckets,
    url: String,
    authorities: Authorities,
}

impl Server {
    fn start() -> Self {
        let buckets = Buckets::default();
        let answering = buckets.clone();
        let address = serve(None, move |request| answering.answer(&request));
        Self { buckets, url: format!("http://{address}"), authorities: Authorities::default() }
    }

    fn account(&self, secret: &str) -> Account {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let text = format!(
            "AWS_ACCESS_KEY_ID={KEY}\nAWS_SECRET_ACCESS_KEY={secret}\nAWS_SESSION_TOKEN={TOKEN}\nAWS_REGION={REGION}\n\
             AWS_ENDPOINT_URL={}\n",
            self.url
        );
        std::fs::write(&path, text).expect("written");
        Account::from_file(path).expect("an account")
    }

    fn open(&self, secret: &str, address: &str) -> Result<BucketSite, Error> {
        BucketSite::open(&self.account(secret), &address.parse().expect("an address"), &self.authorities)
    }

    /// What a bucket's server is told where it answers this instead.
    fn instead(&self, reply: Reply) -> Error {
        self.buckets.state(|state| state.instead = vec![reply]);
        let Err(error) = self.open(SECRET, "s3://prices/of/today") else { panic!("opened") };
        error
    }

    fn objects(&self) -> Vec<String> {
        self.buckets.state(|state| state.objects.keys().cloned().collect())
    }
}

fn address() -> BucketAddress {
    "s3://prices/of/today".parse().expect("an address")
}

fn pages(objects: &[String]) -> usize {
    objects.iter().filter(|name| name.starts_with("of/today/pages/")).count()
}

#[test]
fn a_bucket_serves_what_its_owner_writes() {
    let (server, mut world) = (Server::start(), World::new());
    let other = Object { bytes: b"mine".to_vec(), content_type: String::new(), cache_control: String::new() };
    let others =
        ["of/today/pages/notes.txt", "of/today/index.html", "of/yesterday/pages/00/112233445566778899aabbccddeeff"];
    for name in others {
        server.buckets.state(|state| state.objects.insert(name.into(), other.clone()));
    }
    let (objects, _) = world.publish(&server).expect("published");
    assert_eq!(world.seen(&server), Ok(vec![0]));
    assert_eq!(server.objects().len() as u64, objects + others.len() as u64);
    let sent = server.buckets.state(|state| std::mem::take(&mut state.asked));
    assert_eq!(sent.last().map(String::as_str), Some("PUT of/today/head"), "the head comes last");
    // Again without a change: the end of a period, and no page.
    world.set(0);
    let (again, _) = world.publish(&server).expect("published");
    assert!(again <= 3, "{again} objects");
    // Pages of the head before stay for who has it, those before them go, and what is somebody else's is left alone.
    let first = pages(&server.objects());
    world.set(1);
    world.publish(&server).expect("published");
    assert_eq!(world.seen(&server), Ok(vec![1]));
    let both = pages(&server.objects());
    world.set(2);
    world.publish(&server).expect("published");
    assert!(both > first && pages(&server.objects()) <= both, "{first}, {both}, {}", pages(&server.objects()));
    assert_eq!(world.seen(&server), Ok(vec![2]));
    for name in others {
        assert!(server.objects().iter().any(|object| object == name), "{name}");
    }
    server.buckets.state(|state| {
        let of = |name: &str| state.objects[name].clone();
        assert_eq!(of("of/today/head").cache_control, "no-cache");
        assert_eq!(of("of/today/about.txt").content_type, "text/plain; charset=utf-8");
        let page = state.objects.iter().find(|(name, _)| name.starts_with("of/today/pages/") && !name.ends_with("txt"));
        assert!(page.is_some_and(|(_, page)| page.cache_control.contains("immutable")));
    });
}

#[test]
fn a_cut_at_any_request_leaves_a_whole_table() {
    let (server, mut world) = (Server::start(), World::new());
    world.publish(&server).expect("published");
    let before = server.buckets.state(|state| {
        state.asked.clear();
        state.objects.clone()
    });
    world.set(1);
    world.publish(&server).expect("published");
    let requests = server.buckets.state(|state| state.asked.len());
    assert!(requests > 20, "{requests}");
    let mut old = 0;
    for cut in 0..requests {
        server.buckets.state(|state| {
            state.objects = before.clone();
            state.left = Some(cut);
        });
        assert!(world.publish(&server).is_err(), "cut at {cut}");
        let seen = world.seen(&server).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert!(seen == [0] || seen == [1], "cut at {cut}: {seen:?}");
        old += usize::from(seen == [0]);
        // The next one makes it good.
        server.buckets.state(|state| state.left = None);
        if cut % 7 == 0 {
            world.publish(&server).expect("published");
            assert_eq!(world.seen(&server), Ok(vec![1]), "after a cut at {cut}");
        }
    }
    assert!(old > 0 && old < requests, "cuts before and behind the head");
}

#[test]
fn a_first_site_is_seen_when_it_is_whole() {
    let (server, mut world) = (Server::start(), World::new());
    server.buckets.state(|state| state.left = Some(5));
    assert!(world.publish(&server).is_err());
    assert!(matches!(world.seen(&server), Err(reader::Error::NoTable(_))));
}

#[test]
fn what_fails_for_a_while_is_tried_again() {
    let (server, mut world) = (Server::start(), World::new());
    server
        .buckets
        .state(|state| state.instead = vec![refused(503, "SlowDown"), refused(500, "InternalError"), refused(429, "")]);
    world.publish(&server).expect("published");
    assert_eq!(world.seen(&server), Ok(vec![0]));
    // And not for ever.
    server.buckets.state(|state| state.instead = (0..100).map(|_| refused(503, "SlowDown")).collect());
    let Err(Error::Unreachable(place, what)) = world.publish(&server) else { panic!("published") };
    assert!(place == "s3://prices/of/today" && what.contains("503 SlowDown"), "{place}: {what}");
    assert_eq!(server.buckets.state(|state| state.instead.len()), 95);
}

#[test]
fn what_would_fail_again_is_told_at_once() {
    let server = Server::start();
    let denied = |error| if let Error::Denied(_, denial) = error { denial } else { panic!("{error}") };
    let refused_as = |secret, address| denied(server.open(secret, address).err().expect("refused"));
    assert_eq!(refused_as(SECRET, "s3://costs/of/today"), Denial::NoBucket);
    assert_eq!(refused_as("another", "s3://prices"), Denial::Key("SignatureDoesNotMatch".into()));
    let answered = |reply| denied(server.instead(reply));
    assert_eq!(answered(refused(403, "InvalidAccessKeyId")), Denial::Key("InvalidAccessKeyId".into()));
    // Some servers do not find a key that they do not know.
    assert_eq!(answered(refused(404, "InvalidAccessKeyId")), Denial::Key("InvalidAccessKeyId".into()));
    assert_eq!(answered(refused(403, "AccessDenied")), Denial::NotAllowed);
    assert_eq!(answered(refused(403, "RequestTimeTooSkewed")), Denial::Clock);
    // Where a signed address is from another time, servers say no more than that it is not allowed.
    let hours = httpdate(SystemTime::now() + Duration::from_secs(7200));
    assert_eq!(answered(Reply { header: format!("Date: {hours}\r\n"), ..refused(403, "AccessDenied") }), Denial::Clock);
    let region = "x-amz-bucket-region: us-west-2\r\n".to_owned();
    let elsewhere =
        Reply { header: format!("{region}Location: http://127.0.0.1:1/\r\n"), ..refused(301, "PermanentRedirect") };
    assert_eq!(answered(elsewhere), Denial::Region(Some("us-west-2".into())));
    assert_eq!(answered(refused(400, "EntityTooLarge")), Denial::Refused("400 EntityTooLarge".into()));
    // What a server says is told if it is a word.
    assert_eq!(answered(refused(400, "\x1b[31mred")), Denial::Refused("400".into()));
    for denial in [Denial::NoBucket, Denial::Clock, Denial::NotAllowed] {
        let told = Error::Denied("s3://prices".into(), denial);
        assert!(told.to_string().ends_with("(s3://prices)") && !told.advice().is_empty());
    }
}

fn httpdate(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

#[test]
fn a_server_that_makes_no_sense_is_left() {
    let server = Server::start();
    let endless = || {
        Reply::found(
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><IsTruncated>true</IsTruncated>\
             <NextContinuationToken>again</NextContinuationToken></ListBucketResult>",
        )
    };
    server.buckets.state(|state| state.instead = (0..100).map(|_| endless()).collect());
    let Err(Error::Unreachable(_, what)) = server.open(SECRET, "s3://prices") else { panic!("opened") };
    assert!(what.contains("without an end"), "{what}");
    for text in ["", "<Nonsense/>"] {
        server.buckets.state(|state| state.instead = (0..5).map(|_| Reply::found(text)).collect());
        assert!(matches!(server.open(SECRET, "s3://prices"), Err(Error::Unreachable(..))), "{text}");
    }
}

#[test]
fn buckets_are_reached_through_tls() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let authorities = Authorities::from_file(authority.write(folder.path())).expect("an authority");
    let buckets = Buckets::default();
    let answering = buckets.clone();
    let address = serve(Some(authority.server("127.0.0.1", Valid::Now)), move |request| answering.answer(&request));
    let mut server = Server { buckets, url: format!("https://{address}"), authorities };
    let mut world = World::new();
    world.publish(&server).expect("published");
    assert_eq!(world.seen(&server), Ok(vec![0]));
    server.authorities = Authorities::default();
    let Err(Error::Denied(_, Denial::NotVouched(what))) = world.publish(&server) else { panic!("published") };
    assert!(what.contains("--tls-ca"), "{what}");
}
