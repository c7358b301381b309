//! Looks up a key's needle: in the recent changes, or by one read of a candidate record.
//!
//! The location table returns the records that may contain a key's needle, usually one or none. The
//! key in the needle shows whether it is the right one. If a candidate is damaged, the runs show
//! this.

use haul_append_log::{self as log, Lsn, Position};
use haul_sync::ShardedRwLockReadGuard;

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Kind, Needle, NeedleError};
use crate::index::Index;
use crate::index::addresses::{Candidate, Candidates};
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::object::Attributes;

/// The bytes that are read for a needle's head: enough unless the attributes are very long.
pub(crate) const HEAD_READ_BYTES: usize = 4096;

/// After this many lookups of a key, a needle that keeps moving is reported as damaged.
const LOOKUPS_MAX: usize = 16;

/// A candidate that was read.
pub(crate) enum Read<T> {
    /// The record contains the key's object.
    Found(Entry, T),
    /// The record contains another needle.
    Other,
}

impl Inner {
    /// Returns a key's newest entry: from memory if the key changed recently, otherwise by reading
    /// its needle's head. If the needle is damaged, the entry comes from the runs.
    ///
    /// # Errors
    /// [`Error::Damaged`] if both the needle and the run are damaged; [`Error::Disk`] or
    /// [`Error::Log`] if a read fails.
    pub(crate) fn find(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        if let Some(recent) = self.keyspace.index.read().keys.recent(bucket, key) {
            return Ok(recent);
        }
        let candidates = self.keyspace.index.read().candidates(bucket, key);
        let found = self.search(candidates, bucket, key, |candidate| {
            let (entry, _) = match self.read_head(candidate, bucket, key)? {
                Read::Found(entry, attributes) => (entry, attributes),
                Read::Other => return Ok(Read::Other),
            };
            Ok(Read::Found(entry, ()))
        });
        match found {
            Ok(found) => Ok(found.map(|(entry, ())| entry)),
            Err(error) => {
                let keys = self.keyspace.index.read().keys.snapshot();
                keys.get(bucket, key).map_err(|_also_damaged| error)
            }
        }
    }

    /// Returns a key's newest entry like [`Self::find`], but only from the recent changes and the
    /// page cache. Returns `None` if these do not contain it.
    pub(crate) fn find_in_memory(&self, bucket: &str, key: &str) -> Option<Option<Entry>> {
        let index = self.keyspace.index.read();
        if let Some(recent) = index.keys.recent(bucket, key) {
            return Some(recent);
        }
        let candidates = index.candidates(bucket, key);
        drop(index);
        for candidate in candidates.iter() {
            match self.read_head_cached(candidate, bucket, key) {
                Ok(Some(Read::Found(entry, _))) => return Some(Some(entry)),
                Ok(Some(Read::Other)) => {}
                Ok(None) | Err(_) => return None,
            }
        }
        Some(None)
    }

    /// Reads a needle's head like [`Self::read_head`], if it is in the page cache.
    pub(crate) fn read_head_cached(
        &self,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Option<Read<Attributes>>> {
        let mut buffer = [0; log::RECORD_HEADER_BYTES + HEAD_READ_BYTES];
        let front = self.volumes.log.read_front_hinted_cached(candidate.lsn, &mut buffer)?;
        let Some((at, front)) = front else { return Ok(None) };
        self.counters.local().needle_read(front.len());
        self.head_in(at, front, bucket, key).map(Some)
    }

    /// Returns an existing object's entry on behalf of a request.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`]; [`Error::Damaged`] if the newest state of the
    /// key may be in a damaged place.
    pub(crate) fn entry(&self, bucket: &str, key: &str) -> Result<Entry> {
        self.keyspace.index.read().check_bucket(bucket)?;
        self.find_certain(bucket, key)?.ok_or_else(|| no_such_key(bucket, key))
    }

    /// Looks up an object on behalf of a request and reads it with `read`.
    ///
    /// # Errors
    /// Fails like [`Self::entry`] and like `read`. Records damage.
    pub(crate) fn look_up<T>(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Read<T>>,
    ) -> Result<(Entry, T)> {
        let index = self.keyspace.index.read();
        index.check_bucket(bucket)?;
        self.look_up_in(index, bucket, key, read)
    }

    /// Looks up an object like [`Self::look_up`], in any bucket.
    pub(crate) fn look_up_in<T>(
        &self,
        index: ShardedRwLockReadGuard<'_, Index>,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Read<T>>,
    ) -> Result<(Entry, T)> {
        let candidates = index.candidates(bucket, key);
        // Damaged places that hide keys are found only when the store is opened.
        let is_certain = index.hidden.any().is_none();
        drop(index);
        let found = self.search(candidates, bucket, key, read).inspect_err(|error| {
            self.volumes.damage.note(bucket, key, error);
        })?;
        if !is_certain {
            self.check_doubt(bucket, key, found.as_ref().map(|(entry, _)| entry.at.lsn))?;
        }
        found.ok_or_else(|| no_such_key(bucket, key))
    }

    /// Looks up an object like [`Self::look_up`] with a `read` that never waits for the disk.
    /// Returns `None` if `read` found too little in memory, and after an error: [`Self::look_up`]
    /// then returns the cause, or finds the needle at its new position after compaction.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`].
    pub(crate) fn look_up_cached<T>(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Option<Read<T>>>,
    ) -> Result<Option<(Entry, T)>> {
        let index = self.keyspace.index.read();
        index.check_bucket(bucket)?;
        self.look_up_cached_in(index, bucket, key, read)
    }

    /// Looks up an object like [`Self::look_up_cached`], in any bucket.
    pub(crate) fn look_up_cached_in<T>(
        &self,
        index: ShardedRwLockReadGuard<'_, Index>,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Option<Read<T>>>,
    ) -> Result<Option<(Entry, T)>> {
        let candidates = index.candidates(bucket, key);
        let hides_keys = index.hidden.any().is_some();
        drop(index);
        if hides_keys {
            return Ok(None);
        }
        for candidate in candidates.iter() {
            match read(candidate) {
                Ok(Some(Read::Found(entry, value))) => {
                    Counters::count(&self.counters.local().gets);
                    return Ok(Some((entry, value)));
                }
                Ok(Some(Read::Other)) => {}
                Ok(None) | Err(_) => return Ok(None),
            }
        }
        Counters::count(&self.counters.local().gets);
        Err(no_such_key(bucket, key))
    }

    /// Returns a key's newest entry like [`Self::find`], in any bucket.
    ///
    /// # Errors
    /// Fails like [`Self::find`]; [`Error::Damaged`] if the newest state of the key may be in a
    /// damaged place.
    pub(crate) fn find_certain(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        let found = self.find(bucket, key)?;
        self.check_doubt(bucket, key, found.as_ref().map(|entry| entry.at.lsn))?;
        Ok(found)
    }

    pub(crate) fn check_doubt(&self, bucket: &str, key: &str, newest: Option<Lsn>) -> Result<()> {
        match self.keyspace.index.read().possible_corruption(bucket, key, newest) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads a key's candidates until one contains its object. Repeats the lookup if compaction
    /// moved the needle in the meantime.
    fn search<T>(
        &self,
        mut candidates: Candidates,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Read<T>>,
    ) -> Result<Option<(Entry, T)>> {
        for lookup in 1.. {
            let mut was_moved = false;
            for candidate in candidates.iter() {
                match read(candidate) {
                    Ok(Read::Found(entry, value)) => return Ok(Some((entry, value))),
                    Ok(Read::Other) => {}
                    Err(Error::Log(log::Error::Invalid(_))) if lookup < LOOKUPS_MAX => {
                        was_moved = true;
                    }
                    Err(error) if self.may_hold_key(candidate.lsn, bucket, key)? => {
                        return Err(self.map_missing_volume(candidate.lsn, error));
                    }
                    Err(_damage_to_another_object) => {}
                }
            }
            if !was_moved {
                return Ok(None);
            }
            candidates = self.keyspace.index.read().candidates(bucket, key);
        }
        Ok(None)
    }

    /// Returns `true` if an unreadable record belongs to this key, or if this cannot be determined.
    fn may_hold_key(&self, lsn: Lsn, bucket: &str, key: &str) -> Result<bool> {
        match self.indexed(lsn, bucket, key) {
            Ok(entry) => Ok(entry.is_some()),
            Err(Error::Damaged { .. }) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// Returns a key's entry from the runs, if its needle is at `lsn`.
    fn indexed(&self, lsn: Lsn, bucket: &str, key: &str) -> Result<Option<Entry>> {
        let keys = self.keyspace.index.read().keys.snapshot();
        Ok(keys.get(bucket, key)?.filter(|entry| entry.at.lsn == lsn))
    }

    /// Reads the needle's head in a damaged record, if its checksum matches. Returns `None` if it
    /// does not, or if the needle belongs to another key.
    pub(crate) fn salvage(
        &self,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Option<(Entry, Attributes)> {
        let entry = self.indexed(candidate.lsn, bucket, key).ok()??;
        let attributes = self.read_attributes(entry.at).ok()?;
        Some((entry, attributes))
    }

    /// Converts a missing volume's error to [`Error::Damaged`].
    pub(crate) fn map_missing_volume(&self, lsn: Lsn, error: Error) -> Error {
        if !matches!(error, Error::Log(log::Error::Invalid(_))) {
            return error;
        }
        self.damaged(lsn, "the volume is missing or cannot be opened")
    }

    /// Returns the error for a damaged record.
    pub(crate) fn damaged(&self, lsn: Lsn, what: &str) -> Error {
        let file = self.volumes.disk.root().join(log::segment_name(lsn.segment()));
        Error::Damaged { file, offset: lsn.offset().into(), what: what.to_owned() }
    }

    /// Reads a needle's head from its record.
    pub(crate) fn read_head(
        &self,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Read<Attributes>> {
        let (at, front) = match self.read_front(candidate) {
            Ok(read) => read,
            Err(error @ Error::Damaged { .. }) => {
                let salvaged = self.salvage(candidate, bucket, key);
                let (entry, attributes) = salvaged.ok_or(error)?;
                return Ok(Read::Found(entry, attributes));
            }
            Err(other) => return Err(other),
        };
        self.head_in(at, &front, bucket, key)
    }

    /// Decodes the needle's head at the start of a record's payload.
    pub(crate) fn head_in(
        &self,
        at: Position,
        front: &[u8],
        bucket: &str,
        key: &str,
    ) -> Result<Read<Attributes>> {
        let needle = self.check(Needle::decode(front), at)?;
        Ok(match is_object(&needle, bucket, key) {
            true => Read::Found(Entry::of(&needle.head, at), needle.attributes),
            false => Read::Other,
        })
    }

    /// Reads a needle's start from its record: at least the head, unless the needle is malformed.
    /// One read suffices unless the attributes are very long.
    pub(crate) fn read_front(&self, candidate: Candidate) -> Result<(Position, Vec<u8>)> {
        let mut buffer = vec![0; log::RECORD_HEADER_BYTES + HEAD_READ_BYTES];
        loop {
            let (at, front) = self.volumes.log.read_front_hinted(candidate.lsn, &mut buffer)?;
            self.counters.local().needle_read(front.len());
            let filled = front.len();
            match Needle::decode(front) {
                Err(NeedleError::Needs(bytes))
                    if bytes > filled && bytes <= at.payload_bytes as usize =>
                {
                    buffer.resize(log::RECORD_HEADER_BYTES + bytes, 0);
                }
                _ => return Ok((at, front.to_vec())),
            }
        }
    }

    /// Returns a decoded value, or the error for a damaged record.
    pub(crate) fn check<T>(
        &self,
        decoded: std::result::Result<T, NeedleError>,
        at: Position,
    ) -> Result<T> {
        decoded.map_err(|why| match why {
            NeedleError::Malformed(what) => self.damaged(at.lsn, what),
            NeedleError::Needs(_) => self.damaged(at.lsn, "the needle is truncated"),
        })
    }
}

/// Returns `true` if a needle stores the object of this key.
pub(crate) fn is_object(needle: &Needle<'_>, bucket: &str, key: &str) -> bool {
    let head = &needle.head;
    head.kind == Kind::Object && head.bucket == bucket && head.key == key
}

pub(crate) fn no_such_key(bucket: &str, key: &str) -> Error {
    Error::NoSuchKey { bucket: bucket.to_owned(), key: key.to_owned() }
}
