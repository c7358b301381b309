//! Defines which bytes of which objects are read.

use std::fmt;

/// The length of the objects and of the bytes that are read of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Case {
    pub(super) object_bytes: u64,
    pub(super) read_bytes: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object_bytes, read_bytes } = self;
        if self.is_whole() {
            write!(f, "objects of {object_bytes} bytes")
        } else {
            write!(f, "{read_bytes} of {object_bytes} bytes")
        }
    }
}

impl Case {
    /// Returns `true` if whole objects are read.
    pub(super) fn is_whole(self) -> bool {
        self.object_bytes == self.read_bytes
    }

    /// Returns the bucket of the objects.
    pub(super) fn bucket(self) -> String {
        format!("objects-{}", self.object_bytes)
    }

    /// Returns the number of objects in `data_bytes` bytes of objects.
    pub(super) fn objects(self, data_bytes: u64) -> u64 {
        (data_bytes / self.object_bytes).max(1)
    }
}
