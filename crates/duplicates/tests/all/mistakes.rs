//! Mistakes that duplicate finders made, and that shall not be made here.

use std::fs;

use haul_duplicates::{Options, Replication};

use crate::{disk_dir, found, paths};

#[test]
fn a_head_of_five_million_bytes_is_really_read_when_contents_are_skipped() {
    let dir = disk_dir();
    let mut bytes = vec![1; 6_000_000];
    fs::write(dir.path().join("a"), &bytes).unwrap();
    // Behind what is read by default, before the first sample.
    bytes[300_000] = 2;
    fs::write(dir.path().join("b"), &bytes).unwrap();
    let skip = Options { skip_content: true, ..Options::default() };
    assert_eq!(found(dir.path(), &skip).len(), 1, "samples alone do not show it");
    let head = Options { head_bytes: Some(5_000_000), ..skip };
    assert!(found(dir.path(), &head).is_empty());
}

#[test]
fn a_tail_longer_than_the_files_is_no_reason_to_drop_them() {
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
fn unique_files_are_reported_without_groups_of_others() {
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
