//! Compaction moves a volume's live needles to the end of the log, and removes the volume.

pub(crate) mod compact;
pub(crate) mod mover;
mod requests;
pub(crate) mod thread;
pub(crate) mod volume_map;
