//! The files of big objects that are in the remote store.

use std::collections::HashSet;

use crate::names;

/// The files of big objects in the remote store.
#[derive(Debug, Default)]
pub(super) struct StoredFiles {
    /// Those that this process has uploaded, or found complete.
    known: HashSet<String>,
    /// Those in the list of the remote store when this process claimed the copy.
    listed: HashSet<String>,
}

impl StoredFiles {
    /// `true` if this process has uploaded the file, or found it complete.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// Adds names from a list of objects.
    pub(super) fn extend_listed(&mut self, objects: Vec<String>) {
        let names = objects.into_iter().filter(|name| names::is_file(name));
        self.listed
            .extend(names.filter_map(|name| Some(name.strip_prefix(names::FILES)?.to_owned())));
    }

    /// Adds a file that this process has uploaded, or found complete.
    pub(super) fn insert(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let more = self.listed.difference(&self.known);
        self.known.iter().chain(more).map(String::as_str)
    }

    /// Removes deleted files.
    pub(super) fn remove(&mut self, names: &[String]) {
        for name in names {
            self.known.remove(name);
            self.listed.remove(name);
        }
    }
}
