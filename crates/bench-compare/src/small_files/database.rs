//! Defines the interface of a database that stores objects.

use haul_bench::log::Failure;

/// An object to store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) key: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// A database that stores objects.
pub(crate) trait Database: Send + Sync + 'static {
    /// Stores `objects` in one transaction. `writer` is the number of the calling thread.
    ///
    /// # Durability
    /// When this returns, the objects survive a power cut.
    fn store(&self, writer: usize, objects: &[Object<'_>]) -> Result<(), Failure>;

    /// Brings the database to its steady state. Called once, before any object is stored.
    fn warm_up(&self) -> Result<(), Failure> {
        Ok(())
    }
}
