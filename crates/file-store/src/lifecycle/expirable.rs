//! Lists what a sweep would delete, without deleting it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::page::{Candidate, Search};
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::{Lifecycle, LifecycleRule};
use crate::lifecycle::uploads::StaleUpload;
use crate::object::ObjectInfo;

/// An object or upload that a sweep would delete now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpiredEntry {
    /// An expired object.
    Object {
        /// The key, length, modification time and hash.
        info: ObjectInfo,
        /// The ID of the rule.
        rule: String,
    },
    /// A stale upload.
    Upload {
        /// The ID of the upload: 32 hexadecimal digits.
        id: String,
        /// The key of the upload.
        key: String,
        /// The start time of the upload.
        started: SystemTime,
        /// The ID of the rule.
        rule: String,
    },
}

impl Inner {
    /// See [`crate::Store::expirable`].
    pub(super) fn expirable(
        &self,
        bucket: &str,
        visit: &mut dyn FnMut(ExpiredEntry) -> bool,
    ) -> Result<SweepReport> {
        let rules = self.rules(bucket)?;
        let lifecycle = &rules.lifecycle;
        let now_ms = self.clock.now_ms();
        let search = Search { bucket, prefix: "", lifecycle, now_ms };
        let mut report = SweepReport::default();
        for prefix in lifecycle.prefixes(now_ms) {
            let search = Search { prefix, ..search };
            let mut after: Option<String> = None;
            loop {
                let page = self.expired_page(&search, after.as_deref())?;
                report.scanned_keys += page.scanned_keys;
                for candidate in &page.candidates {
                    if self.is_in_doubt(bucket, candidate) {
                        report.skipped += 1;
                        continue;
                    }
                    report.expired_objects += 1;
                    report.expired_bytes += candidate.entry.bytes;
                    if !visit(object(lifecycle, candidate)) {
                        return Ok(report);
                    }
                }
                after = page.next_after;
                if after.is_none() {
                    break;
                }
            }
        }
        for stale in self.stale_uploads(&search, &mut report) {
            report.aborted_uploads += 1;
            if !visit(upload(lifecycle, stale)) {
                break;
            }
        }
        Ok(report)
    }

    fn is_in_doubt(&self, bucket: &str, candidate: &Candidate) -> bool {
        let newest = Some(candidate.entry.at.lsn);
        self.index.read().doubt(bucket, &candidate.key, newest).is_some()
    }
}

fn object(lifecycle: &Lifecycle, candidate: &Candidate) -> ExpiredEntry {
    let info = candidate.entry.info(&candidate.key);
    let rule = id(lifecycle.expiration(&info));
    ExpiredEntry::Object { info, rule }
}

fn upload(lifecycle: &Lifecycle, stale: StaleUpload) -> ExpiredEntry {
    let StaleUpload { key, id: upload, started_ms } = stale;
    let rule = id(lifecycle.upload_expires_ms(&key, started_ms));
    let started = UNIX_EPOCH + Duration::from_millis(started_ms);
    ExpiredEntry::Upload { id: format!("{upload:032x}"), key, started, rule }
}

fn id<T>(found: Option<(T, &LifecycleRule)>) -> String {
    found.map_or_else(String::new, |(_, rule)| rule.id.clone())
}
