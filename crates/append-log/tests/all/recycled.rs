//! Tests that stale or forged bytes in a recycled file are never delivered as records.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, segment_name};
use haul_disk::Disk;
use haul_disk_sim::{Medium, MemoryDisk, Survival};

use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{open_on, put, put_long, small};

/// The offset of the nonce in a segment header, and of the tag in a record header, in bytes.
const NONCE_AT: usize = 24;
const TAG_AT: usize = 25;

pub(crate) fn spare(number: u32) -> String {
    format!("{number:010}.spare")
}

/// Creates a log with two segments. The first one contained records of these lengths and is now a
/// spare file; the second one is being written.
pub(crate) fn with_a_spare(lengths: &[usize]) -> (MemoryDisk, Log) {
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

/// Fills segments until a recycled one is being written, and returns its number.
pub(crate) fn rotate_into_spare(disk: &MemoryDisk, log: &Log, next_id: &mut u64) -> u32 {
    loop {
        let number = put_long(log, *next_id..*next_id + 1).lsn.segment();
        *next_id += 1;
        // The second flag in the header marks a recycled file.
        if disk.medium().file(&segment_name(number))[20] & 2 != 0 {
            return number;
        }
    }
}

/// Returns a medium whose last segment is recycled and has a few records, the number of that
/// segment, the end of its records, and the number of all records.
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
fn forged_records_after_the_end_are_never_delivered() {
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
    // The LSNs are correct. Nonce or tag are those of another use of the file, or the tag is
    // missing.
    let other = [1_u8, 2, 3, 4, 5, 6, 7, 8];
    for (nonce, tag) in [
        (&other[..], &other[..3]),
        (&other[..], &[0; 3]),
        (&other[..], &nonce[..3]),
        (&nonce[..], &[0; 3][..]),
    ] {
        let mut medium = medium.clone();
        let mut file = medium.file(&name);
        for at in (end..file.len() - 4096 - 64).step_by(64) {
            let lsn = Lsn::new(number, u32::try_from(at).unwrap()).0;
            file[at..at + 64].copy_from_slice(&record(lsn, nonce, tag));
        }
        drop(file);
        let opened = start(&medium, small()).unwrap();
        assert_eq!(opened.records.len(), records);
        assert_eq!(opened.recovered.torn_bytes, 0);
        put(&opened.log, &payload(1 << 21, 32));
    }
    // With the correct nonce and tag the forged record is delivered. The records above were thus
    // rejected only because of nonce and tag.
    let mut file = medium.file(&name);
    let lsn = Lsn::new(number, u32::try_from(end).unwrap()).0;
    file[end..end + 64].copy_from_slice(&record(lsn, &nonce, &nonce[..3]));
    drop(file);
    let mut seen = 0;
    let mut each = |_: haul_append_log::Position, _: &[u8]| seen += 1;
    drop(Log::open(Arc::new(MemoryDisk::on(&medium)), small(), &mut each).unwrap());
    assert_eq!(seen, records + 1);
}

/// Returns the CRC-32C of the concatenated parts.
pub(crate) fn crc32c_of(first: &[u8], second: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in first.iter().chain(second) {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0x82f6_3b78 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

#[test]
fn spare_with_the_header_of_the_next_segment_is_still_a_spare() {
    let (disk, log) = with_a_spare(&[4000]);
    put_long(&log, 1000..1003);
    let (disk, expected) = (MemoryDisk::on(&disk.medium()), log);
    let mut medium = disk.medium();
    drop(expected);
    assert!(disk.list("").unwrap().contains(&spare(1)));
    let expected = ids(&start(&medium, small()).unwrap().records);
    // If a crash happens before the rename, the new header is complete or torn, and the file is a
    // spare file.
    let mut header = medium.file(&segment_name(2))[..48].to_vec();
    header[16] = 3;
    header[12..16].fill(0);
    let sum = crc32c_of(&header, &[]);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    for (first, second, zeros) in
        [(true, true, 4096), (true, false, 0), (false, true, 512), (false, false, 4096)]
    {
        let mut left = medium.clone();
        let mut file = left.file(&spare(1));
        for at in [(first, 0), (second, 2048)].into_iter().filter(|(is, _)| *is).map(|(_, at)| at) {
            file[at..at + 48].copy_from_slice(&header);
        }
        file[4096..4096 + zeros].fill(0);
        drop(file);
        let disk = MemoryDisk::on(&left);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        assert_eq!(ids(&opened.records), expected);
        assert_eq!(opened.log.spare_segments(), 1);
        put_long(&opened.log, 2000..2080);
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.records.len(), expected.len() + 80);
        // After the rename the header is always complete, because it was synced before.
        let mut left = medium.clone();
        let mut file = left.file(&spare(1));
        let end_page = file.len() - 4096;
        file[..48].copy_from_slice(&header);
        file[4096..8192].fill(0);
        file[end_page..end_page + 48].copy_from_slice(&header);
        drop(file);
        let disk = MemoryDisk::on(&left);
        disk.rename(&spare(1), &segment_name(3)).unwrap();
        for survival in [Survival::Nothing, Survival::Everything] {
            let opened = start(&disk.medium().cut(survival), small()).unwrap();
            assert_eq!(ids(&opened.records), expected, "{survival:?}");
        }
    }
}
