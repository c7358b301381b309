//! Restores a copy into an empty directory.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_append_log::Lsn;
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::follow::{Follower, follow_once};
use crate::manifest::names;
use crate::manifest::object::ManifestObject;
use crate::manifest::{HistoryEntry, LOG, Manifest, decode};
use crate::remote::Remote;
use crate::session::Sessions;

/// The result of a restoration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The end of the log.
    pub end: Lsn,
    /// The time at which the manifest was written, in milliseconds since 1970, by its writer's
    /// clock.
    pub written_ms: u64,
    /// The number of segments.
    pub segments: u64,
    /// The number of bytes fetched.
    pub fetched_bytes: u64,
}

impl Restored {
    pub(crate) fn of(manifest: &Manifest, fetched_bytes: u64) -> Self {
        Self {
            end: manifest.end(),
            written_ms: manifest.written_ms,
            segments: manifest.segments.len() as u64,
            fetched_bytes,
        }
    }
}

/// Restores a log into a disk's root, which must be empty.
///
/// # Errors
/// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy holds a file store, [`Error::Invalid`] if
/// the directory is not empty, [`Error::Damaged`], [`Error::Remote`], [`Error::Disk`]. An
/// incomplete directory remains: remove it.
///
/// # Durability
/// The log survives a power cut when this returns.
pub fn restore_log(remote: &Remote, disk: &Arc<dyn Disk>) -> Result<Restored> {
    let mut object = load(remote, LOG)?;
    verify_empty(&**disk)?;
    let mut follower = Follower::new(remote, disk, false);
    follow_once(&mut follower, &mut object, Manifest::clone)?;
    let manifest = object.current();
    // Last, so that an incomplete directory cannot claim the copy.
    Sessions::restored(manifest.session, manifest.end()).store(&**disk)?;
    Ok(Restored::of(manifest, follower.fetched_bytes()))
}

/// Restores a log like [`restore_log`], in the newest state at or before `at`. The directory cannot
/// continue the copy, which is newer.
///
/// # Errors
/// Fails like [`restore_log`], and with [`Error::NotKept`].
///
/// # Durability
/// Like [`restore_log`].
pub fn restore_log_at(remote: &Remote, disk: &Arc<dyn Disk>, at: SystemTime) -> Result<Restored> {
    let object = load(remote, LOG)?;
    verify_empty(&**disk)?;
    let manifest = state_at(remote, object.current(), at)?;
    let mut follower = Follower::new(remote, disk, false);
    follower.advance(&manifest, &mut || Ok(()))?;
    Ok(Restored::of(&manifest, follower.fetched_bytes()))
}

/// Returns the copy's newest state at or before a time.
pub(crate) fn state_at(remote: &Remote, newest: &Manifest, at: SystemTime) -> Result<Manifest> {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    if newest.written_ms <= at_ms {
        return Ok(newest.clone());
    }
    let Some(entry) = newest.history_at(at_ms) else {
        let times = newest.history.iter().map(|entry| entry.written_ms);
        return Err(Error::NotKept { oldest_ms: times.min().unwrap_or(newest.written_ms) });
    };
    let name = names::history(&entry);
    let damaged = |what: &str| Error::Damaged { name: remote.full_name(&name), what: what.into() };
    let (bytes, _) = remote.get(&name)?.ok_or_else(|| damaged("it does not exist"))?;
    let manifest = decode(&bytes).map_err(|what| damaged(&what))?;
    match HistoryEntry::of(&manifest) == entry {
        true => Ok(manifest),
        false => Err(damaged("it is another manifest than the one that is listed")),
    }
}

/// Loads the manifest of a copy that has this kind.
pub(crate) fn load(remote: &Remote, kind: &str) -> Result<ManifestObject> {
    let no_copy = || Error::NoCopy { name: remote.full_name(names::MANIFEST) };
    let object = ManifestObject::load(remote)?.ok_or_else(no_copy)?;
    let found = &object.current().kind;
    if found == kind {
        return Ok(object);
    }
    Err(Error::NotThisLog { what: format!("it is of a {found}") })
}

/// Rejects a directory with files.
pub(crate) fn verify_empty(disk: &dyn Disk) -> Result<()> {
    match disk.list("")?.first() {
        None => Ok(()),
        Some(name) => {
            let dir = disk.root().display();
            Err(Error::Invalid(format!("{dir} is not empty: it contains {name}")))
        }
    }
}
