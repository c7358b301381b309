//! The sweep of a bucket: finds what its lifecycle ends, and deletes it.

use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::config::Rules;
use crate::lifecycle::expire::{BATCH, Batch};
use crate::lifecycle::page::{PAGE_KEYS, Page, Search};
use crate::object::ObjectInfo;
use crate::store::Store;

/// A sweep in the background pauses this many times as long as each step took, so that it takes at
/// most a fifth of a processor and of the time of the disk.
const PAUSE_FACTOR: u32 = 4;

/// The longest pause between two steps.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The bytes of a run of keys that a sweep reads at once.
const READAHEAD_BYTES: usize = 256 << 10;

/// The work of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Keys listed: only those under a prefix of a rule that expires objects.
    pub scanned_keys: u64,
    /// Objects deleted.
    pub expired_objects: u64,
    /// Bytes of these objects.
    pub expired_bytes: u64,
    /// Uploads aborted.
    pub aborted_uploads: u64,
    /// Objects and uploads left because their newest state may be in a damaged place.
    pub skipped: u64,
}

/// An object or an upload that a sweep would end now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expirable {
    /// An expired object.
    Object {
        /// Its key, length, time and hash.
        info: ObjectInfo,
        /// The id of the rule.
        rule: String,
    },
    /// A stale upload.
    Upload {
        /// Its identifier: 32 hexadecimal digits.
        id: String,
        /// The key that it would be stored under.
        key: String,
        /// The time at which it was started.
        started: SystemTime,
        /// The id of the rule.
        rule: String,
    },
}

/// The speed of a sweep.
#[derive(Debug)]
pub(super) enum Pace<'a> {
    /// As fast as the disk allows; on a full disk it waits for compaction.
    Full,
    /// With pauses, and until the other end of the channel is dropped.
    Background(&'a mpsc::Receiver<()>),
}

/// The end of a pass over the bucket.
#[derive(Debug, PartialEq, Eq)]
enum Pass {
    Complete,
    RulesChanged,
    Stopped,
}

impl Store {
    /// Deletes the expired objects of a bucket and aborts its stale uploads, as fast as the disk
    /// allows. An object that is replaced meanwhile is kept. If the rules change meanwhile, it
    /// begins again with the new ones.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchBucket`]; [`crate::Error::Damaged`] if the rules or the index of keys
    /// are damaged; [`crate::Error::Full`] and [`crate::Error::Stalled`] as [`Store::delete`]. What
    /// was deleted before stays deleted.
    ///
    /// # Durability
    /// What the report counts is deleted for good when this returns.
    pub fn expire_now(&self, bucket: &str) -> Result<SweepReport> {
        Ok(self.inner.sweep(bucket, &Pace::Full)?.unwrap_or_default())
    }

    /// Calls `visit` with every object and upload that [`Store::expire_now`] would end now, and
    /// returns the report that it would return. Nothing is changed. `visit` may call the store, and
    /// stops the search by returning `false`.
    ///
    /// # Errors
    /// As [`Store::expire_now`].
    pub fn expirable(
        &self,
        bucket: &str,
        visit: &mut dyn FnMut(Expirable) -> bool,
    ) -> Result<SweepReport> {
        self.inner.expirable(bucket, visit)
    }

    /// Returns the message of the last sweep in the background that failed, with its bucket.
    #[must_use]
    pub fn last_lifecycle_error(&self) -> Option<String> {
        self.inner.lifecycle.counters.last_error()
    }
}

impl Inner {
    /// Sweeps a bucket; `None` if the store closes.
    pub(super) fn sweep(&self, bucket: &str, pace: &Pace<'_>) -> Result<Option<SweepReport>> {
        let began = Instant::now();
        let mut report = SweepReport::default();
        loop {
            let rules = self.rules(bucket)?;
            match self.sweep_by(bucket, &rules, pace, &mut report)? {
                Pass::Complete => {
                    self.lifecycle.counters.completed(self.clock.now(), began.elapsed());
                    return Ok(Some(report));
                }
                Pass::RulesChanged => {}
                Pass::Stopped => return Ok(None),
            }
        }
    }

    fn sweep_by(
        &self,
        bucket: &str,
        rules: &Rules,
        pace: &Pace<'_>,
        report: &mut SweepReport,
    ) -> Result<Pass> {
        let Rules { lifecycle, .. } = rules;
        let now_ms = self.clock.now_ms();
        let mut search = Search { bucket, prefix: "", lifecycle, now_ms };
        let mut steps = Steps { inner: self, pace, report };
        for prefix in lifecycle.prefixes(now_ms) {
            search.prefix = prefix;
            let mut after: Option<String> = None;
            loop {
                let mut page = Page::default();
                let listed = steps.step(|step| {
                    page = self.page(&search, after.as_deref())?;
                    step.scanned_keys += page.scanned_keys;
                    Ok(Batch::Done)
                })?;
                if listed != Pass::Complete {
                    return Ok(listed);
                }
                for batch in page.candidates.chunks(BATCH) {
                    let deleted =
                        steps.step(|step| self.delete_expired(&search, rules, batch, step))?;
                    if deleted != Pass::Complete {
                        return Ok(deleted);
                    }
                }
                after = page.next_after;
                if after.is_none() {
                    break;
                }
            }
        }
        let mut skipped = SweepReport::default();
        let stale = self.stale_uploads(&search, &mut skipped);
        steps.add(&skipped);
        for batch in stale.chunks(BATCH) {
            let aborted = steps.step(|step| self.abort_stale(&search, rules, batch, step))?;
            if aborted != Pass::Complete {
                return Ok(aborted);
            }
        }
        Ok(Pass::Complete)
    }

    fn page(&self, search: &Search<'_>, after: Option<&str>) -> Result<Page> {
        let keys = self.index.read().keys.snapshot();
        let page = search.page(&mut keys.merged(READAHEAD_BYTES), after, PAGE_KEYS);
        page.map_err(|error| self.note_index_damage(error))
    }

    fn expirable(
        &self,
        bucket: &str,
        visit: &mut dyn FnMut(Expirable) -> bool,
    ) -> Result<SweepReport> {
        let rules = self.rules(bucket)?;
        let Rules { lifecycle, .. } = &*rules;
        let now_ms = self.clock.now_ms();
        let mut search = Search { bucket, prefix: "", lifecycle, now_ms };
        let mut report = SweepReport::default();
        for prefix in lifecycle.prefixes(now_ms) {
            search.prefix = prefix;
            let mut after: Option<String> = None;
            loop {
                let page = self.page(&search, after.as_deref())?;
                report.scanned_keys += page.scanned_keys;
                for candidate in page.candidates {
                    let (key, at) = (&candidate.key, candidate.entry.at.lsn);
                    if self.index.read().doubt(bucket, key, Some(at)).is_some() {
                        report.skipped += 1;
                        continue;
                    }
                    report.expired_objects += 1;
                    report.expired_bytes += candidate.entry.bytes;
                    let info = candidate.entry.info(key);
                    let rule = lifecycle.expiration(&info);
                    let rule = rule.map_or_else(String::new, |(_, rule)| rule.id.clone());
                    if !visit(Expirable::Object { info, rule }) {
                        return Ok(report);
                    }
                }
                after = page.next_after;
                if after.is_none() {
                    break;
                }
            }
        }
        for upload in self.stale_uploads(&search, &mut report) {
            report.aborted_uploads += 1;
            let rule = lifecycle.upload_expires_ms(&upload.key, upload.started_ms);
            let rule = rule.map_or_else(String::new, |(_, rule)| rule.id.clone());
            let started = UNIX_EPOCH + Duration::from_millis(upload.started_ms);
            let id = format!("{:032x}", upload.id);
            if !visit(Expirable::Upload { id, key: upload.key, started, rule }) {
                return Ok(report);
            }
        }
        Ok(report)
    }
}

/// Executes the steps of a sweep, counts them, and keeps the pace.
struct Steps<'a> {
    inner: &'a Inner,
    pace: &'a Pace<'a>,
    report: &'a mut SweepReport,
}

impl Steps<'_> {
    /// Executes one step, which adds its work to the report that it gets, and pauses.
    fn step(&mut self, mut step: impl FnMut(&mut SweepReport) -> Result<Batch>) -> Result<Pass> {
        let (began, mut done) = (Instant::now(), SweepReport::default());
        let outcome = match self.pace {
            Pace::Full => self.inner.with_space(|| step(&mut done)),
            Pace::Background(_) => step(&mut done),
        };
        self.add(&done);
        Ok(match outcome? {
            Batch::RulesChanged => Pass::RulesChanged,
            Batch::Done if self.pace.goes_on(began.elapsed()) => Pass::Complete,
            Batch::Done => Pass::Stopped,
        })
    }

    /// Adds work to the report and to the counters of the store.
    fn add(&mut self, done: &SweepReport) {
        self.inner.lifecycle.counters.add(done);
        self.report.scanned_keys += done.scanned_keys;
        self.report.expired_objects += done.expired_objects;
        self.report.expired_bytes += done.expired_bytes;
        self.report.aborted_uploads += done.aborted_uploads;
        self.report.skipped += done.skipped;
    }
}

impl Pace<'_> {
    /// Pauses after a step; returns `false` if the store closes.
    fn goes_on(&self, took: Duration) -> bool {
        match self {
            Pace::Full => true,
            Pace::Background(stopped) => sleep(stopped, (PAUSE_FACTOR * took).min(PAUSE_MAX)),
        }
    }
}

/// Sleeps; returns `false`, at once, if the other end of the channel is dropped.
pub(super) fn sleep(stopped: &mpsc::Receiver<()>, duration: Duration) -> bool {
    stopped.recv_timeout(duration) == Err(mpsc::RecvTimeoutError::Timeout)
}
