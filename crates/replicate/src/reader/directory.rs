//! A reader's directory and its subdirectories.

use haul_disk::{Disk, LOCK_NAME, Lock, Locked, this_process};

use crate::error::{Error, Result};
use crate::manifest::names::{BIG_FILES, INDEX_FILES, VOLUMES};
use crate::tier::disk::INCOMPLETE;
use crate::tier::lazy_cache::CACHE;

/// The directory that follows the copy.
pub(super) const FOLLOWED: &str = "followed";

/// The beginning of each state's name.
const STATE: &str = "state-";

/// The directories in a state, and in the directory that follows the copy.
const DIRECTORIES: [&str; 4] = [VOLUMES, BIG_FILES, INDEX_FILES, INCOMPLETE];

pub(super) fn lock(root: &dyn Disk) -> Result<Lock> {
    let dir = root.root().display();
    let lock = match root.lock("", &this_process())? {
        Locked::Acquired(lock) => lock,
        Locked::HeldBy(holder) => {
            let dir = root.root().to_path_buf();
            return Err(haul_file_store::Error::InUse { dir, holder }.into());
        }
    };
    let is_own = |name: &str| [LOCK_NAME, FOLLOWED, CACHE].contains(&name) || is_state(name);
    match root.list("")?.iter().find(|name| !is_own(name)) {
        None => Ok(lock),
        Some(other) => {
            let what =
                format!("{dir} is neither empty nor of a read-only server: it contains {other}");
            Err(Error::Invalid(what))
        }
    }
}

fn is_state(name: &str) -> bool {
    name.strip_prefix(STATE).is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Removes all states' files.
pub(super) fn remove_states(root: &dyn Disk) -> Result<()> {
    let names = root.list("")?;
    names.iter().filter(|name| is_state(name)).try_for_each(|name| clear(root, name))
}

/// Returns the name of a state that none of `in_use` has.
pub(super) fn unused_state(in_use: &[&str]) -> String {
    let mut names = (0..).map(|number: usize| format!("{STATE}{number}"));
    names.find(|name| !in_use.contains(&&name[..])).unwrap_or_default()
}

/// Creates a directory for a store and its directories, unless they exist.
pub(super) fn create(root: &dyn Disk, name: &str) -> Result<()> {
    root.create_dir(name)?;
    for dir in DIRECTORIES {
        root.create_dir(&format!("{name}/{dir}"))?;
    }
    Ok(())
}

/// Creates a directory like [`create`], and removes the files in it.
pub(super) fn clear(root: &dyn Disk, name: &str) -> Result<()> {
    let join = |name: &str, file: &str| match name {
        "" => file.to_owned(),
        _ => format!("{name}/{file}"),
    };
    if !name.is_empty() {
        create(root, name)?;
    }
    for dir in DIRECTORIES.map(|dir| join(name, dir)).iter().map(String::as_str).chain([name]) {
        for file in root.list(dir)? {
            if dir != name || !DIRECTORIES.contains(&&file[..]) {
                root.remove(&join(dir, &file))?;
            }
        }
    }
    Ok(())
}
