//! The bytes: what is on the medium, what is only in the volatile cache, and what a power cut
//! leaves of that.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::model::SECTOR_BYTES;
use crate::random::Random;

/// Sectors that are to be written.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) sector: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A file that stands for the medium, and the writes since the last sync over it.
///
/// What may be lost is decided here and not by the times of the model: any of the writes since the
/// last sync, even one the arm has been at in the meantime; but never more than the cache holds.
#[derive(Debug)]
pub(crate) struct Medium {
    file: File,
    unsynced: VecDeque<Write>,
    /// The number of the first write in `unsynced`.
    first: usize,
    /// Which write has the newest contents of a sector.
    newest: BTreeMap<u64, usize>,
    unsynced_bytes: u64,
    unsynced_bytes_max: u64,
}

impl Medium {
    /// A medium of the length of the file, with a volatile cache of so many bytes.
    pub(crate) fn new(file: File, unsynced_bytes_max: u64) -> Self {
        Self {
            file,
            unsynced: VecDeque::new(),
            first: 0,
            newest: BTreeMap::new(),
            unsynced_bytes: 0,
            unsynced_bytes_max,
        }
    }

    /// The newest contents from a sector on.
    pub(crate) fn read(&self, sector: u64, sectors: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; to_usize(sectors * SECTOR_BYTES)];
        self.file.read_exact_at(&mut bytes, sector * SECTOR_BYTES)?;
        for (at, number) in self.newest.range(sector..sector + sectors) {
            let write = &self.unsynced[number - self.first];
            let newest = part(&write.bytes, at - write.sector);
            let begin = to_usize((at - sector) * SECTOR_BYTES);
            bytes[begin..begin + newest.len()].copy_from_slice(newest);
        }
        Ok(bytes)
    }

    /// Takes a write into the cache; the oldest ones leave it for the medium when it is full.
    pub(crate) fn write(&mut self, write: Write) -> io::Result<()> {
        let number = self.first + self.unsynced.len();
        let sectors = write.bytes.len() as u64 / SECTOR_BYTES;
        self.newest.extend((write.sector..write.sector + sectors).map(|sector| (sector, number)));
        self.unsynced_bytes += write.bytes.len() as u64;
        self.unsynced.push_back(write);
        while self.unsynced_bytes > self.unsynced_bytes_max {
            self.settle_oldest()?;
        }
        Ok(())
    }

    /// Puts all that was written on the medium.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        while !self.unsynced.is_empty() {
            self.settle_oldest()?;
        }
        Ok(())
    }

    fn settle_oldest(&mut self) -> io::Result<()> {
        let Some(write) = self.unsynced.front() else { return Ok(()) };
        put(&self.file, &write.bytes, write.sector * SECTOR_BYTES)?;
        let sectors = write.bytes.len() as u64 / SECTOR_BYTES;
        for sector in write.sector..write.sector + sectors {
            if self.newest.get(&sector) == Some(&self.first) {
                self.newest.remove(&sector);
            }
        }
        self.unsynced_bytes -= write.bytes.len() as u64;
        self.unsynced.pop_front();
        self.first += 1;
        Ok(())
    }

    /// The power goes while `under_way` are being written. Of each unsynced write all, nothing, or
    /// some sectors get to the medium, as the seed has it; the newest that got there stays.
    pub(crate) fn cut(&mut self, seed: u64, under_way: Vec<Write>) -> io::Result<()> {
        let mut random = Random(seed);
        self.newest.clear();
        self.first += self.unsynced.len();
        self.unsynced_bytes = 0;
        for write in self.unsynced.drain(..).chain(under_way) {
            let fate = random.below(3);
            for (sector, bytes) in (write.sector..).zip(write.bytes.chunks(SECTOR_LENGTH)) {
                let survives = fate == 0 || fate == 1 && random.below(2) == 0;
                if survives {
                    self.file.write_all_at(bytes, sector * SECTOR_BYTES)?;
                }
            }
        }
        Ok(())
    }
}

const SECTOR_LENGTH: usize = 512;

/// From this length on zeros take no room in the backing store.
const ZEROS_MIN: usize = 64 << 10;

/// Writes into the backing store. Many zeros become a hole there: so a file of zeros, as long as a
/// disk, can lie on one that is kept in memory.
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

/// One sector of some.
fn part(bytes: &[u8], sector: u64) -> &[u8] {
    let begin = to_usize(sector * SECTOR_BYTES);
    &bytes[begin..begin + SECTOR_LENGTH]
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
        Medium::new(file, cache_bytes)
    }

    /// What each sector is filled with.
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

    /// Does random writes and syncs, cuts, and tells what each sector may hold, and what it does.
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
        let under_way = write(&mut random, 40);
        note(&under_way, 40);
        medium.cut(seed, vec![under_way]).unwrap();
        for fillings in &mut may_hold {
            let is_synced = |filling: &u8| *filling <= synced_at;
            let newest_synced = fillings.iter().filter(|f| is_synced(f)).count() - 1;
            fillings.drain(..newest_synced);
        }
        (may_hold, fillings(&medium))
    }

    #[test]
    fn after_a_cut_a_sector_holds_what_was_synced_or_something_written_since() {
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
    fn a_seed_replays_and_another_one_does_not() {
        assert_eq!(cut_after_work(7), cut_after_work(7));
        let cut = |seed| {
            let mut medium = medium(1 << 20);
            medium.write(Write { sector: 0, bytes: vec![1; 64 * SECTOR_LENGTH] }).unwrap();
            medium.cut(seed, Vec::new()).unwrap();
            fillings(&medium)
        };
        let outcomes: std::collections::BTreeSet<_> = (0..30).map(cut).collect();
        assert!(outcomes.len() > 5, "whole, nothing, and torn in many ways");
        assert!(outcomes.contains(&vec![1; 64]) && outcomes.contains(&vec![0; 64]));
    }

    #[test]
    fn what_is_read_is_what_was_written_last_wherever_it_is() {
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
    fn without_a_volatile_cache_nothing_acknowledged_is_lost() {
        let mut medium = medium(0);
        medium.write(Write { sector: 3, bytes: vec![9; 4 * SECTOR_LENGTH] }).unwrap();
        let before = fillings(&medium);
        medium.cut(1, Vec::new()).unwrap();
        assert_eq!(fillings(&medium), before);
    }

    #[test]
    fn no_more_is_lost_than_the_cache_holds() {
        let mut medium = medium(4 * SECTOR_BYTES);
        for sector in 0..32 {
            medium.write(Write { sector, bytes: vec![1; SECTOR_LENGTH] }).unwrap();
        }
        medium.cut(5, Vec::new()).unwrap();
        assert_eq!(fillings(&medium)[..28], [1; 28]);
    }

    #[test]
    fn many_zeros_take_no_room_and_read_as_zeros() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut medium = Medium::new(file.try_clone().unwrap(), 1 << 20);
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
