//! Counts the requests to the device per commit of the append log in its steady state.

use std::collections::BTreeMap;
use std::path::Path;

use haul_append_log::payload_bytes_in_pages;
use haul_disk::{Device, DeviceCounters};

use super::contender::{Contender, Failure};
use super::ours::Ours;
use crate::report::Samples;
use haul_measure::Watcher;

/// The length in bytes of a segment (file of the log).
const SEGMENT_BYTES: u32 = 16 << 20;
/// The number of segments written in one measurement. The measurement includes a segment change for
/// each, so the cost of changes is part of the counts.
const SEGMENTS: u32 = 2;
const RECORD_BYTES: usize = 4096;
/// The length in bytes of the longest record that the log writes as one page.
const PAGE_RECORD_BYTES: usize = payload_bytes_in_pages(1) as usize;

/// Returns the requests per commit with one writer in each round. The counts include requests of
/// other programs.
pub(super) fn counts(
    device: &Device,
    dir: &Path,
    rounds: usize,
    watcher: &dyn Watcher,
) -> Result<Vec<Samples>, Failure> {
    let ours = Ours::open(dir, SEGMENT_BYTES)?;
    ours.warm_up()?;
    let watched = Watched { ours, device, watcher };
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (key, number) in watched.round()? {
            all.entry(key).or_default().push(number);
        }
    }
    Ok(all.into_iter().map(|(key, numbers)| Samples::new(key, numbers)).collect())
}

/// The log and its device.
struct Watched<'a> {
    ours: Ours,
    device: &'a Device,
    watcher: &'a dyn Watcher,
}

impl Watched<'_> {
    /// Measures from one segment change to the [`SEGMENTS`]th change after it, and then records of
    /// [`PAGE_RECORD_BYTES`].
    fn round(&self) -> Result<[(&'static str, f64); 4], Failure> {
        self.append_until_change(1, RECORD_BYTES)?;
        rustix::fs::sync();
        let before = self.ours.stats();
        let (payload_bytes, requests) = self.append(SEGMENTS, RECORD_BYTES)?;
        let after = self.ours.stats();
        let commits = (after.batches - before.batches).max(1) as f64;
        let padded_bytes = (after.written_bytes - before.written_bytes).max(1) as f64;
        let written_bytes = requests.written_bytes as f64;
        self.append_until_change(1, PAGE_RECORD_BYTES)?;
        rustix::fs::sync();
        let (page_payload_bytes, page_requests) = self.append(1, PAGE_RECORD_BYTES)?;
        let page_bytes = page_requests.written_bytes as f64;
        Ok([
            ("reads_per_commit", requests.reads as f64 / commits),
            ("device_bytes_per_payload_byte", written_bytes / payload_bytes),
            ("device_bytes_per_padded_byte", written_bytes / padded_bytes),
            ("device_bytes_per_payload_byte_of_pages", page_bytes / page_payload_bytes),
        ])
    }

    /// Appends records for this number of segment changes; returns their bytes, and the requests to
    /// the device in the meantime.
    fn append(&self, changes: u32, bytes: usize) -> Result<(f64, DeviceCounters), Failure> {
        let before = DeviceCounters::of(self.device)?;
        let records = self.append_until_change(changes, bytes)?;
        let requests = DeviceCounters::of(self.device)?.since(&before);
        Ok(((records * bytes as u64) as f64, requests))
    }

    /// Appends records of `bytes` bytes until the log has changed its segment `changes` times.
    /// Returns the number of records.
    fn append_until_change(&self, changes: u32, bytes: usize) -> Result<u64, Failure> {
        let record = vec![7; bytes];
        let mut last = self.ours.append_to_segment(&record)?;
        let (mut left, mut records) = (changes, 1);
        while left > 0 {
            self.watcher.check()?;
            let segment = self.ours.append_to_segment(&record)?;
            records += 1;
            if segment != last {
                self.ours.housekeep()?;
                (last, left) = (segment, left - 1);
            }
        }
        Ok(records)
    }
}
