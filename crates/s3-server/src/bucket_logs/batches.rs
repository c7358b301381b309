//! The batches of undelivered records: which batch a record joins, and which batches are due. Pure:
//! times are arguments.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use time::Date;

use crate::bucket_logs::target::{KeyFormat, LogTarget, Source};

/// The memory overhead of a batch, or of a source in it, in bytes.
const OVERHEAD_BYTES: usize = 512;

#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    /// A batch is due once its first record has this age.
    pub(super) time_max: Duration,
    /// A batch is due once it has this size, in bytes.
    pub(super) bytes_max: usize,
    /// The maximum memory for all batches, including batches that are being delivered.
    pub(super) memory_bytes_max: usize,
}

/// Records that become one object.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) target: LogTarget,
    /// The day of all requests, or of the first one.
    pub(super) day: Date,
    /// The lines for each source bucket.
    pub(super) parts: Vec<Part>,
    /// The number of failed deliveries.
    pub(super) failures: u32,
    bytes: usize,
    memory_bytes: usize,
    due: Instant,
}

/// The records from one source bucket in a batch.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) source: Source,
    pub(super) lines: String,
    pub(super) records: u64,
}

/// The properties shared by a batch's records.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    bucket: String,
    prefix: String,
    format: KeyFormat,
    /// The source bucket, if keys contain its name: a batch then has one bucket's records.
    source: Option<Source>,
    /// The requests' day, if keys contain it: a batch then has one day's records.
    day: Option<Date>,
}

/// The outcome of adding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The record is a batch's first, or the last of a batch that is due now: the delivery must
    /// wake.
    Wakes,
    Quiet,
    /// There is no memory for the record.
    Dropped,
}

#[derive(Debug)]
pub(super) struct Batches {
    limits: BatchLimits,
    growing: HashMap<Place, Batch>,
    /// Batches that accept no more records.
    closed: Vec<Batch>,
    memory_bytes: usize,
}

impl Batches {
    pub(super) fn new(limits: BatchLimits) -> Self {
        Self { limits, growing: HashMap::new(), closed: Vec::new(), memory_bytes: 0 }
    }

    /// Returns the memory for all batches, including batches that are being delivered.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Adds the record of a request that arrived on this day.
    pub(super) fn add(
        &mut self,
        (source, target): (&Source, &LogTarget),
        line: &str,
        day: Date,
        now: Instant,
    ) -> Added {
        let place = Place::of(source, target, day);
        let names = place.bucket.len() + place.prefix.len() + source.bucket.len() * 2;
        let new_part_bytes = OVERHEAD_BYTES + names * 2;
        let present = self.growing.get(&place);
        let has_part = present.is_some_and(|batch| batch.parts.iter().any(|p| p.source == *source));
        let more = line.len() + if has_part { 0 } else { new_part_bytes };
        if self.memory_bytes + more > self.limits.memory_bytes_max {
            return Added::Dropped;
        }
        self.memory_bytes += more;
        let is_first = present.is_none();
        let due = now + self.limits.time_max;
        let batch = self.growing.entry(place).or_insert_with(|| Batch {
            target: target.clone(),
            day,
            parts: Vec::new(),
            failures: 0,
            bytes: 0,
            memory_bytes: 0,
            due,
        });
        batch.memory_bytes += more;
        batch.bytes += line.len();
        batch.part(source).push(line);
        if batch.bytes < self.limits.bytes_max {
            return if is_first { Added::Wakes } else { Added::Quiet };
        }
        batch.due = now;
        if let Some(batch) = self.growing.remove(&Place::of(source, target, day)) {
            self.closed.push(batch);
        }
        Added::Wakes
    }

    /// Removes the batches that are due at the time `now`; with `all`, all of them.
    pub(super) fn take(&mut self, now: Instant, all: bool) -> Vec<Batch> {
        let is_due = |batch: &Batch| all || batch.due <= now;
        let (mut due, later): (Vec<_>, Vec<_>) = self.closed.drain(..).partition(is_due);
        self.closed = later;
        due.extend(self.growing.extract_if(|_place, batch| is_due(batch)).map(|(_, batch)| batch));
        due
    }

    /// Returns the time at which the next batch is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.growing.values().chain(&self.closed).map(|batch| batch.due).min()
    }

    /// Adds a batch that could not be delivered; it is due again at the time `due`.
    pub(super) fn retry(&mut self, batch: Batch, due: Instant) {
        self.closed.push(Batch { due, failures: batch.failures + 1, ..batch });
    }

    /// Frees the memory of a batch that was taken.
    pub(super) fn end(&mut self, batch: &Batch) {
        self.memory_bytes = self.memory_bytes.saturating_sub(batch.memory_bytes);
    }
}

impl Batch {
    fn part(&mut self, source: &Source) -> &mut Part {
        let at = self.parts.iter().position(|part| part.source == *source);
        let at = at.unwrap_or_else(|| {
            self.parts.push(Part { source: source.clone(), lines: String::new(), records: 0 });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    pub(super) fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.records).sum()
    }
}

impl Part {
    fn push(&mut self, line: &str) {
        self.lines.push_str(line);
        self.records += 1;
    }
}

impl Place {
    fn of(source: &Source, target: &LogTarget, day: Date) -> Self {
        let LogTarget { bucket, prefix, format } = target.clone();
        let source = (format != KeyFormat::Simple).then(|| source.clone());
        Self { bucket, prefix, format, source, day: (format == KeyFormat::ByEvent).then_some(day) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Date = Date::MIN;
    const LIMITS: BatchLimits = BatchLimits {
        time_max: Duration::from_secs(300),
        bytes_max: 100,
        memory_bytes_max: 10_000,
    };

    fn target(format: KeyFormat) -> LogTarget {
        LogTarget { bucket: "logs".to_owned(), prefix: "log/".to_owned(), format }
    }

    fn source(bucket: &str) -> Source {
        Source { bucket: bucket.to_owned(), owner: "ann".to_owned() }
    }

    fn lines(batch: &Batch) -> String {
        batch.parts.iter().map(|part| &*part.lines).collect()
    }

    #[test]
    fn batch_is_due_at_its_age_or_size() {
        let (mut batches, now) = (Batches::new(LIMITS), Instant::now());
        let of = (&source("a"), &target(KeyFormat::Simple));
        assert_eq!(batches.add(of, "1\n", DAY, now), Added::Wakes);
        assert_eq!(batches.add(of, "2\n", DAY, now + Duration::from_secs(9)), Added::Quiet);
        let due = now + LIMITS.time_max;
        assert_eq!(batches.next_due(), Some(due));
        assert!(batches.take(due - Duration::from_secs(1), false).is_empty());
        let taken = batches.take(due, false);
        assert_eq!(taken.iter().map(lines).collect::<Vec<_>>(), ["1\n2\n"]);
        assert_eq!((taken[0].records(), batches.next_due()), (2, None));
        batches.add(of, "3\n", DAY, now);
        assert_eq!(batches.add(of, &"4".repeat(98), DAY, now), Added::Wakes);
        assert_eq!(batches.add(of, "5\n", DAY, now), Added::Wakes, "a new batch");
        assert_eq!(batches.take(now, false).iter().map(|b| b.bytes).collect::<Vec<_>>(), [100]);
        assert_eq!(batches.take(now, true).iter().map(lines).collect::<Vec<_>>(), ["5\n"]);
    }

    #[test]
    fn batch_has_the_records_that_its_key_describes() {
        let (now, next) = (Instant::now(), DAY.next_day().unwrap());
        for (format, expected) in
            [(KeyFormat::Simple, 1), (KeyFormat::ByDelivery, 2), (KeyFormat::ByEvent, 3)]
        {
            let mut batches = Batches::new(LIMITS);
            let target = target(format);
            for (bucket, day) in [("a", DAY), ("b", DAY), ("a", next), ("a", DAY)] {
                batches.add((&source(bucket), &target), "1\n", day, now);
            }
            let taken = batches.take(now, true);
            assert_eq!(taken.len(), expected, "{format:?}");
            assert_eq!(taken.iter().map(Batch::records).sum::<u64>(), 4);
        }
    }

    #[test]
    fn memory_is_limited_until_batches_end() {
        let mut batches =
            Batches::new(BatchLimits { bytes_max: usize::MAX, memory_bytes_max: 2000, ..LIMITS });
        let (now, target) = (Instant::now(), target(KeyFormat::Simple));
        let of = |batches: &mut Batches, bucket: &str| {
            batches.add((&source(bucket), &target), &"1".repeat(100), DAY, now)
        };
        let added = (0..100).take_while(|_| of(&mut batches, "a") != Added::Dropped).count();
        assert!((10..20).contains(&added), "{added}");
        assert_eq!(of(&mut batches, "b"), Added::Dropped);
        let taken = batches.take(now, true).remove(0);
        assert_eq!(of(&mut batches, "a"), Added::Dropped, "the batch is being delivered");
        batches.retry(taken, now + Duration::from_secs(1));
        assert!(batches.take(now, false).is_empty());
        let taken = batches.take(now + Duration::from_secs(1), false).remove(0);
        assert_eq!((taken.failures, taken.records()), (1, added as u64));
        batches.end(&taken);
        assert_eq!((batches.memory_bytes(), of(&mut batches, "a")), (0, Added::Wakes));
    }
}
