//! Defines the simulated drives' parameters: figures from data sheets, and assumptions.

/// Nanoseconds, the unit for all times in the model.
pub type Nanos = u64;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// A sector's size in bytes.
pub const SECTOR_BYTES: u64 = 512;

/// A drive's parameters. Each function that returns a parameter set documents which figures are
/// published and which are assumed.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The drive's name on the `spinning-disk` command line.
    pub name: &'static str,
    /// The real drive's capacity in bytes.
    pub capacity_bytes: u64,
    /// The time for one revolution.
    pub revolution_ns: Nanos,
    /// The time for a seek to the next track, settling included.
    pub seek_track_ns: Nanos,
    /// The mean time for a seek between uniformly random locations.
    pub seek_average_ns: Nanos,
    /// The time for a full-stroke seek, the maximum.
    pub seek_full_ns: Nanos,
    /// The number of surfaces, each with its own head.
    pub heads: u32,
    /// The number of zones, at least 2. All tracks in a zone have equally many sectors.
    pub zones: u32,
    /// The outermost zone's sustained read rate in bytes per second.
    pub outer_bytes_per_s: u64,
    /// The innermost zone's sustained read rate in bytes per second.
    pub inner_bytes_per_s: u64,
    /// The time from a track's end until the start of the next track in the same cylinder passes
    /// its head. The drive switches heads in this time.
    pub head_skew_ns: Nanos,
    /// The time from the end of a cylinder's last track until the start of the next cylinder's
    /// first track passes its head.
    pub cylinder_skew_ns: Nanos,
    /// The command overhead between a request's arrival and its service.
    pub overhead_ns: Nanos,
    /// The interface's transfer rate in bytes per second.
    pub interface_bytes_per_s: u64,
    /// The number of read cache segments, each of which holds a run of sectors.
    pub segments: usize,
    /// A segment's maximum size in bytes.
    pub segment_bytes: u64,
    /// The volatile write cache's size in bytes; 0 for a drive that writes through.
    pub write_cache_bytes: u64,
    /// A physical sector's size in bytes: 512, or 4,096 for a drive that emulates 512-byte sectors.
    /// A power cut leaves a physical sector with its old or with its new content.
    pub physical_sector_bytes: u64,
    /// The maximum number of queued requests among which the drive chooses the next one.
    pub queue_depth: usize,
    /// The waiting time after which the oldest request is served next, even if another request is
    /// nearer.
    pub patience_ns: Nanos,
    /// The idle time after which the drive writes dirty sectors from the write cache to the medium.
    pub idle_before_destage_ns: Nanos,
}

impl Parameters {
    /// Hitachi Travelstar 7K320: 2.5 inch, 7200 revolutions a minute, 320 GB.
    ///
    /// The revolution and the typical read seek times are published: 1.0 ms to the next track, 12
    /// ms on average, 20.0 ms over the full stroke, settling included. The zone rates, the heads,
    /// the skews, the overhead and the segments are assumed.
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
            physical_sector_bytes: SECTOR_BYTES,
            queue_depth: 32,
            patience_ns: 500 * MS,
            idle_before_destage_ns: 10 * MS,
        }
    }

    /// Hitachi Deskstar 7K1000.C: 3.5 inch, 7200 revolutions a minute, 1 TB on two disks.
    ///
    /// The revolution and the typical average read seek time (8.5 ms) are published. A seek of 0.9
    /// ms to the next track is assumed; with the published average it determines the seek curve,
    /// which gives a full-stroke time of 15.2 ms. The remaining parameters are assumed as for
    /// [`Self::travelstar_7k320`].
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

    /// Returns all drives' parameter sets.
    #[must_use]
    pub fn all() -> [Self; 2] {
        [Self::travelstar_7k320(), Self::deskstar_7k1000c()]
    }

    /// Returns the time in which the interface transfers `sectors` sectors.
    #[must_use]
    pub(crate) fn interface_ns(&self, sectors: u64) -> Nanos {
        (sectors * SECTOR_BYTES).saturating_mul(1_000 * MS) / self.interface_bytes_per_s
    }

    /// Returns how many sectors a physical sector has, at least 1.
    #[must_use]
    pub(crate) fn physical_sectors(&self) -> u64 {
        (self.physical_sector_bytes / SECTOR_BYTES).max(1)
    }

    /// Returns the write cache size in sectors.
    #[must_use]
    pub(crate) fn write_cache_sectors(&self) -> u64 {
        self.write_cache_bytes / SECTOR_BYTES
    }
}
