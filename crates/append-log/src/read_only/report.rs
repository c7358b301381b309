//! Defines the report on opening a log read-only.

use crate::lsn::Lsn;
use crate::replay::Damage;

/// The result of opening a log read-only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOnlyReport {
    /// The number of data records delivered from segments that were read. Segments for which
    /// [`crate::Replay::is_known`] returned `true` are not read or counted.
    pub records: u64,
    /// The LSN at which the delivered records end. All records before it were delivered, except
    /// those in `damage`.
    pub end: Lsn,
    /// The number of bytes after `end` that do not form a valid record yet. Either another process
    /// is writing them, or [`crate::Log::open`] would truncate them.
    pub torn_bytes: u64,
    /// `true` if the last record is a close record: the log was closed, and nothing was appended
    /// since.
    pub closed: bool,
    /// `true` if another process removed a segment during the read, so that delivery stopped at
    /// `end`. Open the log again to read its current state.
    pub segment_removed: bool,
    /// The damage found. Always empty with [`crate::OnDamage::Refuse`], which makes opening fail
    /// instead.
    pub damage: Vec<Damage>,
    /// Damaged segment header pages that have a valid copy. They affect no record.
    pub header_damage: Vec<Damage>,
}
