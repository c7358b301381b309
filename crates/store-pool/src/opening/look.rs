//! Looks at a directory without changing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, LOCK_NAME, OsDisk, error_chain};

use crate::opening::plan::Found;
use crate::pool_file::{self, Copies};

/// A directory that a new file system contains.
const LOST_AND_FOUND: &str = "lost+found";

/// A directory, and what it contains.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    /// `None` if the directory does not exist yet.
    pub(crate) disk: Option<Arc<dyn Disk>>,
    pub(crate) found: Found,
}

/// Looks at a directory.
pub(crate) fn look(dir: &Path) -> Place {
    let dir = dir.to_path_buf();
    match dir.try_exists() {
        Ok(false) => return Place { dir, disk: None, found: Found::Nothing },
        Ok(true) => {}
        Err(error) => {
            return Place { dir, disk: None, found: Found::Unreadable(error.to_string()) };
        }
    }
    match OsDisk::open(&dir) {
        Ok(disk) => {
            let disk: Arc<dyn Disk> = Arc::new(disk);
            Place { dir, found: contents(&*disk), disk: Some(disk) }
        }
        Err(error) => Place { dir, disk: None, found: Found::Unreadable(error_chain(&error)) },
    }
}

impl Place {
    /// Looks at the root of a disk.
    pub(crate) fn on_disk(disk: &Arc<dyn Disk>) -> Self {
        let (dir, found) = (disk.root().to_path_buf(), contents(&**disk));
        Self { dir, disk: Some(Arc::clone(disk)), found }
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
    match disk.list("") {
        Ok(names) if names.iter().all(|name| [LOCK_NAME, LOST_AND_FOUND].contains(&&**name)) => {
            Found::Nothing
        }
        Ok(_) => Found::Store,
        Err(error) => Found::Unreadable(error_chain(&error)),
    }
}
