//! Sizes every room agrees on, and rounding to them.

/// The unit of direct writes, of the page cache and of every layout in this house: 4 KiB.
///
/// A device that wants more says so through [`crate::probe`]; none that is known wants less for
/// a write that must not be read back first.
pub const PAGE_BYTES: usize = 4096;

/// `value` rounded down to a multiple of `unit`, which must be a power of two.
#[must_use]
pub const fn align_down(value: u64, unit: u64) -> u64 {
    debug_assert!(unit.is_power_of_two());
    value & !(unit - 1)
}

/// `value` rounded up to a multiple of `unit`, which must be a power of two.
#[must_use]
pub const fn align_up(value: u64, unit: u64) -> u64 {
    debug_assert!(unit.is_power_of_two());
    (value + unit - 1) & !(unit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_the_neighbouring_multiples() {
        for (value, down, up) in [(0, 0, 0), (1, 0, 4096), (4096, 4096, 4096), (4097, 4096, 8192)] {
            assert_eq!((align_down(value, 4096), align_up(value, 4096)), (down, up), "{value}");
        }
    }
}
