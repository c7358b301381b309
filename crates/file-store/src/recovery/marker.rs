//! The marker file, which identifies a directory as a store and contains the store's version.

use std::sync::Arc;

use haul_disk::{Disk, Durability, LOCK_NAME, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::MARKER_TEXT;
use crate::manifest::ManifestFile;
use crate::manifest::format::Manifest;
use crate::names;

/// A directory that a new file system contains.
const LOST_AND_FOUND: &str = "lost+found";

/// The kind of a directory, according to its marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    /// Empty: it can become a store.
    Empty,
    /// A store.
    Store,
}

/// Reads the marker.
///
/// # Errors
/// [`Error::NotAStore`] if the directory contains other files, or a store of another version.
pub(crate) fn read(root: &dyn Disk) -> Result<Marker> {
    let refuse = |why: String| Err(Error::NotAStore { dir: root.root().to_path_buf(), why });
    match root.open(names::MARKER, Open { read_only: true, ..Open::default() }) {
        Ok(marker) => {
            let mut text = vec![0; 256];
            let read = read_full(&*marker, &mut text, 0)?;
            if &text[..read] == MARKER_TEXT.as_bytes() {
                return Ok(Marker::Store);
            }
            let first = String::from_utf8_lossy(&text[..read]);
            let first = first.lines().next().unwrap_or("nothing").to_owned();
            let expected = MARKER_TEXT.trim_end();
            refuse(format!("its {} file contains \"{first}\", not \"{expected}\"", names::MARKER))
        }
        Err(error) if error.is_not_found() => match find_foreign_name(root)? {
            None => Ok(Marker::Empty),
            Some(name) => {
                refuse(format!("it is not empty (it contains {name}) and is not a store"))
            }
        },
        Err(other) => Err(other.into()),
    }
}

/// Returns a name in a directory without a marker that belongs neither to a store nor to a new file
/// system.
fn find_foreign_name(root: &dyn Disk) -> Result<Option<String>> {
    const DIRS: [&str; 3] = [names::VOLUMES, names::OBJECTS, names::INDEX];
    let unfinished = names::unfinished(names::MARKER);
    let names = root.list("")?;
    // Names that a crash leaves behind before the marker has its name. An interrupted snapshot has
    // a manifest, too, but no unfinished marker before its volumes are durable.
    let is_being_made = names.contains(&unfinished);
    let is_ours = |name: &str| {
        [LOCK_NAME, LOST_AND_FOUND].contains(&name)
            || DIRS.contains(&name)
            || name == unfinished
            || is_being_made && names::MANIFESTS.contains(&name)
    };
    if let Some(name) = names.iter().find(|name| !is_ours(name)) {
        return Ok(Some(name.clone()));
    }
    // The names alone are not sufficient: another program's files may be in these directories.
    for dir in DIRS.into_iter().filter(|dir| names.iter().any(|name| name == dir)) {
        let mut inside = root.list(dir)?.into_iter();
        let first = inside.find(|name| name != LOST_AND_FOUND && name != LOCK_NAME);
        if let Some(name) = first {
            return Ok(Some(format!("{dir}/{name}")));
        }
    }
    Ok(None)
}

/// Makes an empty directory a store with an empty manifest.
///
/// 1. Creates the directories, and the marker under a temporary name. Without it, a manifest
///    belongs to another program or to an interrupted snapshot.
/// 2. Writes the manifest. It must be durable before the marker has its name: a store without a
///    manifest has lost it.
/// 3. Renames the marker. From here on the directory is a store.
///
/// # Errors
/// A failed system call; [`Error::Full`] if there is no space for the manifest.
///
/// # Durability
/// The directory is a store after a power cut when this returns.
pub(crate) fn make(root: &Arc<dyn Disk>) -> Result<()> {
    root.create_dir(names::VOLUMES)?;
    root.create_dir(names::OBJECTS)?;
    root.create_dir(names::INDEX)?;
    let unfinished = names::unfinished(names::MARKER);
    // A file that a crash left behind is not removed: it belongs to the manifest beside it.
    let marker = match root.open(&unfinished, Open::default()) {
        Err(error) if error.is_not_found() => root.create(&unfinished, Open::default())?,
        opened => opened?,
    };
    write_full(&*marker, MARKER_TEXT.as_bytes(), 0)?;
    marker.resize(MARKER_TEXT.len() as u64)?;
    marker.sync(Durability::Everything)?;
    root.sync_dir("")?;
    ManifestFile::open(root, Manifest { generation: 1, ..Manifest::default() }, true)?;
    root.rename(&unfinished, names::MARKER)?;
    root.sync_dir("")?;
    Ok(())
}
