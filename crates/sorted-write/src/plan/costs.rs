//! Decides by a device's cost model whether two requests are merged.

/// A device's cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// The time that an additional request takes, in microseconds.
    pub request_us: u64,
    /// The sequential bandwidth, in bytes per second.
    pub bytes_per_second: u64,
}

impl Costs {
    /// A hard disk with a bandwidth of 100 MB/s. The head serves neighbouring requests in one pass
    /// and passes over the gap between them in any case, so an additional request takes little more
    /// time than its submission.
    pub const HDD: Self = Self { request_us: 500, bytes_per_second: 100_000_000 };
    /// An SSD that serves 100,000 requests or 2 GB per second.
    pub const SSD: Self = Self { request_us: 10, bytes_per_second: 2_000_000_000 };

    /// Returns the bytes that the device transfers in one request's time.
    pub(super) fn request_bytes(self) -> u64 {
        let bytes = u128::from(self.request_us) * u128::from(self.bytes_per_second) / 1_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// `true` if two write requests with a gap of `gap_bytes` between them take less time as one
    /// request that reads the gap and writes it back. `partial_ends` (0 to 2) is the number of gap
    /// ends at which a unit is only partially written and must be read in any case.
    ///
    /// Unmerged, there are two writes and `partial_ends` reads. Merged, there are one write and one
    /// read, and the gap is transferred twice. Merging thus saves `partial_ends` requests: it saves
    /// none if no unit has to be read.
    #[must_use]
    pub fn should_fill(self, gap_bytes: u64, partial_ends: u64) -> bool {
        is_cheaper(gap_bytes, partial_ends, self.request_bytes())
    }
}

/// Computes [`Costs::should_fill`] from the precomputed result of [`Costs::request_bytes`].
pub(super) fn is_cheaper(gap_bytes: u64, partial_ends: u64, request_bytes: u64) -> bool {
    gap_bytes.saturating_mul(2) < request_bytes.saturating_mul(partial_ends)
}
