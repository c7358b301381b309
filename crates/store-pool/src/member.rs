//! A member of a pool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_file_store::{Error, Result, Store};

/// A member of an open pool: a store, or the reason why it is missing.
#[derive(Debug)]
pub struct Member {
    pub(crate) number: u16,
    pub(crate) dir: PathBuf,
    /// The store, or the reason why it is missing.
    pub(crate) store: std::result::Result<Arc<Store>, String>,
}

impl Member {
    /// Returns the member's number, which no other member of the pool has.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the member's directory. That of a missing member is where it was last open.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns `true` if this is the member's directory, named from the root or from the current
    /// directory.
    #[must_use]
    pub fn is_at(&self, dir: &Path) -> bool {
        self.dir == dir || std::path::absolute(dir).is_ok_and(|dir| self.dir == dir)
    }

    /// Returns the member's store.
    ///
    /// # Errors
    /// [`Error::MemberMissing`].
    pub fn store(&self) -> Result<&Arc<Store>> {
        self.store.as_ref().map_err(|why| {
            let (dir, why) = (self.dir.clone(), why.clone());
            Error::MemberMissing { dir, why }
        })
    }

    /// Returns the reason why the member is missing; `None` if it is open.
    #[must_use]
    pub fn why_missing(&self) -> Option<&str> {
        self.store.as_ref().err().map(String::as_str)
    }
}
