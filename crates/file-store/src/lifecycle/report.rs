//! The counts of a sweep.

/// The counts of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// ListEntry keys: only those with a prefix of a rule that expires objects.
    pub scanned_keys: u64,
    /// Deleted objects.
    pub expired_objects: u64,
    /// Bytes of these objects.
    pub expired_bytes: u64,
    /// Aborted uploads.
    pub aborted_uploads: u64,
    /// Objects and uploads that were kept because their newest state may be in a damaged place.
    pub skipped: u64,
}

impl SweepReport {
    /// Adds the counts of one step.
    pub(super) fn add(&mut self, step: &Self) {
        self.scanned_keys += step.scanned_keys;
        self.expired_objects += step.expired_objects;
        self.expired_bytes += step.expired_bytes;
        self.aborted_uploads += step.aborted_uploads;
        self.skipped += step.skipped;
    }
}
