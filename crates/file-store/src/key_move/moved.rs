//! The counts of a move.

/// What was moved under a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MovedKey {
    /// The number of objects, older versions and delete markers.
    pub objects: u64,
    /// The number of unfinished uploads.
    pub uploads: u64,
    /// The bytes of the objects, the older versions, and the parts of the uploads.
    pub bytes: u64,
}

impl MovedKey {
    pub(super) fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.uploads += other.uploads;
        self.bytes += other.bytes;
    }
}
