//! Defines the trait that receives records while a log is opened, and the recovery report.

use std::path::PathBuf;

use crate::lsn::Position;

/// Receives the records that opening a log delivers.
pub trait Replay {
    /// Returns `true` if the caller knows all records of this segment from another source, such as
    /// an index, so that the segment need not be read. Return `true` only for a segment that was
    /// sealed (complete) when its records were indexed, and whose nonce is unchanged. This method
    /// is called for all segments before the first record is delivered, so it must not apply any
    /// records.
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        let _ = segment;
        false
    }

    /// Applies the records of a segment for which [`Replay::is_known`] returned `true`. It is
    /// called after all earlier records of the log were delivered and before any later record.
    /// Returns `false` if the segment must be read after all.
    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        let _ = segment;
        true
    }

    /// Returns an offset in this segment before which all bytes are known, from another source, to
    /// have been durable; 0 if no such offset is known. Invalid bytes before this offset are
    /// reported as damage and never truncated as a torn tail. Without this knowledge, damage to the
    /// last batch before a crash is indistinguishable from an interrupted batch.
    fn durable_end(&mut self, segment: SegmentInfo) -> u32 {
        let _ = segment;
        0
    }

    /// Returns an offset in this segment at which a record begins or the records end, and before
    /// which the caller knows all records from another source; 0 if there is none. Bytes before
    /// this offset are neither read nor verified, and records before it are not delivered. Opening
    /// a log calls this for each segment that it reads, also if it opens the log read-only.
    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        let _ = segment;
        0
    }

    /// Returns `false` to stop reading the segment before its end. [`crate::Log::scan_direct`]
    /// calls this after each record; opening a log does not call it.
    fn wants_more(&self) -> bool {
        true
    }

    /// Receives a valid record. A segment's records are delivered in log order.
    fn record(&mut self, at: Position, payload: &[u8]);

    /// Receives a record whose header is valid and whose payload is damaged. The call that reads
    /// the segment also reports the damage. Use the payload only to describe the loss.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        let _ = (at, payload);
    }
}

impl<F: FnMut(Position, &[u8])> Replay for F {
    fn record(&mut self, at: Position, payload: &[u8]) {
        self(at, payload);
    }
}

/// A segment's identity and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The segment number.
    pub number: u32,
    /// A random number that changes each time the file is used for a segment again.
    pub nonce: u64,
    /// `true` if the records are read from this machine's storage, see
    /// [`haul_disk::File::is_local`].
    pub is_local: bool,
    /// The file length in bytes.
    pub bytes: u32,
}

/// A range of bytes that were durable and are no longer valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment's file.
    pub file: PathBuf,
    /// The first damaged byte's offset in the file.
    pub offset: u64,
    /// The offset after the last damaged byte; `u64::MAX` if it is unknown or the whole file is
    /// unusable.
    pub end: u64,
    /// The check that failed.
    pub what: String,
}

/// The result of recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The number of data records delivered from segments that were read. Segments known to the
    /// caller ([`Replay::is_known`]) are not read or counted.
    pub records: u64,
    /// The number of bytes truncated at the end of the log. They were written before a crash and
    /// never acknowledged.
    pub torn_bytes: u64,
    /// `true` if the log ends with a close record and no torn tail follows, or if the log is new.
    pub closed: bool,
    /// The damage found. Always empty with [`crate::OnDamage::Refuse`], which makes opening fail
    /// instead.
    pub damage: Vec<Damage>,
    /// Damaged segment header pages that have a valid copy. They affect no record, and do not make
    /// opening fail with [`crate::OnDamage::Refuse`].
    pub header_damage: Vec<Damage>,
}
