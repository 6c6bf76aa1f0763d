//! Line protocol from files and pipes.

use std::io::{Read, Write};

use super::stage::Stage;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../influx/tests/data/telegraf.lp");

/// What the recorded traffic of Telegraf has, row by row: the three lines of `system` at one time are one, and so are two of
/// `disk` with the same tags.
pub fn recorded_is_there(stage: &Stage) {
    assert_eq!(
        stage.ask(
            "SELECT 'cpu', count(*) FROM cpu UNION ALL SELECT 'disk', count(*) FROM disk
             UNION ALL SELECT 'mem', count(*) FROM mem UNION ALL SELECT 'system', count(*) FROM system ORDER BY 1"
        ),
        "cpu,44;disk,30;mem,16;system,15"
    );
    assert_eq!(
        stage.ask("SELECT count(load1), count(uptime), count(uptime_format), sum(n_cpus) FROM system"),
        "15,15,15,30"
    );
    assert_eq!(
        stage.ask("SELECT total, used_percent FROM mem WHERE time = '2026-11-22 04:54:35'"),
        "25276502016,4.354255154860112"
    );
    assert_eq!(
        stage.ask("SELECT DISTINCT fstype, path FROM disk WHERE host = 'gateway-1' ORDER BY 1 DESC LIMIT 1"),
        "tmpfs,/dev/shm"
    );
}

#[test]
fn what_telegraf_writes_loads_from_a_file_and_from_a_pipe() {
    let stage = Stage::with_database();
    let told = stage.run(&["import", "db", RECORDED]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.err.contains("telegraf.lp: 150 rows"), "{}", told.err);
    recorded_is_there(&stage);
    // The same again does no harm, packed or not, from a pipe or a file of another name.
    let text = std::fs::read(RECORDED).expect("recorded");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&text).expect("packed");
    let packed = packed.finish().expect("packed");
    stage.write("again.lp.gz", &packed);
    stage.good(&["import", "db", "again.lp.gz"]);
    for input in [&text, &packed] {
        let piped = stage.run_with_input(&["import", "db", "-", "--format", "influx"], input);
        assert_eq!((piped.code, piped.err.contains("standard input: 150 rows")), (0, true), "{}", piped.err);
    }
    recorded_is_there(&stage);
    stage.good(&["verify", "db"]);
    stage.good(&["export", "db", "--all", "out"]);
    stage.good(&["init", "other"]);
    stage.good(&["import", "other", "--all", "out"]);
    assert_eq!(stage.good(&["other", "SELECT count(*) FROM cpu", "--no-header"]), "44\n");
}

const SOME_WRONG: &str =
    "# a comment\nm,h=a x=1 1\nm,h=a x=2i 2\nm,h=a x= 3\n\nm,h=a x=4,y=\"z\" 4\nm,k=b x=5 5\nm,h=a x=6 6\n";

#[test]
fn one_wrong_line_refuses_its_file_unless_batches_are_wanted() {
    let stage = Stage::with_database();
    stage.write("good.lp", "m,h=a x=0 0\n");
    stage.write("wrong.lp", SOME_WRONG);
    stage.good(&["import", "db", "good.lp"]);
    stage.refused(
        &["import", "db", "wrong.lp"],
        1,
        &[
            "3 of 6 lines refused, none was stored",
            "line 3: type conflict: field \"x\" is integer here, its column float",
            "line 4, column 9: a field without a value",
            "line 7: tag \"k\" is not in the key of the table",
            "(wrong.lp)",
            "--batch",
        ],
    );
    assert_eq!(stage.ask("SELECT count(*) FROM m"), "1");
    stage.refused(
        &["import", "db", "wrong.lp", "--batch", "2", "-q"],
        1,
        &["3 of 6 lines refused, the others are stored", "line 3"],
    );
    assert_eq!(stage.ask("SELECT x, y FROM m ORDER BY time"), "0,;1,;4,z;6,");
}

#[test]
fn units_and_qualities_are_told() {
    let stage = Stage::with_database();
    stage.write(
        "q.influx",
        "v,node=1 value=1.5,Quality=\"Good\" 7\nv,node=1 value=2,Quality=\"BadNoCommunication\" 8\n",
    );
    stage.good(&[
        "import",
        "db",
        "q.influx",
        "--precision",
        "s",
        "--quality-field",
        "Quality",
        "--quality-field",
        "other",
    ]);
    assert_eq!(
        stage.ask("SELECT value, \"Quality\", time FROM v ORDER BY time"),
        "1.5,192,1970-01-01 00:00:07;2,0,1970-01-01 00:00:08"
    );
    stage.refused(
        &["import", "db", "v", "q.influx"],
        1,
        &["line protocol names its tables itself", "leave the table out"],
    );
    stage.refused(&["import", "db", "q.influx", "--create"], 1, &["makes its tables itself"]);
    stage.refused(&["import", "db", "none.lp"], 1, &["no such file", "(none.lp)"]);
    stage.refused(&["import", "db", "--format", "influx"], 1, &["a file is wanted"]);
    stage.refused(&["import", "db", "q.influx", "--precision", "weeks"], 1, &["weeks"]);
}

/// A pipe that goes on for ever is stored as it comes, where batches are wanted.
#[test]
fn a_pipe_is_stored_batch_by_batch() {
    let stage = Stage::with_database();
    let mut child = stage.spawn(&["import", "db", "-", "--format", "influx", "--batch", "100"]);
    let mut input = child.stdin.take().expect("a pipe");
    for row in 0..250 {
        writeln!(input, "m,h=a x={row} {row}").expect("written");
    }
    // More than one read of the program's, so that the first rows are surely taken.
    input.write_all("# nothing\n".repeat(40_000).as_bytes()).expect("written");
    let begun = std::time::Instant::now();
    while stage.run(&["db", "SELECT count(*) FROM m", "--no-header"]).out != "200\n" {
        assert!(begun.elapsed().as_secs() < 60, "the first batches are not there");
    }
    child.kill().expect("killed");
    child.wait().expect("ends");
    assert_eq!(stage.ask("SELECT count(*), sum(x) FROM m"), "200,19900");
    drop(input);
}

/// Without batches, what was interrupted is not there.
#[test]
fn an_interrupted_pipe_leaves_nothing() {
    let stage = Stage::with_database();
    let mut child = stage.spawn(&["import", "db", "-", "--format", "influx"]);
    let mut input = child.stdin.take().expect("a pipe");
    for row in 0..100_000 {
        writeln!(input, "m,h=a x={row} {row}").expect("written");
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("sent");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    let mut told = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
    assert!(told.contains("interrupted: what was not committed is not kept"), "{told}");
    stage.refused(&["db", "SELECT count(*) FROM m"], 1, &["not found"]);
}
