//! A running server's key file, as changed by the console.

use std::fmt;

use crate::access::keys::key::KeyList;

/// A running server's key file. The caller that reads the file also writes it.
pub trait KeyFile: fmt::Debug + Send + Sync {
    /// Returns the reason why the server cannot change the file; `None` if it can.
    fn read_only_reason(&self) -> Option<String>;

    /// Applies `change` to the keys in the file, replaces the file, and then replaces the keys of
    /// the [`KeyRing`](crate::KeyRing). If `change` returns `false`, all of them remain. Blocks.
    ///
    /// # Errors
    /// The reason why the file could not be read or replaced.
    fn update(&self, change: &mut dyn FnMut(&mut KeyList) -> bool) -> Result<(), String>;
}
