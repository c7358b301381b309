//! Big objects in their own files: written with two alternating buffers, published by rename.

pub(crate) mod directory;
pub(crate) mod file;
pub(crate) mod pinned;
mod read_buffers;
pub(crate) mod writer_thread;
