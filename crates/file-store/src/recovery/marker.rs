//! The marker file, which identifies a directory as a store and has its version.

use haul_disk::{Disk, Durability, LOCK_NAME, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::{MARKER_TEXT, MARKER_TEXT_V1, MARKER_TEXT_V2, MARKER_TEXT_V4};
use crate::names;

/// A directory that a new file system contains.
const LOST_AND_FOUND: &str = "lost+found";

/// The kind of a directory, according to its marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Marker {
    /// Empty: it can become a store.
    Empty,
    /// A store of version 1, without a manifest.
    Version1,
    /// A store of version 2, with a manifest, whose needles all have the earlier layout.
    Version2,
    /// A store of version 3, without versions of objects.
    Current,
    /// A store of version 4, in which versioning was turned on.
    WithVersions,
}

impl Marker {
    /// Returns `true` if a store with this marker has a manifest, unless it was lost.
    pub(crate) fn has_manifest(self) -> bool {
        self >= Self::Version2
    }
}

/// Reads the marker.
///
/// # Errors
/// [`Error::NotAStore`] if the directory contains other files.
pub(crate) fn read(root: &dyn Disk) -> Result<Marker> {
    let refuse = |why: String| Err(Error::NotAStore { dir: root.root().to_path_buf(), why });
    match root.open(names::MARKER, Open { read_only: true, ..Open::default() }) {
        Ok(marker) => {
            let mut text = vec![0; 256];
            let read = read_full(&*marker, &mut text, 0)?;
            match &text[..read] {
                text if text == MARKER_TEXT_V4.as_bytes() => return Ok(Marker::WithVersions),
                text if text == MARKER_TEXT.as_bytes() => return Ok(Marker::Current),
                text if text == MARKER_TEXT_V2.as_bytes() => return Ok(Marker::Version2),
                text if text == MARKER_TEXT_V1.as_bytes() => return Ok(Marker::Version1),
                _ => {}
            }
            let first = String::from_utf8_lossy(&text[..read]);
            let first = first.lines().next().unwrap_or("nothing").to_owned();
            refuse(format!("its {} file contains \"{first}\"", names::MARKER))
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
    let is_foreign = |name: &&String| !ours.contains(&name.as_str()) && **name != unfinished;
    let mut foreign: Option<String> = names.iter().find(is_foreign).cloned();
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

/// Makes an empty directory a store of version 1. It becomes a store of the current version once
/// its manifest is written.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The directory is a store after a power cut when this returns.
pub(crate) fn make(root: &dyn Disk) -> Result<()> {
    root.create_dir(names::VOLUMES)?;
    root.create_dir(names::OBJECTS)?;
    let unfinished = names::unfinished(names::MARKER);
    match root.remove(&unfinished) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let marker = root.create(&unfinished, Open::default())?;
    write_full(&*marker, MARKER_TEXT_V1.as_bytes(), 0)?;
    marker.sync(Durability::Everything)?;
    // The directories must be durable before the marker.
    root.sync_dir("")?;
    root.rename(&unfinished, names::MARKER)?;
    root.sync_dir("")?;
    Ok(())
}

/// Changes the marker of a store of an earlier version to `marker`: the current version, or that of
/// a store with versions. Its manifest is durable, and nothing that earlier programs cannot read is
/// written yet.
///
/// The texts differ in one byte, which is overwritten in place: a crash leaves one or the other,
/// and a full disk has the space.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The new text survives a power cut when this returns.
pub(crate) fn upgrade(root: &dyn Disk, marker: Marker) -> Result<()> {
    let text = if marker == Marker::WithVersions { MARKER_TEXT_V4 } else { MARKER_TEXT };
    let file = root.open(names::MARKER, Open::default())?;
    write_full(&*file, text.as_bytes(), 0)?;
    Ok(file.sync(Durability::Data)?)
}
