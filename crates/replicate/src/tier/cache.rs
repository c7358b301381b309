//! A bounded cache on the local disk for blocks of files that are only in the copy.
//!
//! The block list is in memory, so the cache is empty after each start. Each block has a checksum
//! there: a block that was replaced while it was read, or that the disk damaged, is fetched again.
//! Concurrent reads of a missing block share one request.
//!
//! # Source
//! CLOCK replacement: Corbató 1968, a paging experiment with the Multics system.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use haul_disk::{Disk, File, Open, read_full, write_full};
use parking_lot::{Condvar, Mutex};

use crate::error::Result;

/// The length of a block, the unit that is fetched.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// The maximum number of blocks that one request fetches.
const BLOCKS_MAX: u64 = 128;

/// A file whose blocks are cached. Its content never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FileId {
    /// A segment, by its nonce.
    Segment(u64),
    Object(u128),
}

/// A block: the file and the block's number in it.
type Key = (FileId, u64);

/// A function that fetches a file range.
pub(crate) type Fetch<'a> = &'a dyn Fn(Range<u64>) -> Result<Bytes>;

/// The cache. Its file consists of slots for one block each.
pub(crate) struct BlockCache {
    file: Arc<dyn File>,
    state: Mutex<State>,
    fetched: Condvar,
}

#[derive(Default)]
struct State {
    blocks: HashMap<Key, Block>,
    slots: Vec<Slot>,
    /// The slot at which the search for a victim continues.
    hand: usize,
}

#[derive(Debug, Clone, Copy)]
enum Block {
    /// A thread fetches the block.
    Fetching,
    Stored {
        slot: usize,
        bytes: usize,
        checksum: u32,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: Option<Key>,
    /// `true` if the block was read since the hand passed it.
    is_recent: bool,
    /// `true` while a block is written to the slot.
    is_busy: bool,
}

/// A read's next blocks.
enum Next {
    Stored {
        slot: usize,
        bytes: usize,
        checksum: u32,
    },
    /// This many adjacent blocks are missing. This thread must fetch them.
    Missing(u64),
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("file", &self.file).finish_non_exhaustive()
    }
}

impl BlockCache {
    /// Creates the cache in a new file, which replaces an earlier one. It takes its space on the
    /// disk as it fills.
    pub(crate) fn create(disk: &dyn Disk, name: &str, bytes: u64) -> haul_disk::Result<Self> {
        match disk.remove(name) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let slots = usize::try_from(bytes / BLOCK_BYTES).unwrap_or(usize::MAX);
        let file = disk.create(name, Open { random: true, ..Open::default() })?;
        file.resize(slots as u64 * BLOCK_BYTES)?;
        let slots = vec![Slot::default(); slots];
        let state = Mutex::new(State { slots, ..State::default() });
        Ok(Self { file, state, fetched: Condvar::new() })
    }

    /// Reads bytes at `offset` from a file of `file_bytes` bytes. Fetches the blocks that are
    /// missing, adjacent ones with one request.
    ///
    /// `fetch` must return as many bytes as requested.
    ///
    /// # Errors
    /// Fails like `fetch`.
    pub(crate) fn read(
        &self,
        id: FileId,
        file_bytes: u64,
        buffer: &mut [u8],
        offset: u64,
        fetch: Fetch<'_>,
    ) -> Result<()> {
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        while at < end {
            let number = at / BLOCK_BYTES;
            let (start, block) = match self.next(id, number, end.div_ceil(BLOCK_BYTES)) {
                Next::Stored { slot, bytes, checksum } => {
                    match self.read_slot(slot, bytes, checksum) {
                        Some(block) => (number * BLOCK_BYTES, block),
                        None => {
                            self.forget((id, number), slot);
                            continue;
                        }
                    }
                }
                Next::Missing(blocks) => {
                    let numbers = number..number + blocks;
                    let start = number * BLOCK_BYTES;
                    let range = start..file_bytes.min(numbers.end * BLOCK_BYTES);
                    let in_progress = Fetching { cache: self, id, numbers };
                    let fetched = fetch(range)?;
                    in_progress.store(&fetched);
                    (start, fetched)
                }
            };
            let from = to_usize(at - start);
            let bytes = (block.len() - from).min(to_usize(end - at));
            buffer[to_usize(at - offset)..][..bytes].copy_from_slice(&block[from..from + bytes]);
            at += bytes as u64;
        }
        Ok(())
    }

    /// Returns the block with this number, or the number of blocks up to `end` that are missing,
    /// which are then marked. Waits while another thread fetches the block.
    fn next(&self, id: FileId, number: u64, end: u64) -> Next {
        let mut state = self.state.lock();
        loop {
            match state.blocks.get(&(id, number)).copied() {
                Some(Block::Stored { slot, bytes, checksum }) => {
                    state.slots[slot].is_recent = true;
                    return Next::Stored { slot, bytes, checksum };
                }
                Some(Block::Fetching) => self.fetched.wait(&mut state),
                None => {
                    let all = number..end.min(number + BLOCKS_MAX);
                    let missing =
                        all.take_while(|number| !state.blocks.contains_key(&(id, *number)));
                    let missing: Vec<_> = missing.collect();
                    for number in &missing {
                        state.blocks.insert((id, *number), Block::Fetching);
                    }
                    return Next::Missing(missing.len() as u64);
                }
            }
        }
    }

    /// Reads a slot; `None` if it has another block by now, or cannot be read.
    fn read_slot(&self, slot: usize, bytes: usize, checksum: u32) -> Option<Bytes> {
        let mut block = vec![0; bytes];
        let read = read_full(&*self.file, &mut block, slot as u64 * BLOCK_BYTES).ok()?;
        let is_valid = read == bytes && haul_crc::crc32c(&block) == checksum;
        is_valid.then(|| block.into())
    }

    /// Removes a block from the list, unless it was replaced meanwhile.
    fn forget(&self, key: Key, slot: usize) {
        let mut state = self.state.lock();
        let is_there = matches!(state.blocks.get(&key),
            Some(Block::Stored { slot: current, .. }) if *current == slot);
        if is_there {
            state.blocks.remove(&key);
            state.slots[slot].key = None;
        }
    }

    /// Stores a block that was fetched. A failure only leaves the block out of the cache.
    fn store(&self, key: Key, block: &[u8]) {
        let Some(slot) = self.state.lock().take_slot() else { return };
        let written = write_full(&*self.file, block, slot as u64 * BLOCK_BYTES);
        let mut state = self.state.lock();
        let key = written.is_ok().then_some(key);
        state.slots[slot] = Slot { key, is_recent: true, is_busy: false };
        if let Some(key) = key {
            let (bytes, checksum) = (block.len(), haul_crc::crc32c(block));
            state.blocks.insert(key, Block::Stored { slot, bytes, checksum });
        }
    }
}

impl State {
    /// Evicts a block that was not read recently, and returns its slot, which is busy until a block
    /// is stored in it. `None` if all slots are busy.
    fn take_slot(&mut self) -> Option<usize> {
        for _ in 0..2 * self.slots.len() {
            let number = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[number];
            if slot.is_busy || std::mem::take(&mut slot.is_recent) {
                continue;
            }
            slot.is_busy = true;
            if let Some(key) = slot.key.take() {
                self.blocks.remove(&key);
            }
            return Some(number);
        }
        None
    }
}

/// Blocks that this thread fetches. When it is dropped, other threads may fetch the blocks that are
/// not stored.
struct Fetching<'a> {
    cache: &'a BlockCache,
    id: FileId,
    numbers: Range<u64>,
}

impl Fetching<'_> {
    fn store(self, fetched: &[u8]) {
        for (number, block) in self.numbers.clone().zip(fetched.chunks(to_usize(BLOCK_BYTES))) {
            self.cache.store((self.id, number), block);
        }
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        for number in self.numbers.clone() {
            let key = (self.id, number);
            if matches!(state.blocks.get(&key), Some(Block::Fetching)) {
                state.blocks.remove(&key);
            }
        }
        self.cache.fetched.notify_all();
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use haul_disk_sim::MemoryDisk;

    use super::*;

    const FILE: FileId = FileId::Object(1);
    const BYTES: u64 = 10 * BLOCK_BYTES + 100;

    fn cache(blocks: u64) -> (MemoryDisk, BlockCache) {
        let disk = MemoryDisk::default();
        let cache = BlockCache::create(&disk, "cache", blocks * BLOCK_BYTES).unwrap();
        (disk, cache)
    }

    /// All files' content: the block number in each byte.
    fn content(range: Range<u64>) -> Bytes {
        range.map(|at| u8::try_from(at / BLOCK_BYTES).unwrap() + 1).collect::<Vec<_>>().into()
    }

    /// Reads a range, verifies it, and returns the ranges that were fetched.
    fn read(cache: &BlockCache, id: FileId, range: Range<u64>) -> Vec<Range<u64>> {
        let fetched = Mutex::new(Vec::new());
        let fetch = |range: Range<u64>| {
            fetched.lock().push(range.clone());
            Ok(content(range))
        };
        let mut buffer = vec![0; to_usize(range.end - range.start)];
        cache.read(id, BYTES, &mut buffer, range.start, &fetch).unwrap();
        assert!(buffer == content(range));
        fetched.into_inner()
    }

    #[test]
    fn adjacent_missing_blocks_are_fetched_together_once() {
        let (_disk, cache) = cache(20);
        let blocks = |from: u64, to: u64| from * BLOCK_BYTES..(to * BLOCK_BYTES).min(BYTES);
        assert_eq!(read(&cache, FILE, 5..6), [blocks(0, 1)]);
        assert_eq!(read(&cache, FILE, 0..BLOCK_BYTES), []);
        assert_eq!(read(&cache, FILE, blocks(4, 5)), [blocks(4, 5)]);
        // Only the blocks between those in the cache.
        assert_eq!(read(&cache, FILE, 10..BYTES), [blocks(1, 4), blocks(5, 11)]);
        assert_eq!(read(&cache, FILE, 0..BYTES), []);
        assert_eq!(read(&cache, FileId::Segment(1), BYTES - 1..BYTES), [blocks(10, 11)]);
    }

    #[test]
    fn blocks_that_were_not_read_recently_are_evicted() {
        let (_disk, few) = cache(4);
        read(&few, FILE, 0..8 * BLOCK_BYTES);
        assert_eq!(few.state.lock().blocks.len(), 4);
        for _ in 0..20 {
            read(&few, FILE, 0..8 * BLOCK_BYTES);
            // Read between any two others, so that it stays.
            read(&few, FILE, 9 * BLOCK_BYTES..9 * BLOCK_BYTES + 1);
        }
        assert!(few.state.lock().blocks.len() <= 4);
        let (_disk, none) = cache(0);
        assert_eq!(read(&none, FILE, 0..10).len() + read(&none, FILE, 0..10).len(), 2);
    }

    #[test]
    fn damaged_block_of_the_cache_is_fetched_again() {
        let (disk, cache) = cache(4);
        read(&cache, FILE, 0..BLOCK_BYTES);
        disk.rot("cache", 1000, 3);
        assert_eq!(read(&cache, FILE, 0..10).len(), 1);
        assert_eq!(read(&cache, FILE, 0..10), []);
    }

    #[test]
    fn concurrent_reads_share_a_request_and_survive_its_failure() {
        let (_disk, cache) = cache(4);
        let (requests, barrier) = (AtomicUsize::new(0), Barrier::new(8));
        let fetch = |range: Range<u64>| {
            thread::sleep(Duration::from_millis(50));
            match requests.fetch_add(1, Ordering::SeqCst) {
                0 => Err(crate::Error::Invalid("failed".to_owned())),
                _ => Ok(content(range)),
            }
        };
        let outcomes: Vec<_> = thread::scope(|scope| {
            let read = || {
                let mut buffer = [0; 10];
                barrier.wait();
                cache.read(FILE, BYTES, &mut buffer, 0, &fetch).map(|()| buffer)
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
        assert!(outcomes.iter().flatten().all(|buffer| *buffer == [1; 10]));
        assert_eq!(requests.into_inner(), 2);
    }

    /// A slot that is reused while it is read has another checksum.
    #[test]
    fn concurrent_eviction_never_returns_another_block() {
        let (_disk, cache) = cache(3);
        thread::scope(|scope| {
            for start in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for step in 0..300 {
                        let block = (start * 3 + step * 7) % 10;
                        read(cache, FILE, block * BLOCK_BYTES + 5..block * BLOCK_BYTES + 25);
                    }
                });
            }
        });
    }
}
