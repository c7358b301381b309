//! Aborts stale uploads in batches that share a sync.

use haul_append_log::{SpacePriority, Ticket};

use crate::error::Result;
use crate::expiration::page::Search;
use crate::format::{Head, Kind};
use crate::index::uploads::{UploadName, in_bucket};
use crate::inner::Inner;
use crate::lifecycle::report::LifecycleAction::AbortUpload;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::state::Rules;
use crate::object::Attributes;

/// An upload that was stale when the index was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StaleUpload {
    pub(super) key: String,
    pub(super) id: u128,
    pub(super) started_ms: u64,
}

/// Returns a bucket's stale uploads, sorted by key. Skips and counts an upload if damage may hide
/// its parts or its end.
pub(super) fn stale_uploads(
    inner: &Inner,
    search: &Search<'_>,
    report: &mut SweepReport,
) -> Vec<StaleUpload> {
    let Search { bucket, lifecycle, now_ms, .. } = *search;
    if !lifecycle.aborts_uploads() {
        return Vec::new();
    }
    let mut stale = Vec::new();
    let index = inner.keyspace.index.read();
    for (name, upload) in in_bucket(&index.uploads, bucket) {
        let (key, started_ms) = (name.key(), upload.started.millis());
        let expires = lifecycle.upload_expires_ms(key, started_ms);
        if expires.is_none_or(|(at, _)| at > now_ms) {
            continue;
        }
        if index.hidden.range_hiding_upload(upload.started).is_some() {
            report.skipped += 1;
            continue;
        }
        stale.push(StaleUpload { key: key.to_owned(), id: name.id, started_ms });
    }
    stale
}

/// Aborts the uploads, sorted by key, that are still unfinished.
///
/// 1. Enters the bucket, so that its rules cannot change until the batch ends, and compares them.
/// 2. Locks the keys in order, so that no part is stored in the meantime.
/// 3. Appends the uploads' ends. After a crash the log has a prefix of them; the next sweep aborts
///    the other uploads.
/// 4. Once the ends are durable, reports them to the observer, applies them to the index and
///    removes the parts' files. After a crash before this step, opening the store removes them.
///
/// Returns `None`, and aborts nothing, if the rules were replaced.
pub(super) fn abort_stale(
    inner: &Inner,
    search: &Search<'_>,
    rules: &Rules,
    batch: &[StaleUpload],
    report: &mut SweepReport,
) -> Result<Option<()>> {
    let _writer = inner.keyspace.enter(search.bucket)?;
    if !inner.maintenance.lifecycle.is_current(search.bucket, rules) {
        return Ok(None);
    }
    let mut keys: Vec<&str> = batch.iter().map(|upload| upload.key.as_str()).collect();
    keys.dedup();
    let _locked: Vec<_> =
        keys.iter().map(|key| inner.keyspace.keys.lock(search.bucket, key)).collect();
    let mut appended = Vec::with_capacity(batch.len());
    let mut outcome = Ok(Some(()));
    for upload in batch {
        let name = UploadName::new(search.bucket, &upload.key, upload.id);
        if !inner.keyspace.index.read().uploads.contains_key(&name) {
            continue;
        }
        match append_upload_end(inner, search.bucket, upload) {
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
                let observer = &inner.options.lifecycle_observer;
                observer.report(AbortUpload, search.bucket, &head.key);
                inner.apply(vec![head.into()], at);
                report.aborted_uploads += 1;
            }
            Err(error) => outcome = outcome.and(Err(error.into())),
        }
    }
    outcome
}

fn append_upload_end(inner: &Inner, bucket: &str, upload: &StaleUpload) -> Result<(Head, Ticket)> {
    let mut head = Head::new(Kind::UploadEnded, bucket, &upload.key);
    head.upload = upload.id;
    head.version = inner.keyspace.clock.next();
    let ticket = inner.append(&head.encode(&Attributes::new()), &[], SpacePriority::Reserve)?;
    Ok((head, ticket))
}
