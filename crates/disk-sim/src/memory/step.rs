//! What can be done to a disk, one step at a time.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::memory::Survival;

/// Something done to a disk. Files are numbered in the order of their creation.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Step {
    /// A directory was made.
    CreateDir { name: String },
    /// A file was made.
    Create { name: String, file: usize },
    /// A file got another name.
    Rename { from: String, to: String, file: usize },
    /// A name was removed.
    Remove { name: String },
    /// The names in a directory were synced.
    SyncDir { dir: String },
    /// Bytes were written.
    Write { file: usize, offset: u64, bytes: Bytes },
    /// Blocks were set aside.
    Reserve { file: usize, offset: u64, bytes: u64 },
    /// The length was changed.
    Resize { file: usize, bytes: u64 },
    /// A file was synced.
    Sync { file: usize },
    /// The sync of a file failed: this much of what was unsynced is on the medium, the rest never
    /// will be.
    FailedSync { file: usize, survival: Survival },
    /// A bit changed on the medium.
    Rot { file: usize, offset: u64, bit: u8 },
    /// Nothing was done: the test was told something.
    Note(Note),
}

/// Bytes that many disks share, and that do not fill the page of whoever prints a step.
#[derive(Clone)]
pub struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

/// Something a test wants to know again when it looks at the steps, such as what was acknowledged.
#[derive(Clone)]
pub struct Note(Arc<dyn Any + Send + Sync>);

impl Note {
    pub(crate) fn new(note: impl Any + Send + Sync) -> Self {
        Self(Arc::new(note))
    }

    /// What was noted, if it is of this type.
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

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    File(usize),
}

pub(crate) type Names = BTreeMap<String, Node>;

/// The directory a name is in.
pub(crate) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Step {
    /// The name it makes, changes or removes.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::CreateDir { name } | Self::Create { name, .. } | Self::Remove { name } => {
                Some(name)
            }
            Self::Rename { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The file whose bytes or length it changes.
    pub(crate) fn file(&self) -> Option<usize> {
        match self {
            Self::Write { file, .. } | Self::Reserve { file, .. } | Self::Resize { file, .. } => {
                Some(*file)
            }
            _ => None,
        }
    }

    /// Does it to names.
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
