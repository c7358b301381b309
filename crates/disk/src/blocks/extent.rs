//! Types that describe a file's ranges and their location on the device.

/// How [`crate::extents`] treats bytes that a program has written, but to which the file system has
/// not yet allocated blocks, because it delays allocation until writeback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DelayedAllocation {
    /// The map reports bytes without blocks as [`ExtentFlags::delayed`]. Where these bytes
    /// overwrite older bytes, the map may report the location of the older bytes instead.
    #[default]
    Report,
    /// The kernel first writes the file's dirty pages and waits for completion. All bytes written
    /// before the call then have blocks, and the map reports these blocks' location.
    Sync,
}

/// A file range that is contiguous on the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The offset in the file, in bytes.
    pub logical: u64,
    /// The offset on the device in bytes; see [`Extent::device_offset`].
    pub physical: u64,
    /// The length in bytes, a multiple of the block size. The last extent may therefore end beyond
    /// the end of the file.
    pub bytes: u64,
    /// The flags reported by the file system.
    pub flags: ExtentFlags,
}

/// An extent's flags. Each is `true` if its description applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentFlags {
    /// The last extent of the file.
    pub last: bool,
    /// The extent's location is unknown.
    pub unknown: bool,
    /// The bytes are written but have no blocks yet (delayed allocation).
    pub delayed: bool,
    /// The data is compressed or encrypted: the bytes on the device differ from the file's bytes.
    pub encoded: bool,
    /// The bytes are stored in metadata, or in a block that also contains other data.
    pub inline: bool,
    /// The blocks are preallocated: the extent reads as zeros, unless the page cache contains bytes
    /// that were not yet written back.
    pub unwritten: bool,
    /// The blocks are shared with other files.
    pub shared: bool,
    /// The file system set a flag that this crate does not know.
    pub other: bool,
}

impl ExtentFlags {
    /// Decodes the flags in `linux/fiemap.h`.
    pub(super) fn of(bits: u32) -> Self {
        const LAST: u32 = 0x1;
        const UNKNOWN: u32 = 0x2;
        const DELALLOC: u32 = 0x4;
        const ENCODED: u32 = 0x8 | 0x80; // ENCODED, DATA_ENCRYPTED
        const INLINE: u32 = 0x100 | 0x200 | 0x400; // NOT_ALIGNED, DATA_INLINE, DATA_TAIL
        const UNWRITTEN: u32 = 0x800;
        const MERGED: u32 = 0x1000; // made from blocks of a file system without extents: irrelevant
        const SHARED: u32 = 0x2000;
        const KNOWN: u32 =
            LAST | UNKNOWN | DELALLOC | ENCODED | INLINE | UNWRITTEN | MERGED | SHARED;
        let has = |mask: u32| bits & mask != 0;
        Self {
            last: has(LAST),
            unknown: has(UNKNOWN),
            delayed: has(DELALLOC),
            encoded: has(ENCODED),
            inline: has(INLINE),
            unwritten: has(UNWRITTEN),
            shared: has(SHARED),
            other: has(!KNOWN),
        }
    }
}

impl Extent {
    /// Returns the offset on the device in bytes, for sorting reads; `None` if the extent has no
    /// location on the device.
    ///
    /// On btrfs the offset is a logical file system address, which may span several devices.
    #[must_use]
    pub fn device_offset(&self) -> Option<u64> {
        let ExtentFlags { unknown, delayed, inline, .. } = self.flags;
        (!unknown && !delayed && !inline).then_some(self.physical)
    }
}

/// The extents in a file range, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtentMap {
    /// The extents; the gaps between them are holes, which read as zeros.
    pub extents: Vec<Extent>,
    /// How the caller of [`crate::extents`] requested to treat delayed allocation.
    pub delayed_allocation: DelayedAllocation,
}
