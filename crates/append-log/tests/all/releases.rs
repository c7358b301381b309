//! Logs written by released versions, from the archives `tests/fixtures/log-VERSION.tar.gz`. Every
//! later version must read them and append to them.

use haul_testing::fixtures;

use crate::*;

/// The directories of an archive: a log that was closed, and one as a killed process left it.
const LOGS: [&str; 2] = ["closed", "killed"];

/// The number of records appended to each log.
const RECORDS: u32 = 500;

/// The first record that was not removed; earlier ones may be in its segment.
const KEPT: u32 = 300;

/// Returns the payload of record `n`.
fn payload(n: u32) -> Vec<u8> {
    let mut bytes = format!("record {n} ").into_bytes();
    bytes.resize(bytes.len() + (n * 97 % 12_000) as usize, n.to_le_bytes()[0]);
    bytes
}

/// Appends records, and waits for every tenth and for the last one.
fn append(log: &Log, records: Range<u32>) -> Position {
    let tickets =
        records.map(|n| (n, log.append(&[&payload(n)], SpacePriority::Ordinary).unwrap()));
    let mut last = None;
    for (n, ticket) in tickets {
        last = if n % 10 == 9 { Some(ticket.wait().unwrap()) } else { None };
    }
    last.unwrap()
}

/// Writes the logs of an archive, whose first segments are removed and recycled.
fn write(dir: &Path) {
    for name in LOGS {
        let (path, killed) = (dir.join(name), disk_dir());
        let target = if name == "killed" { killed.path() } else { &path };
        std::fs::create_dir_all(target).unwrap();
        let OpenedLog { log, .. } = try_open(target, small()).unwrap();
        let kept = append(&log, 0..KEPT);
        append(&log, KEPT..400);
        log.truncate_front(kept.lsn).unwrap();
        append(&log, 400..RECORDS);
        if name == "killed" {
            fixtures::copy_files(target, &path);
        }
        log.close().unwrap();
    }
}

fn check(dir: &Path, version: &str) {
    for name in LOGS {
        let open = || try_open(&dir.join(name), small()).unwrap();
        let OpenedLog { log, records, recovered } = open();
        assert!(recovered.damage.is_empty(), "{version} {name}: {recovered:?}");
        assert_eq!(recovered.closed, name != "killed", "{version} {name}: {recovered:?}");
        let first = RECORDS - u32::try_from(records.len()).unwrap();
        assert!((1..KEPT).contains(&first), "{version} {name}: the first record is {first}");
        let are = |records: &[(Position, Vec<u8>)], end| {
            let expected: Vec<_> = (first..end).map(payload).collect();
            records.iter().map(|(_, bytes)| bytes).eq(&expected)
        };
        assert!(are(&records, RECORDS), "{version} {name}: records differ");
        for (at, bytes) in &records {
            assert_eq!(log.read(*at).unwrap().payload(), bytes, "{version} {name}: {at:?}");
        }
        append(&log, RECORDS..RECORDS + 200);
        log.close().unwrap();
        let OpenedLog { log, records, recovered } = open();
        assert!(recovered.closed && recovered.damage.is_empty(), "{version} {name}: {recovered:?}");
        assert!(are(&records, RECORDS + 200), "{version} {name}: records differ");
        log.close().unwrap();
    }
}

#[test]
fn logs_of_released_versions_are_read_and_appended_to() {
    for (version, dir) in fixtures::release_fixtures(env!("CARGO_MANIFEST_DIR"), "log") {
        check(dir.path(), &version);
    }
}

#[test]
fn log_of_this_version_passes_the_test_of_releases() {
    let dir = disk_dir();
    write(dir.path());
    fixtures::save(dir.path(), "log", env!("CARGO_PKG_VERSION"));
    check(dir.path(), "this version");
}
