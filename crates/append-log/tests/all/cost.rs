//! Counts the requests that a log causes on the block device below ext4.

use std::sync::Arc;
use std::thread;

use haul_append_log::{Lsn, Options};
use haul_disk::{DeviceCounters, Op, OsDisk, probe};
use haul_disk_sim::FaultyDisk;
use haul_testing::{LoopImage, eventually};

use crate::payload::payload;
use crate::{open_on, put, put_long, small};

const WRITERS: u64 = 16;
const EACH: u64 = 64;

/// The batches of a log with many writers, and the requests on its device meanwhile.
struct DeviceLoad {
    batches: u64,
    written_bytes: u64,
    device: DeviceCounters,
}

impl DeviceLoad {
    fn many_writers(image: &LoopImage, dir: &str) -> Self {
        let device = probe(image.mount()).unwrap().device.unwrap();
        let disk = Arc::new(OsDisk::open_or_create(image.mount().join(dir)).unwrap());
        let log = open_on(disk, small()).unwrap().log;
        // Writes out the journal entries that the creation of the first segment has left.
        rustix::fs::syncfs(std::fs::File::open(image.mount()).unwrap()).unwrap();
        image.settle();
        let before = (DeviceCounters::of(&device).unwrap(), log.stats());
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let log = &log;
                // All records together take less than a quarter of a segment, so no new segment is
                // created.
                scope.spawn(move || {
                    for n in 0..EACH {
                        put(log, &payload(writer * EACH + n, 128));
                    }
                });
            }
        });
        image.settle();
        let device = DeviceCounters::of(&device).unwrap().since(&before.0);
        let stats = log.stats();
        let batches = stats.batches - before.1.batches;
        let written_bytes = stats.written_bytes - before.1.written_bytes;
        Self { batches, written_bytes, device }
    }

    /// `true` if there was exactly one write and one sync per batch. The kernel counts a sync
    /// twice: as a sync and as a write of zero bytes.
    fn is_exact(&self) -> bool {
        let Self { batches, written_bytes, device } = self;
        (device.syncs, device.writes - device.syncs) == (*batches, *batches)
            && (device.written_bytes, device.reads) == (*written_bytes, 0)
    }
}

#[test]
fn batch_is_one_write_and_one_sync_without_journal() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    // A call of sync(2) by another process also commits the journal of this file system. Therefore
    // the counts must be exact in only one of several rounds.
    let is_exact = (0..5).any(|n| {
        let load = DeviceLoad::many_writers(&image, &n.to_string());
        let (batches, records) = (load.batches, WRITERS * EACH);
        println!("{records} records, {batches} batches, {:?}", load.device);
        assert!(batches < records / 2, "{batches} batches of {records} records");
        load.is_exact()
    });
    assert!(is_exact, "more requests than those of the batches, in every round");
}

#[test]
fn opening_reads_the_device_and_not_the_page_cache() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let device = probe(image.mount()).unwrap().device.unwrap();
    let disk = Arc::new(OsDisk::open(image.mount()).unwrap());
    let log = open_on(disk.clone(), small()).unwrap().log;
    put(&log, &payload(0, 30_000));
    log.close().unwrap();

    let before = DeviceCounters::of(&device).unwrap();
    assert_eq!(open_on(disk, small()).unwrap().records.len(), 1);
    let device = DeviceCounters::of(&device).unwrap().since(&before);
    // The two header pages need not be read from the device, because they are still in the page
    // cache.
    assert!(device.read_bytes >= u64::from(small().segment_bytes - 2 * 4096), "{device:?}");
}

#[test]
fn rotation_into_recycled_segments_costs_writers_only_their_batches() {
    const ROTATIONS: u64 = 4;
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let device = probe(image.mount()).unwrap().device.unwrap();
    let disk = FaultyDisk::new(Arc::new(OsDisk::open(image.mount()).unwrap()));
    let options = Options { spare_segments_max: 6, ..small() };
    let log = open_on(Arc::new(disk.clone()), options).unwrap().log;
    let mut id = 0;
    let mut rotate = |segments: u32| {
        let last = log.segments().last().unwrap().number;
        // Appends up to the middle of a segment. The log prepares the next segment in the
        // background.
        while log.segments().last().unwrap().number < last + segments
            || log.synced().offset() < 1 << 19
        {
            put_long(&log, id..id + 1);
            id += 1;
        }
        last + segments
    };
    let last = rotate(8);
    log.truncate_front(Lsn::new(last, 0)).unwrap();
    rotate(1);
    rustix::fs::syncfs(std::fs::File::open(image.mount()).unwrap()).unwrap();

    image.settle();
    let before = (DeviceCounters::of(&device).unwrap(), log.stats(), disk.calls(Op::Create));
    disk.record_calls();
    rotate(u32::try_from(ROTATIONS).unwrap());
    let is_prepared = |call: &(Op, String)| call.0 == Op::Rename && call.1 == "log-prepare";
    let prepared = || disk.recorded_calls().into_iter().filter(is_prepared).count() as u64;
    // On a busy machine, the preparation takes longer than the appends.
    eventually("the next segment is prepared", || prepared() >= ROTATIONS);
    let seen = disk.recorded_calls();
    image.settle();
    let device = DeviceCounters::of(&device).unwrap().since(&before.0);
    let batches = log.stats().batches - before.1.batches;
    println!("{batches} batches, {ROTATIONS} rotations, {device:?}");
    assert_eq!(device.reads, 0);
    let extra = device.writes - device.syncs - batches;
    // For each rotation, a switch to another segment, the preparing thread writes headers, and the
    // file system writes journal entries for two renames.
    assert!(extra <= 10 * ROTATIONS, "{extra} writes beside the batches");
    let extra = device.syncs - batches;
    assert!(extra <= 4 * ROTATIONS, "{extra} syncs beside the batches");

    let (prepared, own): (Vec<_>, Vec<_>) = seen.iter().partition(|call| call.1 == "log-prepare");
    let names = prepared.iter().filter(|call| is_prepared(call)).count() as u64;
    assert_eq!(names, ROTATIONS, "each segment was a spare");
    assert_eq!(disk.calls(Op::Create), before.2, "a file was created");
    assert!(own.iter().all(|call| matches!(call.0, Op::Write | Op::Sync)), "{own:?}");
    assert_eq!(own.len() as u64, 2 * batches, "one write and one sync each");
}
