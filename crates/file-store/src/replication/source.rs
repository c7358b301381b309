//! The parts of a store that are copied.

use haul_append_log::Log;

use crate::store::Store;

impl Store {
    /// Returns the log of the store, whose segments are the volumes, to follow it with
    /// [`Log::reader`]. It is for reading only: the store breaks if anything else appends to the log
    /// or truncates it.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.inner.log
    }
}
