//! Tests that the file of a sealed segment can be exchanged while the log is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_append_log::{Error, Log, Position};
use haul_disk::{Disk, Durability, Open, read_full, write_full};
use haul_disk_sim::MemoryDisk;

use crate::payload::payload;
use crate::{open_on, put, small};

fn log_with_segments(disk: &MemoryDisk) -> (Log, Vec<Position>) {
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let mut positions = Vec::new();
    while log.segments().len() < 3 {
        positions.push(put(&log, &payload(positions.len() as u64, 5000)));
    }
    (log, positions)
}

/// Puts a copy of the file of a segment in its place.
fn replace(disk: &MemoryDisk, name: &str) -> haul_disk::Result<()> {
    let file = disk.open(name, Open::default())?;
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap()];
    read_full(&*file, &mut bytes, 0)?;
    let copy = disk.create("copy", Open::default())?;
    write_full(&*copy, &bytes, 0)?;
    copy.sync(Durability::Everything)?;
    disk.rename("copy", name)?;
    disk.sync_dir("")
}

#[test]
fn records_are_read_from_the_other_file() {
    let disk = MemoryDisk::default();
    let (log, positions) = log_with_segments(&disk);
    let first = log.segments()[0];
    let name = haul_append_log::segment_name(first.number);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                for (number, at) in (0..).zip(&positions) {
                    assert_eq!(log.read(*at).unwrap().payload(), payload(number, 5000));
                }
            }
        });
        for _ in 0..20 {
            log.replace_file(first.number, &mut || replace(&disk, &name)).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    // Damage to the file in its place is found, so this is the file that is read.
    disk.rot(&name, u64::from(positions[0].lsn.offset()) + 100, 0);
    assert!(matches!(log.read(positions[0]), Err(Error::Damaged { .. })));
    log.remove_segment(first.number).unwrap();
    assert!(matches!(log.read(positions[0]), Err(Error::Invalid(_))));
}

#[test]
fn segment_being_written_and_failed_exchanges_are_refused() {
    let disk = MemoryDisk::default();
    let (log, positions) = log_with_segments(&disk);
    let [first, second, last] = log.segments()[..] else { unreachable!("three segments") };
    for number in [last.number, 99] {
        let exchanged = log.replace_file(number, &mut || unreachable!("not called"));
        assert!(matches!(exchanged, Err(Error::Invalid(_))), "{exchanged:?}");
    }
    let name = |number| haul_append_log::segment_name(number);
    let exchanged = log.replace_file(first.number, &mut || disk.remove("nothing"));
    assert!(matches!(exchanged, Err(Error::Disk(_))), "{exchanged:?}");
    // A file of another segment is not used; the open file still is.
    let other = &mut || disk.rename(&name(second.number), &name(first.number));
    assert!(log.replace_file(first.number, other).is_err());
    assert_eq!(log.read(positions[0]).unwrap().payload(), payload(0, 5000));
}
