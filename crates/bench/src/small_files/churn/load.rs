//! Drives a target: many threads that store objects, and one that reads them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_measure::{Latencies, Watcher};
use haul_testing::{Random, noise};

use super::options::Options;
use super::pattern::{Choice, Pattern};
use super::target::Target;
use crate::log::Failure;
use crate::reads::joined;
use crate::write_modes::target_fs::TargetFs;

/// The pause of the reader after each read.
const READ_EVERY: Duration = Duration::from_micros(500);
/// The interval in which the watcher is asked whether to cancel.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// The pause of a writer after a failed put.
const AFTER_FAILURE: Duration = Duration::from_millis(1);

/// A target with its objects.
pub(super) struct Bench<'a> {
    pub(super) target: &'a dyn Target,
    pub(super) objects: u64,
    pub(super) options: &'a Options,
    pub(super) watcher: &'a dyn Watcher,
}

/// The puts and reads of one phase.
pub(super) struct Phase {
    pub(super) puts: Latencies,
    pub(super) gets: Latencies,
    /// The number of puts that were refused.
    pub(super) failed: u64,
    time: Duration,
    device_bytes: Option<u64>,
    object_bytes: u64,
}

impl Phase {
    /// Returns the puts per second that succeeded.
    pub(super) fn rate(&self) -> f64 {
        self.puts.count() as f64 / self.time.as_secs_f64()
    }

    /// Returns the bytes written to the device for each byte that was put.
    pub(super) fn device_bytes_per_byte(&self) -> Option<f64> {
        let bytes = self.puts.count() * self.object_bytes;
        Some(self.device_bytes? as f64 / bytes as f64).filter(|_| bytes > 0)
    }
}

/// The state that the threads of a phase share.
#[derive(Default)]
struct Shared {
    next: AtomicU64,
    failed: AtomicU64,
    is_done: AtomicBool,
    is_cancelled: AtomicBool,
}

impl Bench<'_> {
    /// Stores each object once.
    pub(super) fn fill(&self, place: &TargetFs) -> Result<Phase, Failure> {
        let in_order = |number, _: &mut Random| number;
        self.run(place, self.objects, Duration::MAX, &in_order)
    }

    /// Overwrites objects `count` times, or until the time has passed.
    pub(super) fn overwrite(
        &self,
        place: &TargetFs,
        count: u64,
        pattern: Pattern,
    ) -> Result<Phase, Failure> {
        let choice = Choice::new(pattern, self.objects);
        self.run(place, count, self.options.seconds, &|_, random| choice.draw(random))
    }

    /// Reads some objects, and fails unless each has its own bytes.
    pub(super) fn verify(&self) -> Result<(), Failure> {
        let (target, objects) = (self.target, self.objects);
        let (object_bytes, seed) = (self.options.object, self.options.seed);
        let reader = Reader { target, object_bytes, objects, seed };
        let mut random = Random(seed);
        for _ in 0..objects.min(10_000) {
            let object = random.below(objects);
            if !reader.read(object)? {
                return Err(format!("the object {object} is missing").into());
            }
        }
        Ok(())
    }

    fn run(
        &self,
        place: &TargetFs,
        count: u64,
        time: Duration,
        choose: &(dyn Fn(u64, &mut Random) -> u64 + Sync),
    ) -> Result<Phase, Failure> {
        let shared = Shared::default();
        place.settle()?;
        let (began, before) = (Instant::now(), place.counters());
        let (target, options, objects) = (self.target, self.options, self.objects);
        let writer = Writer { target, options, shared: &shared, count, began, time, choose };
        let reader = Reader { target, object_bytes: options.object, objects, seed: options.seed };
        let (puts, gets) = thread::scope(|scope| {
            let writer = &writer;
            let seeds = 0..options.writers as u64;
            let writers: Vec<_> = seeds.map(|seed| scope.spawn(move || writer.run(seed))).collect();
            let reading = scope.spawn(|| reader.run(&shared.is_done));
            while writers.iter().any(|writer| !writer.is_finished()) {
                shared.is_cancelled.store(self.watcher.is_cancelled(), Ordering::Relaxed);
                thread::sleep(WATCH_EVERY);
            }
            let puts: Result<Vec<_>, Failure> = writers.into_iter().map(joined).collect();
            shared.is_done.store(true, Ordering::Relaxed);
            let gets = joined(reading);
            Ok::<_, Failure>((puts?, gets?))
        })?;
        let ended = puts.iter().map(|(_, ended)| *ended).max();
        let time = ended.map_or(Duration::ZERO, |ended| ended - began);
        // Writes that are still in the page cache belong to this phase.
        place.settle()?;
        let written = place.counters().zip(before).map(|(after, before)| after.since(&before));
        let mut all = Latencies::default();
        puts.iter().for_each(|(latencies, _)| all.add(latencies));
        Ok(Phase {
            puts: all,
            gets,
            failed: shared.failed.into_inner(),
            time,
            device_bytes: written.map(|counters| counters.written_bytes),
            object_bytes: self.options.object,
        })
    }
}

/// The writers of a phase.
struct Writer<'a> {
    target: &'a dyn Target,
    options: &'a Options,
    shared: &'a Shared,
    /// The number of puts of all writers.
    count: u64,
    began: Instant,
    /// The maximum duration of the phase.
    time: Duration,
    /// Returns the object of a put, by its number.
    choose: &'a (dyn Fn(u64, &mut Random) -> u64 + Sync),
}

impl Writer<'_> {
    /// Puts objects until the phase ends; returns the latencies and the time of the end.
    fn run(&self, seed: u64) -> Result<(Latencies, Instant), Failure> {
        let mut random = Random(Random(self.options.seed.wrapping_add(seed << 32)).number());
        let mut latencies = Latencies::default();
        let mut bytes = noise(seed, usize::try_from(self.options.object)?);
        while self.began.elapsed() < self.time && !self.shared.is_cancelled.load(Ordering::Relaxed)
        {
            let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let object = (self.choose)(number, &mut random);
            bytes[..8].copy_from_slice(&object.to_le_bytes());
            bytes[8..16].copy_from_slice(&number.to_le_bytes());
            let start = Instant::now();
            match self.target.put(object, &bytes) {
                Ok(()) => latencies.record(start.elapsed()),
                Err(failure) if self.target.is_refusal(&failure) => {
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(AFTER_FAILURE);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok((latencies, Instant::now()))
    }
}

/// The reader of a phase.
struct Reader<'a> {
    target: &'a dyn Target,
    object_bytes: u64,
    objects: u64,
    seed: u64,
}

impl Reader<'_> {
    fn run(&self, is_done: &AtomicBool) -> Result<Latencies, Failure> {
        let mut random = Random(self.seed);
        let mut latencies = Latencies::default();
        while !is_done.load(Ordering::Relaxed) {
            let object = random.below(self.objects);
            let start = Instant::now();
            if self.read(object)? {
                latencies.record(start.elapsed());
            }
            thread::sleep(READ_EVERY);
        }
        Ok(latencies)
    }

    /// Returns `true` if the object exists; fails if it has the bytes of another object.
    fn read(&self, object: u64) -> Result<bool, Failure> {
        let Some(bytes) = self.target.get(object)? else { return Ok(false) };
        let is_right = bytes.len() as u64 == self.object_bytes
            && bytes.first_chunk() == Some(&object.to_le_bytes());
        if is_right { Ok(true) } else { Err(format!("object {object} has wrong bytes").into()) }
    }
}
