//! Finds everything below the path to import.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, DirEntryExt, WalkDir};

use super::plan::{Found, Kind};
use super::source::Source;
use crate::report::{chain, say};
use crate::store::mtime::Mtime;

/// What is there, and what could not be looked at, with the reason.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) found: Vec<Found>,
    pub(super) refused: Vec<(PathBuf, String)>,
}

/// Walks the source, except `store`: a store is not imported into itself.
pub(super) fn walk(source: &Source, store: &Path) -> Walked {
    let mut walked = Walked::default();
    if let Some(name) = source.single() {
        let status = fs::metadata(source.path().join(name));
        look(&mut walked, name.to_owned(), &status.map_err(|error| error.to_string()));
        return walked;
    }
    let store = fs::metadata(store).map(|status| (status.dev(), status.ino())).ok();
    let entries = WalkDir::new(source.path())
        .follow_links(source.follows())
        // Entries are looked at in the order their inodes lie on the disk.
        .sort_by_key(DirEntryExt::ino)
        .into_iter()
        .filter_entry(|entry| !is_store(entry, store));
    for entry in entries {
        match entry {
            // The path itself may be a link, which the user wants to be followed.
            Ok(entry) if entry.file_type().is_dir() || entry.depth() == 0 => {}
            Ok(entry) => {
                let status = entry.metadata().map_err(|error| reason(&error));
                look(&mut walked, name(source, entry.path()), &status);
            }
            Err(error) => {
                let name = name(source, error.path().unwrap_or(Path::new("")));
                walked.refused.push((name, reason(&error)));
            }
        }
    }
    walked
}

fn name(source: &Source, path: &Path) -> PathBuf {
    path.strip_prefix(source.path()).unwrap_or(path).to_owned()
}

fn is_store(entry: &DirEntry, store: Option<(u64, u64)>) -> bool {
    // The inode number alone costs nothing and rules out nearly everything.
    let is_it = entry.file_type().is_dir()
        && store.is_some_and(|(_, inode)| inode == entry.ino())
        && entry.metadata().is_ok_and(|status| Some((status.dev(), status.ino())) == store);
    if is_it {
        say(&format!("note: left out {}, the store itself", entry.path().display()));
    }
    is_it
}

fn look(walked: &mut Walked, name: PathBuf, status: &Result<fs::Metadata, String>) {
    let status = match status {
        Ok(status) => status,
        Err(why) => return walked.refused.push((name, why.clone())),
    };
    let kind = match status.file_type() {
        kind if kind.is_file() => Kind::Regular,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Special,
    };
    walked.found.push(Found {
        name,
        kind,
        bytes: status.len(),
        modified: Mtime::from(status),
        device: status.dev(),
        inode: status.ino(),
    });
}

/// The reason without the path, which stands in front of it.
fn reason(error: &walkdir::Error) -> String {
    match (error.io_error(), error.loop_ancestor()) {
        (Some(error), _) => chain(&error.to_string(), std::error::Error::source(error)),
        (None, Some(above)) => format!("the link leads back to {}", above.display()),
        (None, None) => error.to_string(),
    }
}
