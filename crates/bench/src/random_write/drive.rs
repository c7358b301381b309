//! Measures the methods of random writes on a simulated disk, by the clock and the counters of the
//! simulation.

use haul_disk::{DelayedAllocation, Disk as _, Open, extents};
use haul_disk_sim::{Backing, Drive as Model, Nanos, SECTOR_BYTES};
use haul_measure::{Result, Watcher};
use haul_sorted_write::plan::{Costs, Extent, Rules, plan};

use super::files::{BIG, Files};
use super::method::Cell;
use super::options::RandomWriteBench;
use super::records::{Record, Shape, records};
use super::table::Round;
use crate::simulated::{Drive, EXT4, SimulatedDisk};

/// The unit in bytes of reads and writes, a page.
const UNIT_BYTES: u64 = 4096;

/// A simulated drive that contains the file of records and the index.
pub(crate) struct SimulatedDrive<'a> {
    bench: &'a RandomWriteBench,
    watcher: &'a dyn Watcher,
    disk: SimulatedDisk,
    model: Model,
    runs: u64,
}

impl<'a> SimulatedDrive<'a> {
    /// Starts the drive and creates the files, both outside the measured time.
    pub(crate) fn new(
        bench: &'a RandomWriteBench,
        drive: &Drive,
        watcher: &'a dyn Watcher,
    ) -> Result<Self> {
        let RandomWriteBench { file_size, index_size, .. } = bench;
        let disk_bytes = file_size + file_size / 4 + (256 << 20);
        let backing = bench.image_dir.clone().map_or(Backing::Memory, Backing::Dir);
        let disk = SimulatedDisk::new(drive, disk_bytes, backing, EXT4)?;
        Files::create(&disk.mount()?.path(), *file_size, *index_size, watcher)?;
        let model = Model::new(drive.parameters().clone(), disk_bytes);
        Ok(Self { bench, watcher, disk, model, runs: 0 })
    }

    /// Writes the records with cold caches, then verifies some of them.
    pub(crate) fn measure(&mut self, cell: Cell) -> Result<Round> {
        self.runs += 1;
        let all = self.bench.records_of(cell.shape, cell.batch, self.runs);
        let mounted = self.disk.mount_cold()?;
        let files = Files::on_drive(&mounted.path())?;
        let before = self.disk.counters();
        files.write(cell, &all, self.watcher)?;
        let requests = self.disk.counters().since(&before);
        files.verify(&all, cell.index)?;
        Ok(Round::from_drive(all.len() as f64, &requests).in_batches(cell.batch))
    }

    /// Returns the lower bound of the time of any method that, for each batch, reads the partly
    /// written units in one sweep of the arm and writes all units in another sweep.
    pub(super) fn bound(&self, shape: Shape, batch: usize) -> Result<Round> {
        let all = self.bench.records_of(shape, batch, 0);
        let mounted = self.disk.mount()?;
        let files = Files::on_drive(&mounted.path())?;
        let file = files.disk.open(BIG, Open { read_only: true, ..Open::default() })?;
        let map = extents(&*file, 0, u64::MAX, DelayedAllocation::Report)?;
        let on_disk = |extent: &Extent| {
            let at = map.extents.partition_point(|it| it.logical + it.bytes <= extent.offset);
            let place =
                map.extents.get(at).map_or(0, |it| it.physical + (extent.offset - it.logical));
            (place / SECTOR_BYTES, extent.bytes / SECTOR_BYTES)
        };
        let sweeps = all.chunks(batch).map(|batch| {
            let (reads, writes) = units(batch);
            self.model.sweep_ns(reads.iter().map(on_disk))
                + self.model.sweep_ns(writes.iter().map(on_disk))
        });
        let service_s = sweeps.sum::<Nanos>() as f64 / 1e9;
        Ok(Round::from_service(all.len() as f64, service_s).in_batches(batch))
    }
}

/// Returns the extents of a batch to read before the writes, and the extents to write, both in
/// ascending order.
fn units(batch: &[Record]) -> (Vec<Extent>, Vec<Extent>) {
    let mut entries: Vec<_> = (0..).zip(batch).map(|(number, it)| it.as_entry(number)).collect();
    let costs = Costs { request_us: 0, bytes_per_second: 0 };
    let rules =
        Rules { unit_bytes: UNIT_BYTES, units_end: 1 << 62, request_bytes_max: 1 << 20, costs };
    let plan = plan(&mut entries, &rules);
    (plan.reads, plan.requests.iter().map(|request| request.extent).collect())
}

impl RandomWriteBench {
    /// Returns the records of a run with batches of `batch` records. The number of batches is
    /// limited, so a run with short batches has fewer records.
    pub(super) fn records_of(&self, shape: Shape, batch: usize, run: u64) -> Vec<Record> {
        let count = self.records.min(batch.saturating_mul(self.batches_max));
        let Self { record_size, file_size, index_size, .. } = *self;
        records(shape, record_size, count, file_size, index_size, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_units_are_not_read_and_overlaps_count_once() {
        let record = |offset, bytes| Record { offset, bytes, entry_at: 0, filling: 0 };
        let batch = [record(8192, 4096), record(4000, 200), record(100, 10), record(4050, 100)];
        let ends = |all: &[Extent]| all.iter().map(|it| (it.offset, it.end())).collect::<Vec<_>>();
        let (reads, writes) = units(&batch);
        assert_eq!(ends(&writes), [(0, 12_288)]);
        assert_eq!(ends(&reads), [(0, 8192)]);
    }
}
