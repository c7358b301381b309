//! Looks at a directory without changing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, LOCK_NAME, OsDisk, error_chain};
use haul_file_store::is_root_name;

use crate::clearing::LOST_AND_FOUND;
use crate::opening::plan::Found;
use crate::pool_file::{self, Copies};

/// A directory, and what it contains.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    /// `None` if the directory does not exist, or cannot be opened.
    pub(crate) disk: Option<Arc<dyn Disk>>,
    pub(crate) found: Found,
    /// `true` for a member that was restored from its copy, and has the buckets of the copy.
    pub(crate) is_restored: bool,
}

/// Looks at a directory.
pub(crate) fn look(dir: &Path) -> Place {
    let dir = dir.to_path_buf();
    match dir.try_exists() {
        Ok(false) => return Place::without_disk(dir, Found::Absent),
        Ok(true) => {}
        Err(error) => return Place::without_disk(dir, Found::Unreadable(error.to_string())),
    }
    match OsDisk::open(&dir) {
        Ok(disk) => Place { dir, ..Place::on_disk(&(Arc::new(disk) as _)) },
        Err(error) => Place::without_disk(dir, Found::Unreadable(error_chain(&error))),
    }
}

impl Place {
    pub(crate) fn without_disk(dir: PathBuf, found: Found) -> Self {
        Self { dir, disk: None, found, is_restored: false }
    }

    /// Looks at the root of a disk.
    pub(crate) fn on_disk(disk: &Arc<dyn Disk>) -> Self {
        let dir = disk.root().to_path_buf();
        let (found, is_restored) = match (contents(&**disk), pool_file::is_marked(&**disk)) {
            (found, Ok(false)) => (found, false),
            (Found::Unreadable(why), _) => (Found::Unreadable(why), false),
            (found @ Found::Member(_), Ok(true)) => (found, true),
            (_, Ok(true)) => (Found::Refilling, false),
            (_, Err(error)) => (Found::Unreadable(error_chain(&error)), false),
        };
        Self { dir, disk: Some(Arc::clone(disk)), found, is_restored }
    }
}

fn contents(disk: &dyn Disk) -> Found {
    match pool_file::read(disk) {
        Ok(Copies::Intact(file)) => return Found::Member(file),
        Ok(Copies::Damaged(why)) => {
            let [first, second] = pool_file::NAMES;
            let why = format!("no copy of its table, {first} or {second}, is intact: {why}");
            return Found::Unreadable(why);
        }
        Ok(Copies::None) => {}
        Err(error) => return Found::Unreadable(error_chain(&error)),
    }
    let names = match disk.list("") {
        Ok(names) => names,
        Err(error) => return Found::Unreadable(error_chain(&error)),
    };
    let mut names =
        names.into_iter().filter(|name| ![LOCK_NAME, LOST_AND_FOUND].contains(&&**name));
    match names.next() {
        None => Found::Nothing,
        Some(first) if is_root_name(&first) || names.any(|name| is_root_name(&name)) => {
            Found::Store
        }
        Some(first) => Found::Foreign(first),
    }
}
