//! Tests counting, loading and evicting cached pages, and uncached reads.

use std::io::IoSliceMut;

use haul_disk::{
    Disk, Durability, File, Op, Open, OsDisk, align_down, align_up, evict, read_full,
    read_uncached, resident, warm, write_full, write_out,
};

use rustix::io::{ReadWriteFlags, preadv2};

use crate::disk_dir;
use crate::simulated::SimulatedFile;

const BYTES: u64 = 1 << 20;

fn resident_bytes(file: &dyn File) -> u64 {
    resident(file, 0, u64::MAX).unwrap().resident_bytes
}

/// Runs `body` on a file of [`BYTES`] bytes of value 7. The file is clean, has no cached pages, and
/// is opened without readahead.
fn with_cold_file(body: impl FnOnce(&dyn File)) {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("file", Open { random: true, ..Open::default() }).unwrap();
    write_full(&*file, &vec![7; usize::try_from(BYTES).unwrap()], 0).unwrap();

    let written = resident(&*file, 0, u64::MAX).unwrap();
    assert_eq!(written.resident_bytes, BYTES);
    if let (Some(dirty), Some(writeback)) = (written.dirty_bytes, written.writeback_bytes) {
        assert_eq!(dirty + writeback, BYTES);
    }
    file.sync(Durability::Data).unwrap();
    let synced = resident(&*file, 0, u64::MAX).unwrap();
    assert_eq!((synced.resident_bytes, synced.dirty_bytes.unwrap_or(0)), (BYTES, 0));

    evict(&*file, 0, u64::MAX).unwrap();
    assert_eq!(resident_bytes(&*file), 0);
    body(&*file);
}

fn supports_uncached_reads(file: &dyn File) -> bool {
    let flag = ReadWriteFlags::from_bits_retain(0x80);
    let mut byte = [0];
    preadv2(file.descriptor().unwrap(), &mut [IoSliceMut::new(&mut byte)], 0, flag).is_ok()
}

#[test]
fn read_caches_the_page_it_touches() {
    with_cold_file(|file| {
        let page = rustix::param::page_size() as u64;
        assert_eq!(read_full(file, &mut [0; 10], 3 * page + 5).unwrap(), 10);
        assert_eq!(resident_bytes(file), page);
        assert_eq!(resident(file, 3 * page + 100, 1).unwrap().resident_bytes, page);
        assert_eq!(resident(file, 0, 3 * page).unwrap().resident_bytes, 0);
        assert_eq!(resident(file, 3 * page, 0).unwrap().resident_bytes, 0);
        assert_eq!(resident(file, BYTES, u64::MAX).unwrap().resident_bytes, 0);
    });
}

#[test]
fn warm_caches_and_evict_drops_a_range() {
    with_cold_file(|file| {
        warm(file, 0, BYTES / 2).unwrap();
        assert_eq!(resident_bytes(file), BYTES / 2);
        warm(file, 0, u64::MAX).unwrap();
        assert_eq!(resident_bytes(file), BYTES);
        // Pages being read cannot be dropped, so they are read to completion first.
        read_full(file, &mut vec![0; usize::try_from(BYTES).unwrap()], 0).unwrap();
        evict(file, 0, 0).unwrap();
        assert_eq!(resident_bytes(file), BYTES);
        evict(file, 0, BYTES / 4).unwrap();
        assert_eq!(resident_bytes(file), BYTES - BYTES / 4);
    });
}

#[test]
fn uncached_read_adds_no_pages() {
    with_cold_file(|file| {
        let half = BYTES / 2;
        let mut buffer = vec![0; usize::try_from(BYTES).unwrap()];
        read_full(file, &mut buffer[..usize::try_from(half).unwrap()], 0).unwrap();
        let read = read_uncached(file, &mut buffer, 10).unwrap() as u64;
        assert_eq!(read, BYTES - 10, "ends with the file");
        assert!(buffer[..buffer.len() - 10].iter().all(|byte| *byte == 7));
        assert_eq!(resident(file, 0, half).unwrap().resident_bytes, half, "pages cached before");
        let added = resident(file, half, u64::MAX).unwrap().resident_bytes;
        assert_eq!(added, if supports_uncached_reads(file) { 0 } else { half });
    });
}

#[test]
fn simulated_file_has_no_page_cache() {
    let file = SimulatedFile::default();
    for error in [
        resident(&file, 0, 1).unwrap_err(),
        evict(&file, 0, 1).unwrap_err(),
        warm(&file, 0, 1).unwrap_err(),
    ] {
        assert_eq!(error.op, Op::Cache);
        assert_eq!(error.source.kind(), std::io::ErrorKind::Unsupported);
    }
}

#[test]
fn written_out_pages_are_clean() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("file", Open::default()).unwrap();
    write_full(&*file, &[7; 3 << 12], 0).unwrap();
    write_out(&*file, 0, 2 << 12).unwrap();
    let page = rustix::param::page_size() as u64;
    let rest = resident(&*file, 0, u64::MAX).unwrap();
    if let (Some(dirty), Some(writeback)) = (rest.dirty_bytes, rest.writeback_bytes) {
        let written = align_down(2 << 12, page);
        assert_eq!(dirty + writeback, align_up(3 << 12, page) - written, "{rest:?}");
    }
    write_out(&SimulatedFile::default(), 0, 1).unwrap_err();
    write_out(&*file, u64::MAX, 1).unwrap_err();
}
