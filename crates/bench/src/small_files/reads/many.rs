//! Reads objects with one call for many of them.

use std::time::Instant;

use haul_file_store::GetMany;
use haul_measure::Latencies;

use super::case::Case;
use super::target::Targets;
use crate::log::Failure;
use crate::reads::Reads;
use crate::small_files::objects::key;

/// The number of keys in a call.
pub(super) const BATCH_KEYS: usize = 1000;

impl Targets<'_> {
    /// Reads the objects in one thread until the time has passed: each once, or again and again.
    /// The latency of an object is the time from the call to its return by the iterator.
    pub(super) fn read_many(
        &self,
        case: Case,
        numbers: &[u64],
        is_once: bool,
    ) -> Result<Reads, Failure> {
        let (bucket, bytes) = (case.bucket(), usize::try_from(case.read_bytes)?);
        let mut latencies = Latencies::default();
        let began = Instant::now();
        'rounds: loop {
            for batch in numbers.chunks(BATCH_KEYS) {
                if began.elapsed() >= self.options.seconds {
                    break 'rounds;
                }
                let keys: Vec<String> = batch.iter().map(|number| key(*number)).collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let called = Instant::now();
                let objects: GetMany<'_> = self.store.get_many(&bucket, &keys);
                for (index, object) in objects {
                    let read = object?.read(0, bytes)?;
                    latencies.record(called.elapsed());
                    self.check(case, batch[index], 0, &read)?;
                }
            }
            if is_once {
                break;
            }
        }
        Ok(Reads::of(&[(latencies, began, Instant::now())]))
    }
}
