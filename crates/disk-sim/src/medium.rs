//! Stores a spinning disk's content: durable sectors in a file, unsynced writes in memory. Decides
//! which unsynced writes survive a power cut.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use haul_testing::Random;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::model::SECTOR_BYTES;

/// A write of whole sectors.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) sector: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A run of sectors with the same newest write.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The sector after the run.
    end: u64,
    /// The write's sequence number.
    number: usize,
}

/// A file as stable storage, and the unsynced writes in the volatile cache.
///
/// The loss at a power cut is independent of the model's times: any write in the cache may be lost,
/// even a write that the model's arm has already written.
#[derive(Debug)]
pub(crate) struct Medium {
    file: File,
    unsynced: VecDeque<Write>,
    /// The sequence number of the first write in `unsynced`.
    first: usize,
    /// The runs of sectors whose newest write is unsynced, by their first sector. They do not
    /// overlap.
    newest: BTreeMap<u64, Run>,
    unsynced_bytes: u64,
    unsynced_bytes_max: u64,
    /// The number of sectors that a power cut writes all or not at all.
    physical_sectors: u64,
}

impl Medium {
    /// Creates a medium with `file`'s length and content, a volatile cache of `unsynced_bytes_max`
    /// bytes, and `physical_sectors` sectors in each physical sector.
    pub(crate) fn new(file: File, unsynced_bytes_max: u64, physical_sectors: u64) -> Self {
        Self {
            file,
            unsynced: VecDeque::new(),
            first: 0,
            newest: BTreeMap::new(),
            unsynced_bytes: 0,
            unsynced_bytes_max,
            physical_sectors,
        }
    }

    /// Returns the newest content in a run of sectors.
    pub(crate) fn read(&self, sector: u64, sectors: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; to_usize(sectors * SECTOR_BYTES)];
        self.file.read_exact_at(&mut bytes, sector * SECTOR_BYTES)?;
        let end = sector + sectors;
        for (start, run) in self.overlapping(sector, end) {
            let (from, to) = (start.max(sector), run.end.min(end));
            let write = &self.unsynced[run.number - self.first];
            let newest = part(&write.bytes, from - write.sector, to - from);
            let begin = to_usize((from - sector) * SECTOR_BYTES);
            bytes[begin..begin + newest.len()].copy_from_slice(newest);
        }
        Ok(bytes)
    }

    /// Returns the runs that contain a sector from `sector` up to but excluding `end`, with their
    /// first sectors.
    fn overlapping(&self, sector: u64, end: u64) -> impl Iterator<Item = (u64, Run)> {
        let before = self.newest.range(..sector).next_back();
        let first = before.filter(|(_, run)| run.end > sector).map_or(sector, |(start, _)| *start);
        self.newest.range(first..end).map(|(start, run)| (*start, *run))
    }

    /// Adds the newest write's run, which replaces older runs and parts of them.
    fn add_newest(&mut self, sector: u64, run: Run) {
        let older: Vec<_> = self.overlapping(sector, run.end).collect();
        for (start, old) in older {
            self.newest.remove(&start);
            if start < sector {
                self.newest.insert(start, Run { end: sector, ..old });
            }
            if old.end > run.end {
                self.newest.insert(run.end, old);
            }
        }
        self.newest.insert(sector, run);
    }

    /// Adds a write to the cache. The oldest writes become durable until the cache is no larger
    /// than its maximum size.
    pub(crate) fn write(&mut self, write: Write) -> io::Result<()> {
        let number = self.first + self.unsynced.len();
        let sectors = write.bytes.len() as u64 / SECTOR_BYTES;
        self.add_newest(write.sector, Run { end: write.sector + sectors, number });
        self.unsynced_bytes += write.bytes.len() as u64;
        self.unsynced.push_back(write);
        while self.unsynced_bytes > self.unsynced_bytes_max {
            self.write_back_oldest()?;
        }
        Ok(())
    }

    /// Makes all writes in the cache durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        while !self.unsynced.is_empty() {
            self.write_back_oldest()?;
        }
        Ok(())
    }

    fn write_back_oldest(&mut self) -> io::Result<()> {
        let Some(write) = self.unsynced.front() else { return Ok(()) };
        put(&self.file, &write.bytes, write.sector * SECTOR_BYTES)?;
        let sectors = write.bytes.len() as u64 / SECTOR_BYTES;
        let runs = self.overlapping(write.sector, write.sector + sectors);
        let own: Vec<_> = runs.filter(|(_, run)| run.number == self.first).collect();
        for (start, _) in own {
            self.newest.remove(&start);
        }
        self.unsynced_bytes -= write.bytes.len() as u64;
        self.unsynced.pop_front();
        self.first += 1;
        Ok(())
    }

    /// Cuts the power while the writes `in_flight` are incomplete. The seed decides whether all, no
    /// or some physical sectors in each unsynced write become durable. The surviving sectors are
    /// written in write order.
    pub(crate) fn cut(&mut self, seed: u64, in_flight: Vec<Write>) -> io::Result<()> {
        let mut random = Random(seed);
        self.newest.clear();
        self.first += self.unsynced.len();
        self.unsynced_bytes = 0;
        for write in self.unsynced.drain(..).chain(in_flight) {
            let fate = random.below(3);
            let (mut survives, mut decided) = (false, None);
            for (sector, bytes) in (write.sector..).zip(write.bytes.chunks(SECTOR_LENGTH)) {
                let physical = sector / self.physical_sectors;
                if decided != Some(physical) {
                    survives = fate == 0 || fate == 1 && random.below(2) == 0;
                    decided = Some(physical);
                }
                if survives {
                    self.file.write_all_at(bytes, sector * SECTOR_BYTES)?;
                }
            }
        }
        Ok(())
    }
}

const SECTOR_LENGTH: usize = 512;

/// The minimum length at which a write of zeros is stored as a hole, in bytes.
const ZEROS_MIN: usize = 64 << 10;

/// Writes to the backing store. A long write of zeros becomes a hole, so that a file of zeros as
/// large as the disk needs no memory.
fn put(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    if bytes.len() >= ZEROS_MIN && bytes.iter().all(|byte| *byte == 0) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(file, hole, offset, bytes.len() as u64) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            made => return made.map_err(Into::into),
        }
    }
    file.write_all_at(bytes, offset)
}

/// Returns `sectors` sectors of `bytes`, from the one with the index `sector` on.
fn part(bytes: &[u8], sector: u64, sectors: u64) -> &[u8] {
    let begin = to_usize(sector * SECTOR_BYTES);
    &bytes[begin..begin + to_usize(sectors * SECTOR_BYTES)]
}

#[expect(clippy::cast_possible_truncation, reason = "lengths of requests, in memory already")]
fn to_usize(bytes: u64) -> usize {
    bytes as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: u64 = 64;

    fn medium(cache_bytes: u64) -> Medium {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SECTORS * SECTOR_BYTES).unwrap();
        Medium::new(file, cache_bytes, 1)
    }

    /// Returns the byte with which each sector is filled, and checks that no sector is torn.
    fn fillings(medium: &Medium) -> Vec<u8> {
        let bytes = medium.read(0, SECTORS).unwrap();
        let filling = |sector: &[u8]| {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a torn sector");
            sector[0]
        };
        bytes.chunks(SECTOR_LENGTH).map(filling).collect()
    }

    fn write(random: &mut Random, filling: u8) -> Write {
        let (sector, sectors) = (random.below(SECTORS - 8), 1 + random.below(8));
        Write { sector, bytes: vec![filling; to_usize(sectors * SECTOR_BYTES)] }
    }

    /// Executes random writes and syncs, cuts the power, and returns the allowed and the actual
    /// fill bytes of each sector.
    fn cut_after_work(seed: u64) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut random, mut medium) = (Random(seed), medium(1 << 20));
        let mut may_hold = vec![vec![0]; to_usize(SECTORS)];
        let mut note = |write: &Write, filling| {
            let sectors = write.bytes.len() / SECTOR_LENGTH;
            let all = may_hold.iter_mut().skip(to_usize(write.sector)).take(sectors);
            all.for_each(|fillings| fillings.push(filling));
        };
        let mut synced_at = 0;
        for filling in 1..40 {
            let write = write(&mut random, filling);
            note(&write, filling);
            medium.write(write).unwrap();
            if random.below(8) == 0 {
                medium.sync().unwrap();
                synced_at = filling;
            }
        }
        let in_flight = write(&mut random, 40);
        note(&in_flight, 40);
        medium.cut(seed, vec![in_flight]).unwrap();
        for fillings in &mut may_hold {
            let is_synced = |filling: &u8| *filling <= synced_at;
            let newest_synced = fillings.iter().filter(|f| is_synced(f)).count() - 1;
            fillings.drain(..newest_synced);
        }
        (may_hold, fillings(&medium))
    }

    #[test]
    fn sector_after_cut_holds_synced_or_later_content() {
        let (mut lost, mut survived) = (0, 0);
        for seed in 0..500 {
            let (may_hold, holds) = cut_after_work(seed);
            for (may, holds) in may_hold.iter().zip(holds) {
                assert!(may.contains(&holds), "SEED={seed}: {holds} is none of {may:?}");
                lost += usize::from(may.len() > 1 && holds == may[0]);
                survived += usize::from(may.len() > 1 && holds != may[0]);
            }
        }
        assert!(lost > 1000 && survived > 1000, "{lost} lost, {survived} survived");
    }

    #[test]
    fn cut_is_determined_by_the_seed() {
        assert_eq!(cut_after_work(7), cut_after_work(7));
        let cut = |seed| {
            let mut medium = medium(1 << 20);
            medium.write(Write { sector: 0, bytes: vec![1; 64 * SECTOR_LENGTH] }).unwrap();
            medium.cut(seed, Vec::new()).unwrap();
            fillings(&medium)
        };
        let outcomes: std::collections::BTreeSet<_> = (0..30).map(cut).collect();
        assert!(outcomes.len() > 5, "complete, lost, and torn writes");
        assert!(outcomes.contains(&vec![1; 64]) && outcomes.contains(&vec![0; 64]));
    }

    #[test]
    fn cut_never_tears_a_physical_sector() {
        let mut torn = 0;
        for seed in 0..100 {
            let mut medium = Medium { physical_sectors: 8, ..medium(1 << 20) };
            medium.write(Write { sector: 4, bytes: vec![1; 40 * SECTOR_LENGTH] }).unwrap();
            medium.cut(seed, Vec::new()).unwrap();
            let fillings = fillings(&medium);
            // The write covers a half of the first and of the last physical sector.
            let ends = [&fillings[4..8], &fillings[40..44]];
            for physical in fillings[8..40].chunks(8).chain(ends) {
                assert!(physical.iter().all(|it| *it == physical[0]), "SEED={seed}: {fillings:?}");
            }
            torn += usize::from(fillings[4..44].iter().any(|it| *it != fillings[4]));
        }
        assert!(torn > 10, "{torn}");
    }

    #[test]
    fn read_returns_the_last_write_from_cache_or_storage() {
        for seed in 0..100 {
            let (mut random, mut medium) = (Random(seed), medium(seed * 256));
            let mut expected = vec![0; to_usize(SECTORS)];
            for filling in 1..100 {
                let write = write(&mut random, filling);
                let sectors = write.bytes.len() / SECTOR_LENGTH;
                expected[to_usize(write.sector)..][..sectors].fill(filling);
                medium.write(write).unwrap();
                assert_eq!(fillings(&medium), expected, "SEED={seed}");
            }
        }
    }

    #[test]
    fn cut_without_volatile_cache_loses_nothing() {
        let mut medium = medium(0);
        medium.write(Write { sector: 3, bytes: vec![9; 4 * SECTOR_LENGTH] }).unwrap();
        let before = fillings(&medium);
        medium.cut(1, Vec::new()).unwrap();
        assert_eq!(fillings(&medium), before);
    }

    #[test]
    fn cut_loses_at_most_the_cache() {
        let mut medium = medium(4 * SECTOR_BYTES);
        for sector in 0..32 {
            medium.write(Write { sector, bytes: vec![1; SECTOR_LENGTH] }).unwrap();
        }
        medium.cut(5, Vec::new()).unwrap();
        assert_eq!(fillings(&medium)[..28], [1; 28]);
    }

    #[test]
    fn long_zeros_are_stored_as_holes() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut medium = Medium::new(file.try_clone().unwrap(), 1 << 20, 1);
        let mut write = |filling| {
            medium.write(Write { sector: 0, bytes: vec![filling; 1 << 20] }).unwrap();
            medium.sync().unwrap();
            (medium.read(7, 1).unwrap()[0], file.metadata().unwrap().blocks() * 512)
        };
        assert_eq!(write(0), (0, 0));
        assert_eq!(write(7), (7, 1 << 20));
        assert_eq!(write(0), (0, 0));
    }
}
