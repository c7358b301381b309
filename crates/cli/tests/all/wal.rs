//! Tests that `haul wal` prints, verifies, follows, copies and cuts append logs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};

use haul_append_log::{
    Log, Options, Position, SpacePriority, SyncMethod, segment_name, stored_bytes,
};
use serde_json::Value;

use crate::helper::{Finished, TestDir, noise};

/// The number of records of a log with three segments, and the length of each of them.
const RECORDS: u64 = 80;
const BYTES: usize = 30_000;

fn payload(id: u64) -> Vec<u8> {
    [format!("record {id}\n").into_bytes(), noise(id, BYTES)].concat()
}

fn open(place: &TestDir, dir: &str) -> (Log, Vec<(Position, Vec<u8>)>) {
    let options = Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        ..Options::default()
    };
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    let (log, _) = Log::open_dir(place.path(dir), options, &mut each).unwrap();
    (log, records)
}

fn append(log: &Log, ids: std::ops::Range<u64>) -> Vec<Position> {
    let put = |id| log.append(&[&payload(id)], SpacePriority::Ordinary).unwrap().wait().unwrap();
    ids.map(put).collect()
}

/// Creates the closed log `log` with three segments. Returns the positions of its records.
pub(crate) fn three_segments(place: &TestDir) -> Vec<Position> {
    let (log, _) = open(place, "log");
    let all = append(&log, 0..RECORDS);
    assert_eq!(log.segments().len(), 3);
    log.close().unwrap();
    all
}

/// Inverts a bit of a segment.
fn flip(place: &TestDir, segment: u32, offset: u64) {
    let path = place.path("log").join(segment_name(segment));
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

/// Writes bytes after the last record and the close record, as an interrupted write leaves them.
fn tear(place: &TestDir, last: Position) {
    let end = last.lsn.offset() + stored_bytes(last) + 32;
    let path = place.path("log").join(segment_name(last.lsn.segment()));
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&noise(1, 5000), end.into()).unwrap();
}

fn wal(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["wal"], arguments].concat())
}

fn json_lines(finished: &Finished) -> Vec<Value> {
    finished.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn dump_prints_the_records_between_two_lsns() {
    let place = TestDir::new();
    let all = three_segments(&place);
    let dumped = wal(&place, &["dump", "log"]).code(0);
    let lines = dumped.lines();
    assert_eq!(lines.len() as u64, RECORDS);
    for (id, (line, at)) in lines.iter().zip(&all).enumerate() {
        let start = format!("{}\t{}\trecord {id}\\n", at.lsn, at.payload_bytes);
        assert!(line.starts_with(&start) && line.ends_with("..."), "{line}");
    }
    let (from, to) = (all[40].lsn.to_string(), all[50].lsn.to_string());
    let range = ["dump", "log", "--from", &from, "--to", &to];
    let records = json_lines(&wal(&place, &[&range[..], &["--json"]].concat()).code(0));
    assert_eq!(records.len(), 10);
    assert_eq!(
        (&records[0]["kind"], &records[0]["lsn"]),
        (&"record".into(), &from.as_str().into())
    );
    assert_eq!(records[0]["payload"].as_str().unwrap().len(), 2 * payload(40).len());
    let raw = wal(&place, &[&range[..], &["--raw"]].concat()).code(0);
    assert!(raw.stdout() == (40..50).flat_map(payload).collect::<Vec<_>>());
    wal(&place, &["dump", "log", "--from", "3"]).code(2).stderr_contains(&["SEGMENT:OFFSET"]);
}

#[test]
fn verify_reports_damage_and_the_torn_tail() {
    let place = TestDir::new();
    let all = three_segments(&place);
    let verified = wal(&place, &["verify", "log"]).code(0);
    assert!(verified.text().starts_with("verified 80 records"), "{}", verified.text());
    assert!(verified.text().trim_end().ends_with("the log was closed"), "{}", verified.text());

    tear(&place, all[79]);
    let lines = json_lines(&wal(&place, &["verify", "log", "--json"]).code(0));
    assert_eq!((&lines[0]["kind"], &lines[0]["records"]), (&"summary".into(), &80.into()));
    assert!(lines[0]["torn_bytes"].as_u64().unwrap() > 4900, "{lines:?}");

    let damaged = all[50].lsn;
    flip(&place, damaged.segment(), u64::from(damaged.offset()) + 1000);
    let ended = wal(&place, &["verify", "log"]).code(1);
    let ended = ended.stderr_contains(&["found 1 damaged region"]);
    let expected = format!("{} at offset {}", segment_name(damaged.segment()), damaged.offset());
    assert!(ended.lines()[0].contains(&expected), "{:?}", ended.lines());
    let lines = json_lines(&wal(&place, &["verify", "log", "--json"]).code(1));
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["offset"]),
        (&"damage".into(), &damaged.offset().into())
    );
    assert_eq!((&lines[1]["damaged"], &lines[1]["records"]), (&1.into(), &79.into()));
    let dumped = wal(&place, &["dump", "log"]).code(1).stderr_contains(&[&expected]);
    assert_eq!(dumped.lines().len(), 79);
}

#[test]
fn copy_of_a_torn_log_has_all_records_and_no_torn_tail() {
    let place = TestDir::new();
    let all = three_segments(&place);
    tear(&place, all[79]);
    wal(&place, &["copy", "log", "copy"]).code(0).stderr_contains(&["left out"]);
    let summary = &json_lines(&wal(&place, &["verify", "copy", "--json"]).code(0))[0];
    assert_eq!((&summary["records"], &summary["torn_bytes"]), (&80.into(), &0.into()));
    assert_eq!(fs::read_dir(place.path("copy")).unwrap().count(), 3);
    let (log, records) = open(&place, "copy");
    let positions: Vec<_> = records.iter().map(|(at, _)| *at).collect();
    assert_eq!(positions, all);
    assert!((0..).zip(&records).all(|(id, (_, bytes))| *bytes == payload(id)));
    // The copy is a log that can be appended to.
    append(&log, 80..81);
    log.close().unwrap();
    wal(&place, &["copy", "log", "copy"]).code(3).stderr_contains(&["it exists"]);
}

#[test]
fn damaged_log_is_neither_copied_nor_cut() {
    let place = TestDir::new();
    let all = three_segments(&place);
    flip(&place, 2, 9000);
    let advice = "haul wal verify";
    wal(&place, &["copy", "log", "copy"]).code(1).stderr_contains(&["damaged", advice]);
    assert!(!place.path("copy").exists() && !place.path("copy.haul-copy").exists());
    let last = all[79].lsn.to_string();
    wal(&place, &["cut", "log", &last]).code(1).stderr_contains(&["damaged", advice]);
    assert!(place.path("log").join(segment_name(1)).exists());
}

#[test]
fn open_log_is_copied_and_not_cut() {
    let place = TestDir::new();
    let (log, _) = open(&place, "log");
    let all = append(&log, 0..RECORDS);
    let last = all[79].lsn.to_string();
    for arguments in [vec!["cut", "log", &last], vec!["cut", "--after", "log", &last]] {
        let refused = wal(&place, &arguments).code(3);
        refused.stderr_contains(&["in use by", &std::process::id().to_string()]);
    }
    wal(&place, &["copy", "log", "copy"]).code(0);
    let newer = append(&log, 80..82);
    assert_eq!(log.segments().len(), 3);
    let (copy, records) = open(&place, "copy");
    assert_eq!(records.last().unwrap().0, all[79]);
    drop(copy);
    assert_eq!(log.read(newer[1]).unwrap().payload(), payload(81));
}

#[test]
fn cut_removes_old_segments_or_new_records() {
    let place = TestDir::new();
    let all = three_segments(&place);
    let at = all[50].lsn;
    let finished = wal(&place, &["cut", "log", &at.to_string()]).code(0);
    let removed = at.segment() - 1;
    let unit = if removed == 1 { "segment" } else { "segments" };
    assert!(
        finished.text().starts_with(&format!("removed {removed} {unit};")),
        "{}",
        finished.text()
    );
    assert!(!place.path("log").join(segment_name(1)).exists());
    let kept: Vec<_> = all.iter().filter(|it| it.lsn.segment() >= at.segment()).copied().collect();

    let cut = all[60].lsn.to_string();
    let finished = wal(&place, &["cut", "--after", "log", &cut]).code(0);
    let newest = format!("the newest record is {}", all[59].lsn);
    assert!(finished.text().contains(&newest), "{}", finished.text());
    let (log, records) = open(&place, "log");
    let positions: Vec<_> = records.iter().map(|(at, _)| *at).collect();
    let expected: Vec<_> = kept.into_iter().filter(|it| it.lsn < all[60].lsn).collect();
    assert_eq!(positions, expected);
    drop(log);
    let inside = haul_append_log::Lsn(all[55].lsn.0 + 8).to_string();
    wal(&place, &["cut", "--after", "log", &inside]).code(2).stderr_contains(&["no record begins"]);
}

#[test]
fn copy_and_cut_print_json() {
    let place = TestDir::new();
    let all = three_segments(&place);
    let json = |arguments: &[&str]| {
        let lines = json_lines(&wal(&place, &[arguments, &["--json"]].concat()).code(0));
        assert_eq!(lines.len(), 1);
        lines.into_iter().next().unwrap()
    };
    let copied = json(&["copy", "log", "copy"]);
    assert_eq!((&copied["records"], &copied["segments"]), (&RECORDS.into(), &3.into()));
    assert_eq!(copied["torn_bytes"], 0);
    assert!(copied["end"].as_str().unwrap().starts_with("3:"), "{copied}");
    let at = all.iter().find(|at| at.lsn.segment() == 3).unwrap();
    let cut = json(&["cut", "log", &at.lsn.to_string()]);
    assert_eq!(cut, serde_json::json!({ "removed_segments": 2, "first_segment": 3 }));
    let last = all.last().unwrap().lsn.to_string();
    let newest = all[all.len() - 2].lsn.to_string();
    assert_eq!(json(&["cut", "log", &last, "--after"])["newest"], newest);
}

/// A running command, killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn tail_prints_the_last_records_and_follows() {
    let place = TestDir::new();
    let all = three_segments(&place);
    for count in [0, 1, 3, 70, 80, 100] {
        let tail = wal(&place, &["tail", "log", "-n", &count.to_string()]).code(0);
        let first = all.len() - count.min(80);
        let expected: Vec<_> = all[first..].iter().map(|at| format!("{}\t", at.lsn)).collect();
        let lines = tail.lines();
        assert_eq!(lines.len(), expected.len(), "{count}");
        assert!(lines.iter().zip(expected).all(|(line, start)| line.starts_with(&start)));
    }

    let (log, _) = open(&place, "log");
    let mut command = place.command(&["wal", "tail", "log", "-n", "1", "--follow", "--json"]);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut expect = |at: &Position| {
        let record: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(record["lsn"], at.lsn.to_string());
    };
    expect(&all[79]);
    // The records fill more than one segment, and old segments are removed meanwhile.
    for round in 0..10 {
        let newer = append(&log, 100 + 10 * round..110 + 10 * round);
        newer.iter().for_each(&mut expect);
        log.truncate_front(newer[0].lsn).unwrap();
    }
    assert!(log.segments()[0].number > 3);
}

#[test]
fn follower_reports_damage_once_and_ends_with_its_reader() {
    let place = TestDir::new();
    let all = three_segments(&place);
    let (log, _) = open(&place, "log");
    // Both headers in the first page of the last segment are damaged; those in its last page are
    // not.
    for offset in [20, 2048 + 20] {
        flip(&place, 3, offset);
    }
    let mut command = place.command(&["wal", "tail", "log", "-n", "1", "--follow"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut expect =
        |at: Position| assert!(lines.next().unwrap().unwrap().starts_with(&at.lsn.to_string()));
    expect(all[79]);
    // Each record is printed by another read of the log.
    for id in 100..104 {
        expect(append(&log, id..id + 1)[0]);
    }
    // The command ends when no one reads its output any more.
    drop(lines);
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    let stderr = std::io::read_to_string(running.0.stderr.take().unwrap()).unwrap();
    assert_eq!(stderr.matches("damaged: ").count(), 1, "{stderr}");
}

#[test]
fn volumes_of_a_store_are_verified_and_not_cut() {
    let place = TestDir::new();
    place.write("tree/file", "content");
    place.run(&["store", "import", "b-1", "tree"]).code(0);
    let volumes = "haul-data/volumes";
    wal(&place, &["verify", volumes]).code(0);
    for arguments in [vec!["cut", volumes, "9:0"], vec!["cut", "--after", volumes, "1:4096"]] {
        wal(&place, &arguments).code(3).stderr_contains(&["belongs to a store"]);
    }
    assert_eq!(place.run(&["store", "get", "b-1/file"]).code(0).stdout(), b"content");
}

#[test]
fn directory_without_a_log_is_refused_and_unchanged() {
    let place = TestDir::new();
    place.write("dir/file", "no segment");
    for arguments in [
        vec!["dump", "dir"],
        vec!["verify", "dir"],
        vec!["tail", "dir"],
        vec!["copy", "dir", "copy"],
        vec!["cut", "dir", "1:4096"],
        vec!["verify", "missing"],
    ] {
        wal(&place, &arguments).code(3).stderr_contains(&["cannot read the log in"]);
    }
    assert_eq!(fs::read_dir(place.path("dir")).unwrap().count(), 1);
    assert!(!place.path("copy").exists() && !place.path("missing").exists());
}
