//! Reads objects from a store, and pages from a file, with several threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{Open, PAGE_BYTES, error_chain, read_full};
use haul_file_store::{Options as StoreOptions, Store};
use haul_measure::{Error, Latencies, Result, Watcher};
use haul_testing::{Random, noise};

use super::case::Case;
use super::options::Options;
use crate::log::{Failure, Scratch};
use crate::reads::{Load, Reads, joined};
use crate::small_files::directory::evict_below;
use crate::small_files::fill::{Loaders, fill};
use crate::small_files::objects::{Numbered, key};
use crate::test_file::TestFile;

/// The number of threads that store the objects.
const LOADERS: Loaders = Loaders { threads: 64, batch: 1 };
/// A round reads one of this many objects, so that an object shares few pages with objects that
/// were read before it.
const PART: usize = 4;
/// The seed of the order in which the objects are read.
const SEED: u64 = 7;

/// The store and the file that are read.
pub(super) struct Targets<'a> {
    pub(super) options: &'a Options,
    file: &'a TestFile,
    pub(super) store: Store,
    content: Vec<u8>,
    scratch: Scratch,
}

impl<'a> Targets<'a> {
    /// Creates a store with the objects of all cases, in a new directory.
    pub(super) fn new(
        options: &'a Options,
        file: &'a TestFile,
        cases: &[Case],
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let name = format!("haul-bench-small-files-get.{}", std::process::id());
        let scratch = Scratch::new(&options.dir, &name)?;
        let failed = |failure: Failure| {
            Error::Missing(format!("cannot store the objects: {}", error_chain(&*failure)))
        };
        let opened = Store::open(&scratch.path().join("store"), StoreOptions::default());
        let (store, _recovered) = opened.map_err(|error| failed(error.into()))?;
        let longest = cases.iter().map(|case| case.object_bytes).max().unwrap_or(0);
        let content = noise(SEED, usize::try_from(longest).unwrap_or(usize::MAX));
        let targets = Self { options, file, store, content, scratch };
        for (number, case) in cases.iter().enumerate() {
            watcher.check()?;
            watcher.step(number, cases.len(), &format!("storing {case}"));
            targets.fill(*case).map_err(failed)?;
        }
        Ok(targets)
    }

    fn fill(&self, case: Case) -> Result<(), Failure> {
        let bucket = case.bucket();
        self.store.create_bucket(&bucket)?;
        let content = &self.content[..usize::try_from(case.object_bytes)?];
        let objects = Numbered { key, content };
        fill(&self.store, &bucket, objects, 0..case.objects(self.options.data_size), LOADERS)
    }

    /// Evicts the store from the page cache, or reads the objects of the round into it. Returns the
    /// numbers of these objects, in random order.
    pub(super) fn prepare_store(&self, case: Case, is_cold: bool) -> Result<Vec<u64>, Failure> {
        let mut numbers: Vec<u64> = (0..case.objects(self.options.data_size)).collect();
        let mut random = Random(SEED);
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random.index(at + 1));
        }
        numbers.truncate(numbers.len().div_ceil(PART));
        if is_cold {
            evict_below(self.scratch.path())?;
        } else {
            let warm = Load { time: Duration::MAX, ..self.load(case) };
            self.read(case, &warm, &numbers, true)?;
        }
        Ok(numbers)
    }

    /// Reads the objects until the time has passed: each once, or again and again.
    pub(super) fn read_store(
        &self,
        case: Case,
        numbers: &[u64],
        is_once: bool,
    ) -> Result<Reads, Failure> {
        self.read(case, &self.load(case), numbers, is_once)
    }

    fn load(&self, case: Case) -> Load {
        Load {
            // A disk reads whole pages.
            read_bytes: case.read_bytes.next_multiple_of(PAGE_BYTES as u64),
            data_bytes: self.options.data_size,
            time: self.options.seconds,
            interval: Duration::ZERO,
        }
    }

    fn read(
        &self,
        case: Case,
        load: &Load,
        numbers: &[u64],
        is_once: bool,
    ) -> Result<Reads, Failure> {
        let (next, start) = (AtomicUsize::new(0), Barrier::new(self.options.threads));
        let read = |seed: u64| -> Result<(Latencies, Instant, Instant), Failure> {
            let (mut latencies, mut random) = (Latencies::default(), Random(seed));
            start.wait();
            let began = Instant::now();
            while began.elapsed() < load.time {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if is_once && at >= numbers.len() {
                    break;
                }
                let number = numbers[at % numbers.len()];
                latencies.record(self.get(case, number, &mut random)?);
            }
            Ok((latencies, began, Instant::now()))
        };
        let parts = thread::scope(|scope| {
            let seeds = 0..self.options.threads as u64;
            let read = &read;
            let threads: Vec<_> = seeds.map(|seed| scope.spawn(move || read(seed))).collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>, Failure>>()
        })?;
        Ok(Reads::of(&parts))
    }

    /// Reads an object, or a random range of it; returns the duration.
    fn get(&self, case: Case, number: u64, random: &mut Random) -> Result<Duration, Failure> {
        let from = random.below(case.object_bytes - case.read_bytes + 1);
        let bytes = usize::try_from(case.read_bytes)?;
        let (bucket, key) = (case.bucket(), key(number));
        let began = Instant::now();
        let read = match case.is_whole() {
            true => self.store.get(&bucket, &key)?.read(0, bytes)?,
            false => self.store.get_range(&bucket, &key, from, bytes)?,
        };
        let time = began.elapsed();
        self.check(case, number, from, &read)?;
        Ok(time)
    }

    /// Returns an error if the bytes that were read at `from` are not those of the object.
    pub(super) fn check(
        &self,
        case: Case,
        number: u64,
        from: u64,
        read: &[u8],
    ) -> Result<(), Failure> {
        let (bytes, first) = (usize::try_from(case.read_bytes)?, usize::try_from(from)?);
        let expected = &self.content[first..first + bytes];
        // The first bytes of an object are its number.
        let skipped = 8_usize.saturating_sub(first);
        let is_right = read.len() == bytes
            && read[skipped..] == expected[skipped..]
            && (first > 0 || read.first_chunk() == Some(&number.to_le_bytes()));
        if is_right { Ok(()) } else { Err(format!("{} has wrong bytes", key(number)).into()) }
    }

    /// Evicts the file of the floor from the page cache, or reads it into the cache.
    pub(super) fn prepare_floor(&self, is_cold: bool) -> Result<()> {
        if is_cold {
            self.file.make_cold()
        } else {
            self.file.read_through_cache(self.file.bytes, &haul_measure::Silent)
        }
    }

    /// Reads pages at random offsets of the file until the time has passed, `more` bytes more than
    /// of an object.
    pub(super) fn read_floor(&self, case: Case, more: u64, is_cold: bool) -> Result<Reads> {
        let mut load = self.load(case);
        load.read_bytes += more;
        let direct = is_cold && self.file.is_direct(load.read_bytes);
        let file = self.file.open(Open { direct, random: true, ..Open::default() })?;
        let read = |buffer: &mut [u8], offset| -> Result<()> {
            Ok(read_full(&*file, buffer, offset).map(drop)?)
        };
        load.run(vec![read; self.options.threads])
    }
}
