//! The loop that drives every contender, ours and others alike.

use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{Device, DeviceCounters};
use rustix::time::{ClockId, clock_gettime};

use crate::log::contender::{Contender, Counts, Failure};
use crate::log::sample::Sample;
use crate::stats::Latencies;

/// How often the owner's other work is done.
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(5);

/// What a contender is driven with.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Threads, each appending its next record as soon as the last one is durable.
    pub writers: usize,
    /// The length of each record.
    pub record_bytes: usize,
    /// How long they write before anything counts.
    pub settle: Duration,
    /// How long is measured.
    pub measure: Duration,
}

/// Drives a contender that is warm, and measures it. Only appends that return within the measured
/// time count. `device` is the one whose requests are counted.
///
/// # Errors
/// The first thing that failed, from the contender or from the counters.
pub fn drive(
    contender: &dyn Contender,
    load: &Load,
    device: Option<&Device>,
) -> Result<Sample, Failure> {
    let from = Instant::now() + load.settle;
    let until = from + load.measure;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..load.writers)
            .map(|writer| {
                let record = record(writer, load.record_bytes);
                scope.spawn(move || write_until(contender, writer, record, from, until))
            })
            .collect();
        let mut meters =
            keep_house_until(contender, from).and_then(|()| Meters::read(contender, device));
        let before = meters;
        meters = keep_house_until(contender, until).and_then(|()| Meters::read(contender, device));
        let mut times = Latencies::default();
        for writer in writers {
            times.add(&writer.join().map_err(|_panic| "a writer panicked")??);
        }
        let (before, after, stopped) = (before?, meters?, Instant::now());
        contender.finish()?;
        let finished = Meters { at: Instant::now(), ..Meters::read(contender, device)? };
        let put_off = Meters { at: after.at + (finished.at - stopped), ..finished };
        Ok(sample(&before, &after, &put_off, &times))
    })
}

/// Writes from the first moment on; counts what returns between `from` and `until`.
fn write_until(
    contender: &dyn Contender,
    writer: usize,
    mut record: Vec<u8>,
    from: Instant,
    until: Instant,
) -> Result<Latencies, Failure> {
    let mut times = Latencies::default();
    let mut began = Instant::now();
    let mut number = 0_u64;
    while began < until {
        // No two records are alike.
        let head = record.len().min(8);
        record[..head].copy_from_slice(&number.to_le_bytes()[..head]);
        contender.append(writer, &record)?;
        let ended = Instant::now();
        if from <= ended && ended < until {
            times.record(ended - began);
        }
        (began, number) = (ended, number + 1);
    }
    Ok(times)
}

fn keep_house_until(contender: &dyn Contender, end: Instant) -> Result<(), Failure> {
    loop {
        contender.housekeep()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(HOUSEKEEPING_EVERY));
    }
}

/// Bytes that no compression makes shorter: of each writer its own.
fn record(writer: usize, bytes: usize) -> Vec<u8> {
    let mut state = writer as u64 + 1;
    // xorshift64* (Marsaglia 2003, Vigna 2016).
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes()[7]
    };
    (0..bytes).map(|_| next()).collect()
}

/// All that is counted, at one moment.
#[derive(Debug, Clone, Copy)]
struct Meters {
    at: Instant,
    cpu: Duration,
    device: Option<DeviceCounters>,
    counts: Option<Counts>,
}

impl Meters {
    fn read(contender: &dyn Contender, device: Option<&Device>) -> Result<Self, Failure> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            at: Instant::now(),
            cpu: Duration::try_from(cpu).unwrap_or_default(),
            device: device.map(DeviceCounters::of).transpose()?,
            counts: contender.counts(),
        })
    }
}

/// `put_off` is read when all that was put off is done, as if that had begun at `after`.
fn sample(before: &Meters, after: &Meters, put_off: &Meters, times: &Latencies) -> Sample {
    let device = after.device.zip(before.device).map(|(after, before)| after.since(&before));
    let finishing = put_off.device.zip(after.device).map(|(end, after)| end.since(&after));
    let counts = after.counts.zip(before.counts).map(|(after, before)| after.since(&before));
    let of_device =
        |number: fn(&DeviceCounters) -> u64| device.as_ref().map(|it| number(it) as f64);
    let of_counts = |number: fn(&Counts) -> u64| counts.as_ref().map(|it| number(it) as f64);
    Sample {
        appends: times.count() as f64,
        seconds: (after.at - before.at).as_secs_f64(),
        cpu_seconds: Some(after.cpu.saturating_sub(before.cpu).as_secs_f64()),
        device_reads: of_device(|device| device.reads),
        device_writes: of_device(|device| device.writes),
        device_bytes: of_device(|device| device.written_bytes),
        device_syncs: of_device(|device| device.syncs),
        commits: of_counts(|counts| counts.commits),
        padded_bytes: of_counts(|counts| counts.padded_bytes),
        finish_seconds: Some((put_off.at - after.at).as_secs_f64()),
        finish_cpu_seconds: Some(put_off.cpu.saturating_sub(after.cpu).as_secs_f64()),
        finish_writes: finishing.map(|device| device.writes as f64),
        ..Sample::default()
    }
    .with_latencies(times)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const LOAD: Load = Load {
        writers: 3,
        record_bytes: 100,
        settle: Duration::from_millis(5),
        measure: Duration::from_millis(50),
    };

    /// Remembers what it was asked; makes nothing durable.
    #[derive(Debug, Default)]
    struct Fake {
        calls: AtomicU64,
        housekeeping: AtomicU64,
        records: Mutex<HashSet<Vec<u8>>>,
        busy: [Mutex<()>; 3],
        fails_at: Option<u64>,
    }

    impl Contender for Fake {
        fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
            let _alone =
                self.busy[writer].try_lock().map_err(|_taken| "two calls of one writer")?;
            let call = self.calls.fetch_add(1, Ordering::Relaxed);
            if Some(call) == self.fails_at {
                return Err("the disk is gone".into());
            }
            if call < 1000 && !self.records.lock().unwrap().insert(record.to_vec()) {
                return Err("the same record twice".into());
            }
            thread::yield_now();
            Ok(())
        }

        fn housekeep(&self) -> Result<(), Failure> {
            self.housekeeping.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn counts(&self) -> Option<Counts> {
            let calls = self.calls.load(Ordering::Relaxed);
            Some(Counts { commits: calls, padded_bytes: calls * 4096 })
        }
    }

    #[test]
    fn all_writers_append_records_of_their_own_and_only_measured_ones_count() {
        let fake = Fake::default();
        let sample = drive(&fake, &LOAD, None).unwrap();
        let calls = fake.calls.load(Ordering::Relaxed) as f64;
        assert!(sample.appends > 0.0 && sample.appends < calls, "{} of {calls}", sample.appends);
        assert!(sample.seconds >= LOAD.measure.as_secs_f64() / 2.0, "{}", sample.seconds);
        let commits = sample.commits.unwrap();
        assert!(commits > 0.0 && commits < calls);
        assert_eq!(sample.padded_bytes, Some(commits * 4096.0));
        assert!(sample.p50_us <= sample.p99_us && sample.p99_us <= sample.max_us);
        assert_eq!((sample.device_writes, sample.device_reads), (None, None));
        assert!(fake.housekeeping.load(Ordering::Relaxed) >= 2, "before and while it measures");
        let records = fake.records.into_inner().unwrap();
        assert!(records.iter().all(|record| record.len() == LOAD.record_bytes));
    }

    #[test]
    fn a_contender_that_fails_ends_the_measurement() {
        let fake = Fake { fails_at: Some(3), ..Fake::default() };
        let failure = drive(&fake, &LOAD, None).unwrap_err();
        assert_eq!(failure.to_string(), "the disk is gone");
    }

    #[test]
    fn records_hold_nothing_to_compress_and_differ_between_writers() {
        let (one, two) = (record(0, 4096), record(1, 4096));
        assert_ne!(one, two);
        let mut counts = [0; 256];
        one.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 16 of each are expected; 50 would be eight standard deviations off.
        assert!(counts.iter().all(|count| *count < 50), "{counts:?}");
    }
}
