//! How much of files is in the page cache, added up. Pure.

use std::fmt;
use std::ops::AddAssign;

use haul_disk::Residency;
use serde_json::{Value, json};

use crate::units::{Bytes, Count, Grouped};

/// So many files, and what of them is in memory, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) files: u64,
    /// The length of the files.
    pub(super) bytes: u64,
    /// The pages they have when all is in memory.
    pub(super) pages: u64,
    pub(super) resident: u64,
    /// Not yet on the medium; 0 where the kernel does not tell.
    pub(super) dirty: u64,
    /// On the way to it.
    pub(super) writeback: u64,
    /// Pages of files of others, of which the kernel does not tell; none of the numbers above has
    /// them.
    pub(super) untold: u64,
}

impl Cached {
    /// One file.
    pub(super) fn of(bytes: u64, residency: &Residency) -> Self {
        let pages = bytes.div_ceil(page_bytes());
        // The file may have grown between both questions.
        let of_them = |bytes: u64| bytes.div_ceil(page_bytes()).min(pages);
        Self {
            files: 1,
            bytes,
            pages,
            resident: of_them(residency.resident_bytes),
            dirty: of_them(residency.dirty_bytes.unwrap_or(0)),
            writeback: of_them(residency.writeback_bytes.unwrap_or(0)),
            untold: 0,
        }
    }

    /// One file of which the kernel does not tell.
    pub(super) fn untold(bytes: u64) -> Self {
        Self { files: 1, bytes, untold: bytes.div_ceil(page_bytes()), ..Self::default() }
    }

    /// What is known not to be there.
    pub(super) fn missing(&self) -> u64 {
        self.pages.saturating_sub(self.resident)
    }

    /// How much of all is there, in percent; nothing is there as a whole.
    pub(super) fn percent(&self) -> f64 {
        if self.pages == 0 { 100.0 } else { self.resident as f64 * 100.0 / self.pages as f64 }
    }

    /// As programs see it.
    pub(super) fn json(&self) -> Value {
        json!({
            "files": self.files,
            "bytes": self.bytes,
            "page_bytes": page_bytes(),
            "pages": self.pages,
            "resident_pages": self.resident,
            "dirty_pages": self.dirty,
            "writeback_pages": self.writeback,
            "untold_pages": self.untold,
        })
    }
}

impl AddAssign for Cached {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.pages += other.pages;
        self.resident += other.resident;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.untold += other.untold;
    }
}

impl fmt::Display for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, bytes) = (Count(self.files, "file"), Bytes(self.bytes));
        let (resident, pages) = (Grouped(self.resident), Count(self.pages, "page"));
        write!(f, "{files}, {bytes}")?;
        if self.pages > 0 {
            write!(f, ": {} in the page cache", in_bytes(self.resident))?;
            write!(f, " ({:.1} %, {resident} of {pages})", self.percent())?;
        }
        if self.dirty > 0 {
            write!(f, ", {} dirty", in_bytes(self.dirty))?;
        }
        if self.writeback > 0 {
            write!(f, ", {} being written", in_bytes(self.writeback))?;
        }
        if self.untold > 0 {
            write!(f, "; {} are of others, and not told of", in_bytes(self.untold))?;
        }
        Ok(())
    }
}

/// The bytes of a page of the page cache here.
pub(super) fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages, as people read them.
pub(super) fn in_bytes(pages: u64) -> Bytes {
    Bytes(pages.saturating_mul(page_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_in_pages_and_added_up() {
        let page = page_bytes();
        let residency = |resident: u64, dirty: u64| Residency {
            resident_bytes: resident * page,
            dirty_bytes: Some(dirty * page),
            writeback_bytes: None,
        };
        let mut sum = Cached::of(2 * page + 1, &residency(2, 1));
        assert_eq!((sum.pages, sum.missing(), sum.dirty), (3, 1, 1));
        sum += Cached::of(5 * page, &residency(0, 0));
        sum += Cached::of(0, &residency(0, 0));
        assert_eq!((sum.files, sum.pages, sum.resident, sum.missing()), (3, 8, 2, 6));
        assert!((sum.percent() - 25.0).abs() < 1e-9);
        assert!(sum.to_string().contains("(25.0 %, 2 of 8 pages)"), "{sum}");
        sum += Cached::untold(3 * page + 1);
        assert_eq!((sum.pages, sum.missing(), sum.untold), (8, 6, 4), "what is known is as before");
        assert!(sum.to_string().ends_with(" are of others, and not told of"), "{sum}");
        assert!((Cached::default().percent() - 100.0).abs() < 1e-9, "nothing is all there");
    }
}
