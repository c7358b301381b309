//! Tests for bugs that other duplicate finders had.

use std::fs;

use haul_duplicates::{Options, Replication};

use crate::{disk_dir, found, paths};

#[test]
fn long_head_is_read_completely_with_skip_content() {
    let dir = disk_dir();
    let mut bytes = vec![1; 6_000_000];
    fs::write(dir.path().join("a"), &bytes).unwrap();
    // This byte is after the default head and before the first sample.
    bytes[300_000] = 2;
    fs::write(dir.path().join("b"), &bytes).unwrap();
    let skip = Options { skip_content: true, ..Options::default() };
    assert_eq!(found(dir.path(), &skip).len(), 1, "equal by default samples");
    let head = Options { head_bytes: Some(5_000_000), ..skip };
    assert!(found(dir.path(), &head).is_empty());
}

#[test]
fn tail_longer_than_the_files_is_accepted() {
    let dir = disk_dir();
    for (a, b, bytes) in [("a", "b", 100_000), ("c", "d", 3_000_000), ("e", "f", 5)] {
        fs::write(dir.path().join(a), vec![1; bytes]).unwrap();
        fs::write(dir.path().join(b), vec![1; bytes]).unwrap();
    }
    for tail_bytes in [200_000, 10_000_000, u64::MAX] {
        let options = Options { tail_bytes: Some(tail_bytes), ..Options::default() };
        assert_eq!(found(dir.path(), &options).len(), 3, "{tail_bytes}");
    }
}

#[test]
fn unique_search_excludes_duplicates() {
    let dir = disk_dir();
    for (name, byte) in [("a", 1), ("b", 1), ("c", 2), ("d", 3)] {
        fs::write(dir.path().join(name), vec![byte; 100_000]).unwrap();
    }
    fs::hard_link(dir.path().join("d"), dir.path().join("e")).unwrap();
    let options = Options { replication: Replication::Under(2), ..Options::default() };
    let path = |name| dir.path().join(name);
    let expected = [[path("c")].into(), [path("d"), path("e")].into()].into();
    assert_eq!(paths(&found(dir.path(), &options)), expected);
}
