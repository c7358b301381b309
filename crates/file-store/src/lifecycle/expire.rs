//! Deletes expired objects and aborts stale uploads, a batch with one sync after the other.

use haul_append_log::{Room, Ticket};

use crate::counters::Counters;
use crate::error::Result;
use crate::format::{Head, Kind};
use crate::index::entry::{Change, Entry, Replaced};
use crate::inner::Inner;
use crate::lifecycle::config::Rules;
use crate::lifecycle::page::{Candidate, Search};
use crate::lifecycle::sweep::SweepReport;
use crate::object::Attributes;

/// The maximum number of deletions that share a sync: a writer in the same batch hardly notices them.
pub(super) const BATCH: usize = 256;

/// An upload that was stale when the index was searched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StaleUpload {
    pub(super) key: String,
    pub(super) id: u128,
    pub(super) started_ms: u64,
}

/// The end of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Batch {
    Done,
    /// The rules of the bucket were replaced, and nothing was deleted.
    RulesChanged,
}

/// A needle that was appended, and the bytes of the object that it deletes.
struct Appended {
    change: Change,
    ticket: Ticket,
    bytes: u64,
}

impl Inner {
    /// Deletes those of the candidates that are expired now. The candidates are in order of their
    /// keys.
    ///
    /// 1. The bucket is entered: its rules, which are compared, stay until the batch ends.
    /// 2. The keys are locked in order. An object that was replaced since it was listed is judged
    ///    again; one in doubt is skipped.
    /// 3. A tombstone for each is appended. After a crash the log has any of them: these objects are
    ///    deleted, the others are deleted by the next sweep.
    /// 4. The tombstones are durable: they are applied to the index.
    pub(super) fn delete_expired(
        &self,
        search: &Search<'_>,
        rules: &Rules,
        batch: &[Candidate],
        report: &mut SweepReport,
    ) -> Result<Batch> {
        let _entered = self.enter(search.bucket)?;
        if !self.lifecycle.is_current(search.bucket, rules) {
            return Ok(Batch::RulesChanged);
        }
        let lock = |candidate: &Candidate| self.keys.lock(search.bucket, &candidate.key);
        let _locked: Vec<_> = batch.iter().map(lock).collect();
        let mut appended = Vec::with_capacity(batch.len());
        let mut outcome = Ok(Batch::Done);
        for candidate in batch {
            match self.append_expired(search, candidate, report) {
                Ok(tombstone) => appended.extend(tombstone),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        // What was appended becomes durable, whether or not the rest could be appended.
        for Appended { change, ticket, bytes } in appended {
            let at = ticket.wait()?;
            self.apply(vec![change], at);
            Counters::count(&self.counters.deletes);
            report.expired_objects += 1;
            report.expired_bytes += bytes;
        }
        outcome
    }

    /// Appends the tombstone of an object whose key is locked, if the object is expired.
    fn append_expired(
        &self,
        search: &Search<'_>,
        candidate: &Candidate,
        report: &mut SweepReport,
    ) -> Result<Option<Appended>> {
        let Candidate { key, entry } = candidate;
        let Some(entry) = self.current_entry(search, key, entry)? else { return Ok(None) };
        if self.index.read().doubt(search.bucket, key, Some(entry.at.lsn)).is_some() {
            report.skipped += 1;
            return Ok(None);
        }
        let mut head = self.head(Kind::Tombstone, search.bucket, key);
        head.version = self.clock.next();
        let ticket = self.append(&head.encode(&Attributes::new()), &[], Room::Reserve)?;
        let bytes = entry.bytes;
        let change = Change { head, replaces: Some(Replaced::from(entry)) };
        Ok(Some(Appended { change, ticket, bytes }))
    }

    /// Returns the present entry of a key that is locked, if its object is expired: without a read
    /// if the object is where it was listed.
    fn current_entry(
        &self,
        search: &Search<'_>,
        key: &str,
        listed: &Entry,
    ) -> Result<Option<Entry>> {
        if self.index.read().is_object_at(search.bucket, key, listed.at) {
            return Ok(Some(listed.clone()));
        }
        let found = self.find(search.bucket, key)?;
        Ok(found.filter(|entry| search.has_expired(key, entry)))
    }

    /// Returns the stale uploads of a bucket in order of their keys, without those of which damage
    /// may hide parts or the end; these are counted.
    pub(super) fn stale_uploads(
        &self,
        search: &Search<'_>,
        report: &mut SweepReport,
    ) -> Vec<StaleUpload> {
        let Search { bucket, lifecycle, now_ms, .. } = *search;
        if !lifecycle.aborts_uploads() {
            return Vec::new();
        }
        let mut stale = Vec::new();
        let index = self.index.read();
        for (id, upload) in index.uploads.iter().filter(|(_, upload)| upload.bucket == bucket) {
            let started_ms = upload.started.millis();
            let expires = lifecycle.upload_expires_ms(&upload.key, started_ms);
            if expires.is_none_or(|(at, _)| at > now_ms) {
                continue;
            }
            if index.hidden.behind_upload(upload.started).is_some() {
                report.skipped += 1;
                continue;
            }
            stale.push(StaleUpload { key: upload.key.clone(), id: *id, started_ms });
        }
        drop(index);
        stale.sort_unstable();
        stale
    }

    /// Aborts those of the uploads that have not ended since. The uploads are in order of their keys.
    ///
    /// 1. The bucket is entered: its rules, which are compared, stay until the batch ends.
    /// 2. The keys are locked in order, so that no part is stored meanwhile.
    /// 3. The end of each upload is appended. After a crash the log has any of them: these uploads
    ///    are aborted, the others are aborted by the next sweep.
    /// 4. The ends are durable: they are applied to the index, and the files of parts are removed;
    ///    after a crash before this, opening the store removes them.
    pub(super) fn abort_stale(
        &self,
        search: &Search<'_>,
        rules: &Rules,
        batch: &[StaleUpload],
        report: &mut SweepReport,
    ) -> Result<Batch> {
        let _entered = self.enter(search.bucket)?;
        if !self.lifecycle.is_current(search.bucket, rules) {
            return Ok(Batch::RulesChanged);
        }
        let mut keys: Vec<&str> = batch.iter().map(|upload| upload.key.as_str()).collect();
        keys.dedup();
        let _locked: Vec<_> = keys.iter().map(|key| self.keys.lock(search.bucket, key)).collect();
        let mut appended = Vec::with_capacity(batch.len());
        let mut outcome = Ok(Batch::Done);
        for upload in batch {
            if !self.index.read().uploads.contains_key(&upload.id) {
                continue;
            }
            match self.append_upload_end(search.bucket, upload) {
                Ok(end) => appended.push(end),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        for (head, ticket) in appended {
            let at = ticket.wait()?;
            self.apply(vec![head.into()], at);
            report.aborted_uploads += 1;
        }
        outcome
    }

    fn append_upload_end(&self, bucket: &str, upload: &StaleUpload) -> Result<(Head, Ticket)> {
        let mut head = self.head(Kind::UploadEnded, bucket, &upload.key);
        head.upload = upload.id;
        head.version = self.clock.next();
        let ticket = self.append(&head.encode(&Attributes::new()), &[], Room::Reserve)?;
        Ok((head, ticket))
    }
}
