//! What opening a log delivers and tells.

use std::path::PathBuf;

use crate::lsn::Position;
use crate::segments::Segment;

/// Takes what a log holds when it is opened.
pub trait Replay {
    /// Whether all records of this segment are known from elsewhere, so that it need not be
    /// read. Only say so of a segment that was sealed, recognised by its nonce. All segments are
    /// asked for before the first record comes: nothing is to be taken in yet.
    fn knows(&mut self, segment: SegmentInfo) -> bool {
        let _ = segment;
        false
    }

    /// It is the turn of a segment that is known: all records before it were delivered, none
    /// behind it. What is known of it is taken in now; with `false` it is read after all.
    fn take_known(&mut self, segment: SegmentInfo) -> bool {
        let _ = segment;
        true
    }

    /// A record, in the order of the log within each segment.
    fn record(&mut self, at: Position, payload: &[u8]);

    /// A record whose header checks out and whose payload does not: damage, told in
    /// [`Recovered`] as well. The payload may be good for saying what was lost, and for nothing
    /// else.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        let _ = (at, payload);
    }
}

impl<F: FnMut(Position, &[u8])> Replay for F {
    fn record(&mut self, at: Position, payload: &[u8]) {
        self(at, payload);
    }
}

/// A segment as its owner may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u32,
    /// The random number that tells this use of the file from any other.
    pub nonce: u64,
    /// The length of the file.
    pub bytes: u32,
}

impl SegmentInfo {
    pub(crate) fn of(segment: &Segment) -> Self {
        Self { number: segment.number, nonce: segment.salt.nonce, bytes: segment.bytes }
    }
}

/// Bytes that were on the medium and no longer check out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment's file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What does not fit.
    pub what: String,
}

/// What opening a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records delivered.
    pub records: u64,
    /// Bytes cut from the end: written by a process or a machine that died, never acknowledged.
    pub torn_bytes: u64,
    /// Whether the log was closed properly, or is new.
    pub closed: bool,
    /// Bytes that do not check out, if [`crate::OnDamage::Report`] lets the log open all the same.
    pub damage: Vec<Damage>,
}
