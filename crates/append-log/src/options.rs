//! The choices a log leaves to its owner.

use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, record_bytes};
use crate::segments::BYTES_MAX;
use crate::ways::SyncMethod;

/// What opening does about bytes that were on the medium and no longer check out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Refuses to open, naming file and offset.
    #[default]
    Refuse,
    /// Opens, delivers every record that checks out, and tells the damage in
    /// [`crate::Recovered`]: for owners that can live with holes and report them.
    Report,
}

/// How a log behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: what to do about damage.
    pub on_damage: OnDamage,
    /// Behaviour: how many bytes of [`crate::Room::Reserve`] records a full disk still takes: a
    /// short segment is kept for them. 0 keeps none; 8 MiB.
    pub reserve_bytes: u32,
    /// Performance: how many removed segments are kept to be used again. 2.
    pub spare_segments_max: u32,
    /// Performance: the length of a segment file. 1 MiB to 2 GiB; 128 MiB. Larger ones rotate
    /// less often and make recovery read more. On a disk that is nearly full they are made
    /// shorter.
    pub segment_bytes: u32,
    /// Performance: the length of each of the two buffers records are gathered in, which also
    /// bounds the bytes in flight and the longest record. 64 KiB to 256 MiB; 8 MiB.
    pub buffer_bytes: u32,
    /// Performance: how batches come to the medium; `None` tries what there is for some
    /// milliseconds when the log is opened, and takes the fastest.
    pub sync_method: Option<SyncMethod>,
    /// Performance: how many threads read segments when the log is opened, each with up to
    /// 40 MiB of memory. 1 to 64; 2.
    pub recovery_threads: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_damage: OnDamage::default(),
            reserve_bytes: 8 << 20,
            spare_segments_max: 2,
            segment_bytes: 128 << 20,
            buffer_bytes: 8 << 20,
            sync_method: None,
            recovery_threads: 2,
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        if !(1 << 20..=BYTES_MAX).contains(&self.segment_bytes) {
            return Err(Error::Invalid("segment_bytes must lie between 1 MiB and 2 GiB"));
        }
        if !(64 << 10..=256 << 20).contains(&self.buffer_bytes) {
            return Err(Error::Invalid("buffer_bytes must lie between 64 KiB and 256 MiB"));
        }
        let whole_pages = |bytes: u32| bytes.is_multiple_of(HEADER_BYTES);
        if !whole_pages(self.segment_bytes) || !whole_pages(self.buffer_bytes) {
            return Err(Error::Invalid(
                "segment_bytes and buffer_bytes must be multiples of 4 KiB",
            ));
        }
        if self.reserve_bytes > self.segment_bytes / 4 {
            return Err(Error::Invalid("reserve_bytes must be at most a quarter of a segment"));
        }
        if !(1..=64).contains(&self.recovery_threads) {
            return Err(Error::Invalid("recovery_threads must lie between 1 and 64"));
        }
        Ok(())
    }

    /// The shortest segment that takes every record: what a full disk still gives room to.
    pub(crate) fn segment_bytes_min(&self) -> u32 {
        let needed = self.buffer_bytes.saturating_add(HEADER_BYTES);
        needed.next_multiple_of(HEADER_BYTES).min(self.segment_bytes)
    }

    /// The length of the segment kept for a full disk, if one is kept.
    pub(crate) fn reserve_segment_bytes(&self) -> Option<u32> {
        let whole = (self.reserve_bytes + HEADER_BYTES).next_multiple_of(HEADER_BYTES);
        (self.reserve_bytes > 0).then(|| whole.max(2 * HEADER_BYTES))
    }

    /// The longest payload: one that fits a buffer whose first page is taken already, with the
    /// seal behind it, and a segment without its reserve.
    pub(crate) fn payload_bytes_max(&self) -> u32 {
        let seal = u32::try_from(record_bytes(0)).expect("a seal is a few bytes");
        let overhead = 2 * seal + 8;
        let in_buffer = self.buffer_bytes - HEADER_BYTES;
        let in_segment = self.segment_bytes - HEADER_BYTES;
        in_buffer.min(in_segment) - overhead
    }
}
