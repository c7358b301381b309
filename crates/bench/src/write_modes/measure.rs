//! One pass over a file: every record timed, the device's requests counted.

use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, DeviceCounters, Durability, write_full};

use super::place::Place;
use super::plan::{Cell, Sync, Way};
use super::prepare::Ready;
use crate::error::{Error, Result};
use crate::stats::Latencies;
use crate::trace::{Tracing, Traffic};
use crate::watch::Watcher;

/// What one pass came to.
#[derive(Debug, Clone, Default)]
pub(super) struct Pass {
    pub(super) records: u64,
    pub(super) time: Duration,
    pub(super) latencies: Latencies,
    pub(super) counters: Option<DeviceCounters>,
    pub(super) traffic: Option<Traffic>,
    /// Events the trace lost; `traffic` is `None` then.
    pub(super) lost_events: u64,
}

/// How long a pass may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) records: u64,
    pub(super) time: Duration,
}

/// Writes records into a file that is ready, the first time or again.
pub(super) fn pass(
    place: &Place,
    cell: &Cell,
    ready: &mut Ready,
    limits: Limits,
    tracing: Option<&Tracing>,
    watcher: &dyn Watcher,
) -> Result<Pass> {
    let mut pass = Pass::default();
    let mut writer = Writer::new(cell, ready)?;
    let before = place.counters();
    tracing.map(Tracing::start).transpose()?;
    let started = Instant::now();
    while pass.records < limits.records && (pass.records == 0 || started.elapsed() < limits.time) {
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
        pass.lost_events = trace.lost;
        let own = trace.marked_by.filter(|_| trace.lost == 0);
        pass.traffic = own.map(|own| Traffic::of(&trace, own, place.journalling));
    }
    Ok(pass)
}

/// Puts records into a file, one after the other.
struct Writer<'a> {
    ready: &'a mut Ready,
    sync: Sync,
    grows: bool,
    step_bytes: u64,
    record: AlignedBuf,
    length: usize,
}

impl<'a> Writer<'a> {
    fn new(cell: &Cell, ready: &'a mut Ready) -> Result<Self> {
        let step_bytes = cell.step_bytes();
        let length = usize::try_from(step_bytes)
            .map_err(|_beyond| Error::Missing(format!("{step_bytes} B are too much")))?;
        let mut record = AlignedBuf::zeroed(length);
        record.fill(b'n');
        let grows = cell.way == Way::Append;
        Ok(Self { ready, sync: cell.sync, grows, step_bytes, record, length })
    }

    /// Writes a record and makes it as durable as is asked for.
    fn write(&mut self, number: u64) -> Result<()> {
        let offset = number * self.step_bytes;
        let record = &self.record[..self.length];
        match self.ready {
            Ready::File(file) => {
                write_full(&**file, record, offset)?;
                match self.sync {
                    Sync::Fdatasync => file.sync(Durability::Data)?,
                    Sync::Fsync => file.sync(Durability::Everything)?,
                    Sync::Nothing | Sync::DirectDsync | Sync::Msync => {}
                }
            }
            Ready::Map(_, map) => {
                let end = offset + self.step_bytes;
                if self.grows && map.end() < end {
                    map.grow(end)?;
                }
                let offset = usize::try_from(offset)
                    .map_err(|_beyond| Error::Missing("the mapping is too long".to_owned()))?;
                map.write(record, offset)?;
                map.sync(offset, self.length)?;
            }
            Ready::Not(_) => {}
        }
        Ok(())
    }
}

/// Brings what a pass left in memory onto the medium, so that the next starts from there.
pub(super) fn finish(place: &Place, ready: &Ready) -> Result<()> {
    if let Ready::File(file) | Ready::Map(file, _) = ready {
        file.sync(Durability::Everything)?;
    }
    place.settle()
}
