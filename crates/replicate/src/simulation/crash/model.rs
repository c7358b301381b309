//! A store's expected content.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use haul_file_store::{ListRequest, Store};

/// The bucket with all objects.
pub(super) const BUCKET: &str = "bucket";

/// An object: its number, which its bytes repeat, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) number: u64,
    pub(super) bytes: usize,
}

impl Object {
    pub(super) fn content(self) -> Vec<u8> {
        let mut content = self.number.to_le_bytes().repeat(self.bytes.div_ceil(8));
        content.truncate(self.bytes);
        content
    }
}

/// A store's objects, by their keys.
pub(super) type Contents = BTreeMap<String, Object>;

/// Reads all objects in a store, and verifies their bytes.
pub(super) fn contents(store: &Store) -> Contents {
    if store.bucket(BUCKET).is_err() {
        return Contents::new();
    }
    let request = ListRequest { limit: 1000, ..ListRequest::default() };
    let page = store.list(BUCKET, &request).unwrap();
    let read = |key: String| {
        let found = store.get(BUCKET, &key).unwrap();
        let bytes = usize::try_from(found.info.bytes).unwrap();
        let mut content = Vec::new();
        while content.len() < bytes {
            let piece = found.read(content.len() as u64, bytes).unwrap();
            assert!(!piece.is_empty(), "{key} ends at {} of {bytes}", content.len());
            content.extend_from_slice(&piece);
        }
        let number = u64::from_le_bytes(*content.first_chunk().unwrap());
        let object = Object { number, bytes };
        assert!(content == object.content(), "{key} has wrong bytes");
        (key, object)
    };
    page.entries.into_iter().map(|entry| read(entry.name().to_owned())).collect()
}

/// The store's changes in log order, and the number of acknowledged ones.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Each change's key and object; `None` for a deletion.
    changes: Vec<(String, Option<Object>)>,
    /// `true` if the last change was not acknowledged.
    is_uncertain: bool,
    /// The number of changes that were acknowledged as copied, or found in a copy.
    copied: usize,
    /// The number of changes in each manifest, by generation and epoch, if known.
    shipped: BTreeMap<(u64, u64), usize>,
    last_number: u64,
}

impl Model {
    /// Returns a number that no object has.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Adds a change that is not acknowledged yet.
    pub(super) fn begin(&mut self, key: &str, object: Option<Object>) {
        assert!(!self.is_uncertain);
        self.changes.push((key.to_owned(), object));
        self.is_uncertain = true;
    }

    /// Records that the last change is durable on its machine.
    pub(super) fn acknowledge(&mut self) {
        self.is_uncertain = false;
    }

    /// Records that all changes are in the copy, whose manifest is given by generation and epoch.
    pub(super) fn acknowledge_copied(&mut self, manifest: (u64, u64)) {
        assert!(!self.is_uncertain);
        self.copied = self.changes.len();
        self.shipped.insert(manifest, self.copied);
    }

    fn state(&self, count: usize) -> Contents {
        let mut state = Contents::new();
        for (key, object) in &self.changes[..count] {
            match object {
                Some(object) => state.insert(key.clone(), *object),
                None => state.remove(key),
            };
        }
        state
    }

    /// Returns the greatest number of changes within `range` after which the store had this
    /// content.
    fn find(&self, found: &Contents, range: RangeInclusive<usize>) -> Option<usize> {
        range.rev().find(|count| self.state(*count) == *found)
    }

    /// Continues with the content that a machine has after a restart: all acknowledged changes, and
    /// perhaps the unacknowledged one.
    pub(super) fn continue_local(&mut self, found: &Contents) {
        let all = self.changes.len();
        let count = self.find(found, all - usize::from(self.is_uncertain)..=all);
        let count = count.unwrap_or_else(|| self.complain("the machine", found, all));
        self.changes.truncate(count);
        self.is_uncertain = false;
    }

    /// Continues with the content that a machine has from the copy, which is not older than the
    /// copied changes.
    pub(super) fn continue_copy(&mut self, found: &Contents) {
        let count = self.check_copy(found, None);
        self.changes.truncate(count);
        self.is_uncertain = false;
    }

    /// Checks the copy's content, and returns the number of its changes.
    pub(super) fn check_copy(&mut self, found: &Contents, manifest: Option<(u64, u64)>) -> usize {
        let all = self.changes.len();
        let known = manifest.and_then(|manifest| self.shipped.get(&manifest).copied());
        let range = known.map_or(self.copied..=all, |count| count..=count);
        let count =
            self.find(found, range).unwrap_or_else(|| self.complain("the copy", found, all));
        self.copied = self.copied.max(count);
        count
    }

    /// Checks the content of an earlier state of the copy, which is not older than the state after
    /// `least` changes, and returns the number of its changes.
    pub(super) fn check_history(
        &self,
        found: &Contents,
        manifest: (u64, u64),
        least: usize,
    ) -> usize {
        let known = self.shipped.get(&manifest).copied();
        let range = known.map_or(least..=self.copied, |count| count..=count);
        let count = self.find(found, range);
        count.unwrap_or_else(|| self.complain("a state of the copy", found, self.copied))
    }

    fn complain(&self, place: &str, found: &Contents, expected: usize) -> ! {
        let Self { is_uncertain, copied, .. } = self;
        let all = self.changes.len();
        let like = self.find(found, 0..=all);
        let expected = self.state(expected);
        panic!(
            "{place} has the state after {like:?} of {all} changes, of which {copied} were copied \
             (uncertain: {is_uncertain}): {found:?} instead of {expected:?}"
        );
    }
}
