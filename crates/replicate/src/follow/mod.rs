//! Brings a directory to a manifest's state, and fetches only what it lacks.
//!
//! A restoration does this once, a standby again for each manifest.

mod fetch;
mod files;
mod index;
mod segment;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haul_append_log::Lsn;
use haul_disk::{Disk, Subdir};
use haul_file_store::Store;

use crate::error::{Error, Result};
use crate::follow::fetch::{Between, replace_file};
use crate::follow::files::BigFiles;
use crate::follow::index::IndexFiles;
use crate::follow::segment::LocalSegment;
use crate::manifest::names::{BIG_FILES, INDEX_FILES, VOLUMES};
use crate::manifest::object::ManifestObject;
use crate::manifest::{LOG, Manifest, STORE};
use crate::remote::Remote;

pub(crate) use fetch::remove_unfinished;
pub(crate) use files::{exists, fetch_file};

/// A store's directories, except the volume directory.
const DIRECTORIES: [&str; 2] = [BIG_FILES, INDEX_FILES];

/// The file that makes a directory a store.
pub(crate) const MARKER: &str = "STORE";

/// A directory that is brought to a copy's state.
#[derive(Debug)]
pub(crate) struct Follower {
    remote: Remote,
    disk: Arc<dyn Disk>,
    segments: BTreeMap<u32, LocalSegment>,
    index: IndexFiles,
    /// The big-object files; `None` if they are fetched when the index is known.
    files: Option<BigFiles>,
    /// The generation and the log end in the manifest that the directory has.
    applied: (u64, Lsn),
    fetched_bytes: u64,
}

impl Follower {
    /// Returns a follower that continues the work of earlier processes in a disk's root. With
    /// `with_files`, it fetches big-object files when records refer to them.
    pub(crate) fn new(remote: &Remote, disk: &Arc<dyn Disk>, with_files: bool) -> Self {
        Self {
            remote: remote.clone(),
            disk: Arc::clone(disk),
            segments: BTreeMap::new(),
            index: IndexFiles::default(),
            files: with_files.then(BigFiles::default),
            applied: (0, Lsn::default()),
            fetched_bytes: 0,
        }
    }

    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes
    }

    /// Brings the directory to a manifest's state, except for the small files.
    ///
    /// 1. Verifies that the manifest continues what the directory has.
    /// 2. Removes segments that the manifest lacks, and fetches the chunks that the directory
    ///    lacks. After a crash, local bytes are compared with the chunks' checksums.
    /// 3. Fetches the index checkpoint and big-object files.
    ///
    /// # Errors
    /// [`Error::NotThisLog`] if the directory has another log or a newer one; [`Error::Damaged`]
    /// if an object is missing or differs: if the manifest was replaced meanwhile, the caller
    /// continues with the new one.
    ///
    /// # Durability
    /// Everything is durable when this returns.
    pub(crate) fn advance(&mut self, manifest: &Manifest, between: Between<'_>) -> Result<()> {
        self.verify_order(manifest)?;
        let dir = self.prepare(manifest)?;
        self.remove_segments(manifest, &*dir)?;
        let is_store = manifest.kind == STORE;
        let mut records = self.files.as_ref().filter(|_| is_store).map(|_| BTreeSet::new());
        let last = manifest.segments.len().saturating_sub(1);
        for (position, copy) in manifest.segments.iter().enumerate() {
            let tail = if position == last { &manifest.tail[..] } else { &[] };
            let local = self.segments.entry(copy.number).or_default();
            let mut each = |payload: &[u8]| match &mut records {
                Some(names) => {
                    names.extend(Store::record_files(payload)?);
                    Ok(())
                }
                None => Ok(()),
            };
            let advanced = local.advance(&self.remote, &*dir, (copy, tail), &mut each, between);
            self.fetched_bytes += local.take_fetched_bytes();
            advanced?;
        }
        dir.sync_dir("")?;
        self.applied = (manifest.generation, manifest.end());
        if is_store {
            self.fetched_bytes += self.index.advance(&self.remote, manifest, &*self.disk)?;
        }
        // Without records, listed files belong to an owner that was lost before its first round.
        if let (Some(files), Some(records)) = (&mut self.files, records)
            && !manifest.segments.is_empty()
        {
            self.fetched_bytes += files.fetch(&self.remote, &*self.disk, records, between)?;
        }
        Ok(())
    }

    /// Writes a manifest's small files, the store marker last. From here on the directory can be
    /// opened.
    ///
    /// # Durability
    /// The files are durable when this returns.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<()> {
        write_small_files(&*self.disk, manifest)
    }

    /// Verifies that a manifest is not older than what the directory has.
    fn verify_order(&self, manifest: &Manifest) -> Result<()> {
        let (generation, end) = self.applied;
        if manifest.generation >= generation && manifest.end() >= end {
            return Ok(());
        }
        let (found, found_end) = (manifest.generation, manifest.end());
        let what = format!(
            "generation {found} ends at {found_end}, before generation {generation}, which this \
             directory has, and which ends at {end}"
        );
        Err(Error::NotThisLog { what })
    }

    /// Creates the directories, and returns the segment directory.
    fn prepare(&self, manifest: &Manifest) -> Result<Arc<dyn Disk>> {
        let known = [(LOG, ""), (STORE, VOLUMES)];
        if !known.contains(&(&manifest.kind, &manifest.segment_dir)) {
            let Manifest { kind, segment_dir, .. } = manifest;
            let what = format!("it is of a {kind} in the directory \"{segment_dir}\"");
            return Err(Error::NotThisLog { what });
        }
        if manifest.segment_dir.is_empty() {
            return Ok(Arc::clone(&self.disk));
        }
        for dir in DIRECTORIES.into_iter().chain([&manifest.segment_dir[..]]) {
            self.disk.create_dir(dir)?;
        }
        self.disk.sync_dir("")?;
        Ok(Arc::new(Subdir::new(Arc::clone(&self.disk), &manifest.segment_dir)))
    }

    /// Removes the segments that a manifest lacks.
    fn remove_segments(&mut self, manifest: &Manifest, dir: &dyn Disk) -> Result<()> {
        let newest = manifest.segments.last().map_or(0, |segment| segment.number);
        for name in dir.list("")? {
            let Some(number) = segment_number(&name) else { continue };
            if number > newest {
                let what = format!("this directory has segment {number}, the copy ends before it");
                return Err(Error::NotThisLog { what });
            }
            if !manifest.segments.iter().any(|segment| segment.number == number) {
                self.segments.remove(&number);
                dir.remove(&name)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of the segment whose file has this name.
fn segment_number(name: &str) -> Option<u32> {
    name.split('.').next()?.parse().ok().filter(|_| haul_append_log::is_segment_name(name))
}

/// Writes a manifest's small files, the store marker last.
///
/// # Durability
/// The files are durable when this returns.
pub(crate) fn write_small_files(disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
    let (marker, others): (Vec<_>, Vec<_>) =
        manifest.small_files.iter().partition(|(name, _)| name == MARKER);
    for (name, content) in others.into_iter().chain(marker) {
        replace_file(disk, name, content)?;
        disk.sync_dir("")?;
    }
    Ok(())
}

/// Brings a directory to the copy's newest state, the manifest in `object`, or to a part of it. An
/// object that disappears because the manifest was replaced meanwhile is no error.
pub(crate) fn follow_once(
    follower: &mut Follower,
    object: &mut ManifestObject,
    part: impl Fn(&Manifest) -> Manifest,
) -> Result<()> {
    loop {
        match follower.advance(&part(object.current()), &mut || Ok(())) {
            Err(Error::Damaged { .. }) if object.reload()? => {}
            advanced => return advanced,
        }
    }
}
