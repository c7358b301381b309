//! Stores objects in the file store with many threads, each of which waits for its syncs.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haul_file_store::{Attributes, Precondition, Store};

use super::objects::Numbered;
use crate::log::Failure;
use crate::reads::joined;

/// Stores the objects with these numbers in `bucket` with `threads` threads.
///
/// # Errors
/// Returns the first error of a thread.
///
/// # Durability
/// When this returns, all objects survive a power cut.
pub(super) fn fill(
    store: &Store,
    bucket: &str,
    objects: Numbered<'_>,
    numbers: Range<u64>,
    threads: usize,
) -> Result<(), Failure> {
    let next = AtomicU64::new(numbers.start);
    let attributes = Attributes::new();
    let put = || -> Result<(), Failure> {
        let mut buffer = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            let bytes = objects.bytes(number, &mut buffer);
            store.put(bucket, &(objects.key)(number), bytes, &attributes, &Precondition::None)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(put)).collect();
        threads.into_iter().try_for_each(joined)
    })
}
