//! Copies one bucket.

use std::future::ready;
use std::pin::pin;

use futures_util::{StreamExt, stream};

use super::object::{Copied, Object};
use super::settings::{self, EARLY, LATE, NEVER, OBJECT_LOCK, Setting};
use super::version;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::model::Key;
use crate::options::Options;
use crate::plan::KeyPlan;
use crate::planner::{Compared, Planned, Planner};
use crate::report::{Event, Events, NotCarried, Summary};

/// The number of objects in a row without a connection after which the copy ends.
const UNCONNECTED_MAX: u32 = 64;

/// A copy of a bucket.
pub(super) struct BucketCopy<'a> {
    pub(super) options: &'a Options,
    pub(super) from: &'a Client,
    pub(super) to: &'a Client,
    pub(super) bucket: &'a str,
    pub(super) events: &'a dyn Events,
    pub(super) summary: &'a mut Summary,
}

/// The result of processing a key.
enum Outcome {
    Same,
    Different { key: String },
    Deleted { key: String },
    Copied { key: String, done: Done },
    Failed { key: String, done: Done, error: Error },
}

/// What was copied of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    versions: u64,
    bytes: u64,
    by_length: u64,
}

impl BucketCopy<'_> {
    /// Copies the bucket. An error concerns the bucket, not a single object.
    pub(super) async fn run(mut self) -> Result<()> {
        let status = settings::versioning(self.from, self.bucket).await?;
        let has_versions = !status.is_empty();
        let lock = settings::fetch(self.from, self.bucket, &OBJECT_LOCK).await.unwrap_or_default();
        let has_target = self.prepare(lock.is_some()).await?;
        if has_versions {
            self.enable_versioning(&status, has_target).await?;
        }
        for setting in &EARLY {
            self.carry(setting, has_target).await;
        }
        self.copy_keys(has_versions, has_target).await?;
        if self.summary.is_stopped {
            return Ok(());
        }
        for setting in &LATE {
            self.carry(setting, has_target).await;
        }
        if status == "Suspended" && !self.options.dry_run {
            settings::set_versioning(self.to, self.bucket, &status).await?;
        }
        for setting in &NEVER {
            if let Ok(Some(_)) = settings::fetch(self.from, self.bucket, setting).await {
                self.not_carried(setting.name, "it is not copied; set it at the target if needed");
            }
        }
        self.summary.buckets += 1;
        Ok(())
    }

    /// Creates the bucket if the target does not have it. Returns `true` if the target has it, which
    /// in a dry run may be `false`.
    async fn prepare(&mut self, has_lock: bool) -> Result<bool> {
        let exists = settings::exists(self.to, self.bucket).await?;
        if !exists {
            if !self.options.dry_run {
                settings::create(self.to, self.bucket, has_lock).await?;
            }
            self.report(&Event::BucketCreated { bucket: self.bucket });
            return Ok(!self.options.dry_run);
        }
        let is_dry = self.options.dry_run;
        let lacks_lock = has_lock
            && !is_dry
            && settings::fetch(self.to, self.bucket, &OBJECT_LOCK).await?.is_none();
        if lacks_lock {
            settings::set_versioning(self.to, self.bucket, "Enabled").await?;
            let document = settings::LOCK_WITHOUT_DEFAULT.into();
            settings::store(self.to, self.bucket, OBJECT_LOCK.name, &document).await?;
        }
        Ok(true)
    }

    /// Enables versioning for the time of the copy, also if it is suspended afterwards. Reports it
    /// if the status at the target is not that of the source.
    async fn enable_versioning(&mut self, status: &str, has_target: bool) -> Result<()> {
        let present = match has_target {
            true => settings::versioning(self.to, self.bucket).await?,
            false => String::new(),
        };
        if present != "Enabled" && !self.options.dry_run {
            settings::set_versioning(self.to, self.bucket, "Enabled").await?;
        }
        if present != status {
            self.report(&Event::Setting { bucket: self.bucket, setting: "versioning" });
        }
        Ok(())
    }

    /// Copies a setting, if the source has it and the target does not have the same.
    async fn carry(&mut self, setting: &Setting, has_target: bool) {
        let name = setting.name;
        match self.try_carry(setting, has_target).await {
            Ok(true) => self.report(&Event::Setting { bucket: self.bucket, setting: name }),
            Ok(false) => {}
            Err(error) if error.is_transient() => {
                self.summary.failed += 1;
                self.report(&Event::Failed { bucket: self.bucket, key: "", error: &error });
            }
            Err(error) => self.not_carried(name, &error.to_string()),
        }
    }

    async fn try_carry(&self, setting: &Setting, has_target: bool) -> Result<bool> {
        let Some(document) = settings::fetch(self.from, self.bucket, setting).await? else {
            return Ok(false);
        };
        if has_target {
            let present = settings::fetch(self.to, self.bucket, setting).await?;
            if document.is_same(present.as_ref()) {
                return Ok(false);
            }
        }
        if !self.options.dry_run {
            settings::store(self.to, self.bucket, setting.name, &document.bytes).await?;
        }
        Ok(true)
    }

    fn not_carried(&mut self, setting: &str, reason: &str) {
        self.report(&Event::NotCarried { bucket: self.bucket, setting, reason });
        self.summary.not_carried.push(NotCarried {
            bucket: self.bucket.to_owned(),
            setting: setting.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn report(&self, event: &Event<'_>) {
        self.events.happened(event, self.summary);
    }

    /// Processes all keys, several at a time.
    async fn copy_keys(&mut self, has_versions: bool, has_target: bool) -> Result<()> {
        let (from, to, bucket, events) = (self.from, self.to, self.bucket, self.events);
        let with_extra = self.options.delete;
        let compared = Compared { from, to, bucket, has_versions, has_target, with_extra };
        let keys = Keys { from, to, bucket, has_versions, is_dry: self.options.dry_run };
        let planned = stream::unfold(Some(Planner::new(&compared)), |planner| async {
            let mut planner: Planner<'_> = planner?;
            match planner.next().await {
                Ok(Some(planned)) => Some((Ok(planned), Some(planner))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        let planned = planned.take_while(|_| ready(!events.is_stopped()));
        let keys = &keys;
        let outcomes = planned.map(|planned| async { Ok(keys.process(planned?).await) });
        let mut outcomes = pin!(outcomes.buffer_unordered(self.options.jobs.max(1)));
        let mut unconnected = 0;
        let mut failure = Ok(());
        while let Some(outcome) = outcomes.next().await {
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => {
                    // The objects in progress are still completed.
                    failure = Err(error);
                    continue;
                }
            };
            match &outcome {
                Outcome::Failed { error: Error::Connection { .. }, .. } => unconnected += 1,
                Outcome::Same | Outcome::Different { .. } => {}
                _ => unconnected = 0,
            }
            let error = self.account(outcome);
            if let Some(error) = error.filter(|_| unconnected >= UNCONNECTED_MAX) {
                return Err(error);
            }
        }
        self.summary.is_stopped = events.is_stopped();
        failure
    }

    /// Counts and reports an outcome. Returns its error.
    fn account(&mut self, outcome: Outcome) -> Option<Error> {
        let bucket = self.bucket;
        match outcome {
            Outcome::Same => self.summary.skipped += 1,
            Outcome::Different { key } => {
                self.summary.different += 1;
                self.report(&Event::Different { bucket, key: &key });
            }
            Outcome::Deleted { key } => {
                self.summary.deleted += 1;
                self.report(&Event::Deleted { bucket, key: &key });
            }
            Outcome::Copied { key, done } => self.count(&key, done),
            Outcome::Failed { key, done, error } => {
                if done.versions > 0 {
                    self.count(&key, done);
                }
                self.summary.failed += 1;
                self.report(&Event::Failed { bucket, key: &key, error: &error });
                return Some(error);
            }
        }
        None
    }

    fn count(&mut self, key: &str, done: Done) {
        let Done { versions, bytes, by_length } = done;
        self.summary.objects += 1;
        self.summary.versions += versions;
        self.summary.bytes += bytes;
        self.summary.verified_by_length += by_length;
        self.report(&Event::Copied { bucket: self.bucket, key, versions, bytes });
    }
}

/// The keys of a bucket, processed independently of each other.
struct Keys<'a> {
    from: &'a Client,
    to: &'a Client,
    bucket: &'a str,
    has_versions: bool,
    is_dry: bool,
}

impl Keys<'_> {
    async fn process(&self, planned: Planned) -> Outcome {
        match planned {
            Planned::Extra { key } => self.delete(key).await,
            Planned::Source { key, plan: KeyPlan::Different, .. } => {
                Outcome::Different { key: key.name }
            }
            Planned::Source { plan: KeyPlan::Same, .. } => Outcome::Same,
            Planned::Source { key, plan: KeyPlan::CopyUnlessOpaque, .. } => {
                let is_opaque = match self.object(&key, 0, 0) {
                    Some(object) => object.is_opaque().await,
                    None => Ok(true),
                };
                match is_opaque {
                    Ok(true) => Outcome::Same,
                    Ok(false) => self.copy(key, 0, 0).await,
                    Err(error) => Outcome::Failed { key: key.name, done: Done::default(), error },
                }
            }
            Planned::Source { key, plan: KeyPlan::Copy(first), target_versions } => {
                self.copy(key, first, target_versions).await
            }
        }
    }

    fn object<'a>(
        &'a self,
        key: &'a Key,
        index: usize,
        target_versions: usize,
    ) -> Option<Object<'a>> {
        let target_versions = self.has_versions.then_some(target_versions);
        let Self { from, to, bucket, .. } = *self;
        let version = key.versions.get(index)?;
        Some(Object { from, to, bucket, key: &key.name, version, target_versions })
    }

    /// Copies the versions from the one with the index `first` on, in ascending order.
    async fn copy(&self, key: Key, first: usize, target_versions: usize) -> Outcome {
        let mut done = Done::default();
        if self.is_dry {
            done.versions = (key.versions.len() - first) as u64;
            done.bytes = key.bytes_from(first);
            return Outcome::Copied { key: key.name, done };
        }
        for index in first..key.versions.len() {
            let before = target_versions + index - first;
            let Some(object) = self.object(&key, index, before) else { break };
            match version::copy(&object).await {
                Ok(Copied::Stored { bytes, by_length }) => {
                    done.versions += 1;
                    done.bytes += bytes;
                    done.by_length += u64::from(by_length);
                }
                // Later versions would follow the wrong one.
                Ok(Copied::Gone) => break,
                Err(error) => return Outcome::Failed { key: key.name, done, error },
            }
        }
        match done.versions {
            0 => Outcome::Same,
            _ => Outcome::Copied { key: key.name, done },
        }
    }

    /// Deletes a key of the target, if the source still does not have it.
    async fn delete(&self, key: Key) -> Outcome {
        let Some(last) = key.versions.len().checked_sub(1) else { return Outcome::Same };
        let Some(object) = self.object(&key, last, last + 1) else { return Outcome::Same };
        if object.version.is_delete_marker {
            return Outcome::Same;
        }
        let deleted = async {
            if object.is_at_source().await? {
                return Ok(false);
            }
            if !self.is_dry {
                object.delete().await?;
            }
            Ok(true)
        };
        match deleted.await {
            Ok(true) => Outcome::Deleted { key: key.name },
            Ok(false) => Outcome::Same,
            Err(error) => Outcome::Failed { key: key.name, done: Done::default(), error },
        }
    }
}
