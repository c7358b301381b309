//! Objects that do not belong to the copy any more, and are not deleted yet.

use std::time::Instant;

/// An object that does not belong to the copy any more.
#[derive(Debug)]
pub(super) struct Discarded {
    pub(super) name: String,
    /// The manifest generation when the object was discarded, which does not refer to it. Earlier
    /// generations may.
    pub(super) generation: u64,
    pub(super) since: Instant,
}
