//! The log on other file systems than the one it likes best.

use std::path::Path;
use std::process::Command;

use haul_append_log::{Lsn, Options, SyncMethod};
use haul_test_image::{LoopImage, skip};

use crate::payload::ids;
use crate::{put_long, small, try_open};

/// Rotates, removes, closes and opens again. Says how it wrote, and how many spares were kept.
fn works_in(dir: &Path, method: Option<SyncMethod>) -> (haul_append_log::Ways, usize) {
    let options = Options { sync_method: method, ..small() };
    let log = try_open(dir, options.clone()).unwrap().log;
    put_long(&log, 0..80);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    let spares = log.spare_segments();
    put_long(&log, 80..160);
    let ways = log.ways().clone();
    let first = log.reader(Lsn::default()).read_next().unwrap().unwrap().0.lsn;
    assert_eq!(first.segment(), 2);
    log.close().unwrap();
    let opened = try_open(dir, options).unwrap();
    assert!(opened.recovered.closed);
    let found = ids(&opened.records);
    let oldest = *found.first_key_value().unwrap().0;
    assert!(found.keys().copied().eq(oldest..160) && oldest < 40, "from {oldest}");
    (ways, spares)
}

#[test]
fn where_blocks_move_at_each_write_nothing_is_filled_or_kept() {
    let Some(image) = LoopImage::new("btrfs", 128 << 20) else { return };
    let (ways, spares) = works_in(image.mount(), None);
    println!("{ways}");
    assert!(!ways.prefills && !ways.recycles, "{ways}");
    assert!(ways.segments_why.contains("new place"), "{ways}");
    assert_eq!((ways.sync_method, spares), (SyncMethod::Buffered, 0));
}

#[test]
fn in_memory_nothing_is_filled_or_kept() {
    let dir = match tempfile::tempdir_in("/dev/shm") {
        Ok(dir) => dir,
        Err(error) => return skip(&format!("no directory in /dev/shm: {error}")),
    };
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(dir.path()).output();
    if kind.is_ok_and(|output| output.stdout != b"tmpfs\n") {
        return skip("/dev/shm is not in memory");
    }
    let (ways, spares) = works_in(dir.path(), None);
    println!("{ways}");
    assert!(!ways.prefills && !ways.recycles, "{ways}");
    assert!(ways.segments_why.contains("memory"), "{ways}");
    assert_eq!((ways.sync_method, spares), (SyncMethod::Buffered, 0));
}

#[test]
fn where_blocks_stay_segments_are_filled_and_used_again_in_every_way_of_syncing() {
    for (fs, bytes) in [("ext4", 64 << 20), ("xfs", 320 << 20)] {
        let Some(image) = LoopImage::new(fs, bytes) else { return };
        for (number, method) in [None].into_iter().chain(SyncMethod::ALL.map(Some)).enumerate() {
            let dir = image.mount().join(number.to_string());
            std::fs::create_dir(&dir).unwrap();
            let (ways, spares) = works_in(&dir, method);
            println!("{fs}: {ways}");
            assert!(ways.prefills && ways.recycles, "{ways}");
            assert_eq!(spares, 1, "{fs}, {method:?}");
            assert!(method.is_none_or(|method| method == ways.sync_method));
            assert_eq!(ways.sync_us.len(), if method.is_none() { 3 } else { 0 });
        }
    }
}
