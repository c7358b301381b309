//! The big-object files in the directory that follows the copy.
//!
//! They are fetched early, so that a takeover is quick. The index determines which files are
//! needed; the remote store's list is only a hint.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use haul_disk::{Disk, Durability, Open, write_full};

use crate::error::Result;
use crate::follow::fetch::{Between, remove_unfinished};
use crate::manifest::names::{self, BIG_FILES};
use crate::remote::Remote;

/// The time between two comparisons with the remote store's list, which remove deleted objects'
/// files.
const LIST_EVERY: Duration = Duration::from_secs(600);

/// The big-object files that a standby fetches early.
#[derive(Debug, Default)]
pub(super) struct BigFiles {
    /// Referenced files that are not fetched yet.
    wanted: BTreeSet<String>,
    listed: Option<Instant>,
}

impl BigFiles {
    /// Fetches the files that records refer to, unless the directory has them. Returns the number
    /// of bytes fetched.
    ///
    /// # Durability
    /// The files are durable when this returns.
    pub(super) fn fetch(
        &mut self,
        remote: &Remote,
        disk: &dyn Disk,
        referenced: BTreeSet<String>,
        between: Between<'_>,
    ) -> Result<u64> {
        self.wanted.extend(referenced);
        if self.listed.is_none_or(|listed| listed.elapsed() >= LIST_EVERY) {
            self.compare(remote, disk)?;
        }
        let mut fetched = 0;
        while let Some(name) = self.wanted.first().cloned() {
            if !exists(disk, &name)? {
                // A file that does not exist was deleted, and no live record refers to it.
                fetched += fetch_file(remote, disk, &name, between)?.unwrap_or(0);
            }
            self.wanted.remove(&name);
        }
        Ok(fetched)
    }

    /// Adds to the wanted files the files in the remote store's list that the directory lacks, and
    /// removes all files that are not in the list.
    fn compare(&mut self, remote: &Remote, disk: &dyn Disk) -> Result<()> {
        let objects = remote.list(names::FILES)?.into_iter().filter(|name| names::is_file(name));
        let prefix = |name: String| name.strip_prefix(names::FILES).map(str::to_owned);
        let listed: HashSet<String> = objects.filter_map(prefix).collect();
        for name in disk.list(BIG_FILES)? {
            let name = format!("{BIG_FILES}/{name}");
            if !listed.contains(&name) {
                disk.remove(&name)?;
            }
        }
        self.wanted = listed.into_iter().collect();
        self.listed = Some(Instant::now());
        Ok(())
    }
}

pub(crate) fn exists(disk: &dyn Disk, name: &str) -> haul_disk::Result<bool> {
    match disk.open(name, Open { read_only: true, ..Open::default() }) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fetches a big object's file, unless it does not exist. Returns its length.
///
/// # Durability
/// The file is durable and complete if its name exists.
pub(crate) fn fetch_file(
    remote: &Remote,
    disk: &dyn Disk,
    name: &str,
    between: Between<'_>,
) -> Result<Option<u64>> {
    remove_unfinished(disk)?;
    let file = disk.create(names::UNFINISHED, Open::default())?;
    let mut write = |at: u64, bytes: &[u8]| {
        write_full(&*file, bytes, at)?;
        between()
    };
    let fetched = remote.get_pieces(&names::file(name), &mut write)?;
    if fetched.is_some() {
        file.sync(Durability::Everything)?;
        disk.rename(names::UNFINISHED, name)?;
        disk.sync_dir(BIG_FILES)?;
    } else {
        disk.remove(names::UNFINISHED)?;
    }
    Ok(fetched)
}
