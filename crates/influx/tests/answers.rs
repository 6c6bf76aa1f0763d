//! What clients of InfluxDB are answered.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::client::{Client, gzip, once};
use common::listen;
use common::memory::Memory;
use counterfoil_influx::listener::SinkError;
use serde_json::json;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

/// What Telegraf's output `influxdb` sends: it creates its database first, then writes what was recorded.
#[test]
fn telegraf_writes_what_it_recorded() {
    let sink = Arc::new(Memory::default());
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    let created = client.request("POST /query", &[FORM], b"q=CREATE+DATABASE+%22telegraf%22");
    assert_eq!((created.status, created.json()), (200, json!({ "results": [{ "statement_id": 0 }] })));
    let recorded = include_bytes!("data/telegraf.lp");
    let lines = recorded.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#').count();
    let answer = client.request("POST /write?db=telegraf", &[], recorded);
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    assert_eq!(sink.rows("telegraf"), lines as u64);
    // The other output, packed: the same rows again.
    let write = "POST /api/v2/write?bucket=telegraf&org=";
    let answer = client.request(write, &[GZIP, ("authorization", "Token x")], &gzip(recorded));
    assert_eq!(answer.status, 204);
    assert_eq!(sink.rows("telegraf"), 2 * lines as u64);
}

#[test]
fn a_database_that_is_not_there_is_told_in_the_words_that_telegraf_reads() {
    let listener = listen(Arc::new(Memory::default()), |_| ());
    let answer = once(listener.address(), "POST /write?db=telegraf", &[], b"m a=1");
    assert_eq!((answer.status, answer.json()), (404, json!({ "error": "database not found: \"telegraf\"" })));
    assert_eq!(answer.header("x-influxdb-error"), Some("database not found: \"telegraf\""));
    let answer = once(listener.address(), "POST /api/v2/write?bucket=b", &[], b"m a=1");
    assert_eq!(answer.json(), json!({ "code": "not found", "message": "database not found: \"b\"" }));
}

#[test]
fn a_bad_line_is_dropped_and_the_others_are_written() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    let body = "m a=1 1\nm a=\nm a=2i 2\nforbidden a=1\nm,t=x a=3 3\n";
    let answer = client.request("POST /write?db=db", &[], body.as_bytes());
    let error = "partial write: 3 of 5 lines were dropped: line 2, column 5: a field without a value: write NAME=VALUE, \
                 or leave it out; line 3: type conflict: field \"a\" is integer here, its column float: send float; \
                 line 4: there is no table \"forbidden\", and none may be made: create it first dropped=3";
    assert_eq!((answer.status, answer.json()), (400, json!({ "error": error })));
    assert_eq!(sink.rows("db"), 2);
    // Against what the store knows from the request before.
    let answer = client.request("POST /api/v2/write?bucket=db/autogen", &[], b"m a=true\nn a=true");
    let message = "partial write: 1 of 2 lines were dropped: line 1: type conflict: field \"a\" is boolean here, its \
                   column float: send float dropped=1";
    assert_eq!((answer.status, answer.json()), (400, json!({ "code": "invalid", "message": message })));
    assert_eq!(sink.rows("db"), 3);
}

#[test]
fn times_have_a_precision_and_qualities_are_numbers() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    for (query, time) in
        [("db=db", 7), ("db=db&precision=u", 7000), ("db=db&precision=h&rp=autogen", 7 * 3_600_000_000_000_i64)]
    {
        let body = b"m,t=x a=1,Quality=\"OK (0x0)\" 7";
        assert_eq!(client.request(&format!("POST /write?{query}"), &[], body).status, 204);
        let row = sink.look("db", |database| database.kept.last().unwrap().clone());
        assert_eq!(row, format!("m,t=x a=1 Quality=q192 @{time}"));
    }
    for line in [
        "POST /write?db=db&precision=weeks",
        "POST /api/v2/write?bucket=db&precision=m",
        "POST /write?db=db&rp=other",
        "POST /write",
        "POST /api/v2/write",
    ] {
        assert_eq!(client.request(line, &[], b"m a=1").status, 400, "{line}");
    }
    // A line without a time has the present one, to within the precision.
    assert_eq!(client.request("POST /write?db=db&precision=h", &[], b"m b=1").status, 204);
    let row = sink.look("db", |database| database.kept.last().unwrap().clone());
    let time: i64 = row.rsplit_once('@').unwrap().1.parse().unwrap();
    assert!(time > 1_700_000_000_000_000_000 && time % 3_600_000_000_000 == 0, "{time}");
}

#[test]
fn who_may_do_what() {
    let sink = Arc::new(Memory { locked: true, ..Memory::default() });
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    let me = ("authorization", "Basic bWU6c2VjcmV0"); // me:secret
    assert_eq!(client.request("GET /query?q=create%20database%20db", &[me], b"").status, 200);
    for (line, header, status) in [
        ("POST /write?db=db", None, 401),
        ("POST /write?db=db", Some("Token secret"), 204),
        ("POST /write?db=db", Some("Token me:secret"), 204),
        ("POST /api/v2/write?bucket=db", Some("Bearer secret"), 204),
        ("POST /write?db=db&u=me&p=secret", None, 204),
        ("POST /write?db=db&u=you&p=secret", None, 401),
        ("POST /write?db=db", Some("Token reader"), 403),
        ("POST /write?db=db", Some("Digest x"), 401),
        // Who may not write does not learn which databases there are.
        ("POST /write?db=nowhere", Some("Token wrong"), 401),
        ("GET /query?q=show%20databases", Some("Token reader"), 200),
        ("POST /query?q=drop%20database%20db", Some("Token reader"), 403),
        ("GET /ping", None, 204),
        ("GET /health", None, 200),
    ] {
        let headers: Vec<_> = header.into_iter().map(|header| ("authorization", header)).collect();
        let answer = client.request(line, &headers, b"m a=1");
        assert_eq!(answer.status, status, "{line} {header:?}");
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
    }
    assert_eq!(sink.rows("db"), 4);
    let answer = client.request("POST /api/v2/write?bucket=db", &[], b"m a=1");
    assert_eq!(answer.json()["code"], "unauthorized");
}

#[test]
fn ping_health_and_what_is_not_there() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    let ping = client.request("HEAD /ping", &[], b"");
    assert_eq!((ping.status, ping.header("x-influxdb-version")), (204, Some("1.8.10")));
    assert_eq!(client.request("GET /ping?verbose=true", &[], b"").json(), json!({ "version": "1.8.10" }));
    let health = client.request("GET /health", &[], b"");
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("pass")));
    *sink.error.lock().unwrap() = Some(SinkError::Full("full".to_owned()));
    let health = client.request("GET /health", &[], b"");
    assert_eq!((health.status, &health.json()["status"]), (503, &json!("fail")));
    for (line, status) in [
        ("GET /", 404),
        ("POST /api/v2/delete", 404),
        ("GET /write?db=db", 405),
        ("DELETE /query", 405),
        ("POST /ping", 405),
        ("POST /query", 400),
        ("POST /query?q=SELECT%201", 400),
        ("GET /query?q=drop%20database%20db", 400),
    ] {
        assert_eq!(client.request(line, &[], b"").status, status, "{line}");
    }
    let answer = client.request("GET /write?db=db", &[], b"");
    assert_eq!(answer.header("allow"), Some("POST"));
}

#[test]
fn statements_answer_as_influxdb_does() {
    let sink = Arc::new(Memory::default());
    let listener = listen(sink, |_| ());
    let mut client = Client::new(listener.address());
    let mut ask = |line: &str| client.request(line, &[], b"").json();
    let show = "GET /query?q=show%20databases";
    let listed = |names: serde_json::Value| {
        json!({ "results": [{ "statement_id": 0, "series":
            [{ "name": "databases", "columns": ["name"], "values": names }] }] })
    };
    assert_eq!(ask(show), listed(json!([])));
    // TSBS creates with GET.
    ask("GET /query?consistency=all&q=CREATE+DATABASE+benchmark+WITH+REPLICATION+1");
    assert_eq!(ask(show), listed(json!([["benchmark"]])));
    let twice =
        ask("POST /query?q=create%20database%20%22a%20b%22%3Bcreate%20database%20%22bad/name%22%3Bshow+databases");
    assert_eq!(
        twice,
        json!({ "results": [{ "statement_id": 0 }, { "statement_id": 1, "error": "a name has no slash" }] })
    );
    ask("POST /query?q=drop+database+benchmark");
    assert_eq!(ask(show), listed(json!([["a b"]])));
}

#[test]
fn errors_of_the_sink_have_a_status() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    let text = || "why".to_owned();
    for (error, status, again) in [
        (SinkError::Full(text()), 507, true),
        (SinkError::Unavailable(text()), 503, true),
        (SinkError::Failed(text()), 500, false),
        (SinkError::Refused(text()), 400, false),
        (SinkError::Forbidden(text()), 403, false),
        (SinkError::UnknownDatabase("db".to_owned()), 404, false),
    ] {
        *sink.error.lock().unwrap() = Some(error);
        for line in ["POST /write?db=db", "POST /api/v2/write?bucket=db"] {
            let answer = client.request(line, &[], b"m a=1");
            assert_eq!((answer.status, answer.header("retry-after").is_some()), (status, again));
            assert!(answer.body.contains("why") || status == 404);
        }
    }
    assert_eq!(sink.rows("db"), 0);
}

/// A page that a browser shows could otherwise write to a listener on loopback that asks for no token.
#[test]
fn web_pages_are_not_served() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    for header in [("origin", "http://example.com"), ("sec-fetch-site", "cross-site")] {
        for line in ["POST /write?db=db", "POST /query?q=drop+database+db", "GET /query?q=create+database+x"] {
            assert_eq!(once(listener.address(), line, &[header], b"m a=1").status, 403);
        }
    }
    assert_eq!(sink.rows("db"), 0);
}

#[test]
fn no_204_before_the_sink_says_durable() {
    let sink = Memory::with("db");
    *sink.delay.lock().unwrap() = Duration::from_millis(500);
    let listener = listen(sink.clone(), |_| ());
    let begun = std::time::Instant::now();
    assert_eq!(once(listener.address(), "POST /write?db=db", &[], b"m a=1").status, 204);
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert_eq!(sink.rows("db"), 1);
}
