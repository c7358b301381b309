//! Measures one pass over a file: the latency of each record, and the requests to the device.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, DeviceCounters, Durability, write_full};

use haul_measure::{Error, Latencies, Result, Watcher};

use super::modes::{Cell, Preparation, Sync};
use super::prepare::{NAMES, Prepared, prepare};
use super::target_fs::TargetFs;
use crate::contest::Outcome;
use crate::trace::{ALL_STEPS, Tracing, Traffic};

/// The figures of one pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    pub(crate) records: u64,
    pub(crate) time: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) counters: Option<DeviceCounters>,
    pub(crate) traffic: Option<Traffic>,
}

impl Pass {
    /// Returns `number` divided by the number of records.
    pub(crate) fn each(&self, number: u64) -> Option<f64> {
        Some(number as f64 / self.records as f64)
    }
}

/// The limits of a pass, which ends when the first limit is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) records: u64,
    pub(crate) time: Duration,
}

/// A writer of consecutive records.
struct Writer<'a> {
    prepared: &'a mut Prepared,
    cell: &'a Cell,
    record: AlignedBuf,
    length: usize,
}

impl<'a> Writer<'a> {
    fn new(cell: &'a Cell, prepared: &'a mut Prepared) -> Result<Self> {
        let step_bytes = cell.step_bytes();
        let length = usize::try_from(step_bytes)
            .map_err(|_beyond| Error::Missing(format!("records of {step_bytes} B are too long")))?;
        let mut record = AlignedBuf::zeroed(length);
        record.fill(b'n');
        Ok(Self { prepared, cell, record, length })
    }

    /// Writes the record with this number and syncs it.
    fn write(&mut self, number: u64) -> Result<()> {
        let offset = number * self.length as u64;
        let record = &self.record[..self.length];
        match self.prepared {
            Prepared::File(file) => {
                write_full(&**file, record, offset)?;
                match self.cell.sync {
                    Sync::Fdatasync => file.sync(Durability::Data)?,
                    Sync::Fsync => file.sync(Durability::Everything)?,
                    // Not synced at all, or by the write itself.
                    _ => {}
                }
            }
            Prepared::Opened(_, opened) => {
                opened.write_all_at(record, offset).map_err(Error::other("write with O_SYNC"))?;
            }
            Prepared::Map(_, map) => {
                let end = offset + self.length as u64;
                if self.cell.preparation == Preparation::Append && map.end() < end {
                    map.grow(end)?;
                }
                let offset = usize::try_from(offset)
                    .map_err(|_beyond| Error::Missing("the mapping is too long".to_owned()))?;
                map.write(record, offset)?;
                map.sync(offset, self.length)?;
            }
        }
        Ok(())
    }
}

/// The number of passes over a file.
pub(super) const PASSES: usize = 2;

/// A file system to measure, the block trace of its device, and the limits of a pass.
pub(super) struct Measurement<'a> {
    pub(super) place: &'a TargetFs,
    pub(super) tracing: Option<&'a Tracing>,
    pub(super) limits: Limits,
    pub(super) watcher: &'a dyn Watcher,
}

impl Measurement<'_> {
    /// Creates the file of a mode, writes all passes and removes the file.
    pub(super) fn passes(&self, cell: &Cell) -> Result<Vec<Outcome<Pass>>> {
        let mut records = self.limits.records;
        let Some(mut prepared) = prepare(self.place, cell, records)? else {
            let skipped = |_| Outcome::Skipped("not supported".to_owned());
            return Ok((0..PASSES).map(skipped).collect());
        };
        let mut passes = Vec::new();
        for _ in 0..PASSES {
            let pass = self.pass(cell, &mut prepared, records)?;
            records = pass.records;
            passes.push(Outcome::Measured(pass));
            // So that the next pass starts without dirty pages.
            let (Prepared::File(file) | Prepared::Opened(file, _) | Prepared::Map(file, _)) =
                &prepared;
            file.sync(Durability::Everything)?;
            self.place.settle()?;
        }
        drop::<Prepared>(prepared);
        self.place.remove(&NAMES)?;
        Ok(passes)
    }

    /// Writes at most `records_max` records into a prepared file and measures them.
    fn pass(&self, cell: &Cell, prepared: &mut Prepared, records_max: u64) -> Result<Pass> {
        let Self { place, tracing, limits, watcher } = self;
        let mut pass = Pass::default();
        let mut writer = Writer::new(cell, prepared)?;
        let before = place.counters();
        tracing.map(Tracing::start).transpose()?;
        let started = Instant::now();
        while pass.records < records_max && (pass.records == 0 || started.elapsed() < limits.time) {
            watcher.check()?;
            let began = Instant::now();
            writer.write(pass.records)?;
            let took = began.elapsed();
            pass.latencies.record(took);
            pass.time += took;
            pass.records += 1;
        }
        let after = place.counters();
        pass.counters = before.zip(after).map(|(before, after)| after.since(&before));
        if let Some(trace) = tracing.map(Tracing::stop).transpose()? {
            let own = trace.marked_by.filter(|_| trace.lost == 0);
            pass.traffic = own.map(|own| Traffic::of(&trace, own, place.journalling));
        }
        Ok(pass)
    }
}

/// Returns the lines of the kernel's block trace for the second record of a new file.
pub(super) fn trace_record(place: &TargetFs, cell: &Cell) -> Result<String> {
    let tracing = place.tracing(ALL_STEPS)?;
    let Some(mut prepared) = prepare(place, cell, 2)? else { return Ok(String::new()) };
    let mut writer = Writer::new(cell, &mut prepared)?;
    writer.write(0)?;
    tracing.start()?;
    writer.write(1)?;
    place.counters();
    let text = tracing.stop_text()?;
    drop(prepared);
    place.remove(&NAMES)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.collect::<Vec<_>>().join("\n");
    Ok(format!("# {}: {cell}\n{lines}\n", place.name))
}
