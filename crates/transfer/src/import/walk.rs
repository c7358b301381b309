//! Walks the directory to import, and collects its entries.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, DirEntryExt, WalkDir};

use super::plan::{Entry, Kind};
use super::source::Source;
use crate::mtime::Mtime;

/// The result of a walk: the entries found, and the entries that could not be read, each with the
/// reason.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) entries: Vec<Entry>,
    pub(super) refused: Vec<(PathBuf, String)>,
    /// The directories skipped because they are the store itself.
    pub(super) stores: Vec<PathBuf>,
}

/// Walks the source. Skips the directories of the store, which must not be imported into itself.
pub(super) fn walk(source: &Source, store: &[PathBuf]) -> Walked {
    let mut walked = Walked::default();
    if let Some(name) = source.single() {
        let status = fs::metadata(source.path().join(name));
        add(&mut walked, name.to_owned(), &status.map_err(|error| error.to_string()));
        return walked;
    }
    let identity = |dir: &PathBuf| fs::metadata(dir).map(|status| (status.dev(), status.ino()));
    let store: Vec<(u64, u64)> = store.iter().filter_map(|dir| identity(dir).ok()).collect();
    let mut stores = Vec::new();
    let entries = WalkDir::new(source.path())
        .follow_links(source.follows())
        // The metadata is read in inode order to avoid seeks.
        .sort_by_key(DirEntryExt::ino)
        .into_iter()
        .filter_entry(|entry| {
            let is_it = is_store(entry, &store);
            if is_it {
                stores.push(entry.path().to_owned());
            }
            !is_it
        });
    for entry in entries {
        match entry {
            // The directory to import, at depth 0, is not an entry of itself. It may be a symbolic
            // link to a directory, so its type does not identify it.
            Ok(entry) if entry.file_type().is_dir() || entry.depth() == 0 => {}
            Ok(entry) => {
                let status = entry.metadata().map_err(|error| reason(&error));
                add(&mut walked, name(source, entry.path()), &status);
            }
            Err(error) => {
                let name = name(source, error.path().unwrap_or(Path::new("")));
                walked.refused.push((name, reason(&error)));
            }
        }
    }
    walked.stores = stores;
    walked
}

fn name(source: &Source, path: &Path) -> PathBuf {
    path.strip_prefix(source.path()).unwrap_or(path).to_owned()
}

fn is_store(entry: &DirEntry, store: &[(u64, u64)]) -> bool {
    // The inode number is known without a system call and rules out nearly all directories.
    entry.file_type().is_dir()
        && store.iter().any(|(_, inode)| *inode == entry.ino())
        && entry.metadata().is_ok_and(|status| store.contains(&(status.dev(), status.ino())))
}

fn add(walked: &mut Walked, name: PathBuf, status: &Result<fs::Metadata, String>) {
    let status = match status {
        Ok(status) => status,
        Err(reason) => return walked.refused.push((name, reason.clone())),
    };
    let kind = match status.file_type() {
        kind if kind.is_file() => Kind::Regular,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Special,
    };
    walked.entries.push(Entry {
        name,
        kind,
        bytes: status.len(),
        modified: Mtime::from(status),
        device: status.dev(),
        inode: status.ino(),
    });
}

/// Formats the reason without the path, because [`Walked::refused`] has the path beside the reason.
fn reason(error: &walkdir::Error) -> String {
    match (error.io_error(), error.loop_ancestor()) {
        (Some(error), _) => haul_disk::error_chain(error),
        (None, Some(above)) => format!("symbolic link loop to {}", above.display()),
        (None, None) => error.to_string(),
    }
}
