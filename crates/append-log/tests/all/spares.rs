//! Tests that spare files (files kept for new segments) with arbitrary content, of any number and
//! of older format versions are recycled or removed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Lsn, Options, Room, segment_name};
use haul_disk::{Disk, LOCK_NAME, OsDisk};
use haul_disk_sim::MemoryDisk;

use crate::payload::{ids, payload};
use crate::recycled::{crc32c_of, spare};
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
    drop(log.append(&[b"not waited for"], Room::Ordinary).unwrap());
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

/// Returns a segment of format version 1.
fn version_1(number: u32, payloads: &[Vec<u8>], is_sealed: bool) -> Vec<u8> {
    let nonce = [9, 8, 7, 6, 5, 4, 3, number.to_le_bytes()[0]];
    let mut file = vec![0; 1 << 20];
    let mut header = [0; 40];
    header[..8].copy_from_slice(b"HAUL-LOG");
    header[8] = 1;
    header[16..20].copy_from_slice(&number.to_le_bytes());
    header[24..32].copy_from_slice(&nonce);
    header[32..40].copy_from_slice(&(1_u64 << 20).to_le_bytes());
    let sum = crc32c_of(&header, &[]);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    file[..40].copy_from_slice(&header);
    file[2048..2088].copy_from_slice(&header);
    let mut at = 4096;
    let seal = Vec::new();
    let records = payloads.iter().map(|payload| (1, payload));
    for (kind, payload) in records.chain(is_sealed.then_some((2, &seal))) {
        let lsn = Lsn::new(number, u32::try_from(at).unwrap()).0.to_le_bytes();
        let record = &mut file[at..];
        record[4..8].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        record[8..16].copy_from_slice(&lsn);
        record[16..24].copy_from_slice(&lsn);
        record[24] = kind;
        record[28..32].copy_from_slice(&crc32c_of(payload, &[]).to_le_bytes());
        let sum = crc32c_of(&nonce, &record[4..32]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        record[32..32 + payload.len()].copy_from_slice(payload);
        at = (at + 32 + payload.len()).next_multiple_of(8);
    }
    file
}

#[test]
fn version_1_log_is_appended_to_and_its_files_are_recycled() {
    let dir = disk_dir();
    let payloads =
        |ids: std::ops::Range<u64>| -> Vec<Vec<u8>> { ids.map(|id| payload(id, 30_000)).collect() };
    fs::write(dir.path().join(segment_name(1)), version_1(1, &payloads(0..30), true)).unwrap();
    fs::write(dir.path().join(segment_name(2)), version_1(2, &payloads(30..35), false)).unwrap();
    let opened = try_open(dir.path(), small()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(0..35));
    assert_eq!(
        put(&opened.log, &payload(35, 30_000)).lsn.segment(),
        2,
        "not appended to the last segment"
    );
    opened.log.close().unwrap();

    let opened = try_open(dir.path(), small()).unwrap();
    assert!(opened.recovered.closed);
    assert!(ids(&opened.records).keys().copied().eq(0..36));
    opened.log.truncate_front(Lsn::new(2, 0)).unwrap();
    put_long(&opened.log, 36..150);
    assert_eq!(opened.log.spare_segments(), 0, "the file of version 1 is not recycled");
    opened.log.close().unwrap();
    let found = ids(&try_open(dir.path(), small()).unwrap().records);
    assert!(found.keys().copied().eq(30..150));
    let versions: Vec<u8> = OsDisk::open(dir.path())
        .unwrap()
        .list("")
        .unwrap()
        .iter()
        .filter(|name| *name != LOCK_NAME)
        .map(|name| fs::read(dir.path().join(name)).unwrap()[8])
        .collect();
    assert_eq!(versions[..2], [1, 3], "{versions:?}");
    assert!(versions[1..].iter().all(|version| *version == 3));
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
