//! Reads many records with few requests: a plan, and a queue of reads in flight.

pub(crate) mod plan;
pub(crate) mod queue;

use crate::lsn::{Lsn, Position};
use crate::record::Record;

/// A record that [`crate::Log::read_batch`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRequest {
    /// The LSN of the record.
    pub lsn: Lsn,
    /// The bytes of the payload to read. A longer record is returned as
    /// [`BatchRecord::Front`].
    pub payload_bytes: u32,
    /// The caller's identifier of the request, which is returned with the record.
    pub tag: u64,
}

/// A record that was read by [`crate::Log::read_batch`].
#[derive(Debug, Clone)]
pub enum BatchRecord {
    /// A record that was read whole, with its checksum verified.
    Whole(Record),
    /// A record that is longer than requested: only the checksum of its header was verified, as by
    /// [`crate::Log::read_front_hinted`].
    Front {
        /// The position and length of the record.
        at: Position,
        /// The first bytes of the payload, as many as requested.
        front: Vec<u8>,
    },
}
