//! Loads files into the page cache, in the order of their position on disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use haul_disk::first_extent;

use crate::counts::{PageCounts, page_bytes};
use crate::devices::Devices;
use crate::events::WarmEvents;
use crate::files::{Files, FoundFile, count_or_unknown, open_quietly};
use crate::plan::{Candidate, DiskPosition, PlannedRead, plan_reads, threads};
use crate::readahead::Reader;

/// The options of [`Warmed::run`].
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmOptions {
    /// `true` to read with one thread in physical order, which suits rotational disks; `false` to
    /// read with several threads in inode order, which suits other disks; `None` to decide by the
    /// kernel's report for each device.
    pub rotates: Option<bool>,
    /// The maximum number of bytes to load; `None` for the available memory (`MemAvailable`).
    pub bytes_max: Option<u64>,
}

/// The result of loading files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warmed {
    /// The page counts before loading.
    pub before: PageCounts,
    /// The page counts after loading.
    pub after: PageCounts,
    /// The effective maximum number of bytes to load.
    pub bytes_max: u64,
}

impl Warmed {
    /// Loads as many files into the page cache as [`WarmOptions::bytes_max`] allows. Selects files
    /// in the order of their paths, and reads the selected files in the order of their position on
    /// disk.
    pub fn run(files: &Files<'_>, options: &WarmOptions, events: &dyn WarmEvents) -> Self {
        let mut work = Work { files, events, devices: Devices::of(options.rotates) };
        let (before, candidates) = work.candidates();
        let bytes_max = options.bytes_max.or_else(available_bytes).unwrap_or(u64::MAX);
        work.execute(&plan_reads(&candidates, bytes_max));
        Self { before, after: work.recount(), bytes_max }
    }
}

/// The context of one call of [`Warmed::run`].
struct Work<'a> {
    files: &'a Files<'a>,
    events: &'a dyn WarmEvents,
    devices: Devices,
}

impl Work<'_> {
    /// Returns the page counts before loading, and the candidates from which the plan selects.
    fn candidates(&mut self) -> (PageCounts, Vec<Candidate>) {
        let (mut sum, mut candidates) = (PageCounts::default(), Vec::new());
        for (index, found) in self.files.iter().enumerate() {
            if self.events.is_stopped() {
                break;
            }
            match inspect(&found, &mut self.devices) {
                Ok((cached, place)) => {
                    sum += cached;
                    let missing_bytes = (cached.missing() + cached.unknown) * page_bytes();
                    candidates.push(Candidate { index, place, bytes: cached.bytes, missing_bytes });
                }
                Err(error) => self.events.failed(&error),
            }
        }
        (sum, candidates)
    }

    /// Executes the planned reads, one device after another, with one or several threads per
    /// device.
    fn execute(&mut self, reads: &[PlannedRead]) {
        let bytes = reads.iter().map(|read| read.bytes).sum();
        self.events.begin_reads(reads.len() as u64, bytes);
        let cores = available_parallelism().map_or(1, usize::from);
        for device_reads in reads.chunk_by(|a, b| a.place.device == b.place.device) {
            let first = self.files.get(device_reads[0].index);
            let rotates = self.devices.kind(first.device, &first.path).rotates;
            let (files, events, next) = (self.files, self.events, &AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads(rotates, cores).min(device_reads.len()) {
                    scope.spawn(move || {
                        let mut reader = Reader::new(events);
                        while !events.is_stopped()
                            && let Some(read) =
                                device_reads.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            reader.start(files.get(read.index), read.bytes);
                        }
                        reader.finish();
                    });
                }
            });
        }
        self.events.end_reads();
    }

    /// Returns the page counts after loading. Errors are ignored, because `candidates` has already
    /// reported them.
    fn recount(&self) -> PageCounts {
        let mut sum = PageCounts::default();
        for found in self.files.iter() {
            if let Ok(cached) =
                open_quietly(&found).and_then(|fd| count_or_unknown(&found.path, &fd))
            {
                sum += cached;
            }
        }
        sum
    }
}

/// Returns the page counts and the position of a file.
fn inspect(
    found: &FoundFile,
    devices: &mut Devices,
) -> haul_disk::Result<(PageCounts, DiskPosition)> {
    let fd = open_quietly(found)?;
    let cached = count_or_unknown(&found.path, &fd)?;
    let rotates = devices.kind(found.device, &found.path).rotates;
    let needs_extent = rotates && cached.missing() + cached.unknown > 0;
    let extent = needs_extent.then(|| first_extent(&fd).ok().flatten()).flatten();
    let physical = extent.and_then(|extent| extent.device_offset());
    Ok((cached, DiskPosition { device: found.device, physical, inode: found.inode }))
}

/// Returns the available memory in bytes (`MemAvailable`); `None` if unknown.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
