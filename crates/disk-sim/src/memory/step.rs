//! Defines the steps that a disk in memory records: changes and syncs.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::memory::survival::Survival;

/// A change to a disk or a sync, recorded in order. Files are numbered in creation order.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Step {
    /// A directory was created.
    CreateDir { name: String },
    /// A file was created.
    Create { name: String, file: usize },
    /// A file was renamed.
    Rename { from: String, to: String, file: usize },
    /// A file was removed.
    Remove { name: String },
    /// A directory was synced.
    SyncDir { dir: String },
    /// Bytes were written.
    Write { file: usize, offset: u64, bytes: Bytes },
    /// Blocks were allocated for a file range.
    Reserve { file: usize, offset: u64, bytes: u64 },
    /// A file was resized.
    Resize { file: usize, bytes: u64 },
    /// A file was synced.
    Sync { file: usize },
    /// A file's sync failed: the unsynced data that `survival` selects is durable, the rest is
    /// lost.
    FailedSync { file: usize, survival: Survival },
    /// A bit flipped in a file on the medium.
    Rot { file: usize, offset: u64, bit: u8 },
    /// The test recorded a note; the disk did not change.
    Note(Note),
}

/// Shared bytes, whose `Debug` text contains their number instead of the bytes.
#[derive(Clone)]
pub struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

/// A value that a test inserts among the steps, such as an acknowledgement.
#[derive(Clone)]
pub struct Note(Arc<dyn Any + Send + Sync>);

impl Note {
    pub(crate) fn new(note: impl Any + Send + Sync) -> Self {
        Self(Arc::new(note))
    }

    /// Returns the value if it has the type `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The object to which a name refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    File(usize),
}

pub(crate) type Names = BTreeMap<String, Node>;

/// Returns a name's parent directory; "" is the root.
pub(crate) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Step {
    /// Returns the name that the step creates, changes or removes; for a rename, the new name.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::CreateDir { name } | Self::Create { name, .. } | Self::Remove { name } => {
                Some(name)
            }
            Self::Rename { to, .. } => Some(to),
            _ => None,
        }
    }

    /// Returns the file whose bytes or length the step changes.
    pub(crate) fn file(&self) -> Option<usize> {
        match self {
            Self::Write { file, .. } | Self::Reserve { file, .. } | Self::Resize { file, .. } => {
                Some(*file)
            }
            _ => None,
        }
    }

    /// Returns the end offset for a write or allocation; 0 for other steps.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::Write { offset, bytes, .. } => offset + bytes.0.len() as u64,
            Self::Reserve { offset, bytes, .. } => offset + bytes,
            _ => 0,
        }
    }

    /// Applies the step to the names, if it changes any.
    pub(crate) fn apply_to(&self, names: &mut Names) {
        match self {
            Self::CreateDir { name } => {
                names.insert(name.clone(), Node::Dir);
            }
            Self::Create { name, file } => {
                names.insert(name.clone(), Node::File(*file));
            }
            Self::Rename { from, to, file } => {
                if names.get(from) == Some(&Node::File(*file)) {
                    names.remove(from);
                }
                names.insert(to.clone(), Node::File(*file));
            }
            Self::Remove { name } => {
                names.remove(name);
            }
            _ => {}
        }
    }
}
