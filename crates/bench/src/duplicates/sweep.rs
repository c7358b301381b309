//! Computes, from the reads of a run on a simulated spinning disk, which of them were of metadata,
//! and how fast one sweep of the arm could be. Performs no I/O.

use std::ops::Range;

use haul_disk_sim::{Counters, Drive, ServedRead};

/// The reads of one run of a tool, in seconds of the simulated disk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sweep {
    /// The time in which the drive served requests or read ahead in a pause.
    pub(super) disk_s: f64,
    /// The service time of the reads of directories, inodes and other metadata.
    pub(super) metadata_s: f64,
    /// A lower bound for a sweep over all sectors that the tool read.
    pub(super) bound_s: f64,
    /// The same for the metadata alone.
    pub(super) metadata_bound_s: f64,
    pub(super) seeks: u64,
}

impl Sweep {
    /// Computes the figures from the counters and the reads of a run. `data` are the sectors of the
    /// contents of all files, in ascending order.
    pub(super) fn new(
        drive: &Drive,
        counters: &Counters,
        mut reads: Vec<ServedRead>,
        data: &[Range<u64>],
    ) -> Self {
        let is_data = |read: &ServedRead| {
            let after = data.partition_point(|range| range.start <= read.sector);
            after.checked_sub(1).is_some_and(|at| data[at].contains(&read.sector))
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        reads.sort_unstable_by_key(|read| read.sector);
        let metadata: Vec<_> = reads.iter().copied().filter(|read| !is_data(read)).collect();
        Self {
            disk_s: seconds(counters.reading_ns()),
            metadata_s: seconds(metadata.iter().map(|read| read.service_ns).sum()),
            bound_s: seconds(drive.sweep_ns(union(&reads))),
            metadata_bound_s: seconds(drive.sweep_ns(union(&metadata))),
            seeks: counters.seeks,
        }
    }
}

/// Returns the runs (sector, sectors) that the reads, which are sorted, cover; each sector once.
fn union(reads: &[ServedRead]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for read in reads {
        let end = read.sector + read.sectors;
        match runs.last_mut() {
            Some((start, sectors)) if read.sector <= *start + *sectors => {
                *sectors = (*sectors).max(end - *start);
            }
            _ => runs.push((read.sector, read.sectors)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::{MS, Parameters};

    use super::*;

    fn read(sector: u64, sectors: u64) -> ServedRead {
        ServedRead { sector, sectors, service_ns: 2 * MS }
    }

    #[test]
    fn sectors_read_twice_count_once_in_the_bound() {
        let sorted = [read(0, 8), read(4, 8), read(12, 4), read(100, 8), read(100, 2)];
        assert_eq!(union(&sorted), [(0, 16), (100, 8)]);
    }

    #[test]
    fn reads_outside_of_files_are_metadata() {
        let drive = Drive::new(Parameters::travelstar_7k320(), 8 << 30);
        let reads = vec![read(5000, 8), read(100, 8), read(5008, 16), read(6000, 8)];
        let data = [4990..5008, 5008..5024];
        let sweep = Sweep::new(&drive, &Counters::default(), reads, &data);
        assert!((sweep.metadata_s - 0.004).abs() < 1e-9, "{sweep:?}");
        assert!(sweep.metadata_bound_s < sweep.bound_s, "{sweep:?}");
    }
}
