//! Compaction: the live needles of a volume move to the end of the log, and the volume is removed.

pub(crate) mod compact;
pub(crate) mod mover;
mod requests;
pub(crate) mod space;
pub(crate) mod thread;
pub(crate) mod volume_map;
