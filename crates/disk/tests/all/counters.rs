//! Counts the device requests that reads, writes and syncs of a file on ext4 cause.

use std::sync::Arc;

use haul_disk::{
    AlignedBuf, Allocation, Device, DeviceCounters, Disk, Durability, File, Open, OsDisk,
    PAGE_BYTES, fill, probe, read_full, write_durable, write_full,
};
use haul_testing::LoopImage;

const ROUNDS: u64 = 16;
const PAGE: u64 = PAGE_BYTES as u64;

/// A disk that no other process uses, and its device.
struct Bench {
    disk: OsDisk,
    device: Device,
    image: LoopImage,
}

impl Bench {
    fn new() -> Option<Self> {
        let image = LoopImage::new("ext4", 64 << 20)?;
        let device = probe(image.mount()).unwrap().device.unwrap();
        Some(Self { disk: OsDisk::open(image.mount()).unwrap(), device, image })
    }

    /// Creates a file of [`ROUNDS`] pages for direct I/O, initialised by `prepare` and synced.
    fn file(&self, prepare: impl FnOnce(&dyn File)) -> Arc<dyn File> {
        let file = self.disk.create("file", Open { direct: true, ..Open::default() }).unwrap();
        prepare(&*file);
        rustix::fs::syncfs(file.descriptor().unwrap()).unwrap();
        file
    }

    /// Creates a file as [`Self::file`] does, and fills it with zeros.
    fn filled_file(&self) -> Arc<dyn File> {
        self.file(|file| {
            fill(file, ROUNDS * PAGE).unwrap();
        })
    }

    /// Counts the requests of the device while `round` is called with the offset of each page.
    fn count(&self, mut round: impl FnMut(u64)) -> DeviceCounters {
        self.image.settle();
        let before = DeviceCounters::of(&self.device).unwrap();
        (0..ROUNDS).for_each(|n| round(n * PAGE));
        self.image.settle();
        DeviceCounters::of(&self.device).unwrap().since(&before)
    }
}

/// Returns the counters with all times zero.
fn requests(counters: DeviceCounters) -> DeviceCounters {
    DeviceCounters { read_ms: 0, write_ms: 0, sync_ms: 0, busy_ms: 0, ..counters }
}

/// One page write and one flush request per round, and no journal write. The kernel also counts
/// each flush request as a write of no bytes.
const ONE_WRITE_AND_SYNC_EACH: DeviceCounters = DeviceCounters {
    reads: 0,
    read_bytes: 0,
    read_ms: 0,
    writes: 2 * ROUNDS,
    written_bytes: ROUNDS * PAGE,
    write_ms: 0,
    discards: 0,
    discarded_bytes: 0,
    syncs: ROUNDS,
    sync_ms: 0,
    busy_ms: 0,
};

#[test]
fn direct_page_read_is_one_request() {
    let Some(bench) = Bench::new() else { return };
    let file = bench.filled_file();
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let counted = bench.count(|offset| {
        assert_eq!(read_full(&*file, &mut page, offset).unwrap(), PAGE_BYTES);
    });
    let expected =
        DeviceCounters { reads: ROUNDS, read_bytes: ROUNDS * PAGE, ..DeviceCounters::default() };
    assert_eq!(requests(counted), expected);
}

#[test]
fn synced_write_in_a_filled_file_is_one_write() {
    let Some(bench) = Bench::new() else { return };
    let file = bench.filled_file();
    let page = AlignedBuf::zeroed(PAGE_BYTES);
    let counted = bench.count(|offset| {
        write_full(&*file, &page, offset).unwrap();
        file.sync(Durability::Data).unwrap();
    });
    assert_eq!(requests(counted), ONE_WRITE_AND_SYNC_EACH);

    let counted = bench.count(|offset| write_durable(&*file, &page, offset).unwrap());
    assert_eq!(requests(counted), ONE_WRITE_AND_SYNC_EACH, "in a single call");

    let options = Open { direct: true, dsync: true, ..Open::default() };
    let durable = bench.disk.open("file", options).unwrap();
    let counted = bench.count(|offset| write_full(&*durable, &page, offset).unwrap());
    assert_eq!(requests(counted), ONE_WRITE_AND_SYNC_EACH, "in a file opened with `dsync`");
}

#[test]
fn synced_write_in_a_reserved_file_commits_the_journal() {
    let Some(bench) = Bench::new() else { return };
    let file = bench.file(|file| file.allocate(Allocation::Reserve, 0, ROUNDS * PAGE).unwrap());
    let page = AlignedBuf::zeroed(PAGE_BYTES);
    let counted = bench.count(|offset| {
        write_full(&*file, &page, offset).unwrap();
        file.sync(Durability::Data).unwrap();
    });
    assert!(counted.writes >= 3 * ROUNDS, "{counted:?}");
    assert!(counted.written_bytes >= 3 * ROUNDS * PAGE, "{counted:?}");
}

#[test]
fn missing_disk_is_an_error() {
    let name = "no-such-disk".to_owned();
    let device = Device { major: 0, minor: 0, name: name.clone(), disk: name };
    let error = DeviceCounters::of(&device).unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!(error.path.to_str(), Some("/sys/block/no-such-disk/stat"));
}
