//! The members of an archive on their way to the store, and the thread that stores them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use haul_file_store::{
    Attributes, Error as StoreError, NewObject, Object, Precondition, Result as StoreResult,
    WrittenContent,
};
use haul_store_pool::Pool;

use super::error::{MemberError, TarError};
use crate::counter::Counter;
use crate::import::ImportEvents;

/// A member to be stored.
pub(super) struct Item {
    pub(super) key: String,
    pub(super) content: Content,
    pub(super) attributes: Attributes,
}

pub(super) enum Content {
    Small(Vec<u8>),
    /// A member that was streamed to the store.
    Big(WrittenContent),
    /// The same content as that of the object with this key, and the same attributes.
    LinkTo(String),
}

/// Stores members in their order.
pub(super) struct Storer<'a> {
    pub(super) store: &'a Pool,
    pub(super) bucket: &'a str,
    pub(super) events: &'a dyn ImportEvents,
    pub(super) counter: &'a Counter<'a>,
    pub(super) failed: &'a AtomicU64,
}

impl Storer<'_> {
    /// Stores all batches received.
    ///
    /// # Errors
    /// Returns the first error of the store. The sender then finds that the channel is closed.
    pub(super) fn run(&self, batches: Receiver<Vec<Item>>) -> Result<(), TarError> {
        for batch in batches {
            self.store(batch)?;
        }
        Ok(())
    }

    fn store(&self, batch: Vec<Item>) -> Result<(), TarError> {
        let mut small = Vec::new();
        for item in batch {
            match item.content {
                Content::Small(bytes) => small.push((item.key, bytes, item.attributes)),
                Content::Big(written) => {
                    self.store_small(&std::mem::take(&mut small))?;
                    let bytes = written.bytes();
                    let (key, attributes) = (&item.key, &item.attributes);
                    let none = Precondition::None;
                    let outcome =
                        self.store.put_written(self.bucket, key, written, attributes, &none);
                    self.settle(key, bytes, outcome.map(drop))?;
                }
                Content::LinkTo(target) => {
                    self.store_small(&std::mem::take(&mut small))?;
                    self.link(&item.key, target)?;
                }
            }
        }
        self.store_small(&small)
    }

    fn store_small(&self, small: &[(String, Vec<u8>, Attributes)]) -> Result<(), TarError> {
        let precondition = &Precondition::None;
        let objects: Vec<_> = small
            .iter()
            .map(|(key, bytes, attributes)| NewObject { key, bytes, attributes, precondition })
            .collect();
        let mut result = Ok(());
        for (object, outcome) in objects.iter().zip(self.store.put_many(self.bucket, &objects)) {
            // All outcomes are counted, since objects behind a failed one may be stored.
            let settled = self.settle(object.key, object.bytes.len() as u64, outcome.map(drop));
            result = result.and(settled);
        }
        result
    }

    fn link(&self, key: &str, target: String) -> Result<(), TarError> {
        let copy = |object: Object| {
            self.store.copy_object(&object, self.bucket, key, None, &Precondition::None)
        };
        match self.store.get(self.bucket, &target).and_then(copy) {
            Ok(info) => self.settle(key, info.bytes, Ok(())),
            Err(StoreError::NoSuchKey { .. }) => {
                self.report(key, &MemberError::Link { target });
                Ok(())
            }
            Err(error) => self.settle(key, 0, Err(error)),
        }
    }

    /// Counts a stored object, or reports one that the store refuses.
    fn settle(&self, key: &str, bytes: u64, outcome: StoreResult<()>) -> Result<(), TarError> {
        match outcome {
            Ok(()) => self.counter.add(bytes),
            Err(error @ (StoreError::InvalidKey { .. } | StoreError::Invalid { .. })) => {
                self.report(key, &MemberError::Store(error));
            }
            Err(source) => return Err(TarError::Store { key: key.to_owned(), source }),
        }
        Ok(())
    }

    /// Counts and reports a member that is not imported.
    pub(super) fn report(&self, name: &str, error: &MemberError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.events.failed(Path::new(name), error);
    }
}
