//! Deletes objects that no longer belong to the copy.
//!
//! Lists of objects are used only here: an object that a list lacks is deleted later, and an object
//! that the manifest or a local file proves to be in use is never deleted.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::manifest::names;
use crate::manifest::{Manifest, SegmentCopy};
use crate::ship::discarded::Discarded;
use crate::ship::round::Shipper;
use crate::source::Source;

/// The time between two searches for removed big-object files.
const SEARCH_EVERY: Duration = Duration::from_secs(600);

impl<S: Source> Shipper<S> {
    /// Adds all chunks, index files and kept manifests to the garbage, because earlier processes'
    /// interrupted uploads may have left some that no manifest refers to. [`Self::delete_garbage`]
    /// keeps the referenced ones. The caller owns the copy, so no other process uploads objects
    /// that will belong to it.
    pub(crate) fn find_leftovers(&mut self) -> Result<()> {
        let is_own = |name: &String| {
            names::is_chunk(name) || names::is_index_file(name) || names::is_history(name)
        };
        for folder in [names::LOG, names::INDEX, names::HISTORY] {
            let found = self.remote.list(folder)?.into_iter();
            self.garbage.extend(found.filter(is_own));
        }
        self.stored_files.extend_listed(self.remote.list(names::FILES)?);
        Ok(())
    }

    /// Returns the files in the remote store that no longer exist here, if a search is due. No
    /// manifest with a later log end than the present one refers to them, because a file is removed
    /// after the records that replaced its objects are durable.
    pub(super) fn removed_files(&mut self) -> Result<Vec<String>> {
        if self.files_searched.is_some_and(|searched| searched.elapsed() < SEARCH_EVERY) {
            return Ok(Vec::new());
        }
        let used: HashSet<String> = self.source.files().into_iter().collect();
        let mut removed = Vec::new();
        for name in self.stored_files.all().filter(|name| !used.contains(*name)) {
            // A record that was just shipped may not be applied to the index yet. Its file is
            // local.
            if self.source.open_file(name)?.is_none_or(|file| !file.is_local()) {
                removed.push(name.to_owned());
            }
        }
        if !removed.is_empty() {
            // Since the first list, a record may have been applied, and its local file dropped.
            let used: HashSet<String> = self.source.files().into_iter().collect();
            removed.retain(|name| !used.contains(name));
        }
        self.files_searched = Some(Instant::now());
        Ok(removed)
    }

    /// Deletes big-object files that [`Self::removed_files`] returned before the manifest was
    /// replaced.
    pub(super) fn delete_files(&mut self, removed: &[String]) {
        self.garbage.extend(removed.iter().map(|name| names::file(name)));
        self.stored_files.remove(removed);
    }

    /// Deletes objects that neither the stored manifest nor a kept state refers to. A failure only
    /// leaves them.
    ///
    /// A discarded object may be needed by each kept state before the present generation, and by
    /// these states' readers. It is deleted when none of these states is kept any more, and readers
    /// had time to notice later ones.
    pub(super) fn delete_garbage(&mut self) {
        let current = self.object.current();
        let generation = current.generation;
        let oldest = current.history.first().map(|entry| entry.generation);
        let delay = self.options.delete_after;
        let is_unneeded = |discarded: &Discarded| {
            let is_kept = oldest.is_some_and(|oldest| oldest < discarded.generation);
            names::is_history(&discarded.name) || !is_kept && discarded.since.elapsed() >= delay
        };
        if self.garbage.is_empty() && !self.retained.iter().any(is_unneeded) {
            return;
        }
        let used = referenced(&current);
        drop(current);
        // An upload that failed may have been repeated under the same name.
        let since = Instant::now();
        let discard = |name| Discarded { name, generation, since };
        self.retained.extend(self.garbage.drain(..).map(discard));
        self.retained.retain(|discarded| !used.contains(&discarded.name));
        let unneeded = self.retained.extract_if(.., |discarded| is_unneeded(discarded));
        let unneeded: Vec<_> = unneeded.collect();
        let names: Vec<_> = unneeded.iter().map(|discarded| discarded.name.clone()).collect();
        if self.remote.delete_all(&names).is_err() {
            self.retained.extend(unneeded);
        }
    }
}

/// Returns the names of the chunks, index files and kept manifests that a manifest refers to.
fn referenced(manifest: &Manifest) -> HashSet<String> {
    let in_segment = |segment: &SegmentCopy| -> Vec<String> {
        segment.chunks.iter().map(|chunk| names::chunk(segment, chunk)).collect()
    };
    let chunks = manifest.segments.iter().flat_map(in_segment);
    let index = manifest.index.iter().map(names::index_file);
    chunks.chain(index).chain(manifest.history.iter().map(names::history)).collect()
}
