//! From which amounts of dirty data on the kernel writes, and writers wait. Pure.
//!
//! Source: `Documentation/admin-guide/sysctl/vm.rst` and `mm/page-writeback.c` of the kernel.

/// An amount of memory, as `vm.dirty_ratio` or as `vm.dirty_bytes` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many hundredths of what may be dirty.
    Percent(u64),
    /// So many bytes.
    Bytes(u64),
}

/// The settings `vm.dirty_*`. What the kernel does not tell is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirtySettings {
    /// `vm.dirty_background_ratio`: 0 where the bytes count.
    pub background_percent: Option<u64>,
    /// `vm.dirty_background_bytes`: 0 where the ratio counts.
    pub background_bytes: Option<u64>,
    /// `vm.dirty_ratio`: 0 where the bytes count.
    pub limit_percent: Option<u64>,
    /// `vm.dirty_bytes`: 0 where the ratio counts.
    pub limit_bytes: Option<u64>,
    /// `vm.dirty_expire_centisecs`: how old data is that gets written, in hundredths of a second.
    pub expire_centisecs: Option<u64>,
    /// `vm.dirty_writeback_centisecs`: how often the kernel looks for it; 0 means never.
    pub writeback_centisecs: Option<u64>,
    /// `vm.laptop_mode`: how long after a read everything is written along; 0 means it is off.
    pub laptop_mode: Option<u64>,
}

impl DirtySettings {
    /// What counts of the two settings for the background writer.
    #[must_use]
    pub fn background(&self) -> Option<Amount> {
        counting(self.background_bytes, self.background_percent)
    }

    /// What counts of the two settings for writers.
    #[must_use]
    pub fn limit(&self) -> Option<Amount> {
        counting(self.limit_bytes, self.limit_percent)
    }
}

/// Bytes count unless they are 0.
fn counting(bytes: Option<u64>, percent: Option<u64>) -> Option<Amount> {
    match bytes {
        Some(bytes) if bytes > 0 => Some(Amount::Bytes(bytes)),
        _ => percent.map(Amount::Percent),
    }
}

/// The two amounts of dirty data at which something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyLimits {
    /// From here on the kernel writes in the background.
    pub background_bytes: u64,
    /// Here writers wait until something has been written.
    pub limit_bytes: u64,
}

impl DirtyLimits {
    /// The amounts where `dirtyable_bytes` may be dirty.
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

    /// The amounts for a control group where `dirtyable_bytes` may be dirty, of all that may be on
    /// the machine: settings in bytes stand there for the share they are of that.
    #[must_use]
    pub fn in_group(
        background: Amount,
        limit: Amount,
        of_machine_bytes: u64,
        dirtyable_bytes: u64,
        page_bytes: u64,
    ) -> Self {
        let (all, pages) = (of_machine_bytes / page_bytes, dirtyable_bytes / page_bytes);
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
        // The kernel keeps them apart, whatever it was told.
        let background = if background >= limit { limit / 2 } else { background };
        Self {
            background_bytes: background.saturating_mul(page_bytes),
            limit_bytes: limit.saturating_mul(page_bytes),
        }
    }

    /// From here on writers are slowed down, more and more up to the limit.
    #[must_use]
    pub fn slow_from_bytes(&self) -> u64 {
        self.background_bytes / 2 + self.limit_bytes / 2
    }
}

/// So many parts of `pages`, a part being one of as many as a page has bytes: the kernel's way to
/// have finer ones than percent.
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
    fn bytes_count_unless_they_are_0() {
        for (bytes, percent, expected) in [
            (Some(0), Some(20), Some(Percent(20))),
            (Some(5), Some(0), Some(Bytes(5))),
            (Some(5), Some(20), Some(Bytes(5))),
            (None, Some(20), Some(Percent(20))),
            (Some(0), None, None),
            (Some(0), Some(0), Some(Percent(0))),
        ] {
            assert_eq!(counting(bytes, percent), expected, "{bytes:?} {percent:?}");
        }
    }

    #[test]
    fn the_limits_are_those_of_the_kernel() {
        for (background, limit, dirtyable, at, held) in [
            // 10 % is 409 of 4,096 parts, 20 % is 819: a kernel told this limit of so many pages.
            (Percent(10), Percent(20), 5_049_523 * 4096, 504_212 * 4096, 1_009_658 * 4096),
            (Bytes(64 * MIB), Bytes(GIB), 8 * GIB, 64 * MIB, GIB),
            // A part of a page is a page.
            (Bytes(1), Bytes(8193), 8 * GIB, 4096, 12_288),
            // The background writer is never behind the writers.
            (Percent(20), Percent(20), 4096 * 4096, 409 * 4096, 819 * 4096),
            (Bytes(2 * GIB), Bytes(GIB), 8 * GIB, GIB / 2, GIB),
            (Percent(50), Bytes(GIB), 8 * GIB, GIB / 2, GIB),
            // Nothing may be dirty: nothing is the limit.
            (Percent(10), Percent(20), 0, 0, 0),
            (Percent(900), Percent(900), 100 * 4096, 50 * 4096, 100 * 4096),
        ] {
            let limits = DirtyLimits::of(background, limit, dirtyable, 4096);
            let expected = DirtyLimits { background_bytes: at, limit_bytes: held };
            assert_eq!(limits, expected, "{background:?} {limit:?} of {dirtyable}");
        }
        let limits = DirtyLimits { background_bytes: 2 * GIB, limit_bytes: 4 * GIB };
        assert_eq!(limits.slow_from_bytes(), 3 * GIB);
    }

    #[test]
    fn a_group_has_its_share_of_what_is_set_in_bytes() {
        let of = |background, limit| DirtyLimits::in_group(background, limit, 16 * GIB, GIB, 4096);
        let tenth = DirtyLimits { background_bytes: 409 * 64 * 4096, limit_bytes: 819 * 64 * 4096 };
        assert_eq!(of(Percent(10), Percent(20)), tenth);
        // 1 GiB is a sixteenth of the machine's, so the group has a sixteenth of its own.
        let bytes = of(Bytes(256 * MIB), Bytes(GIB));
        assert_eq!(bytes, DirtyLimits { background_bytes: 16 * MIB, limit_bytes: 64 * MIB });
        // More than there is on the machine is all there is in the group.
        assert_eq!(of(Percent(10), Bytes(64 * GIB)).limit_bytes, GIB);
        assert_eq!(DirtyLimits::in_group(Bytes(1), Bytes(1), 0, GIB, 4096).limit_bytes, GIB / 4096);
    }

    proptest! {
        #[test]
        fn the_background_writer_begins_first(
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
                prop_assert!(limits.slow_from_bytes() <= limits.limit_bytes);
            }
        }
    }
}
