//! Aborts stale uploads, a batch with one sync after the other.

use haul_append_log::{Room, Ticket};

use crate::error::Result;
use crate::format::{Head, Kind};
use crate::inner::Inner;
use crate::lifecycle::page::Search;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::state::Rules;
use crate::object::Attributes;

/// An upload that was stale when the index was searched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StaleUpload {
    pub(super) key: String,
    pub(super) id: u128,
    pub(super) started_ms: u64,
}

impl Inner {
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
    ///
    /// `None`: the rules were replaced, and nothing was aborted.
    pub(super) fn abort_stale(
        &self,
        search: &Search<'_>,
        rules: &Rules,
        batch: &[StaleUpload],
        report: &mut SweepReport,
    ) -> Result<Option<()>> {
        let _entered = self.enter(search.bucket)?;
        if !self.lifecycle.is_current(search.bucket, rules) {
            return Ok(None);
        }
        let mut keys: Vec<&str> = batch.iter().map(|upload| upload.key.as_str()).collect();
        keys.dedup();
        let _locked: Vec<_> = keys.iter().map(|key| self.keys.lock(search.bucket, key)).collect();
        let mut appended = Vec::with_capacity(batch.len());
        let mut outcome = Ok(Some(()));
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
            match ticket.wait() {
                Ok(at) => {
                    self.apply(vec![head.into()], at);
                    report.aborted_uploads += 1;
                }
                Err(error) => outcome = outcome.and(Err(error.into())),
            }
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
