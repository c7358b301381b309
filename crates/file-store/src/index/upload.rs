//! An upload in the index. Pure.

use std::collections::BTreeMap;

use haul_append_log::Position;

use crate::clock::Version;
use crate::index::entry::Entry;

/// An upload that is neither completed nor aborted.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) started: Version,
    /// The position of its needle; `None` if that was lost to damage.
    pub(crate) at: Option<Position>,
    pub(crate) parts: BTreeMap<u16, Entry>,
}
