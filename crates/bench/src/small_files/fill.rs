//! Stores objects in the file store with several threads, each of which waits for its syncs.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haul_file_store::{Attributes, NewObject, Precondition, Store};

use super::objects::Numbered;
use crate::log::Failure;
use crate::reads::joined;

/// The threads that store objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loaders {
    /// The number of threads.
    pub(crate) threads: usize,
    /// The number of objects that a thread stores with each call. A single object is stored with
    /// `put`, several ones with `put_many`.
    pub(crate) batch: usize,
}

/// Stores the objects with these numbers in `bucket`.
///
/// # Errors
/// Returns the first error of a thread.
///
/// # Durability
/// When this returns, all objects survive a power cut.
pub(crate) fn fill(
    store: &Store,
    bucket: &str,
    objects: Numbered<'_>,
    numbers: Range<u64>,
    loaders: Loaders,
) -> Result<(), Failure> {
    let next = AtomicU64::new(numbers.start);
    let put = || -> Result<(), Failure> {
        let mut batch = Batch::new(objects);
        loop {
            let from = next.fetch_add(loaders.batch as u64, Ordering::Relaxed);
            let to = numbers.end.min(from + loaders.batch as u64);
            if from >= to {
                return Ok(());
            }
            batch.store(store, bucket, from..to)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..loaders.threads).map(|_| scope.spawn(put)).collect();
        threads.into_iter().try_for_each(joined)
    })
}

/// The objects of a call, whose buffers the next call uses again.
struct Batch<'a> {
    objects: Numbered<'a>,
    keys: Vec<String>,
    contents: Vec<Vec<u8>>,
    attributes: Attributes,
}

impl<'a> Batch<'a> {
    fn new(objects: Numbered<'a>) -> Self {
        Self { objects, keys: Vec::new(), contents: Vec::new(), attributes: Attributes::new() }
    }

    /// Stores the objects with these numbers.
    fn store(&mut self, store: &Store, bucket: &str, numbers: Range<u64>) -> Result<(), Failure> {
        self.keys.clear();
        for (position, number) in numbers.enumerate() {
            self.keys.push((self.objects.key)(number));
            if position == self.contents.len() {
                self.contents.push(Vec::new());
            }
            self.objects.bytes(number, &mut self.contents[position]);
        }
        let (attributes, precondition) = (&self.attributes, &Precondition::None);
        if let ([key], [bytes, ..]) = (&self.keys[..], &self.contents[..]) {
            store.put(bucket, key, bytes, attributes, precondition)?;
            return Ok(());
        }
        let objects: Vec<_> = self
            .keys
            .iter()
            .zip(&self.contents)
            .map(|(key, bytes)| NewObject { key, bytes, attributes, precondition })
            .collect();
        for outcome in store.put_many(bucket, &objects) {
            outcome?;
        }
        Ok(())
    }
}
