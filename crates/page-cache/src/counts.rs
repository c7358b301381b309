//! Holds and sums the numbers of cached, missing and dirty pages of files.

use std::ops::AddAssign;

use haul_disk::Residency;

/// Page counts of one or more files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// The number of files.
    pub files: u64,
    /// The total length of the files in bytes.
    pub bytes: u64,
    /// The number of pages of the files whose residency is known.
    pub pages: u64,
    /// The number of pages in the page cache.
    pub resident: u64,
    /// The number of dirty pages; 0 if the kernel does not report them.
    pub dirty: u64,
    /// The number of pages under writeback; 0 if the kernel does not report them.
    pub writeback: u64,
    /// The number of pages of files whose residency the kernel does not report to this user.
    /// `pages` and `resident` do not include these pages.
    pub unknown: u64,
}

impl PageCounts {
    /// Returns the counts of one file of `bytes` bytes.
    pub(crate) fn of(bytes: u64, residency: &Residency) -> Self {
        let pages = bytes.div_ceil(page_bytes());
        // The counts are limited to `pages`, because the file may have grown since its length was
        // read.
        let pages_of = |bytes: u64| bytes.div_ceil(page_bytes()).min(pages);
        Self {
            files: 1,
            bytes,
            pages,
            resident: pages_of(residency.resident_bytes),
            dirty: pages_of(residency.dirty_bytes.unwrap_or(0)),
            writeback: pages_of(residency.writeback_bytes.unwrap_or(0)),
            unknown: 0,
        }
    }

    /// Returns the counts of one file of `bytes` bytes whose residency is unknown.
    pub(crate) fn unknown(bytes: u64) -> Self {
        Self { files: 1, bytes, unknown: bytes.div_ceil(page_bytes()), ..Self::default() }
    }

    /// Returns the number of pages known not to be cached.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.pages.saturating_sub(self.resident)
    }

    /// Returns the percentage of `pages` that are cached, 0 to 100; 100 if there are no pages.
    #[must_use]
    pub fn percent(&self) -> f64 {
        if self.pages == 0 { 100.0 } else { self.resident as f64 * 100.0 / self.pages as f64 }
    }
}

impl AddAssign for PageCounts {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.pages += other.pages;
        self.resident += other.resident;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.unknown += other.unknown;
    }
}

/// Returns the size of a memory page in bytes.
#[must_use]
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_counts_add_up() {
        let page = page_bytes();
        let residency = |resident: u64, dirty: u64| Residency {
            resident_bytes: resident * page,
            dirty_bytes: Some(dirty * page),
            writeback_bytes: None,
        };
        let mut sum = PageCounts::of(2 * page + 1, &residency(2, 1));
        assert_eq!((sum.pages, sum.missing(), sum.dirty), (3, 1, 1));
        sum += PageCounts::of(5 * page, &residency(0, 0));
        sum += PageCounts::of(0, &residency(0, 0));
        assert_eq!((sum.files, sum.pages, sum.resident, sum.missing()), (3, 8, 2, 6));
        assert!((sum.percent() - 25.0).abs() < 1e-9);
        sum += PageCounts::unknown(3 * page + 1);
        assert_eq!((sum.pages, sum.missing(), sum.unknown), (8, 6, 4), "known pages are unchanged");
        assert!(
            (PageCounts::default().percent() - 100.0).abs() < 1e-9,
            "no pages are fully cached"
        );
    }
}
