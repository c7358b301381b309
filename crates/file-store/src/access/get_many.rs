//! Reading many objects with one call.

use std::collections::VecDeque;
use std::sync::Arc;

use haul_append_log::{self as log, BatchReader, BatchRecord, RecordRequest};

use crate::counters::Counters;
use crate::error::Result;
use crate::inner::Inner;
use crate::needles::lookup::{HEAD_READ_BYTES, Read};
use crate::needles::object::{Content, Object};
use crate::store::Store;

/// The number of keys that are looked up and sorted by position before their objects are read. It
/// bounds the memory (24 bytes per key) and the time in which a position may become obsolete.
const WINDOW_KEYS: usize = 1 << 16;

/// The number of keys that are looked up under one index lock.
const LOCKED_KEYS: usize = 256;

/// Many keys' objects, read together; returned by [`Store::get_many`].
///
/// Each item is a key's index and the result for this key.
#[derive(Debug)]
pub struct GetMany<'a> {
    store: &'a Store,
    bucket: &'a str,
    keys: &'a [&'a str],
    /// Reads the objects of the window's keys; a record's tag is its key's index.
    reader: Option<BatchReader<'a>>,
    /// The first new key in the window. The window's earlier keys are in a window for the second
    /// time.
    window_start: usize,
    /// The first key that has not been in a window.
    next: usize,
    /// `true` if no damaged place hides keys.
    is_certain: bool,
    /// Keys whose needle was moved before it was read. They are looked up again in the next window.
    moved: Vec<usize>,
    /// Keys that match no slot of the location table. They are looked up one by one.
    unmatched: VecDeque<usize>,
    /// The number of `reader`'s requests that the statistics already count, and their bytes.
    counted: (u64, u64),
    /// The number of results not yet returned.
    left: usize,
}

impl Store {
    /// Reads many objects in a bucket. Reads small objects completely. If an object has more than
    /// 128 KiB, reads only its head; [`Object::read`] then reads its data as after
    /// [`Store::open_object`].
    ///
    /// The iterator returns each index once, with the result for its key, in the order in which the
    /// disk returns the objects. Returning them in the order of the keys would require buffering; a
    /// caller that needs this order can sort the results. Passing many keys at once is fastest:
    /// windows of 65,536 keys are looked up, sorted by position, and read in this order with up to
    /// 64 requests in flight. Adjacent objects are read with one request. The iterator uses at most
    /// 16 MiB of memory, plus the objects that it has returned and 24 bytes per key of a window.
    ///
    /// For objects in the page cache, [`Store::get`] uses less CPU time.
    ///
    /// Each object is returned in a state that it had between this call and its return by the
    /// iterator. The iterator is bound to the thread that created it. It may be dropped before its
    /// end. While it exists, the files of the volumes that it reads cannot be reused: on a nearly
    /// full disk, do not keep an unfinished iterator for long.
    ///
    /// # Errors
    /// For each key, the result fails like [`Store::get`].
    #[must_use]
    pub fn get_many<'a>(&'a self, bucket: &'a str, keys: &'a [&'a str]) -> GetMany<'a> {
        GetMany {
            store: self,
            bucket,
            keys,
            reader: None,
            window_start: 0,
            next: 0,
            is_certain: false,
            moved: Vec::new(),
            unmatched: VecDeque::new(),
            counted: (0, 0),
            left: keys.len(),
        }
    }
}

/// The result of reading a candidate.
#[expect(clippy::large_enum_variant, reason = "almost every value is an object")]
enum Outcome {
    Object(Object),
    /// Its volume was removed, because compaction moved the needle.
    Moved,
    /// It is damaged, belongs to another key, or was overwritten. A lookup of the key determines
    /// the result.
    Unknown,
}

impl GetMany<'_> {
    fn inner(&self) -> &Arc<Inner> {
        &self.store.inner
    }

    /// Looks up the next window's keys and submits the reads of their objects. Returns `false` if
    /// there are no more keys.
    fn open_window(&mut self) -> bool {
        let end = self.keys.len().min(self.next + WINDOW_KEYS);
        let (moved, fresh) = (std::mem::take(&mut self.moved), self.next..end);
        (self.window_start, self.next) = (fresh.start, fresh.end);
        let window: Vec<usize> = moved.into_iter().chain(fresh).collect();
        if window.is_empty() {
            return false;
        }
        let mut requests = Vec::with_capacity(window.len());
        self.is_certain = true;
        for keys in window.chunks(LOCKED_KEYS) {
            self.look_up(keys, &mut requests);
        }
        self.counted = (0, 0);
        self.reader = Some(self.store.inner.volumes.log.read_batch(requests));
        true
    }

    /// Adds a read of each key's first candidate.
    fn look_up(&mut self, keys: &[usize], requests: &mut Vec<RecordRequest>) {
        let index = self.store.inner.keyspace.index.read();
        self.is_certain &= index.hidden.any().is_none();
        let has_bucket = index.has_bucket(self.bucket);
        for &number in keys {
            let candidates = || index.candidates(self.bucket, self.keys[number]);
            match has_bucket.then(candidates).and_then(|candidates| candidates.first()) {
                Some(candidate) => requests.push(RecordRequest {
                    lsn: candidate.lsn,
                    payload_bytes: match candidate.is_long() {
                        true => u32::try_from(HEAD_READ_BYTES).unwrap_or(u32::MAX),
                        false => candidate.bytes_hint,
                    },
                    tag: number as u64,
                }),
                None => self.unmatched.push_back(number),
            }
        }
    }

    /// Returns the next record that was read and the index of its key.
    fn next_record(&mut self) -> Option<(usize, log::Result<BatchRecord>)> {
        let reader = self.reader.as_mut()?;
        let record = reader.next();
        let (reads, bytes) = reader.disk_reads();
        let counted = std::mem::replace(&mut self.counted, (reads, bytes));
        self.inner().counters.local().needle_reads(reads - counted.0, bytes - counted.1);
        let (tag, record) = record?;
        Some((usize::try_from(tag).unwrap_or(usize::MAX), record))
    }

    fn outcome(&self, number: usize, record: log::Result<BatchRecord>) -> Outcome {
        let record = match record {
            Ok(record) => record,
            Err(log::Error::Invalid(_)) => return Outcome::Moved,
            Err(_damaged) => return Outcome::Unknown,
        };
        let (inner, bucket, key) = (self.inner(), self.bucket, self.keys[number]);
        let read = match record {
            BatchRecord::Whole(record) => inner.content(record, bucket, key),
            BatchRecord::Front { at, front } => {
                inner.blocks(at, &front, bucket, key).map(|found| match found {
                    Some((entry, attributes, data)) => {
                        Read::Found(entry, (attributes, Content::Blocks(data)))
                    }
                    None => Read::Other,
                })
            }
        };
        let Ok(Read::Found(entry, opened)) = read else { return Outcome::Unknown };
        if !self.is_certain && inner.check_doubt(bucket, key, Some(entry.at.lsn)).is_err() {
            return Outcome::Unknown;
        }
        match inner.object(bucket, key, entry, opened) {
            Ok(Some(object)) => Outcome::Object(object),
            Ok(None) | Err(_) => Outcome::Unknown,
        }
    }

    /// Looks up and opens the object of one key.
    fn open(&self, number: usize) -> (usize, Result<Object>) {
        (number, self.store.open_object(self.bucket, self.keys[number]))
    }

    fn next_result(&mut self) -> Option<(usize, Result<Object>)> {
        loop {
            if let Some(number) = self.unmatched.pop_front() {
                return Some(self.open(number));
            }
            let Some((number, record)) = self.next_record() else {
                if self.open_window() {
                    continue;
                }
                return None;
            };
            match self.outcome(number, record) {
                Outcome::Object(object) => {
                    Counters::count(&self.inner().counters.local().gets);
                    return Some((number, Ok(object)));
                }
                Outcome::Moved if number >= self.window_start => self.moved.push(number),
                Outcome::Moved | Outcome::Unknown => return Some(self.open(number)),
            }
        }
    }
}

impl Iterator for GetMany<'_> {
    type Item = (usize, Result<Object>);

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.next_result();
        self.left -= usize::from(result.is_some());
        result
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for GetMany<'_> {}

impl std::iter::FusedIterator for GetMany<'_> {}
