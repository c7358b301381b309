//! What a drive is like: numbers from data sheets, and what had to be assumed beside them.

/// Nanoseconds: all times of the model.
pub type Nanos = u64;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// The bytes of a sector.
pub const SECTOR_BYTES: u64 = 512;

/// A drive. Each set says which of its numbers are published and which assumed.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The name the program knows it by.
    pub name: &'static str,
    /// Bytes of the real drive.
    pub capacity_bytes: u64,
    /// Time of one revolution.
    pub revolution_ns: Nanos,
    /// Time of a seek to the next track, settling included.
    pub seek_track_ns: Nanos,
    /// Mean time of a seek between two places chosen evenly.
    pub seek_average_ns: Nanos,
    /// Time of a seek over all tracks: no seek takes longer.
    pub seek_full_ns: Nanos,
    /// Surfaces, each with a head.
    pub heads: u32,
    /// Zones: regions in which all tracks hold the same number of sectors.
    pub zones: u32,
    /// What the outermost zone reads in a second, for as long as one likes.
    pub outer_bytes_per_s: u64,
    /// The same for the innermost zone.
    pub inner_bytes_per_s: u64,
    /// From the end of a track to the beginning of the next one under another head.
    pub head_skew_ns: Nanos,
    /// The same where the arm must move too.
    pub cylinder_skew_ns: Nanos,
    /// What the drive's processor needs before it moves anything.
    pub overhead_ns: Nanos,
    /// What the cable carries in a second.
    pub interface_bytes_per_s: u64,
    /// Read-ahead: how many sequences of sectors are kept.
    pub segments: usize,
    /// And how long each may grow.
    pub segment_bytes: u64,
    /// How many bytes the volatile write cache holds; 0 where writes go straight to the medium.
    pub write_cache_bytes: u64,
    /// How many requests the drive looks at to choose the next one.
    pub queue_depth: usize,
    /// A request that waited longer goes first, however far it is.
    pub patience_ns: Nanos,
    /// How long nothing must be asked before the write cache is emptied in the background.
    pub idle_before_destage_ns: Nanos,
}

impl Parameters {
    /// Hitachi Travelstar 7K320: 2.5 inch, 7200 revolutions a minute, 320 GB.
    ///
    /// Published: revolution, seeks (track 1.0, average 12, full 20.0 ms, reads, typical), that
    /// settling is within them. Assumed: the rates of the zones, heads, skews, overhead, segments.
    ///
    /// # Source
    /// \[Travelstar7K320\]
    #[must_use]
    pub fn travelstar_7k320() -> Self {
        Self {
            name: "travelstar-7k320",
            capacity_bytes: 320_072_933_376,
            revolution_ns: 60_000 * MS / 7200,
            seek_track_ns: MS,
            seek_average_ns: 12 * MS,
            seek_full_ns: 20 * MS,
            heads: 4,
            zones: 16,
            outer_bytes_per_s: 85_000_000,
            inner_bytes_per_s: 42_500_000,
            head_skew_ns: MS,
            cylinder_skew_ns: 12 * MS / 10,
            overhead_ns: MS / 10,
            interface_bytes_per_s: 300_000_000,
            segments: 8,
            segment_bytes: 1 << 20,
            write_cache_bytes: 8 << 20,
            queue_depth: 32,
            patience_ns: 500 * MS,
            idle_before_destage_ns: 10 * MS,
        }
    }

    /// Hitachi Deskstar 7K1000.C: 3.5 inch, 7200 revolutions a minute, 1 TB on two disks.
    ///
    /// Published: revolution, average seek (8.5 ms, reads, typical). Assumed: a track seek of
    /// 0.9 ms, hence 15.2 ms over all tracks, and the rest as for the other set.
    ///
    /// # Source
    /// \[Deskstar7K1000\]
    #[must_use]
    pub fn deskstar_7k1000c() -> Self {
        Self {
            name: "deskstar-7k1000.c",
            capacity_bytes: 1_000_204_886_016,
            seek_track_ns: 9 * MS / 10,
            seek_average_ns: 85 * MS / 10,
            seek_full_ns: 152 * MS / 10,
            outer_bytes_per_s: 135_000_000,
            inner_bytes_per_s: 67_500_000,
            head_skew_ns: 9 * MS / 10,
            cylinder_skew_ns: 11 * MS / 10,
            segment_bytes: 2 << 20,
            write_cache_bytes: 16 << 20,
            ..Self::travelstar_7k320()
        }
    }

    /// The sets there are.
    #[must_use]
    pub fn all() -> [Self; 2] {
        [Self::travelstar_7k320(), Self::deskstar_7k1000c()]
    }

    /// How long the cable needs for so many sectors.
    #[must_use]
    pub(crate) fn interface_ns(&self, sectors: u64) -> Nanos {
        (sectors * SECTOR_BYTES).saturating_mul(1_000 * MS) / self.interface_bytes_per_s
    }

    /// How many sectors the write cache holds.
    #[must_use]
    pub(crate) fn write_cache_sectors(&self) -> u64 {
        self.write_cache_bytes / SECTOR_BYTES
    }
}
