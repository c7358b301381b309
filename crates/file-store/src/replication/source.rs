//! The log and the files that a store's copy needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use haul_append_log::{Log, Lsn};
use haul_disk::{Disk, File, Open};

use crate::error::{Error, Result};
use crate::format::MARKER_TEXT;
use crate::format::{FilePart, NeedleError, needles};
use crate::manifest::ManifestFile;
use crate::names;
use crate::replication::confirmation::confirm;
use crate::replication::interface::ReplicationStatus;
use crate::store::Store;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// The small files in a store's copy.
#[derive(Debug)]
pub struct MetadataFiles {
    /// Each file's name and content.
    pub files: Vec<(String, Vec<u8>)>,
    /// The log position before which no index checkpoint may be used.
    pub checkpoint_min: Lsn,
}

impl Store {
    /// Returns the copy's state; `None` if the store has no copy.
    #[must_use]
    pub fn replication_status(&self) -> Option<ReplicationStatus> {
        self.inner.options.replication.as_ref().map(|replication| replication.status())
    }

    /// Waits until the store's copy, if there is one, contains all changes that are durable now. A
    /// caller that finds the change of an earlier request, which may not have been confirmed, calls
    /// this before it acknowledges the repeated request.
    ///
    /// # Errors
    /// [`Error::NotReplicated`]; [`Error::Stopped`] after a failed sync.
    ///
    /// # Durability
    /// If the store waits for its copy, all changes survive the loss of this machine when this
    /// returns.
    pub fn confirm(&self) -> Result<()> {
        confirm(&self.inner)
    }

    /// Returns the store's log, whose segments are the volumes, to follow it with [`Log::reader`].
    /// It is for reading only: the store breaks if anything else appends to the log or truncates
    /// it.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.inner.volumes.log
    }

    /// Returns the names of the files to which a record's needles refer: files of big objects and
    /// parts. The names are relative to the store's directory. A file is complete and durable
    /// before the log has a record that refers to it. Several records may refer to the same file.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the payload does not consist of needles.
    pub fn record_files(payload: &[u8]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for needle in needles(payload) {
            let (head, _) = needle.map_err(invalid_needle)?;
            let name = |id| format!("{}/{}", names::OBJECTS, names::big_file(id));
            found.extend(head.files.iter().map(|file| name(file.id)));
        }
        Ok(found)
    }

    /// Opens a file for reading whose name [`Store::record_files`] or [`Store::checkpoint`]
    /// returned. `None` if it no longer exists, because the log has a later record or the store a
    /// later checkpoint that does not need it. An open file stays readable after its removal.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other name; a failed system call.
    pub fn open_file(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        let is_index_file =
            |name: &str| name == names::CATALOG || names::parse_index_file(name).is_some();
        match name.split_once('/') {
            Some((names::OBJECTS, name)) if names::parse_big_file(name).is_some() => {
                open(&*self.inner.objects.disk, name)
            }
            Some((names::INDEX, name)) if is_index_file(name) => {
                open(&*self.inner.keyspace.index_files.disk, name)
            }
            _ => {
                let what = format!("\"{name}\" is not a file of a big object or of the index");
                Err(Error::Invalid { what })
            }
        }
    }

    /// Returns the small files for a copy with these volumes: the marker and both copies of the
    /// manifest. The volumes have records and are given by number and nonce. A copy is a store if
    /// it has these files, the volumes, the files of big objects to which they refer, and the
    /// directories `volumes`, `objects` and `index`, even if these are empty.
    ///
    /// Call this after the volumes were determined: if they lack a volume of this store, because
    /// compaction has removed it, checkpoints with an earlier position are not used. The manifest
    /// also lists the volumes that this store has lost, so that the copy reports the damage, too.
    #[must_use]
    pub fn metadata_files(&self, volumes: &[(u32, u64)]) -> MetadataFiles {
        let inner = &self.inner;
        // Before the manifest: a volume is removed from the manifest first.
        let segments: BTreeSet<u32> =
            inner.volumes.log.segments().iter().map(|s| s.number).collect();
        let mut manifest =
            inner.volumes.manifest.as_ref().map(ManifestFile::current).unwrap_or_default();
        let is_lost = |number: &u32| {
            segments.last().is_some_and(|newest| number < newest) && !segments.contains(number)
        };
        manifest.volumes.retain(|number, _| is_lost(number));
        manifest.volumes.extend(volumes.iter().copied());
        let bytes = manifest.encode();
        let [first, second] = names::MANIFESTS.map(|name| (name.to_owned(), bytes.clone()));
        let marker = (names::MARKER.to_owned(), MARKER_TEXT.as_bytes().to_vec());
        let checkpoint_min = manifest.checkpoint_min;
        MetadataFiles { files: vec![marker, first, second], checkpoint_min }
    }

    /// Returns the names of all files of big objects and parts, relative to the store's directory.
    #[must_use]
    pub fn big_files(&self) -> Vec<String> {
        let index = self.inner.keyspace.index.read();
        let name = |part: FilePart| format!("{}/{}", names::OBJECTS, names::big_file(part.id));
        index.files.uses().map(|(part, _)| name(part)).collect()
    }
}

/// Opens a file for reading; `None` if it does not exist.
pub(super) fn open(disk: &dyn Disk, name: &str) -> Result<Option<Arc<dyn File>>> {
    match disk.open(name, READ) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn invalid_needle(why: NeedleError) -> Error {
    let why = match why {
        NeedleError::Malformed(why) => why,
        NeedleError::Needs(_) => "a needle is truncated",
    };
    Error::Invalid { what: format!("the record is not a record of a store: {why}") }
}
