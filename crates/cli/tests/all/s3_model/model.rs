//! A simple model of a bucket of S3 with versions and object lock. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The ID of the version that a bucket without enabled versioning stores.
pub(super) const NULL: &str = "null";

/// The state of versioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioning {
    Off,
    Enabled,
    Suspended,
}

/// The mode of a retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Governance,
    Compliance,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }
}

/// A retention that ends on a day of January 2099.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    pub(super) mode: Mode,
    pub(super) day: u64,
}

impl Retention {
    /// Returns the end as requests and responses have it.
    pub(super) fn until(self) -> String {
        format!("2099-01-{:02}T00:00:00.000Z", self.day)
    }
}

/// The lock of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) retention: Option<Retention>,
    /// `None` if the version never had a legal hold.
    pub(super) hold: Option<bool>,
}

impl Lock {
    /// Returns `true` if the version cannot be deleted.
    fn protects(self, bypass: bool) -> bool {
        let is_bypassed = |it: Retention| bypass && it.mode == Mode::Governance;
        self.hold == Some(true) || self.retention.is_some_and(|it| !is_bypassed(it))
    }

    /// Returns `true` if the retention can be replaced like this.
    pub(super) fn allows(self, new: Option<Retention>, bypass: bool) -> bool {
        let Some(old) = self.retention else { return true };
        (bypass && old.mode == Mode::Governance)
            || new.is_some_and(|new| new.mode == old.mode && new.day >= old.day)
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) etag: String,
    /// The value of `x-amz-meta-m`.
    pub(super) meta: String,
    /// The value of the only tag, whose key is `t`.
    pub(super) tag: Option<String>,
    pub(super) lock: Lock,
}

/// A version; without content, a delete marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) id: String,
    pub(super) content: Option<Content>,
}

/// The result of looking for an object or a version.
#[derive(Debug)]
pub(super) enum Found<'a> {
    Object(&'a str, &'a Content),
    /// A delete marker that was named by its ID.
    Marker(&'a str),
    /// No current object, and the ID of the delete marker that hides the older versions.
    NoKey(Option<&'a str>),
    NoVersion,
}

/// The outcome of deleting a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    Deleted { is_marker: bool },
    Missing,
    Locked,
}

/// A bucket.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) name: &'static str,
    pub(super) versioning: Versioning,
    pub(super) has_lock: bool,
    /// The versions of each key, from newest to oldest.
    pub(super) keys: BTreeMap<String, Vec<Version>>,
}

impl Bucket {
    /// Returns the versions of a key, from newest to oldest.
    pub(super) fn versions(&self, key: &str) -> &[Version] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the current object of a key.
    pub(super) fn current(&self, key: &str) -> Option<&Content> {
        self.versions(key).first()?.content.as_ref()
    }

    /// Finds the current object of a key, or the version with this ID.
    pub(super) fn find(&self, key: &str, id: Option<&str>) -> Found<'_> {
        let versions = self.versions(key);
        let Some(id) = id else {
            return match versions.first() {
                Some(Version { id, content: Some(content) }) => Found::Object(id, content),
                Some(Version { id, content: None }) => Found::NoKey(Some(id)),
                None => Found::NoKey(None),
            };
        };
        match versions.iter().find(|version| version.id == id) {
            Some(Version { id, content: Some(content) }) => Found::Object(id, content),
            Some(Version { id, content: None }) => Found::Marker(id),
            None => Found::NoVersion,
        }
    }

    /// Returns the content of a version that exists, to change it.
    pub(super) fn content_mut(&mut self, key: &str, id: Option<&str>) -> &mut Content {
        let versions = self.keys.get_mut(key).unwrap();
        let index = id.map_or(0, |id| versions.iter().position(|it| it.id == id).unwrap());
        versions[index].content.as_mut().unwrap()
    }

    /// Stores an object, or a delete marker if there is no content, with the ID that the server has
    /// given it.
    pub(super) fn add(&mut self, key: &str, id: &str, content: Option<Content>) {
        let is_null = self.versioning != Versioning::Enabled;
        assert_eq!(is_null, id == NULL, "the ID {id} in {:?}", self.versioning);
        let versions = self.keys.entry(key.to_owned()).or_default();
        assert!(is_null || versions.iter().all(|it| it.id != id), "the ID {id} is not new");
        // Only the version with the same ID is replaced.
        versions.retain(|it| it.id != id);
        versions.insert(0, Version { id: id.to_owned(), content });
    }

    /// Deletes the only version of a key in a bucket without versions.
    pub(super) fn remove(&mut self, key: &str) {
        assert_eq!(self.versioning, Versioning::Off);
        self.keys.remove(key);
    }

    /// Deletes a version, unless a lock protects it.
    pub(super) fn delete_version(&mut self, key: &str, id: &str, bypass: bool) -> Deletion {
        let Some(versions) = self.keys.get_mut(key) else { return Deletion::Missing };
        let Some(index) = versions.iter().position(|it| it.id == id) else {
            return Deletion::Missing;
        };
        let content = versions[index].content.as_ref();
        if content.is_some_and(|content| content.lock.protects(bypass)) {
            return Deletion::Locked;
        }
        let is_marker = content.is_none();
        versions.remove(index);
        self.keys.retain(|_, versions| !versions.is_empty());
        Deletion::Deleted { is_marker }
    }
}
