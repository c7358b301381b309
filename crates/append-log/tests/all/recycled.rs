//! Files used again: whatever an earlier use, another program or a crash left in them, none of it
//! is ever a record.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Log, Lsn, Options, Room, segment_name};
use haul_disk::{Disk, OsDisk};

use crate::memory::{Medium, MemoryDisk, Survival};
use crate::payload::{Random, ids, payload};
use crate::recovery::start;
use crate::{disk_dir, open_on, put, put_long, small, try_open};

/// Where the nonce of a segment's header is, and where the tag of a record's.
const NONCE_AT: usize = 24;
const TAG_AT: usize = 25;

fn spare(number: u32) -> String {
    format!("{number:010}.spare")
}

/// A log whose first segment was used by these records and is spare now, and whose second is
/// begun.
fn with_a_spare(lengths: &[usize]) -> (MemoryDisk, Log) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let mut id = 0;
    while log.segments().len() < 2 {
        put(&log, &payload(id, lengths[usize::try_from(id).unwrap() % lengths.len()]));
        id += 1;
    }
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    assert_eq!(log.spare_segments(), 1);
    (disk, log)
}

/// Fills segments until one of a spare file is written to, and gives its number.
fn rotate_into_spare(disk: &MemoryDisk, log: &Log, next_id: &mut u64) -> u32 {
    loop {
        let number = put_long(log, *next_id..*next_id + 1).lsn.segment();
        *next_id += 1;
        // The flag of a file that was used before.
        if disk.medium().file(&segment_name(number))[20] & 2 != 0 {
            return number;
        }
    }
}

#[test]
fn stale_bytes_at_every_place_of_a_record_are_no_record() {
    // Records of one word to several pages, so that their borders fall everywhere.
    let lengths = [8, 40, 500, 4056, 5000, 8160, 13_000, 60_000];
    let (disk, log) = with_a_spare(&lengths);
    let mut id = 1000;
    let number = rotate_into_spare(&disk, &log, &mut id);
    let medium = disk.medium();
    drop(log);
    let expected = ids(&start(&medium, small()).unwrap().records);
    assert!(expected.keys().all(|id| *id >= 1000 || expected[id].segment() > 1));
    // Each new record moves the end over other stale bytes; a power cut leaves any of them.
    let mut random = Random(number.into());
    let (mut medium, mut states) = (medium, 0);
    for id in 2000..2120 {
        let disk = MemoryDisk::on(&medium);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        let before = ids(&opened.records);
        let bytes = lengths[usize::try_from(random.below(7)).unwrap()];
        let at = put(&opened.log, &payload(id, bytes));
        for survival in [Survival::Nothing, Survival::Half { seed: id }, Survival::Everything] {
            let again = start(&disk.medium().cut(survival), small()).unwrap();
            let mut expected = before.clone();
            expected.insert(id, at.lsn);
            assert_eq!(ids(&again.records), expected, "{bytes} bytes at {}", at.lsn);
            assert_eq!(again.recovered.torn_bytes, 0);
            states += 1;
        }
        medium = disk.medium();
        drop(opened);
        medium = medium.cut(Survival::Nothing);
    }
    println!("{states} states");
}

/// A medium whose last segment, of this number, is of a spare file and has a few records, where
/// they end, and how many records there are.
fn recycled_tail() -> (Medium, u32, usize, usize) {
    let (disk, log) = with_a_spare(&[4000]);
    let mut id = 1000;
    let number = rotate_into_spare(&disk, &log, &mut id);
    let at = put(&log, &payload(1 << 20, 100));
    assert_eq!(at.lsn.segment(), number);
    let medium = disk.medium();
    let records = start(&medium, small()).unwrap().records.len();
    drop(log);
    (medium, number, (at.lsn.offset() as usize + 132).next_multiple_of(8), records)
}

#[test]
fn payloads_made_to_look_like_records_of_the_next_use_are_none() {
    let (mut medium, number, end, records) = recycled_tail();
    let name = segment_name(number);
    let file = medium.file(&name).clone();
    let nonce = file[NONCE_AT..NONCE_AT + 8].to_vec();
    let record = |lsn: u64, nonce: &[u8], tag: &[u8]| {
        let mut bytes = vec![0; 64];
        bytes[4..8].copy_from_slice(&32_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&lsn.to_le_bytes());
        bytes[16..24].copy_from_slice(&lsn.to_le_bytes());
        bytes[24] = 1;
        bytes[25..28].copy_from_slice(tag);
        bytes[32..].fill(7);
        let sum = crc32c_of(&bytes[32..], &[]);
        bytes[28..32].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c_of(nonce, &bytes[4..32]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    };
    assert_eq!(file[4096 + TAG_AT..4096 + TAG_AT + 3], nonce[..3], "the tag is of the nonce");
    // Right places, and the nonce of another use; or no tag, as in version 1.
    let other = [1_u8, 2, 3, 4, 5, 6, 7, 8];
    for (nonce, tag) in [
        (&other[..], &other[..3]),
        (&other[..], &[0; 3]),
        (&other[..], &nonce[..3]),
        (&nonce[..], &[0; 3][..]),
    ] {
        let mut medium = medium.clone();
        let file = medium.file(&name);
        for at in (end..file.len() - 64).step_by(64) {
            let lsn = Lsn::new(number, u32::try_from(at).unwrap()).0;
            file[at..at + 64].copy_from_slice(&record(lsn, nonce, tag));
        }
        let opened = start(&medium, small()).unwrap();
        assert_eq!(opened.records.len(), records);
        assert_eq!(opened.recovered.torn_bytes, 0);
        put(&opened.log, &payload(1 << 21, 32));
    }
    // The same with the right nonce and tag are records: the test looks where it should.
    let file = medium.file(&name);
    let lsn = Lsn::new(number, u32::try_from(end).unwrap()).0;
    file[end..end + 64].copy_from_slice(&record(lsn, &nonce, &nonce[..3]));
    let mut seen = 0;
    let mut each = |_: haul_append_log::Position, _: &[u8]| seen += 1;
    drop(Log::open(Arc::new(MemoryDisk::on(&medium)), small(), &mut each).unwrap());
    assert_eq!(seen, records + 1);
}

/// The checksum of a record's parts.
fn crc32c_of(first: &[u8], second: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in first.iter().chain(second) {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0x82f6_3b78 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

/// Lays a file with this name and these bytes beside a log, and goes through several rotations.
fn goes_on_beside(what: &str, name: &str, lay: impl Fn(&Path), options: &Options) -> usize {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    put_long(&log, 0..40);
    log.close().unwrap();
    lay(&dir.path().join(name));
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
fn a_spare_file_is_used_or_removed_whatever_is_in_it() {
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
        ("anything", vec![0xa5; whole], 1),
        ("cut", foreign[..whole - 4096].to_vec(), 0),
        ("cut within a page", foreign[..whole - 5].to_vec(), 0),
        ("empty", Vec::new(), 0),
        ("longer", [foreign.clone(), vec![1; 4096]].concat(), 0),
    ] {
        let lay = |path: &Path| fs::write(path, &bytes).unwrap();
        assert_eq!(goes_on_beside(what, &name, lay, &small()), spares, "{what}");
        let none = Options { spare_segments_max: 0, ..small() };
        assert_eq!(goes_on_beside(what, &name, lay, &none), 0, "{what}, with none wanted");
        let longer = Options { segment_bytes: 2 << 20, ..small() };
        assert_eq!(goes_on_beside(what, &name, lay, &longer), 0, "{what}, of another length");
    }
    let with_holes = |path: &Path| {
        let file = fs::File::create(path).unwrap();
        file.set_len(whole as u64).unwrap();
        file.write_all_at(&foreign[..8192], 0).unwrap();
    };
    assert_eq!(goes_on_beside("with holes", &name, with_holes, &small()), 0);
}

#[test]
fn a_spare_whose_header_is_already_that_of_the_next_segment_is_still_a_spare() {
    let (disk, log) = with_a_spare(&[4000]);
    put_long(&log, 1000..1003);
    let (disk, expected) = (MemoryDisk::on(&disk.medium()), log);
    let mut medium = disk.medium();
    drop(expected);
    assert!(disk.list("").unwrap().contains(&spare(1)));
    let expected = ids(&start(&medium, small()).unwrap().records);
    // As the step before the rename leaves it, whole or torn.
    let mut header = medium.file(&segment_name(2))[..48].to_vec();
    header[16] = 3;
    header[12..16].fill(0);
    let sum = crc32c_of(&header, &[]);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    for (first, second, zeros) in
        [(true, true, 4096), (true, false, 0), (false, true, 512), (false, false, 4096)]
    {
        let mut left = medium.clone();
        let file = left.file(&spare(1));
        for at in [(first, 0), (second, 2048)].into_iter().filter(|(is, _)| *is).map(|(_, at)| at) {
            file[at..at + 48].copy_from_slice(&header);
        }
        file[4096..4096 + zeros].fill(0);
        let disk = MemoryDisk::on(&left);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        assert_eq!(ids(&opened.records), expected);
        assert_eq!(opened.log.spare_segments(), 1);
        put_long(&opened.log, 2000..2080);
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.records.len(), expected.len() + 80);
        // Renamed, whatever of the header came to the medium: then it was synced before.
        let mut left = medium.clone();
        left.file(&spare(1))[..48].copy_from_slice(&header);
        left.file(&spare(1))[4096..8192].fill(0);
        let disk = MemoryDisk::on(&left);
        disk.rename(&spare(1), &segment_name(3)).unwrap();
        for survival in [Survival::Nothing, Survival::Everything] {
            let opened = start(&disk.medium().cut(survival), small()).unwrap();
            assert_eq!(ids(&opened.records), expected, "{survival:?}");
        }
    }
}

/// A segment of version 1 of the format, as such a version left it.
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
fn a_log_of_version_1_is_gone_on_with_and_its_files_are_used_again() {
    let dir = disk_dir();
    let payloads =
        |ids: std::ops::Range<u64>| -> Vec<Vec<u8>> { ids.map(|id| payload(id, 30_000)).collect() };
    fs::write(dir.path().join(segment_name(1)), version_1(1, &payloads(0..30), true)).unwrap();
    fs::write(dir.path().join(segment_name(2)), version_1(2, &payloads(30..35), false)).unwrap();
    let opened = try_open(dir.path(), small()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(0..35));
    assert_eq!(put(&opened.log, &payload(35, 30_000)).lsn.segment(), 2, "it goes on behind");
    opened.log.close().unwrap();

    let opened = try_open(dir.path(), small()).unwrap();
    assert!(opened.recovered.closed);
    assert!(ids(&opened.records).keys().copied().eq(0..36));
    opened.log.truncate_front(Lsn::new(2, 0)).unwrap();
    put_long(&opened.log, 36..150);
    assert_eq!(opened.log.spare_segments(), 0, "what was of version 1 is in use again");
    opened.log.close().unwrap();
    let found = ids(&try_open(dir.path(), small()).unwrap().records);
    assert!(found.keys().copied().eq(30..150));
    let versions: Vec<u8> = OsDisk::open(dir.path())
        .unwrap()
        .list("")
        .unwrap()
        .iter()
        .map(|name| fs::read(dir.path().join(name)).unwrap()[8])
        .collect();
    assert_eq!(versions[..2], [1, 2], "{versions:?}");
    assert!(versions[1..].iter().all(|version| *version == 2));
}

#[test]
fn how_many_spares_are_kept_may_change_at_each_opening() {
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
