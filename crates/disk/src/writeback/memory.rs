//! Parses the kernel's memory statistics, and computes dirtyable memory: the amount to which the
//! kernel applies `vm.dirty_ratio`. The caller reads the files.
//!
//! Source: `proc_meminfo(5)`; the kernel's `mm/page_alloc.c` and `mm/page-writeback.c` for the
//! reserve and for dirtyable memory.

/// The amounts of memory that decide when the kernel throttles writers. Unknown amounts are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The total memory.
    pub total_bytes: Option<u64>,
    /// The free memory.
    pub free_bytes: Option<u64>,
    /// The file-backed page cache, without shared memory (`Active(file)` and `Inactive(file)`).
    pub file_bytes: Option<u64>,
    /// The free memory that the kernel reserves and does not count as dirtyable.
    pub reserve_bytes: Option<u64>,
    /// The dirty memory not yet under writeback.
    pub dirty_bytes: Option<u64>,
    /// The memory under writeback.
    pub writeback_bytes: Option<u64>,
    /// The total swap space; 0 without swap.
    pub swap_bytes: Option<u64>,
}

impl Memory {
    /// Parses the text in `/proc/meminfo`; the caller computes the reserve from `/proc/zoneinfo`.
    pub(super) fn of(meminfo: &str, reserve_bytes: Option<u64>) -> Self {
        let field = |name| kib_field(meminfo, name);
        Self {
            total_bytes: field("MemTotal"),
            free_bytes: field("MemFree"),
            file_bytes: field("Active(file)")
                .and_then(|active| active.checked_add(field("Inactive(file)")?)),
            reserve_bytes,
            dirty_bytes: field("Dirty"),
            writeback_bytes: field("Writeback"),
            swap_bytes: field("SwapTotal"),
        }
    }

    /// Returns the dirtyable memory, to which the kernel applies its ratios: free memory less the
    /// reserve, plus the page cache. Programs' anonymous memory is not dirtyable. `None` if the
    /// free memory or the page cache is unknown.
    #[must_use]
    pub fn dirtyable_bytes(&self) -> Option<u64> {
        let free = self.free_bytes?.saturating_sub(self.reserve_bytes.unwrap_or(0));
        free.checked_add(self.file_bytes?)
    }
}

/// Parses a field in `/proc/meminfo` given in kB, and returns it in bytes.
fn kib_field(meminfo: &str, name: &str) -> Option<u64> {
    let value = |line: &str| -> Option<u64> {
        let kib = line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    meminfo.lines().find_map(value)
}

/// Computes how many pages are reserved from `/proc/zoneinfo`. For each memory zone, the kernel
/// adds the high watermark (the free pages at which reclaim ends) and the largest protection value
/// (free pages denied to allocations that could use another zone). The sum is limited to the pages
/// that the zone manages.
pub(super) fn reserve_pages(zoneinfo: &str) -> Option<u64> {
    let mut zones = Vec::new();
    for line in zoneinfo.lines() {
        let mut words = line.split_whitespace();
        let first = words.next();
        if first == Some("Node") {
            zones.push((None, None, None));
        }
        let Some((high, managed, protected)) = zones.last_mut() else { continue };
        match first {
            Some("high") if high.is_none() => *high = words.next()?.parse::<u64>().ok(),
            Some("managed") => *managed = words.next()?.parse::<u64>().ok(),
            Some("protection:") => {
                let numbers =
                    words.filter_map(|word| word.trim_matches(['(', ')', ',']).parse::<u64>().ok());
                *protected = numbers.max();
            }
            _ => {}
        }
    }
    // An empty zone lacks some fields and reserves nothing.
    let reserve = |(high, managed, protected): (Option<u64>, Option<u64>, Option<u64>)| {
        Some(high?.saturating_add(protected.unwrap_or(0)).min(managed?))
    };
    let known: Vec<_> = zones.into_iter().filter_map(reserve).collect();
    (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add))
}

/// Parses a field in `/proc/vmstat` or in `memory.stat`: a name and a number.
pub(super) fn named(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMINFO: &str = "\
MemTotal:       24682416 kB
MemFree:         7127420 kB
MemAvailable:   21968020 kB
Active(anon):       1136 kB
Active(file):    3058920 kB
Inactive(file): 10217712 kB
SwapTotal:             0 kB
Dirty:            690960 kB
Writeback:             0 kB
HugePages_Total:       0
";

    const ZONEINFO: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 148485
  pages free     3840
        min      10
        low      13
        high     17
        spanned  4095
        present  3998
        managed  3840
        protection: (0, 3017, 22345, 22345, 22345)
Node 0, zone    DMA32
  pages free     772497
        high     3824
        managed  772497
        protection: (0, 0, 19328, 19328, 19328)
  pagesets
    cpu: 0
              count: 1
              high:  8
Node 0, zone   Normal
        high     24498
        managed  4947968
        protection: (0, 0, 0, 0, 0)
Node 0, zone  Movable
        high     32
        managed  0
        protection: (0, 0, 0, 0, 0)
";

    #[test]
    fn dirtyable_memory_matches_the_kernel() {
        // Computed by hand, in pages: min(17 + 22345, 3840) for the zone DMA, 3824 + 19328 for
        // DMA32, 24498 for Normal, and 0 for the empty zone Movable.
        assert_eq!(reserve_pages(ZONEINFO), Some(3840 + 23152 + 24498));
        let memory = Memory::of(MEMINFO, reserve_pages(ZONEINFO).map(|pages| pages * 4096));
        assert_eq!(memory.total_bytes, Some(24_682_416 << 10));
        assert_eq!(memory.dirty_bytes, Some(690_960 << 10));
        assert_eq!(memory.swap_bytes, Some(0));
        // The kernel that wrote these files reported a limit of 1,009,658 pages: 20 % (as 819 of
        // 4,096) of 5,049,5xx pages.
        let pages = memory.dirtyable_bytes().unwrap() / 4096;
        assert_eq!(pages * 819 / 4096, 1_009_658);
    }

    #[test]
    fn missing_fields_are_unknown_and_differences_saturate() {
        assert_eq!(Memory::of("", None), Memory::default());
        assert_eq!(Memory::of("MemFree: many kB\nDirty: 5 MB\n", None), Memory::default());
        assert_eq!(Memory::default().dirtyable_bytes(), None);
        let tiny = Memory {
            free_bytes: Some(1 << 20),
            file_bytes: Some(2 << 20),
            reserve_bytes: Some(4 << 20),
            ..Memory::default()
        };
        assert_eq!(tiny.dirtyable_bytes(), Some(2 << 20));
        assert_eq!(reserve_pages(""), None);
        assert_eq!(reserve_pages("Node 0, zone DMA\n  high many\n"), None);
        assert_eq!(named("nr_dirty 5\nnr_dirtied 7\n", "nr_dirtied"), Some(7));
        assert_eq!(named("nr_dirty_threshold 5\n", "nr_dirty"), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(
            text in "((Node|high|managed|protection:|MemFree:|Active\\(file\\):) [-(),0-9a-zkB ]*\n){0,8}\\PC*",
        ) {
            let memory = Memory::of(&text, reserve_pages(&text));
            prop_assert!(memory.dirtyable_bytes() >= memory.dirtyable_bytes().and(memory.file_bytes));
            named(&text, "high");
        }
    }
}
