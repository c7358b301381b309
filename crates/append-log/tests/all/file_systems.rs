//! Tests the write strategy on different file systems.

use std::path::Path;
use std::process::Command;

use haul_append_log::{Lsn, Options, SyncMethod};
use haul_testing::{LoopImage, skip};

use crate::payload::ids;
use crate::{put_long, small, try_open};

/// Appends across several segments, removes a segment, closes the log and opens it again. Returns
/// the write strategy and the number of spare files after the removal.
fn works_in(dir: &Path, method: Option<SyncMethod>) -> (haul_append_log::WriteStrategy, usize) {
    let options = Options { sync_method: method, ..small() };
    let log = try_open(dir, options.clone()).unwrap().log;
    put_long(&log, 0..80);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    let spares = log.spare_segments();
    put_long(&log, 80..160);
    let strategy = log.strategy().clone();
    let first = log.reader(Lsn::default()).read_next().unwrap().unwrap().0.lsn;
    assert_eq!(first.segment(), 2);
    log.close().unwrap();
    let opened = try_open(dir, options).unwrap();
    assert!(opened.recovered.closed);
    let found = ids(&opened.records);
    let oldest = *found.first_key_value().unwrap().0;
    assert!(found.keys().copied().eq(oldest..160) && oldest < 40, "from {oldest}");
    (strategy, spares)
}

#[test]
fn copy_on_write_file_system_disables_prefilling_and_recycling() {
    let Some(image) = LoopImage::new("btrfs", 128 << 20) else { return };
    let (strategy, spares) = works_in(image.mount(), None);
    println!("{strategy}");
    assert!(!strategy.prefills && !strategy.recycles, "{strategy}");
    assert!(strategy.segments_reason.contains("copy-on-write"), "{strategy}");
    assert_eq!((strategy.sync_method, spares), (SyncMethod::Buffered, 0));
}

#[test]
fn tmpfs_disables_prefilling_and_recycling() {
    let dir = match tempfile::tempdir_in("/dev/shm") {
        Ok(dir) => dir,
        Err(error) => return skip(&format!("no directory in /dev/shm: {error}")),
    };
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(dir.path()).output();
    if kind.is_ok_and(|output| output.stdout != b"tmpfs\n") {
        return skip("/dev/shm is not in memory");
    }
    let (strategy, spares) = works_in(dir.path(), None);
    println!("{strategy}");
    assert!(!strategy.prefills && !strategy.recycles, "{strategy}");
    assert!(strategy.segments_reason.contains("memory"), "{strategy}");
    assert_eq!((strategy.sync_method, spares), (SyncMethod::Buffered, 0));
}

#[test]
fn ext4_and_xfs_prefill_and_recycle_with_every_sync_method() {
    for (fs, bytes) in [("ext4", 64 << 20), ("xfs", 320 << 20)] {
        let Some(image) = LoopImage::new(fs, bytes) else { return };
        for (number, method) in [None].into_iter().chain(SyncMethod::ALL.map(Some)).enumerate() {
            let dir = image.mount().join(number.to_string());
            std::fs::create_dir(&dir).unwrap();
            let (strategy, spares) = works_in(&dir, method);
            println!("{fs}: {strategy}");
            assert!(strategy.prefills && strategy.recycles, "{strategy}");
            assert_eq!(spares, 1, "{fs}, {method:?}");
            assert!(method.is_none_or(|method| method == strategy.sync_method));
            assert_eq!(strategy.sync_us.len(), if method.is_none() { 3 } else { 0 });
        }
    }
}
