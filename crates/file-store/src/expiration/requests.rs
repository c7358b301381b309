//! The lifecycle operations.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::expiration::config::{lifecycle_rules, try_set_lifecycle};
use crate::expiration::expirable::ExpiredEntry;
use crate::expiration::expirable::expirable;
use crate::expiration::sweep::Pace;
use crate::expiration::sweep::sweep;
use crate::lifecycle::format::encode;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::{Lifecycle, millis};
use crate::object::{Attributes, ObjectInfo};
use crate::replication::confirmation::acknowledge;
use crate::store::Store;

/// The maximum total length of a bucket's rules in its needle, which compaction moves as one.
const RULES_BYTES_MAX: usize = 1 << 20;

impl Store {
    /// Returns a bucket's lifecycle, without rules if none was set. The first call for a bucket may
    /// read its needle; later calls use memory.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if the rules are, or may be, in a damaged place;
    /// [`Error::Invalid`] if a later version of the store wrote rules that this version does not
    /// know.
    pub fn lifecycle(&self, bucket: &str) -> Result<Lifecycle> {
        Ok(lifecycle_rules(&self.inner, bucket)?.stored.clone())
    }

    /// Returns the time at which an object with these attributes expires and the rule's ID, if a
    /// rule expires it. A day has 24 hours, also with another [`crate::Options::lifecycle_day`].
    /// Costs as much as [`Store::lifecycle`].
    ///
    /// # Errors
    /// Fails like [`Store::lifecycle`].
    pub fn expiration(
        &self,
        bucket: &str,
        info: &ObjectInfo,
        attributes: &Attributes,
    ) -> Result<Option<(SystemTime, String)>> {
        let rules = lifecycle_rules(&self.inner, bucket)?;
        let expiration = rules.stored.expiration(info, attributes);
        Ok(expiration.map(|(at, rule)| (at, rule.id.clone())))
    }

    /// Returns the time at which an upload that started at this time is aborted, and the rule's ID,
    /// if a rule aborts it. Costs as much as [`Store::lifecycle`].
    ///
    /// # Errors
    /// Fails like [`Store::lifecycle`].
    pub fn upload_expiration(
        &self,
        bucket: &str,
        key: &str,
        started: SystemTime,
    ) -> Result<Option<(SystemTime, String)>> {
        let rules = lifecycle_rules(&self.inner, bucket)?;
        let found = rules.stored.upload_expires_ms(key, millis(started));
        Ok(found.map(|(at, rule)| (UNIX_EPOCH + Duration::from_millis(at), rule.id.clone())))
    }

    /// Replaces a bucket's lifecycle. A lifecycle without rules removes it. The next check sweeps
    /// the bucket ([`crate::Options::lifecycle_check_every`]). When this returns, sweeps no longer
    /// apply the previous rules.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`crate::LIFECYCLE_RULES_MAX`] rules or 1 MiB, for two
    /// rules with the same ID, for a rule without an action, and for a rule that cannot apply to
    /// any object; [`Error::NoSuchBucket`], [`Error::Full`], [`Error::NotReplicated`];
    /// [`Error::Damaged`] while damage may hide newer rules.
    ///
    /// # Durability
    /// The new rules survive a power cut when this returns. A power cut before that leaves the
    /// previous or the new rules.
    pub fn set_lifecycle(&self, bucket: &str, lifecycle: &Lifecycle) -> Result<()> {
        lifecycle.check()?;
        let attributes = encode(lifecycle);
        let bytes = attributes.bytes();
        if bytes > RULES_BYTES_MAX {
            let what = format!(
                "lifecycle rules of {bytes} bytes exceed the limit of {RULES_BYTES_MAX} bytes"
            );
            return Err(Error::Invalid { what });
        }
        let set = || try_set_lifecycle(&self.inner, bucket, lifecycle, &attributes);
        acknowledge(&self.inner, self.inner.with_space(set))
    }

    /// Calls `visit` with every object, version and upload that [`Store::expire_now`] would delete
    /// now, and returns the report that it would return. Nothing is changed. `visit` may call the
    /// store, and cancels the search by returning `false`.
    ///
    /// # Errors
    /// Fails like [`Store::expire_now`].
    pub fn expirable(
        &self,
        bucket: &str,
        visit: &mut dyn FnMut(ExpiredEntry) -> bool,
    ) -> Result<SweepReport> {
        expirable(&self.inner, bucket, visit)
    }

    /// Deletes a bucket's expired objects and versions and aborts its stale uploads, as fast as the
    /// disk allows. Keeps versions that a lock protects, and objects that are replaced in the
    /// meantime. If the rules change in the meantime, the sweep restarts with the new ones.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchBucket`]; [`crate::Error::Damaged`] if the rules or the runs are
    /// damaged, or while damage may hide versions; [`crate::Error::Full`],
    /// [`crate::Error::Stalled`] and [`crate::Error::NotReplicated`] like [`Store::delete`].
    /// Deletions before the error remain in effect.
    ///
    /// # Durability
    /// The deletions that the report counts survive a power cut when this returns.
    pub fn expire_now(&self, bucket: &str) -> Result<SweepReport> {
        Ok(sweep(&self.inner, bucket, &Pace::Full)?.unwrap_or_default())
    }

    /// Returns the bucket in which a background sweep last failed, and the error message.
    #[must_use]
    pub fn last_lifecycle_error(&self) -> Option<String> {
        self.inner.maintenance.lifecycle.counters.last_error()
    }
}
