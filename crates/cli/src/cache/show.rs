//! Formats page counts as text and JSON. The module does no I/O.

use std::fmt;

use haul_page_cache::{PageCounts, page_bytes};
use serde_json::{Value, json};

use crate::units::{Bytes, Count, Grouped};

/// Returns the counts as JSON.
pub(super) fn counts_json(counts: &PageCounts) -> Value {
    json!({
        "files": counts.files,
        "bytes": counts.bytes,
        "page_bytes": page_bytes(),
        "pages": counts.pages,
        "resident_pages": counts.resident,
        "dirty_pages": counts.dirty,
        "writeback_pages": counts.writeback,
        "unknown_pages": counts.unknown,
        "untold_pages": counts.unknown, // former name of `unknown_pages`
    })
}

/// Page counts, displayed as text.
pub(super) struct CountsText(pub(super) PageCounts);

impl fmt::Display for CountsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.0;
        let (files, bytes) = (Count(counts.files, "file"), Bytes(counts.bytes));
        let (resident, pages) = (Grouped(counts.resident), Count(counts.pages, "page"));
        write!(f, "{files}, {bytes}")?;
        if counts.pages > 0 {
            write!(f, ": {} in the page cache", in_bytes(counts.resident))?;
            write!(f, " ({:.1} %, {resident} of {pages})", counts.percent())?;
        }
        if counts.dirty > 0 {
            write!(f, ", {} dirty", in_bytes(counts.dirty))?;
        }
        if counts.writeback > 0 {
            write!(f, ", {} being written", in_bytes(counts.writeback))?;
        }
        if counts.unknown > 0 {
            write!(f, "; {} in files of other users, not reported", in_bytes(counts.unknown))?;
        }
        Ok(())
    }
}

/// Converts a number of pages to a printable size.
pub(super) fn in_bytes(pages: u64) -> Bytes {
    Bytes(pages.saturating_mul(page_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_share_and_unknown_pages() {
        let mut counts = PageCounts { files: 3, pages: 8, resident: 2, ..PageCounts::default() };
        let text = CountsText(counts).to_string();
        assert!(text.contains("(25.0 %, 2 of 8 pages)"), "{text}");
        counts.unknown = 4;
        let text = CountsText(counts).to_string();
        assert!(text.ends_with(" in files of other users, not reported"), "{text}");
    }
}
