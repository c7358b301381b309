//! Measures the methods of random writes on a real disk, by the wall clock and the counters of the
//! device.

use std::path::Path;
use std::time::Instant;

use haul_disk::{DeviceCounters, Storage, probe};
use haul_measure::{Result, Watcher};

use super::files::Files;
use super::method::Cell;
use super::options::RandomWriteBench;
use super::table::Round;
use crate::guardian::Guardian;
use crate::log::process_cpu;

/// A directory with the file of records and the index; it is removed on drop and when the process
/// ends.
pub(crate) struct Disk<'a> {
    bench: &'a RandomWriteBench,
    watcher: &'a dyn Watcher,
    pub(crate) storage: Storage,
    files: Files,
    runs: u64,
    _guardian: Guardian,
}

impl<'a> Disk<'a> {
    pub(crate) fn new(
        bench: &'a RandomWriteBench,
        dir: &Path,
        watcher: &'a dyn Watcher,
    ) -> Result<Self> {
        let storage = probe(dir)?;
        let (path, guardian) = Guardian::of_tree(dir, "haul-bench-write")?;
        let files = Files::create(&path, bench.file_size, bench.index_size, watcher)?;
        Ok(Self { bench, watcher, storage, files, runs: 0, _guardian: guardian })
    }

    fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::of(self.storage.device.as_ref()?).ok()
    }

    /// Writes the records with cold caches, then verifies some of them.
    pub(crate) fn measure(&mut self, cell: Cell) -> Result<Round> {
        self.runs += 1;
        let all = self.bench.records_of(cell.shape, cell.batch, self.runs);
        self.files.evict()?;
        let (before, cpu, started) = (self.counters(), process_cpu(), Instant::now());
        self.files.write(cell, &all, self.watcher)?;
        let elapsed = started.elapsed();
        let cpu = process_cpu().saturating_sub(cpu);
        let requests = self.counters().zip(before).map(|(after, before)| after.since(&before));
        self.files.verify(&all, cell.index)?;
        Ok(Round::of_disk(all.len(), elapsed, cpu, requests).in_batches(cell.batch))
    }
}
