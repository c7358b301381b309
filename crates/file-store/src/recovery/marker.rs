//! The marker file, which identifies a directory as a store and has its version.

use std::sync::Arc;

use haul_disk::{Disk, Durability, LOCK_NAME, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::MARKER_TEXT;
use crate::manifest::format::Manifest;
use crate::manifest::{self, ManifestFile};
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
        Err(error) if error.is_not_found() => match foreign(root)? {
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
fn foreign(root: &dyn Disk) -> Result<Option<String>> {
    // Names that a crash before the creation of the marker leaves behind.
    let ours = [LOCK_NAME, names::VOLUMES, names::OBJECTS, LOST_AND_FOUND];
    let unfinished = names::unfinished(names::MARKER);
    let names = root.list("")?;
    let mut foreign = None;
    for name in names.iter().filter(|name| !ours.contains(&name.as_str()) && **name != unfinished) {
        if !names::MANIFESTS.contains(&name.as_str()) || !manifest::is_unfinished(root, name)? {
            foreign = Some(name.clone());
            break;
        }
    }
    // The names alone are not sufficient: another program's files may be in these directories.
    for dir in [names::VOLUMES, names::OBJECTS] {
        if foreign.is_none() && names.iter().any(|name| name == dir) {
            let mut inside = root.list(dir)?.into_iter();
            let first = inside.find(|name| name != LOST_AND_FOUND && name != LOCK_NAME);
            foreign = first.map(|name| format!("{dir}/{name}"));
        }
    }
    Ok(foreign)
}

/// Makes an empty directory a store with an empty manifest.
///
/// # Errors
/// A failed system call; [`Error::Full`] if there is no space for the manifest.
///
/// # Durability
/// The directory is a store after a power cut when this returns.
pub(crate) fn make(root: &Arc<dyn Disk>) -> Result<()> {
    root.create_dir(names::VOLUMES)?;
    root.create_dir(names::OBJECTS)?;
    // The manifest must be durable before the marker: a store without one has lost it.
    ManifestFile::open(root, Manifest { generation: 1, ..Manifest::default() }, true)?;
    let unfinished = names::unfinished(names::MARKER);
    match root.remove(&unfinished) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let marker = root.create(&unfinished, Open::default())?;
    write_full(&*marker, MARKER_TEXT.as_bytes(), 0)?;
    marker.sync(Durability::Everything)?;
    // The directories must be durable before the marker.
    root.sync_dir("")?;
    root.rename(&unfinished, names::MARKER)?;
    root.sync_dir("")?;
    Ok(())
}
