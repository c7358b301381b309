//! What a store has under a key.

use std::collections::BTreeMap;

use haul_append_log::{Lsn, Position};

use crate::clock::Version;
use crate::error::Result;
use crate::index::entry::Entry;
use crate::index::uploads::in_key;
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::object::Versioning;
use crate::versions::retain::scan_versions_of;

/// A key in a bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyName<'a> {
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
}

/// The bucket and the key under which a needle is stored, which may be those of a version.
#[derive(Debug)]
pub(super) struct NeedleName {
    pub(super) bucket: String,
    pub(super) key: String,
}

/// Everything that a store has under a key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyState {
    /// The versions, from newest to oldest.
    pub(super) versions: Vec<HeldVersion>,
    /// The copy of the current object among the older versions, which a crash left.
    pub(super) copy: Option<VersionRow>,
    pub(super) uploads: BTreeMap<u128, HeldUpload>,
}

/// A version that a store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldVersion {
    /// The exact version.
    pub(super) name: VersionName,
    pub(super) entry: Entry,
    /// `true` for the current object, `false` for a version in the internal bucket.
    pub(super) is_current: bool,
}

/// An unfinished upload that a store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldUpload {
    pub(super) started: Version,
    pub(super) at: Option<Position>,
    pub(super) parts: BTreeMap<u16, Entry>,
}

impl HeldVersion {
    pub(super) fn is_delete_marker(&self) -> bool {
        self.entry.is_delete_marker()
    }

    /// Returns the name under which the needle is stored.
    pub(super) fn needle_name(&self, of: KeyName<'_>) -> NeedleName {
        let KeyName { bucket, key } = of;
        match self.is_current {
            true => NeedleName { bucket: bucket.to_owned(), key: key.to_owned() },
            false => self.version_name(of),
        }
    }

    /// Returns the name that the needle has as an older version or a delete marker.
    pub(super) fn version_name(&self, of: KeyName<'_>) -> NeedleName {
        let key = self.name.key_in_bucket(of.key);
        NeedleName { bucket: versions_bucket(of.bucket), key }
    }
}

impl KeyState {
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.uploads.is_empty()
    }

    /// Returns the position of the last needle in the log.
    pub(super) fn last_lsn(&self) -> Option<Lsn> {
        let versions = self.versions.iter().map(|version| version.entry.at.lsn);
        let upload = |upload: &HeldUpload| {
            let parts = upload.parts.values().map(|part| part.at.lsn);
            parts.chain(upload.at.map(|at| at.lsn)).max()
        };
        versions.chain(self.uploads.values().filter_map(upload)).max()
    }
}

/// Reads what a store has under a key. The caller has locked the key, so that nothing of it moves or
/// changes.
///
/// # Errors
/// [`crate::Error::Damaged`] while damage may hide anything under any key, if the current object
/// cannot be read, or if a run is damaged.
pub(super) fn read_state(inner: &Inner, name: KeyName<'_>) -> Result<KeyState> {
    let KeyName { bucket, key } = name;
    let mut state = KeyState::default();
    {
        let index = inner.keyspace.index.read();
        // A hidden needle would stay behind.
        if let Some(error) = index.any_possible_corruption() {
            return Err(error);
        }
        for (name, upload) in in_key(&index.uploads, bucket, key) {
            let (started, at) = (upload.started, upload.at);
            let parts = upload.parts.clone();
            state.uploads.insert(name.id, HeldUpload { started, at, parts });
        }
    }
    if let Some(entry) = inner.find_certain(bucket, key)? {
        let version = exact_version(inner, bucket, key, &entry)?;
        let name = VersionName { version, is_null: !entry.is_versioned };
        state.versions.push(HeldVersion { name, entry, is_current: true });
    }
    if inner.keyspace.versioning(bucket)? != Versioning::Off {
        scan_versions_of(inner, bucket, key, |row| {
            let current = state.versions.first().filter(|version| version.is_current);
            if current.is_some_and(|current| row.is_copy_of(&current.entry)) {
                state.copy = Some(row);
            } else {
                let VersionRow { name, entry } = row;
                state.versions.push(HeldVersion { name, entry, is_current: false });
            }
            true
        })?;
    }
    Ok(state)
}

/// Returns the exact version of a current object. The index may have rounded it.
fn exact_version(inner: &Inner, bucket: &str, key: &str, entry: &Entry) -> Result<Version> {
    if entry.is_versioned {
        return Ok(entry.version);
    }
    let read = inner.read_head_at(entry.at);
    let (head, _) = read.inspect_err(|error| inner.volumes.damage.note(bucket, key, error))?;
    Ok(head.version)
}
