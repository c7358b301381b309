//! Decides whether padding follows a batch's only record, so that the next record begins a page.
//! Performs no I/O.
//!
//! A batch is written in whole pages. A record of one page that does not begin at a page boundary
//! is therefore written as two pages. Padding after the previous record moves it to its own page.
//! The padding itself costs no write, because it lies in the previous batch's last page.

use haul_disk::PAGE_BYTES;

use crate::format::RECORD_HEADER_BYTES;

/// The maximum padding after each record, in bytes. A longer padding would enlarge the log by more
/// than an eighth to save a page write.
const EACH_BYTES_MAX: usize = PAGE_BYTES / 8;

/// Returns the length in bytes of the padding record that follows a batch's only record, of
/// `record_bytes` bytes and ending at the offset `end`; `None` if there should be none. The next
/// record is expected to have the same length.
pub(in crate::append) fn padding_bytes(end: u32, record_bytes: usize) -> Option<usize> {
    let used = end as usize % PAGE_BYTES;
    let whole = record_bytes.next_multiple_of(PAGE_BYTES);
    let saves_a_page = (used + record_bytes).div_ceil(PAGE_BYTES) * PAGE_BYTES > whole;
    if used == 0 || !saves_a_page || whole - record_bytes > EACH_BYTES_MAX {
        return None;
    }
    let left = PAGE_BYTES - used;
    if left >= RECORD_HEADER_BYTES {
        Some(left)
    } else {
        // A padding record has a header, for which this page has no space. Records that fill whole
        // pages need padding only once, so it may extend over the next page.
        (whole == record_bytes).then_some(left + PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: usize = 1000;

    /// Returns the pages written, and the bytes of padding, for [`RECORDS`] lone records of
    /// `record_bytes` bytes. The first one begins at the offset `start`.
    fn lone_records(start: usize, record_bytes: usize) -> (usize, usize) {
        let (mut end, mut pages, mut padding) = (start, 0, 0);
        for _ in 0..RECORDS {
            let from = end - end % PAGE_BYTES;
            end += record_bytes;
            if let Some(bytes) = padding_bytes(u32::try_from(end).unwrap(), record_bytes) {
                end += bytes;
                padding += bytes;
            }
            pages += (end - from).div_ceil(PAGE_BYTES);
        }
        (pages, padding)
    }

    #[test]
    fn records_of_whole_pages_are_padded_once() {
        for start in (PAGE_BYTES..2 * PAGE_BYTES).step_by(8) {
            for pages in 1..4 {
                let (written, padding) = lone_records(start, pages * PAGE_BYTES);
                assert!(written <= RECORDS * pages + 2, "{written} pages from {start}");
                assert!(padding < 2 * PAGE_BYTES, "{padding} bytes from {start}");
            }
        }
    }

    #[test]
    fn padding_writes_fewer_pages_and_is_short() {
        let without_padding = |record_bytes: usize| {
            let page = |end: usize| (end.div_ceil(PAGE_BYTES), (end - record_bytes) / PAGE_BYTES);
            let pages = (1..=RECORDS).map(|n| page(n * record_bytes)).map(|(to, from)| to - from);
            pages.sum::<usize>()
        };
        for record_bytes in (32..20_000).step_by(8) {
            let (pages, padding) = lone_records(PAGE_BYTES, record_bytes);
            assert!(pages <= without_padding(record_bytes), "{record_bytes}: {pages} pages");
            assert!(padding * 7 <= RECORDS * record_bytes, "{record_bytes}: {padding}");
        }
        assert_eq!(lone_records(PAGE_BYTES, 4000).0, RECORDS, "each record in its own page");
        let (pages, padding) = lone_records(PAGE_BYTES, 4128);
        assert!(pages == 2 * RECORDS && padding < 8 * RECORDS, "{pages} pages, {padding} bytes");
    }

    #[test]
    fn padding_ends_at_a_page_and_has_space_for_its_header() {
        for end in (4096..8192).step_by(8) {
            for record_bytes in (32..20_000).step_by(8) {
                let Some(bytes) = padding_bytes(end, record_bytes) else { continue };
                assert!(bytes >= RECORD_HEADER_BYTES, "{bytes} bytes at {end}");
                assert!((end as usize + bytes).is_multiple_of(PAGE_BYTES), "{bytes} at {end}");
            }
        }
    }
}
