//! The search for expired objects, page by page. Pure.

use haul_append_log::Position;

use crate::error::Result;
use crate::expiration::tags::KnownTags;
use crate::index::entry::{Entry, full_key, split_key};
use crate::index::keys::not_an_entry;
use crate::index::runs::source::Source;
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::tags::ObjectTags;

/// The maximum number of keys in a page: listing them takes a few milliseconds.
pub(crate) const PAGE_KEYS: u64 = 10_000;

/// A page ends when its expired objects use this much memory, in bytes.
const PAGE_BYTES: usize = 4 << 20;

/// An object that was expired, or may have been, when its key was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) key: String,
    pub(crate) entry: Entry,
    /// `true` if only rules with tags expire it. Its tags are not in the index and must be read.
    pub(crate) needs_tags: bool,
}

/// The expired objects on one page of keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scanned_keys: u64,
    /// The key after which the next page starts; `None` if this is the last page.
    pub(crate) next_after: Option<String>,
}

impl Page {
    /// Returns the positions of the objects whose tags must be read.
    pub(crate) fn tag_positions(&self) -> Vec<Position> {
        let candidates = self.candidates.iter().filter(|candidate| candidate.needs_tags);
        candidates.map(|candidate| candidate.entry.at).collect()
    }
}

/// The keys to search, and the rules by which they expire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) prefix: &'a str,
    pub(crate) lifecycle: &'a Lifecycle,
    pub(crate) now_ms: u64,
}

impl Search<'_> {
    /// Returns `true` if an object with these tags has expired.
    pub(crate) fn has_expired(&self, key: &str, entry: &Entry, tags: ObjectTags<'_>) -> bool {
        let stored_ms = entry.version.millis();
        let expires = self.lifecycle.expires_ms(key, entry.bytes, stored_ms, tags);
        expires.is_some_and(|(at, _)| at <= self.now_ms)
    }

    /// Removes the candidates whose tags are known and match no rule.
    pub(crate) fn matching(
        &self,
        mut candidates: Vec<Candidate>,
        known: &KnownTags,
    ) -> Vec<Candidate> {
        candidates.retain(|Candidate { key, entry, needs_tags }| {
            !needs_tags || self.has_expired(key, entry, known.at(entry.at))
        });
        candidates
    }

    /// Lists at most `keys_max` keys after `after`, and returns the expired objects.
    pub(crate) fn page(
        &self,
        keys: &mut impl Source,
        after: Option<&str>,
        keys_max: u64,
    ) -> Result<Page> {
        let start = full_key(self.bucket, self.prefix);
        match after {
            None => keys.seek(&start)?,
            Some(after) => {
                let mut from = full_key(self.bucket, after);
                from.push(0);
                keys.seek(&from)?;
            }
        }
        let (mut page, mut bytes) = (Page::default(), 0);
        while let Some((name, value)) = keys.key().zip(keys.value()) {
            if !name.starts_with(&start) {
                break;
            }
            let found = split_key(name).zip(Entry::decode(value));
            let ((_, key), entry) = found.ok_or_else(not_an_entry)?;
            page.scanned_keys += 1;
            let is_last = page.scanned_keys == keys_max || bytes >= PAGE_BYTES;
            if is_last {
                page.next_after = Some(key.to_owned());
            }
            if self.has_expired(key, &entry, ObjectTags::Unknown) {
                let needs_tags = !self.has_expired(key, &entry, ObjectTags::none());
                bytes += size_of::<Candidate>() + key.len() + size_of_val(&*entry.files);
                page.candidates.push(Candidate { key: key.to_owned(), entry, needs_tags });
            }
            if is_last {
                break;
            }
            keys.advance()?;
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_append_log::Lsn;

    use super::*;
    use crate::clock::Version;
    use crate::index::runs::source::SliceSource;
    use crate::lifecycle::rules::{Expiry, LifecycleRule};
    use crate::object::Etag;

    fn entry(modified_ms: u64) -> Entry {
        Entry {
            is_versioned: false,
            version: Version::from_millis(modified_ms),
            at: Position { lsn: Lsn::new(1, 4096), payload_bytes: 1 },
            bytes: 1,
            etag: Etag { md5: [0; 16], parts: 0 },
            files: Box::default(),
        }
    }

    /// Returns the expired keys of all pages of a bucket between two others.
    fn pages(prefix: &str, keys_max: u64) -> Vec<Vec<String>> {
        let expire = Some(Expiry::After(Duration::from_millis(10)));
        let rule = LifecycleRule { enabled: true, expire, ..LifecycleRule::default() };
        let lifecycle = Lifecycle { rules: vec![rule] };
        let search = Search { bucket: "bucket", prefix, lifecycle: &lifecycle, now_ms: 20 };
        let keys = [("a/1", 10), ("a/2", 11), ("a/3", 0), ("b", 10), ("c", 9)];
        let mut entries = vec![(full_key("bucke", "z"), Some(entry(0).encode()))];
        entries.extend(keys.map(|(key, ms)| (full_key("bucket", key), Some(entry(ms).encode()))));
        entries.push((full_key("bucket1", "a/1"), Some(entry(0).encode())));
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let mut source = SliceSource::new(&entries);
            let page = search.page(&mut source, after.as_deref(), keys_max).unwrap();
            found.push(page.candidates.into_iter().map(|candidate| candidate.key).collect());
            after = page.next_after;
            if after.is_none() {
                return found;
            }
        }
    }

    #[test]
    fn expired_objects_do_not_depend_on_page_size() {
        assert_eq!(pages("", 100), [["a/1", "a/3", "b", "c"]]);
        assert_eq!(pages("", 2), [vec!["a/1"], vec!["a/3", "b"], vec!["c"]]);
        for keys_max in 1..7 {
            assert_eq!(pages("", keys_max).concat(), ["a/1", "a/3", "b", "c"], "{keys_max}");
            assert_eq!(pages("a/", keys_max).concat(), ["a/1", "a/3"], "{keys_max}");
        }
        assert!(pages("d", 1).concat().is_empty());
    }
}
