//! Sweeps a bucket: deletes what its lifecycle expires.

use std::time::{Duration, Instant};

use haul_append_log::Position;
use haul_sync::mpsc;

use crate::error::{Error, Result};
use crate::expiration::config::lifecycle_rules;
use crate::expiration::expire::BATCH;
use crate::expiration::expire::delete_expired;
use crate::expiration::page::{PAGE_KEYS, Page, Search};
use crate::expiration::tags::read_tags;
use crate::expiration::tags::{KnownTags, TAG_READS, sort};
use crate::expiration::uploads::{abort_stale, stale_uploads};
use crate::expiration::versions::delete::{delete_expired_versions, version_tag_positions};
use crate::expiration::versions::list::VersionScan;
use crate::expiration::versions::list::keys_with_expired_versions;
use crate::inner::Inner;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::state::Rules;
use crate::object::Versioning;
use crate::replication::confirmation::confirm;

/// After each step, a background sweep pauses for this multiple of the step's duration, up to
/// [`PAUSE_MAX`]: steps of up to 250 ms use at most a fifth of a CPU and of the disk's time.
const PAUSE_FACTOR: u32 = 4;

/// The longest pause between two steps.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The bytes that a sweep reads ahead in a run.
const READAHEAD_BYTES: usize = 256 << 10;

/// The speed of a sweep.
#[derive(Debug)]
pub(super) enum Pace<'a> {
    /// As fast as the disk allows. On a full disk, the sweep waits for compaction.
    Full,
    /// With pauses, until the sender of the channel is dropped.
    Background(&'a mpsc::Receiver<()>),
}

/// The reason why a pass over a bucket ended early.
#[derive(Debug)]
enum Interrupted {
    Failed(Error),
    RulesChanged,
    /// The store is being closed.
    Closing,
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Sweeps a bucket; `None` if the store is being closed. Restarts when the rules change. Waits once
/// until the store's copy contains all deletions.
pub(super) fn sweep(inner: &Inner, bucket: &str, pace: &Pace<'_>) -> Result<Option<SweepReport>> {
    let began = Instant::now();
    let mut report = SweepReport::default();
    loop {
        let rules = lifecycle_rules(inner, bucket)?;
        let steps = Steps { inner, pace, report: &mut report };
        match sweep_by(inner, bucket, &rules, steps) {
            Ok(()) => {
                if report.has_changes() {
                    confirm(inner)?;
                }
                inner
                    .maintenance
                    .lifecycle
                    .counters
                    .completed(inner.keyspace.clock.now(), began.elapsed());
                return Ok(Some(report));
            }
            Err(Interrupted::RulesChanged) => {}
            Err(Interrupted::Closing) => return Ok(None),
            Err(Interrupted::Failed(error)) => return Err(error),
        }
    }
}

fn sweep_by(
    inner: &Inner,
    bucket: &str,
    rules: &Rules,
    mut steps: Steps<'_>,
) -> std::result::Result<(), Interrupted> {
    let now_ms = inner.keyspace.clock.now_ms();
    let search = Search { bucket, prefix: "", lifecycle: &rules.lifecycle, now_ms };
    for prefix in rules.lifecycle.prefixes(now_ms) {
        let search = Search { prefix, ..search };
        let mut after: Option<String> = None;
        loop {
            let page = steps.step(|step| {
                let page = expired_page(inner, &search, after.as_deref())?;
                step.scanned_keys += page.scanned_keys;
                Ok(Some(page))
            })?;
            let positions = page.tag_positions();
            let known = steps.read_tags(search.lifecycle, positions)?;
            let candidates = search.matching(page.candidates, &known);
            for batch in candidates.chunks(BATCH) {
                steps.step(|step| delete_expired(inner, &search, rules, batch, &known, step))?;
            }
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
    }
    let stale = steps.step(|step| Ok(Some(stale_uploads(inner, &search, step))))?;
    for batch in stale.chunks(BATCH) {
        steps.step(|step| abort_stale(inner, &search, rules, batch, step))?;
    }
    sweep_versions(inner, &search, rules, steps)
}

/// Removes expired versions and delete markers. Runs last, because it fails while corruption may
/// hide versions.
fn sweep_versions(
    inner: &Inner,
    search: &Search<'_>,
    rules: &Rules,
    mut steps: Steps<'_>,
) -> std::result::Result<(), Interrupted> {
    if inner.keyspace.versioning(search.bucket)? == Versioning::Off {
        return Ok(());
    }
    for prefix in rules.lifecycle.version_prefixes(search.now_ms) {
        let search = Search { prefix, ..*search };
        let mut scan = VersionScan::default();
        while !scan.is_complete() {
            let keys =
                steps.step(|_| keys_with_expired_versions(inner, &search, &mut scan).map(Some))?;
            for batch in keys.chunks(BATCH) {
                let positions =
                    steps.step(|_| version_tag_positions(inner, &search, batch).map(Some))?;
                let known = steps.read_tags(search.lifecycle, positions)?;
                steps.step(|step| {
                    delete_expired_versions(inner, &search, rules, batch, &known, step)
                })?;
            }
        }
    }
    Ok(())
}

/// Returns the expired objects on the page of keys after `after`.
pub(super) fn expired_page(
    inner: &Inner,
    search: &Search<'_>,
    after: Option<&str>,
) -> Result<Page> {
    let keys = inner.keyspace.index.read().keys.snapshot();
    let page = search.page(&mut keys.merged(READAHEAD_BYTES), after, PAGE_KEYS);
    page.map_err(|error| inner.note_index_damage(error))
}

/// Executes a sweep's steps: counts and pauses.
struct Steps<'a> {
    inner: &'a Inner,
    pace: &'a Pace<'a>,
    report: &'a mut SweepReport,
}

impl Steps<'_> {
    /// Reads tags in log order, a few at a time.
    fn read_tags(
        &mut self,
        lifecycle: &Lifecycle,
        mut positions: Vec<Position>,
    ) -> std::result::Result<KnownTags, Interrupted> {
        let (mut known, inner) = (KnownTags::default(), self.inner);
        sort(&mut positions);
        for positions in positions.chunks(TAG_READS) {
            self.step(|step| {
                read_tags(inner, lifecycle, positions, &mut known, step);
                Ok(Some(()))
            })?;
        }
        Ok(known)
    }

    /// Executes one step, which adds its counts to the report that it receives, and pauses. A step
    /// returns `None` if the rules were replaced.
    fn step<T>(
        &mut self,
        mut step: impl FnMut(&mut SweepReport) -> Result<Option<T>>,
    ) -> std::result::Result<T, Interrupted> {
        let (began, mut done) = (Instant::now(), SweepReport::default());
        let outcome = match self.pace {
            Pace::Full => self.inner.with_space(|| step(&mut done)),
            Pace::Background(_) => step(&mut done),
        };
        self.inner.maintenance.lifecycle.counters.add(&done);
        self.report.add(&done);
        let value = outcome?.ok_or(Interrupted::RulesChanged)?;
        match self.pace.pause(began.elapsed()) {
            true => Ok(value),
            false => Err(Interrupted::Closing),
        }
    }
}

impl Pace<'_> {
    /// Pauses after a step. Returns `false` if the store is being closed.
    fn pause(&self, took: Duration) -> bool {
        match self {
            Pace::Full => true,
            Pace::Background(stopped) => sleep(stopped, (PAUSE_FACTOR * took).min(PAUSE_MAX)),
        }
    }
}

/// Sleeps. Returns `false` at once if the sender of the channel is dropped.
pub(super) fn sleep(stopped: &mpsc::Receiver<()>, duration: Duration) -> bool {
    stopped.recv_timeout(duration) == Err(mpsc::RecvTimeoutError::Timeout)
}
