//! The place from which the bytes of a file are sent.

use std::sync::Arc;

use super::description::{HotFile, Meta, OpenFile};
use super::tier::Tier;

/// A file to be sent.
#[derive(Debug, Clone)]
pub(crate) enum FileSource {
    /// The bytes are in memory, and were read from this tier.
    Memory(Arc<HotFile>, Tier),
    /// The bytes are read, or sent by the kernel.
    Open(Arc<OpenFile>),
}

impl FileSource {
    pub(crate) fn meta(&self) -> &Meta {
        match self {
            Self::Memory(file, _) => &file.meta,
            Self::Open(file) => &file.meta,
        }
    }

    /// `true` if the bytes that are sent are those of the description: those in memory are, those of
    /// an open file may have been replaced since.
    pub(crate) fn is_as_described(&self) -> bool {
        match self {
            Self::Memory(..) => true,
            Self::Open(file) => file.is_as_described(),
        }
    }
}
