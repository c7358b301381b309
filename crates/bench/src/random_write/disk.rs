//! Measures the methods of random writes on a real disk, by the wall clock and the counters of the
//! device.

use std::path::Path;
use std::time::Instant;

use haul_disk::Disk as _;
use haul_measure::{Result, Watcher};

use super::files::Files;
use super::method::Cell;
use super::options::RandomWriteBench;
use super::table::Round;
use crate::log::process_cpu;
use crate::write_modes::target_fs::TargetFs;

/// A directory with the file of records and the index; it is removed on drop and when the process
/// ends.
pub(crate) struct Disk<'a> {
    bench: &'a RandomWriteBench,
    watcher: &'a dyn Watcher,
    pub(crate) fs: TargetFs,
    files: Files,
    runs: u64,
}

impl<'a> Disk<'a> {
    pub(crate) fn new(
        bench: &'a RandomWriteBench,
        dir: &Path,
        watcher: &'a dyn Watcher,
    ) -> Result<Self> {
        let fs = TargetFs::below(dir)?;
        let files = Files::create(fs.disk.root(), bench.file_size, bench.index_size, watcher)?;
        Ok(Self { bench, watcher, fs, files, runs: 0 })
    }

    /// Writes the records with cold caches, then verifies some of them.
    pub(crate) fn measure(&mut self, cell: Cell) -> Result<Round> {
        self.runs += 1;
        let all = self.bench.records_of(cell.shape, cell.batch, self.runs);
        self.files.evict()?;
        let (before, cpu, started) = (self.fs.counters(), process_cpu(), Instant::now());
        self.files.write(cell, &all, self.watcher)?;
        let elapsed = started.elapsed();
        let cpu = process_cpu().saturating_sub(cpu);
        let requests = self.fs.counters().zip(before).map(|(after, before)| after.since(&before));
        self.files.verify(&all, cell.index)?;
        Ok(Round::from_disk(all.len(), elapsed, cpu, requests).in_batches(cell.batch))
    }
}
