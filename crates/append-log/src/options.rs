//! The choices a log leaves to its owner.

use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, record_bytes};
use crate::segment::BYTES_MAX;

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
    /// Behaviour: the end of each segment kept free for [`crate::Room::Reserve`], so that such
    /// records still succeed for a while on a full disk. 1 MiB.
    pub reserve_bytes: u32,
    /// Performance: the length of a segment file. 1 MiB to 2 GiB; 128 MiB. Larger ones rotate
    /// less often and make recovery read more. On a disk that is nearly full they are made
    /// shorter.
    pub segment_bytes: u32,
    /// Performance: the length of each of the two buffers records are gathered in, which also
    /// bounds the bytes in flight and the longest record. 64 KiB to 256 MiB; 8 MiB.
    pub buffer_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_damage: OnDamage::default(),
            reserve_bytes: 1 << 20,
            segment_bytes: 128 << 20,
            buffer_bytes: 8 << 20,
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
        Ok(())
    }

    /// The shortest segment that takes every record: what a full disk still gives room to.
    pub(crate) fn segment_bytes_min(&self) -> u32 {
        let needed = self.buffer_bytes.saturating_add(self.reserve_bytes + HEADER_BYTES);
        needed.next_multiple_of(HEADER_BYTES).min(self.segment_bytes)
    }

    /// The longest payload: one that fits a buffer whose first page is taken already, with the
    /// seal behind it, and a segment without its reserve.
    pub(crate) fn payload_bytes_max(&self) -> u32 {
        let seal = u32::try_from(record_bytes(0)).expect("a seal is a few bytes");
        let overhead = 2 * seal + 8;
        let in_buffer = self.buffer_bytes - HEADER_BYTES;
        let in_segment = self.segment_bytes - HEADER_BYTES - self.reserve_bytes;
        in_buffer.min(in_segment) - overhead
    }
}
