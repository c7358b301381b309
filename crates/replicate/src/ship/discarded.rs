//! Objects that no longer belong to the copy, and are not deleted yet.

use std::time::Instant;

/// An object that no longer belongs to the copy.
#[derive(Debug)]
pub(super) struct Discarded {
    pub(super) name: String,
    /// The manifest generation when the object was discarded. This manifest does not refer to it;
    /// earlier ones may.
    pub(super) generation: u64,
    pub(super) since: Instant,
}
