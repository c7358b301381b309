//! The ways on the disk a directory is on, by the clock and by the device's counters.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haul_disk::{DeviceCounters, Storage, probe};

use super::Options;
use super::ways::{BIG, Cell, Files, INDEX, Index};
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::watch::Watcher;

/// What one measurement came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) records: usize,
    pub(super) elapsed: Duration,
    /// Of the device, whoever asked it.
    pub(super) asked: Option<DeviceCounters>,
}

/// A directory with both files in it, which goes away with this or with the process.
#[derive(Debug)]
pub(super) struct Dir {
    pub(super) storage: Storage,
    files: Files,
    runs: u64,
    _guardian: Guardian,
}

/// A directory of our own below `dir`, and who removes it with the files of these names.
pub(super) fn own_dir(dir: &Path, what: &str, names: &[&str]) -> Result<(PathBuf, Guardian)> {
    let own = format!("haul-bench-{what}-{}", std::process::id());
    let guardian = Guardian::of(dir, &own, names)?;
    let path = dir.join(&own);
    std::fs::create_dir(&path)
        .map_err(Error::other(format!("make the directory {}", path.display())))?;
    Ok((path, guardian))
}

impl Dir {
    pub(super) fn new(options: &Options, dir: &Path, watcher: &dyn Watcher) -> Result<Self> {
        let storage = probe(dir)?;
        let (path, guardian) = own_dir(dir, "write", &[BIG, INDEX])?;
        let files = Files::make(&path, options.file_bytes, options.index_bytes, watcher)?;
        Ok(Self { storage, files, runs: 0, _guardian: guardian })
    }

    fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::of(self.storage.device.as_ref()?).ok()
    }

    /// Writes the records in one way, with nothing in memory before, and looks whether they are there.
    pub(super) fn measure(
        &mut self,
        options: &Options,
        cell: Cell,
        watcher: &dyn Watcher,
    ) -> Result<Written> {
        self.runs += 1;
        let all = options.records_of(cell, self.runs);
        self.files.make_cold()?;
        let (before, started) = (self.counters(), Instant::now());
        self.files.write(cell, &all, watcher)?;
        let elapsed = started.elapsed();
        let asked = self.counters().zip(before).map(|(now, before)| now.since(&before));
        self.files.check(&all, cell.index != Index::None)?;
        Ok(Written { records: all.len(), elapsed, asked })
    }
}
