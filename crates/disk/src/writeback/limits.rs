//! Computes the amounts of dirty memory at which the kernel starts background writeback and blocks
//! writers. The module reads no files.
//!
//! Source: the kernel's `Documentation/admin-guide/sysctl/vm.rst` and `mm/page-writeback.c`.

/// A dirty memory threshold, as set by `vm.dirty_ratio` or by `vm.dirty_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A percentage of dirtyable memory: free memory and page cache (see
    /// [`super::Memory::dirtyable_bytes`]).
    Percent(u64),
    /// A number of bytes.
    Bytes(u64),
}

/// The settings `vm.dirty_*` and `vm.laptop_mode`. Unknown settings are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirtySettings {
    /// `vm.dirty_background_ratio` in percent; 0 if the threshold is set in bytes.
    pub background_percent: Option<u64>,
    /// `vm.dirty_background_bytes`; 0 if the threshold is set as a ratio.
    pub background_bytes: Option<u64>,
    /// `vm.dirty_ratio` in percent; 0 if the limit is set in bytes.
    pub limit_percent: Option<u64>,
    /// `vm.dirty_bytes`; 0 if the limit is set as a ratio.
    pub limit_bytes: Option<u64>,
    /// `vm.dirty_expire_centisecs`: the age at which periodic writeback writes dirty data, in
    /// hundredths of a second.
    pub expire_centisecs: Option<u64>,
    /// `vm.dirty_writeback_centisecs`: the periodic writeback interval in hundredths of a second; 0
    /// disables it.
    pub writeback_centisecs: Option<u64>,
    /// `vm.laptop_mode`: the number of seconds after a disk request at which the kernel writes back
    /// all dirty data, since the disk is spinning anyway; 0 disables laptop mode.
    pub laptop_mode: Option<u64>,
}

impl DirtySettings {
    /// Returns the effective background writeback threshold; `None` if unknown.
    #[must_use]
    pub fn background(&self) -> Option<Amount> {
        effective(self.background_bytes, self.background_percent)
    }

    /// Returns the effective limit at which writers block; `None` if unknown.
    #[must_use]
    pub fn limit(&self) -> Option<Amount> {
        effective(self.limit_bytes, self.limit_percent)
    }
}

/// Returns the setting in bytes, or the ratio if the setting in bytes is 0 or unknown.
fn effective(bytes: Option<u64>, percent: Option<u64>) -> Option<Amount> {
    match bytes {
        Some(bytes) if bytes > 0 => Some(Amount::Bytes(bytes)),
        _ => percent.map(Amount::Percent),
    }
}

/// The two dirty memory thresholds: for background writeback and for blocking writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyLimits {
    /// The amount of dirty memory at which background writeback starts.
    pub background_bytes: u64,
    /// The amount of dirty memory at which writers block until data has been written back.
    pub limit_bytes: u64,
}

impl DirtyLimits {
    /// Computes the thresholds for a machine with `dirtyable_bytes` of dirtyable memory.
    #[must_use]
    pub fn of(background: Amount, limit: Amount, dirtyable_bytes: u64, page_bytes: u64) -> Self {
        let pages = dirtyable_bytes / page_bytes;
        let amount = |amount| match amount {
            Amount::Bytes(bytes) => bytes.div_ceil(page_bytes),
            Amount::Percent(percent) => {
                share(percent.min(100) * page_bytes / 100, pages, page_bytes)
            }
        };
        Self::in_pages(amount(background), amount(limit), page_bytes)
    }

    /// Computes the thresholds for a control group with `dirtyable_bytes` of dirtyable memory, on a
    /// machine whose dirtyable memory is `machine_bytes`. The kernel converts a setting in bytes to
    /// a share of `machine_bytes`, and applies this share to the group.
    #[must_use]
    pub fn in_group(
        background: Amount,
        limit: Amount,
        machine_bytes: u64,
        dirtyable_bytes: u64,
        page_bytes: u64,
    ) -> Self {
        let (all, pages) = (machine_bytes / page_bytes, dirtyable_bytes / page_bytes);
        let amount = |amount| {
            let parts = match amount {
                Amount::Bytes(bytes) => bytes.div_ceil(all.max(1)).min(page_bytes),
                Amount::Percent(percent) => percent.min(100) * page_bytes / 100,
            };
            share(parts, pages, page_bytes)
        };
        Self::in_pages(amount(background), amount(limit), page_bytes)
    }

    fn in_pages(background: u64, limit: u64, page_bytes: u64) -> Self {
        // The kernel keeps the background threshold below the limit.
        let background = if background >= limit { limit / 2 } else { background };
        Self {
            background_bytes: background.saturating_mul(page_bytes),
            limit_bytes: limit.saturating_mul(page_bytes),
        }
    }

    /// Returns the amount of dirty memory in bytes above which the kernel throttles writers.
    /// Throttling becomes stronger as dirty memory approaches the limit.
    #[must_use]
    pub fn freerun_ceiling_bytes(&self) -> u64 {
        self.background_bytes / 2 + self.limit_bytes / 2
    }
}

/// Returns `pages * parts / page_bytes`, rounded down. The kernel converts a percentage to `parts`
/// of `page_bytes`, rounded down, such as 20 % to 819 of 4,096.
fn share(parts: u64, pages: u64, page_bytes: u64) -> u64 {
    let share = u128::from(parts) * u128::from(pages) / u128::from(page_bytes);
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Amount::{Bytes, Percent};
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn bytes_take_precedence_unless_zero() {
        for (bytes, percent, expected) in [
            (Some(0), Some(20), Some(Percent(20))),
            (Some(5), Some(0), Some(Bytes(5))),
            (Some(5), Some(20), Some(Bytes(5))),
            (None, Some(20), Some(Percent(20))),
            (Some(0), None, None),
            (Some(0), Some(0), Some(Percent(0))),
        ] {
            assert_eq!(effective(bytes, percent), expected, "{bytes:?} {percent:?}");
        }
    }

    #[test]
    fn limits_match_the_kernel() {
        for (background, limit, dirtyable, background_bytes, limit_bytes) in [
            // 10 % is 409 of 4,096 parts, and 20 % is 819 of 4,096. A kernel reported the two
            // expected thresholds.
            (Percent(10), Percent(20), 5_049_523 * 4096, 504_212 * 4096, 1_009_658 * 4096),
            (Bytes(64 * MIB), Bytes(GIB), 8 * GIB, 64 * MIB, GIB),
            // Settings in bytes are rounded up to whole pages.
            (Bytes(1), Bytes(8193), 8 * GIB, 4096, 12_288),
            // A background threshold that is not below the limit becomes half the limit.
            (Percent(20), Percent(20), 4096 * 4096, 409 * 4096, 819 * 4096),
            (Bytes(2 * GIB), Bytes(GIB), 8 * GIB, GIB / 2, GIB),
            (Percent(50), Bytes(GIB), 8 * GIB, GIB / 2, GIB),
            // Without dirtyable memory, ratios give thresholds of zero.
            (Percent(10), Percent(20), 0, 0, 0),
            (Percent(900), Percent(900), 100 * 4096, 50 * 4096, 100 * 4096),
        ] {
            let limits = DirtyLimits::of(background, limit, dirtyable, 4096);
            let expected = DirtyLimits { background_bytes, limit_bytes };
            assert_eq!(limits, expected, "{background:?} {limit:?} of {dirtyable}");
        }
        let limits = DirtyLimits { background_bytes: 2 * GIB, limit_bytes: 4 * GIB };
        assert_eq!(limits.freerun_ceiling_bytes(), 3 * GIB);
    }

    #[test]
    fn group_limits_in_bytes_are_proportional() {
        let of = |background, limit| DirtyLimits::in_group(background, limit, 16 * GIB, GIB, 4096);
        let tenth = DirtyLimits { background_bytes: 409 * 64 * 4096, limit_bytes: 819 * 64 * 4096 };
        assert_eq!(of(Percent(10), Percent(20)), tenth);
        // The 1 GiB setting is a sixteenth of the machine's memory, so the group's limit is a
        // sixteenth of the group's memory.
        let bytes = of(Bytes(256 * MIB), Bytes(GIB));
        assert_eq!(bytes, DirtyLimits { background_bytes: 16 * MIB, limit_bytes: 64 * MIB });
        // With a setting above the machine's memory, all of the group's memory may be dirty.
        assert_eq!(of(Percent(10), Bytes(64 * GIB)).limit_bytes, GIB);
        assert_eq!(DirtyLimits::in_group(Bytes(1), Bytes(1), 0, GIB, 4096).limit_bytes, GIB / 4096);
    }

    proptest! {
        #[test]
        fn background_threshold_is_below_the_limit(
            a in any::<u64>(), b in any::<u64>(), all in any::<u64>(), own in any::<u64>(),
            in_bytes in any::<[bool; 2]>(),
        ) {
            let amount = |number, bytes| if bytes { Bytes(number) } else { Percent(number) };
            let (background, limit) = (amount(a, in_bytes[0]), amount(b, in_bytes[1]));
            for limits in [
                DirtyLimits::of(background, limit, all, 4096),
                DirtyLimits::in_group(background, limit, all, own, 4096),
            ] {
                prop_assert!(limits.background_bytes <= limits.limit_bytes);
                prop_assert!(limits.freerun_ceiling_bytes() <= limits.limit_bytes);
            }
        }
    }
}
