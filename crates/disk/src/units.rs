//! Defines the page size that all crates use, and rounds numbers to multiples of a power of two.

/// The unit for direct writes, for the page cache and for all on-disk formats in this workspace, in
/// bytes (4 KiB).
///
/// Some devices need a larger unit; see [`crate::Storage::write_unit_bytes`]. Only devices with
/// 512-byte physical blocks accept smaller writes without a read-modify-write.
pub const PAGE_BYTES: usize = 4096;

/// Rounds `value` down to a multiple of `unit`, which must be a power of two.
#[must_use]
pub const fn align_down(value: u64, unit: u64) -> u64 {
    debug_assert!(unit.is_power_of_two());
    value & !(unit - 1)
}

/// Rounds `value` up to a multiple of `unit`, which must be a power of two.
#[must_use]
pub const fn align_up(value: u64, unit: u64) -> u64 {
    debug_assert!(unit.is_power_of_two());
    (value + unit - 1) & !(unit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_returns_the_adjacent_multiples() {
        for (value, down, up) in [(0, 0, 0), (1, 0, 4096), (4096, 4096, 4096), (4097, 4096, 8192)] {
            assert_eq!((align_down(value, 4096), align_up(value, 4096)), (down, up), "{value}");
        }
    }
}
