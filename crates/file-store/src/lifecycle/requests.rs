//! The calls of the store about lifecycles.

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::lifecycle::expirable::Expirable;
use crate::lifecycle::format::encode;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::sweep::Pace;
use crate::object::ObjectInfo;
use crate::store::Store;

/// The maximum length of all rules of a bucket in its needle, which compaction moves as a whole.
const RULES_BYTES_MAX: usize = 1 << 20;

impl Store {
    /// Returns the lifecycle of a bucket; one without rules if none was set. The first call for a
    /// bucket may read its needle, later ones read memory.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if the rules are, or may be, in a damaged place;
    /// [`Error::Invalid`] if a later version of the store wrote rules unknown to this one.
    pub fn lifecycle(&self, bucket: &str) -> Result<Lifecycle> {
        Ok(self.inner.rules(bucket)?.lifecycle.clone())
    }

    /// Returns the time at which an object expires and the id of the rule, if there is one. Costs
    /// as [`Store::lifecycle`].
    ///
    /// # Errors
    /// As [`Store::lifecycle`].
    pub fn expiration(
        &self,
        bucket: &str,
        info: &ObjectInfo,
    ) -> Result<Option<(SystemTime, String)>> {
        let rules = self.inner.rules(bucket)?;
        let expiration = rules.lifecycle.expiration(info);
        Ok(expiration.map(|(at, rule)| (at, rule.id.clone())))
    }

    /// Replaces the lifecycle of a bucket; one without rules removes it. The next check sweeps the
    /// bucket ([`crate::Options::lifecycle_check_every`]). When this returns, no sweep applies the
    /// earlier rules any more.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`crate::LIFECYCLE_RULES_MAX`] rules or 1 MiB, two rules of
    /// one id, a rule without action, and a rule that can apply to no object;
    /// [`Error::NoSuchBucket`], [`Error::Full`]; [`Error::Damaged`] while damage may hide newer
    /// rules.
    ///
    /// # Durability
    /// It survives a power cut when this returns; before, either the earlier or the new rules do.
    pub fn set_lifecycle(&self, bucket: &str, lifecycle: &Lifecycle) -> Result<()> {
        lifecycle.check()?;
        let attributes = encode(lifecycle);
        let bytes = attributes.bytes();
        if bytes > RULES_BYTES_MAX {
            let what =
                format!("lifecycle rules of {bytes} bytes take more than {RULES_BYTES_MAX} bytes");
            return Err(Error::Invalid { what });
        }
        self.inner.with_space(|| self.inner.try_set_lifecycle(bucket, lifecycle, &attributes))
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

    /// Returns the message of the last sweep in the background that failed, with its bucket.
    #[must_use]
    pub fn last_lifecycle_error(&self) -> Option<String> {
        self.inner.lifecycle.counters.last_error()
    }
}
