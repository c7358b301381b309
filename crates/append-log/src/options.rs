//! Defines and validates log options.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::format::{BYTES_MAX, HEADER_BYTES, PAYLOAD_BYTES_MAX, record_bytes};
use crate::strategy::SyncMethod;

/// The action of [`crate::Log::open`] when it finds damage: bytes that were durable and are no
/// longer valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Opening fails with an error that names the file and the offset of the damage.
    #[default]
    Refuse,
    /// Opening delivers every valid record and reports the damage in [`crate::Recovered`]. Use it
    /// only if the caller can handle missing records.
    Report,
}

/// Options of a log. "Behaviour" marks options that change the log's guarantees or limits,
/// "Performance" options that mainly change its speed and its use of memory and disk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the action of [`crate::Log::open`] when it finds damage.
    pub on_damage: OnDamage,
    /// Behaviour: the time without appends, in milliseconds, after which the log writes a
    /// watermark: a record that proves that the last records were durable. Without a watermark,
    /// damage to the last records looks like a torn tail and is truncated without a report. A
    /// watermark costs one write and one sync per idle period, on a log thread. With 0, the log
    /// writes watermarks only in [`crate::Log::write_watermark`]. Default: 100.
    pub idle_watermark_ms: u32,
    /// Behaviour: the bytes of records with [`crate::SpacePriority::Reserve`] that the log still
    /// accepts on a full disk, in a short segment reserved for them. 0 to a quarter of
    /// `segment_bytes`; 0 reserves no short segment. Default: 8 MiB.
    pub reserve_bytes: u32,
    /// Behaviour: the maximum number of segments that the log reserves as spare files, each as long
    /// as the longest segment. [`crate::SpacePriority::Reserve`] records may use all of them but
    /// one, [`crate::SpacePriority::Compaction`] records all of them. The log reserves at most as
    /// many segments as it has sealed, and at most a third of the disk space available to it. 0 to
    /// 16. Default: 0.
    pub compaction_segments: u32,
    /// Behaviour: the free bytes that the log leaves in the file system when it creates a segment
    /// for [`crate::SpacePriority::Ordinary`] records. Default: 0.
    pub free_bytes_min: u64,
    /// Performance: the maximum number of removed segments kept as spare files for recycling, not
    /// counting the segments reserved for compaction. Default: 2.
    pub spare_segments_max: u32,
    /// Performance: the segment file length in bytes, a multiple of 4 KiB. With longer segments the
    /// log switches segments less often, and recovery reads more. On a nearly full disk new
    /// segments are shorter, unless segments are reserved for compaction. 1 MiB to 2 GiB. Default:
    /// 128 MiB.
    pub segment_bytes: u32,
    /// Performance: the first segment's length in a new log, in bytes, a multiple of 4 KiB, so that
    /// a log with few records takes little space. The log increases the length to `buffer_bytes`
    /// plus 8 KiB, so that any record that fits into an append buffer fits into the segment. A
    /// longer record may need a longer segment, which the log then creates. Each further segment is
    /// twice as long as the longest earlier one, up to `segment_bytes`, provided that half of the
    /// free space remains unused. The reserved segments grow likewise. With `None`, all segments
    /// have `segment_bytes`. Default: `None`.
    pub first_segment_bytes: Option<u32>,
    /// Performance: the length of each append buffer in bytes, a multiple of 4 KiB; the log has
    /// two. It limits the record bytes that are not yet written. A longer record gets a longer
    /// buffer, which is freed when the record is durable. If most records are longer than a buffer,
    /// set a longer one, which is allocated only once. 64 KiB to 256 MiB. A buffer whose length is
    /// a multiple of 2 MiB is in huge pages, if the kernel has some, and takes at least 2 MiB of
    /// memory. Default: 8 MiB.
    pub buffer_bytes: u32,
    /// Performance: the method by which batches are written and synced. With `None`, opening
    /// measures the methods that the storage supports, for about 200 ms at most, and selects
    /// [`SyncMethod::Buffered`] unless another method is more than 5 % faster.
    ///
    /// Large batches (288 KiB or more on average) bypass the page cache where the storage supports
    /// direct I/O, also with [`SyncMethod::Buffered`]. Default: `None`.
    pub sync_method: Option<SyncMethod>,
    /// Performance: after a record that is alone in its batch, pads the page with zeros if a next
    /// record of the same length then takes one page less to write. Costs at most 512 bytes per
    /// record, and initially up to two pages. See [`crate::payload_bytes_in_pages`]. Default:
    /// `true`.
    pub pads_records: bool,
    /// Behaviour: the caller removes segments only in order, oldest first, as
    /// [`crate::Log::truncate_front`] does. Opening the log then reports a segment whose file is
    /// missing between others as damage; [`crate::Log::remove_segment`] rejects all but the oldest
    /// segment. Never change the value of an existing log: a reader with `true` reports the
    /// segments that were removed with `false`. Default: `true`.
    pub removes_in_order: bool,
    /// Behaviour: new segments get numbers greater than this one. Set it to the greatest segment
    /// number that the caller knows: if that segment's file is missing and restored later, no new
    /// segment has its number. Default: 0.
    pub numbers_after: u32,
    /// Performance: the number of threads that read segments when the log is opened. Each thread
    /// uses up to 40 MiB of memory, and three times the longest record's length. 1 to 64. Default:
    /// 2.
    pub recovery_threads: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_damage: OnDamage::default(),
            idle_watermark_ms: 100,
            reserve_bytes: 8 << 20,
            compaction_segments: 0,
            free_bytes_min: 0,
            spare_segments_max: 2,
            segment_bytes: 128 << 20,
            first_segment_bytes: None,
            buffer_bytes: 8 << 20,
            sync_method: None,
            pads_records: true,
            removes_in_order: true,
            numbers_after: 0,
            recovery_threads: 2,
        }
    }
}

impl Options {
    /// Validates the options.
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
        if !self.first_segment_bytes.is_none_or(whole_pages) {
            return Err(Error::Invalid("first_segment_bytes must be a multiple of 4 KiB"));
        }
        if self.reserve_bytes > self.segment_bytes / 4 {
            return Err(Error::Invalid("reserve_bytes must be at most a quarter of a segment"));
        }
        if self.compaction_segments > 16 {
            return Err(Error::Invalid("compaction_segments must be at most 16"));
        }
        if !(1..=64).contains(&self.recovery_threads) {
            return Err(Error::Invalid("recovery_threads must lie between 1 and 64"));
        }
        Ok(())
    }

    /// Returns a new segment's minimum length on a nearly full disk: it can hold any record that
    /// fits into an append buffer. The segment for a longer record is longer.
    pub(crate) fn segment_bytes_min(&self) -> u32 {
        let needed = self.buffer_bytes.saturating_add(2 * HEADER_BYTES);
        needed.next_multiple_of(HEADER_BYTES).min(self.segment_bytes)
    }

    /// Returns the first segment's length in a new log.
    pub(crate) fn first_segment_bytes(&self) -> u32 {
        let first = self.first_segment_bytes.unwrap_or(self.segment_bytes);
        first.max(self.segment_bytes_min()).min(self.segment_bytes)
    }

    /// Returns the file length of the short reserved segment; `None` if the options reserve none.
    pub(crate) fn reserve_segment_bytes(&self) -> Option<u32> {
        let whole = (self.reserve_bytes + 2 * HEADER_BYTES).next_multiple_of(HEADER_BYTES);
        (self.reserve_bytes > 0).then(|| whole.max(3 * HEADER_BYTES))
    }

    /// Returns the time without appends after which the log writes a watermark; `None` if it writes
    /// none when idle.
    pub(crate) fn idle_after(&self) -> Option<Duration> {
        let is_on = self.idle_watermark_ms > 0;
        is_on.then(|| Duration::from_millis(self.idle_watermark_ms.into()))
    }

    /// Returns the maximum payload length. A record of this length fits, together with a seal, into
    /// a segment of full length.
    pub(crate) fn payload_bytes_max(&self) -> u32 {
        let seal = u32::try_from(record_bytes(0)).expect("a seal is a few bytes");
        let overhead = 2 * HEADER_BYTES + 2 * seal + 8;
        PAYLOAD_BYTES_MAX.min(self.segment_bytes - overhead)
    }
}
