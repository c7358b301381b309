//! Tests that logs written by earlier versions of this crate can be used. The logs are archives in
//! `tests/fixtures`.

use std::path::PathBuf;
use std::process::Command;

use crate::*;

/// Extracts `tests/fixtures/NAME.tar.gz` and returns the directory `NAME` inside `dir`.
fn extract(name: &str, dir: &TempDir) -> PathBuf {
    let archive = format!("{}/tests/fixtures/{name}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(tar.unwrap().success(), "cannot extract {archive}");
    dir.path().join(name)
}

/// The payload of record `n` in every archive.
fn payload(n: u32) -> Vec<u8> {
    let mut bytes = format!("record {n} ").into_bytes();
    let length = bytes.len() + (n * 97 % 5000) as usize;
    bytes.resize(length, n.to_le_bytes()[0]);
    bytes
}

/// The archive holds a log of format version 2 with recycled segments. A process appended 1,200
/// records, removed the segments before that of record 700, and was killed.
#[test]
fn version_2_log_is_read_and_appended_to() {
    let dir = disk_dir();
    let path = extract("log-v2-crashed", &dir);
    let open = |replay: &mut dyn haul_append_log::Replay| {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(&path).unwrap());
        Log::open(disk, small(), replay).unwrap()
    };
    let mut records = Vec::new();
    let (log, recovered) = open(&mut |_: Position, bytes: &[u8]| records.push(bytes.to_vec()));
    assert!(!recovered.closed && recovered.damage.is_empty(), "{recovered:?}");
    let first = 1200 - u32::try_from(records.len()).unwrap();
    assert!(first <= 700, "record 700 is missing: {} records", records.len());
    assert!((first..1200).map(payload).eq(records), "records differ");

    for n in 1200..2000 {
        log.append(&[&payload(n)], Room::Ordinary).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    let mut records = Vec::new();
    let (_log, recovered) = open(&mut |_: Position, bytes: &[u8]| records.push(bytes.to_vec()));
    assert!(recovered.closed && recovered.damage.is_empty(), "{recovered:?}");
    assert!((first..2000).map(payload).eq(records), "records differ");
}
