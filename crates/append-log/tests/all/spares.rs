//! Tests that spare files (files kept for new segments) with arbitrary content and of any
//! number are recycled or removed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Lsn, Options, SpacePriority, segment_name};
use haul_disk::{Disk, OsDisk};
use haul_disk_sim::MemoryDisk;

use crate::payload::{ids, payload};
use crate::recycled::spare;
use crate::{disk_dir, open_on, put, put_long, small, try_open};

/// Adds a file to the directory of a log, opens the log and appends across several segments.
/// Returns the number of spare files after opening.
fn rotate_with_spare(what: &str, name: &str, create: impl Fn(&Path), options: &Options) -> usize {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    put_long(&log, 0..40);
    log.close().unwrap();
    create(&dir.path().join(name));
    let log = try_open(dir.path(), options.clone()).unwrap().log;
    let spares = log.spare_segments();
    put_long(&log, 40..120);
    drop(log.append(&[b"not waited for"], SpacePriority::Ordinary).unwrap());
    drop(log);
    let mut found = try_open(dir.path(), small()).unwrap().records;
    found.pop();
    assert!(ids(&found).keys().copied().eq(0..120), "{what}");
    spares
}

#[test]
fn spare_with_any_content_is_recycled_or_removed() {
    let whole = 1 << 20;
    let segment_of_another_log = || {
        let dir = disk_dir();
        let log = try_open(dir.path(), small()).unwrap().log;
        put_long(&log, 5000..5030);
        log.close().unwrap();
        fs::read(dir.path().join(segment_name(1))).unwrap()
    };
    let foreign = segment_of_another_log();
    let name = spare(1);
    for (what, bytes, spares) in [
        ("another log's", foreign.clone(), 1),
        ("zeros", vec![0; whole], 1),
        ("garbage", vec![0xa5; whole], 1),
        ("cut", foreign[..whole - 4096].to_vec(), 0),
        ("cut within a page", foreign[..whole - 5].to_vec(), 0),
        ("empty", Vec::new(), 0),
        ("longer", [foreign.clone(), vec![1; 4096]].concat(), 0),
    ] {
        let create = |path: &Path| fs::write(path, &bytes).unwrap();
        assert_eq!(rotate_with_spare(what, &name, create, &small()), spares, "{what}");
        let none = Options { spare_segments_max: 0, ..small() };
        assert_eq!(rotate_with_spare(what, &name, create, &none), 0, "{what}, with none wanted");
        let longer = Options { segment_bytes: 2 << 20, ..small() };
        assert_eq!(rotate_with_spare(what, &name, create, &longer), 0, "{what}, of another length");
    }
    let with_holes = |path: &Path| {
        let file = fs::File::create(path).unwrap();
        file.set_len(whole as u64).unwrap();
        file.write_all_at(&foreign[..8192], 0).unwrap();
    };
    assert_eq!(rotate_with_spare("with holes", &name, with_holes, &small()), 0);
}

#[test]
fn linked_spare_file_is_not_recycled() {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    put_long(&log, 0..40);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    // A backup may link a segment after its removal has begun.
    let copy = dir.path().join("copy");
    fs::hard_link(dir.path().join(spare(1)), &copy).unwrap();
    let before = fs::read(&copy).unwrap();
    put_long(&log, 40..120);
    assert!(fs::read(&copy).unwrap() == before, "the log has written to the copy");
    let disk = OsDisk::open(dir.path()).unwrap();
    assert!(!disk.list("").unwrap().contains(&spare(1)));
    put(&log, &payload(120, 100));
    log.close().unwrap();
    assert_eq!(try_open(dir.path(), small()).unwrap().records.len(), 121 - 34);
}

#[test]
fn spare_segments_max_may_change_at_each_opening() {
    let disk = MemoryDisk::default();
    let (mut next, mut oldest) = (0, 0);
    for (spares, segment_bytes) in [
        (2, 1 << 20),
        (0, 1 << 20),
        (3, 1 << 20),
        (3, 2 << 20),
        (1, 1 << 20),
        (0, 2 << 20),
        (2, 1 << 20),
    ] {
        let options = Options { spare_segments_max: spares, segment_bytes, ..small() };
        let opened = open_on(Arc::new(disk.clone()), options).unwrap();
        assert!(ids(&opened.records).keys().copied().eq(oldest..next), "{spares} {segment_bytes}");
        assert!(opened.log.spare_segments() <= spares as usize);
        put_long(&opened.log, next..next + 150);
        next += 150;
        let numbers: Vec<u32> = opened.log.segments().iter().map(|s| s.number).collect();
        let mut reader = opened.log.reader(Lsn::new(numbers[numbers.len() - 2], 0));
        oldest = crate::payload::id_of(reader.read_next().unwrap().unwrap().1).unwrap();
        drop(reader);
        opened.log.truncate_front(Lsn::new(numbers[numbers.len() - 2], 0)).unwrap();
        assert!(opened.log.spare_segments() <= spares as usize);
    }
}
