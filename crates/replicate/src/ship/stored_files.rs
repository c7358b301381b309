//! The big-object files in the remote store.

use std::collections::HashSet;

use crate::manifest::names;

#[derive(Debug, Default)]
pub(super) struct StoredFiles {
    /// The files that this process has uploaded, or found complete.
    known: HashSet<String>,
    /// The files that the remote store listed when this process claimed the copy.
    listed: HashSet<String>,
}

impl StoredFiles {
    /// `true` if this process has uploaded the file, or found it complete.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// Adds names from an object list.
    pub(super) fn extend_listed(&mut self, objects: Vec<String>) {
        let names = objects.into_iter().filter(|name| names::is_file(name));
        self.listed
            .extend(names.filter_map(|name| Some(name.strip_prefix(names::FILES)?.to_owned())));
    }

    /// Adds a file that this process has uploaded, or found complete.
    pub(super) fn insert(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// Returns all known and listed files.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let more = self.listed.difference(&self.known);
        self.known.iter().chain(more).map(String::as_str)
    }

    pub(super) fn remove(&mut self, names: &[String]) {
        for name in names {
            self.known.remove(name);
            self.listed.remove(name);
        }
    }
}
