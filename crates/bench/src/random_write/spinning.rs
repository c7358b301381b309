//! The ways on a simulated disk, by its own clock and counters.

use std::time::{Duration, Instant};

use haul_disk::{Disk as _, Open, Unplaced, extents};
use haul_disk_sim::{
    Counters, Drive as Model, Mounted, Nanos, Options as DiskOptions, SECTOR_BYTES, SpinningDisk,
};
use haul_sorted_write::plan::{Costs, Extent, Rules, plan};
use haul_sorted_write::{Options as SortedOptions, PageFileOptions};

use super::pages::{self, Who};
use super::records::{Record, records};
use super::ways::{BIG, Cell, Files, Index};
use super::{Options, load_of};
use crate::error::{Error, Result};
use crate::log::{Failure, Sample, Scratch, drive};
use crate::read_order::Drive;
use crate::watch::Watcher;

/// No file system writes in the background meanwhile.
const MKFS: &[&str] = &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
const MOUNT: &str = "noinit_itable";

/// How far the log of a page file is ahead of it here.
const PAGES_LOG_BYTES: u64 = 32 << 20;
/// Its memory, of each generation.
const PAGES_GENERATION_BYTES: usize = 32 << 20;

/// A page is what is read and written.
const UNIT_BYTES: u64 = 4096;

/// What one measurement came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Swept {
    pub(super) records: usize,
    pub(super) asked: Counters,
    pub(super) elapsed: Duration,
}

/// A drive with both files on it.
pub(super) struct Disk {
    disk: SpinningDisk,
    model: Model,
    runs: u64,
}

fn missing(why: String) -> Error {
    let advice = "a simulated disk needs root, /dev/fuse, losetup and mkfs.ext4";
    Error::Missing(format!("{why}; {advice}"))
}

impl Disk {
    /// Starts it and makes the files; that takes none of the time that is measured.
    pub(super) fn new(options: &Options, drive: &Drive, watcher: &dyn Watcher) -> Result<Self> {
        let disk_bytes = options.file_bytes + options.file_bytes / 4 + (256 << 20);
        let mut how = DiskOptions::new(drive.parameters().clone(), disk_bytes);
        how.time_scale = options.time_scale;
        how.scheduler.clone_from(&options.scheduler);
        let disk = SpinningDisk::start(&how).map_err(missing)?;
        disk.set_time_scale(0.0).map_err(missing)?;
        disk.make("ext4", MKFS).map_err(missing)?;
        let model = Model::new(drive.parameters().clone(), disk_bytes);
        let made = Self { disk, model, runs: 0 };
        let mounted = made.mount()?;
        Files::make(&mounted.path(), options.file_bytes, options.index_bytes, watcher)?;
        drop(mounted);
        made.disk.set_time_scale(options.time_scale).map_err(missing)?;
        Ok(made)
    }

    fn mount(&self) -> Result<Mounted<'_>> {
        self.disk.mount("ext4", MOUNT).map_err(missing)
    }

    /// Writes the records in one way, with nothing in memory before, and looks whether they are there.
    pub(super) fn measure(
        &mut self,
        options: &Options,
        cell: Cell,
        watcher: &dyn Watcher,
    ) -> Result<Swept> {
        self.runs += 1;
        let all = options.records_of(cell, self.runs);
        self.disk.forget_cached().map_err(missing)?;
        let mounted = self.mount()?;
        let files = Files::on(&mounted.path())?;
        let (before, started) = (self.disk.counters(), Instant::now());
        files.write(cell, &all, watcher)?;
        let elapsed = started.elapsed();
        let asked = self.disk.counters().since(&before);
        self.disk.set_time_scale(0.0).map_err(missing)?;
        files.check(&all, cell.index != Index::None)?;
        drop(files);
        drop(mounted);
        self.disk.set_time_scale(options.time_scale).map_err(missing)?;
        Ok(Swept { records: all.len(), asked, elapsed })
    }

    /// Many writers of durable pages, each row in a directory of its own.
    pub(super) fn pages(
        &self,
        options: &Options,
        who: Who,
        writers: usize,
    ) -> Result<(Sample, Counters), Failure> {
        let mounted = self.mount()?;
        let scratch = Scratch::new(&mounted.path(), "pages")?;
        let page_file = &options.page_file;
        let generation_bytes = page_file.sorted.generation_bytes.min(PAGES_GENERATION_BYTES);
        let page_file = PageFileOptions {
            sorted: SortedOptions { generation_bytes, ..page_file.sorted.clone() },
            log_bytes_max: page_file.log_bytes_max.min(PAGES_LOG_BYTES),
            ..page_file.clone()
        };
        let pages = options.pages_bytes.min(options.file_bytes / 8) / UNIT_BYTES;
        let contender = pages::open(who, scratch.path(), writers, pages, &page_file)?;
        contender.warm_up()?;
        rustix::fs::sync();
        let before = self.disk.counters();
        let load = load_of(options, writers);
        let sample = drive(&*contender, &load, None)?;
        let asked = self.disk.counters().since(&before);
        drop(contender);
        Ok((sample, asked))
    }

    /// What no way can be faster than that reads and writes each batch in one sweep.
    pub(super) fn bound(&self, options: &Options, cell: Cell) -> Result<(usize, Nanos)> {
        let all = options.records_of(cell, 0);
        let mounted = self.mount()?;
        let files = Files::on(&mounted.path())?;
        let file = files.disk.open(BIG, Open { read_only: true, ..Open::default() })?;
        let map = extents(&*file, 0, u64::MAX, Unplaced::Tell)?;
        let on_disk = |extent: &Extent| {
            let at = map.extents.partition_point(|it| it.logical + it.bytes <= extent.offset);
            let place =
                map.extents.get(at).map_or(0, |it| it.physical + (extent.offset - it.logical));
            (place / SECTOR_BYTES, extent.bytes / SECTOR_BYTES)
        };
        let sweeps = all.chunks(cell.batch).map(|batch| {
            let (reads, writes) = units(batch);
            self.model.sweep_ns(reads.iter().map(on_disk))
                + self.model.sweep_ns(writes.iter().map(on_disk))
        });
        Ok((all.len(), sweeps.sum()))
    }
}

/// What of the file must be read before it is written, and what is written: runs of units, upward.
fn units(batch: &[Record]) -> (Vec<Extent>, Vec<Extent>) {
    let mut entries: Vec<_> = (0..).zip(batch).map(|(number, it)| it.as_entry(number)).collect();
    let costs = Costs { request_us: 0, bytes_per_second: 0 };
    let rules =
        Rules { unit_bytes: UNIT_BYTES, units_end: 1 << 62, request_bytes_max: 1 << 20, costs };
    let plan = plan(&mut entries, &rules);
    (plan.reads, plan.requests.iter().map(|request| request.extent).collect())
}

impl Options {
    /// The records a cell writes: fewer where each batch is short and costs as much as a long one.
    pub(super) fn records_of(&self, cell: Cell, run: u64) -> Vec<Record> {
        let count = self.records.min(cell.batch.saturating_mul(self.batches_max));
        records(count, self.file_bytes, self.index_bytes, self.seed, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_written_whole_are_not_read_and_none_is_counted_twice() {
        let record = |offset, bytes| Record { offset, bytes, entry_at: 0, filling: 0 };
        let batch = [record(8192, 4096), record(4000, 200), record(100, 10), record(4050, 100)];
        let ends = |all: &[Extent]| all.iter().map(|it| (it.offset, it.end())).collect::<Vec<_>>();
        let (reads, writes) = units(&batch);
        assert_eq!(ends(&writes), [(0, 12_288)]);
        assert_eq!(ends(&reads), [(0, 8192)]);
    }
}
