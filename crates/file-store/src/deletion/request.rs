//! Deletion requests.

use crate::error::{Error, Result};
use crate::event::Event;
use crate::object::{ObjectInfo, VersionId};

/// A request to delete a key's object, or a version of it.
#[derive(Clone, Copy)]
pub struct Deletion<'a> {
    /// The key.
    pub key: &'a str,
    /// The version to delete; `None` for the current object, which a bucket with versions retains.
    pub version: Option<VersionId>,
    /// Returns `false` for an object or version that must not be deleted. It is called while the
    /// key is locked, so it must not call the store.
    pub condition: Option<&'a (dyn Fn(&ObjectInfo) -> bool + Sync)>,
    /// `true` to delete a version although it is retained in governance mode.
    pub bypass_governance: bool,
    /// The event that the deletion queues, if it changes anything.
    pub event: Option<&'a Event>,
}

impl<'a> Deletion<'a> {
    /// Creates a request to delete the current object without a condition.
    #[must_use]
    pub fn of(key: &'a str) -> Self {
        Self { key, version: None, condition: None, bypass_governance: false, event: None }
    }

    /// Fails if the condition does not hold.
    pub(super) fn check(&self, object: impl FnOnce() -> ObjectInfo) -> Result<()> {
        match self.condition {
            Some(condition) if !condition(&object()) => Err(Error::PreconditionFailed),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Deletion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_conditional = self.condition.is_some();
        f.debug_struct("Deletion")
            .field("key", &self.key)
            .field("version", &self.version)
            .field("is_conditional", &is_conditional)
            .field("bypass_governance", &self.bypass_governance)
            .field("event", &self.event)
            .finish()
    }
}
