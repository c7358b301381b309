//! Tests that `haul patch` writes records to a file, and completes interrupted patches.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

use haul_disk::{Disk, OsDisk};
use haul_sorted_write::Patch;
use serde_json::Value;

use crate::helper::{TestDir, noise};

const FILE_BYTES: usize = 3 << 20;

fn record(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&(offset as u64).to_le_bytes()[..], &length.to_le_bytes(), bytes].concat()
}

/// Creates the file `big`. Returns a stream of records, and the content of the file after a patch
/// with these records.
fn example(place: &TestDir, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut model = noise(seed, FILE_BYTES);
    place.write("big", &model);
    let random = noise(seed + 1, 8000);
    let mut stream = Vec::new();
    for four in random.chunks(4) {
        let at = |n: usize| usize::from(four[n]);
        let offset = (at(0) << 16 | at(1) << 8 | at(2)) % (FILE_BYTES - 3000);
        let bytes = noise(seed + offset as u64, at(3) * 10 + 1);
        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
        stream.extend(record(offset, &bytes));
    }
    (stream, model)
}

#[test]
fn records_are_written_as_if_one_by_one() {
    for arguments in [&["--memory", "1MiB"][..], &["--depth", "4"], &["--atomic"]] {
        let place = TestDir::new();
        let (stream, model) = example(&place, 1);
        let arguments = [&["patch", "big"], arguments].concat();
        let ended = place.run_with(&arguments, &stream).code(0);
        assert_eq!(ended.stderr(), "");
        let lines = ended.lines();
        assert!(lines[0].starts_with("patched big: 2,000 records ("), "{lines:?}");
        assert!(lines[1].contains("written") && lines[2].contains("seek distance"), "{lines:?}");
        assert!(fs::read(place.path("big")).unwrap() == model);
        assert!(!place.path("big.haul-patch").exists());
    }
}

#[test]
fn dry_run_reports_the_real_figures_and_writes_nothing() {
    let place = TestDir::new();
    let (stream, model) = example(&place, 2);
    let before = fs::read(place.path("big")).unwrap();
    let run = |more: &[&str]| -> Value {
        let arguments = [&["patch", "--json", "big"], more].concat();
        let ended = place.run_with(&arguments, &stream).code(0);
        serde_json::from_str(ended.text()).unwrap()
    };
    let rehearsed = run(&["--dry-run"]);
    assert!(fs::read(place.path("big")).unwrap() == before);
    let real = run(&[]);
    assert!(fs::read(place.path("big")).unwrap() == model);
    for name in [
        "records",
        "bytes",
        "write_requests",
        "written_bytes",
        "read_requests",
        "read_bytes",
        "write_requests_saved",
        "head_travel_bytes",
        "head_travel_bytes_as_given",
    ] {
        assert_eq!(rehearsed[name], real[name], "{name}");
        assert!(real[name].is_u64(), "{name}");
    }
    let number = |name: &str| real[name].as_u64().unwrap();
    assert_eq!(number("write_requests") + number("write_requests_saved"), 2000);
    assert!(number("head_travel_bytes") < FILE_BYTES as u64);
    assert!(number("head_travel_bytes_as_given") > 1000 * 100_000);
    assert_eq!((&rehearsed["dry_run"], &real["dry_run"]), (&true.into(), &false.into()));
}

#[test]
fn list_names_files_and_offsets() {
    let place = TestDir::new();
    place.write("big", [0; 10_000]);
    place.write("a", b"hello");
    place.write("with space", [7; 3000]);
    place.write("list", "# changes\n\n100 a\n  5000   with space\n102 a\n");
    place.run(&["patch", "big", "--list", "list"]).code(0);
    let big = fs::read(place.path("big")).unwrap();
    assert_eq!(&big[98..108], b"\0\0hehello\0");
    assert_eq!((big[4999], &big[5000..8000], big[8000]), (0, &[7; 3000][..], 0));
    for (list, expected) in [("x a\n", "line 1"), ("1 a\n2 nowhere\n", "line 2"), ("1\n", "line 1")]
    {
        place.write("list", list);
        place
            .run(&["patch", "big", "--list", "list"])
            .code(1)
            .stderr_contains(&[expected, "nothing was written"]);
    }
    assert!(fs::read(place.path("big")).unwrap() == big);
}

#[test]
fn truncated_stream_writes_the_records_before_it_or_none() {
    let place = TestDir::new();
    let stream = [record(0, b"one"), record(5, b"two"), record(9, b"three")].concat();
    for cut in [stream.len() - 1, stream.len() - 5, stream.len() - 10] {
        place.write("big", [b'.'; 20]);
        let ended = place.run_with(&["patch", "big"], &stream[..cut]).code(1);
        ended.stderr_contains(&[
            "the input ends within record 3",
            "the 2 records before it are written",
        ]);
        assert_eq!(fs::read(place.path("big")).unwrap(), b"one..two............");
        place.write("big", [b'.'; 20]);
        let ended = place.run_with(&["patch", "--atomic", "big"], &stream[..cut]).code(1);
        ended.stderr_contains(&["the input ends within record 3", "big is unchanged"]);
        assert_eq!(fs::read(place.path("big")).unwrap(), [b'.'; 20]);
        assert!(!place.path("big.haul-patch").exists());
    }
}

#[test]
fn records_beyond_the_end_require_extend() {
    let place = TestDir::new();
    place.write("big", [b'.'; 20]);
    let stream = [record(18, b"ab"), record(19, b"xy"), record(30, b"z")].concat();
    let ended = place.run_with(&["patch", "big"], &stream).code(1);
    ended.stderr_contains(&[
        "record 2 (2 bytes at offset 19)",
        "the end of the file at 20",
        "--extend",
    ]);
    assert_eq!(fs::read(place.path("big")).unwrap(), b"..................ab");
    place.run_with(&["patch", "--extend", "big"], &stream).code(0);
    let expected = [&b"..................axy"[..], &[0; 9], b"z"].concat();
    assert_eq!(fs::read(place.path("big")).unwrap(), expected);
    let far = record(usize::MAX - 1, b"xyz");
    place.run_with(&["patch", "--extend", "big"], &far).code(1).stderr_contains(&["record 1"]);
}

#[test]
fn unusable_targets_are_reported() {
    let place = TestDir::new();
    place
        .run(&["patch", "nowhere"])
        .code(3)
        .stderr_contains(&["cannot patch nowhere", "No such file"]);
    fs::create_dir(place.path("dir")).unwrap();
    place.run(&["patch", "dir"]).code(3).stderr_contains(&["not a regular file"]);
    place.run(&["patch", "big", "--resume", "--atomic"]).code(2);
    place.run(&["patch", "big", "--memory", "1KiB"]).code(2);
    place.write("big", b"big");
    place
        .run(&["patch", "--resume", "big"])
        .code(0)
        .stderr_contains(&["no interrupted patch of big"]);
    let file = fs::File::open(place.path("big")).unwrap();
    file.try_lock().unwrap();
    place.run(&["patch", "big"]).code(3).stderr_contains(&["locked by another process"]);
}

#[test]
fn killed_atomic_patch_is_completed_or_discarded() {
    let mut dropped = 0;
    for n in 0..10 {
        let place = TestDir::new();
        let (stream, model) = example(&place, 100 + n as u64);
        let before = fs::read(place.path("big")).unwrap();
        let mut child = place
            .command(&["patch", "--atomic", "big"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The first eight runs write a growing part of the records, the last two all records and
        // the end of the input. So the kill hits the program at different stages.
        stdin.write_all(&stream[..stream.len() * n.min(8) / 8]).unwrap();
        let kept_open = (n < 8).then_some(stdin);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(kept_open);
        let was_under_way = place.path("big.haul-patch").exists();
        let ended = place.run(&["patch", "--resume", "--json", "big"]).code(0);
        let found = fs::read(place.path("big")).unwrap();
        assert!(found == before || (n >= 8 && found == model), "{n}");
        if ended.stderr().contains("discarded an incomplete patch") {
            assert!(was_under_way && found == before, "{n}");
            dropped += 1;
        }
        assert!(!place.path("big.haul-patch").exists());
    }
    println!("{dropped} dropped");
}

/// Leaves a patch as an interrupted run does: durable in the journal, but not written to the file.
fn leave_committed(place: &TestDir) {
    place.write("big", [b'.'; 20]);
    fs::create_dir(place.path("big.haul-patch")).unwrap();
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(place.path("big.haul-patch")).unwrap());
    let mut patch = Patch::begin(&log, "big", 20, 0).unwrap();
    patch.add(3, b"three").unwrap();
    patch.add(5, b"five").unwrap();
    patch.commit().unwrap();
}

#[test]
fn interrupted_patch_is_completed_first() {
    let place = TestDir::new();
    leave_committed(&place);
    place.run(&["patch", "--dry-run", "big"]).code(3).stderr_contains(&["haul patch --resume big"]);
    let ended = place.run(&["patch", "--resume", "--json", "big"]).code(0);
    let report: Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!((&report["records"], &report["bytes"]), (&2.into(), &9.into()));
    assert_eq!(fs::read(place.path("big")).unwrap(), b"...thfive...........");
    assert!(!place.path("big.haul-patch").exists());

    leave_committed(&place);
    let ended = place.run_with(&["patch", "big"], &record(4, b"X")).code(0);
    ended.stderr_contains(&["completed an interrupted patch of 2 records"]);
    assert_eq!(fs::read(place.path("big")).unwrap(), b"...tXfive...........");

    leave_committed(&place);
    place.write("big", b"short");
    place
        .run(&["patch", "--resume", "big"])
        .code(3)
        .stderr_contains(&["its file had at least 20 bytes"]);
    assert_eq!(fs::read(place.path("big")).unwrap(), b"short");
    assert!(place.path("big.haul-patch").exists());
}
