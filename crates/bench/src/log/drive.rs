//! Drives a contender with several threads, and measures its appends. All contenders use the same
//! loop, so that they are measured in the same way.

use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{Device, DeviceCounters};
use haul_measure::Latencies;
use haul_testing::noise;
use rustix::time::{ClockId, clock_gettime};

use super::contender::{Contender, Failure};
use super::sample::Sample;

/// The interval between two calls of [`Contender::housekeep`].
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(5);

/// The load on a contender.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The number of threads; each appends a record as soon as its previous record is durable.
    pub writers: usize,
    /// The length of each record in bytes.
    pub record_bytes: usize,
    /// The time for which the writers run before the measurement begins.
    pub settle: Duration,
    /// The duration of the measurement.
    pub measure: Duration,
}

/// Drives a contender that was warmed up, and measures it. The result counts the appends that
/// return within the measured time, and the requests to `device` in that time.
///
/// # Errors
/// The first error of the contender or of the counters.
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
                let record = noise(writer as u64 + 1, load.record_bytes);
                scope.spawn(move || write_until(contender, writer, record, from, until))
            })
            .collect();
        let before = housekeep_until(contender, from).and_then(|()| Meters::read(device));
        let after = housekeep_until(contender, until).and_then(|()| Meters::read(device));
        let mut times = Latencies::default();
        for writer in writers {
            times.add(&writer.join().map_err(|_panic| "a writer panicked")??);
        }
        Ok(sample(&before?, &after?, &times))
    })
}

/// Appends until the time `until`, and records the latencies of the appends that return after
/// `from`.
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
        // Makes each record differ from all others of the writer.
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

fn housekeep_until(contender: &dyn Contender, end: Instant) -> Result<(), Failure> {
    loop {
        contender.housekeep()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(HOUSEKEEPING_EVERY));
    }
}

/// Returns the CPU time of this process so far, in user and kernel mode.
pub(crate) fn process_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The values of all counters at one moment.
#[derive(Debug, Clone, Copy)]
struct Meters {
    at: Instant,
    cpu: Duration,
    device: Option<DeviceCounters>,
}

impl Meters {
    fn read(device: Option<&Device>) -> Result<Self, Failure> {
        Ok(Self {
            at: Instant::now(),
            cpu: process_cpu(),
            device: device.map(DeviceCounters::of).transpose()?,
        })
    }
}

/// Returns the sample of the time from `before` to `after`.
fn sample(before: &Meters, after: &Meters, times: &Latencies) -> Sample {
    let device = after.device.zip(before.device).map(|(after, before)| after.since(&before));
    let count = |number: fn(&DeviceCounters) -> u64| device.as_ref().map(|it| number(it) as f64);
    Sample {
        appends: times.count() as f64,
        seconds: (after.at - before.at).as_secs_f64(),
        cpu_seconds: Some(after.cpu.saturating_sub(before.cpu).as_secs_f64()),
        device_reads: count(|device| device.reads),
        device_writes: count(|device| device.writes),
        device_bytes: count(|device| device.written_bytes),
        device_syncs: count(|device| device.syncs),
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

    /// A contender that counts its calls and stores nothing.
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
    }

    #[test]
    fn writers_append_their_own_records_and_measured_ones_count() {
        let fake = Fake::default();
        let sample = drive(&fake, &LOAD, None).unwrap();
        let calls = fake.calls.load(Ordering::Relaxed) as f64;
        assert!(sample.appends > 0.0 && sample.appends < calls, "{} of {calls}", sample.appends);
        assert!(sample.seconds > 0.0);
        assert!(sample.p50_us <= sample.p99_us && sample.p99_us <= sample.p999_us);
        assert_eq!((sample.device_writes, sample.device_reads), (None, None));
        assert!(fake.housekeeping.load(Ordering::Relaxed) >= 2, "before and while it measures");
        let records = fake.records.into_inner().unwrap();
        assert!(records.iter().all(|record| record.len() == LOAD.record_bytes));
    }

    #[test]
    fn failure_of_a_contender_ends_the_measurement() {
        let fake = Fake { fails_at: Some(3), ..Fake::default() };
        let failure = drive(&fake, &LOAD, None).unwrap_err();
        assert_eq!(failure.to_string(), "the disk is gone");
    }
}
