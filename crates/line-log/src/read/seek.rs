//! Finds the first line of a time in a file whose timestamps ascend, by binary search.

use haul_disk::{File, Result, read_full};

use crate::calendar::{STAMP_BYTES_MAX, parse_stamp};

/// The number of bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A line with a timestamp.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// The offset in the file in bytes.
    at: u64,
    /// The timestamp in microseconds since the Unix epoch.
    us: u64,
}

/// Returns the offset of the first line with a timestamp of `since_us` or later in the first `bytes`
/// bytes of a file; `bytes` if there is none.
pub(super) fn first_line_since(file: &dyn File, bytes: u64, since_us: u64) -> Result<u64> {
    // All lines with a timestamp that begin before `low` are older. `found` is the first line with a
    // timestamp that begins at `high` or later; it is not older.
    let (mut low, mut high, mut found) = (0, bytes, bytes);
    while low < high {
        let middle = low + (high - low) / 2;
        match next_line(file, middle, found)? {
            Some(line) if line.us < since_us => low = line.at + 1,
            Some(line) => (high, found) = (middle, line.at),
            None => high = middle,
        }
    }
    Ok(found)
}

/// Returns the first line with a timestamp that begins at `from` or later, and before `to`.
fn next_line(file: &dyn File, from: u64, to: u64) -> Result<Option<Line>> {
    let mut buffer = vec![0; READ_BYTES];
    let mut from = from;
    while from < to {
        // The byte before a line is a newline, unless the line is the first one.
        let begin = from.saturating_sub(1);
        let read = read_full(file, &mut buffer, begin)?;
        let bytes = &buffer[..read];
        let first = (from == 0).then_some(0);
        let after_newline = memchr::memchr_iter(b'\n', bytes).map(|newline| newline + 1);
        let mut next = begin + read as u64;
        for start in first.into_iter().chain(after_newline) {
            let at = begin + start as u64;
            if at >= to {
                return Ok(None);
            }
            if read - start < STAMP_BYTES_MAX && read == READ_BYTES {
                // The timestamp may be incomplete: read on from the line.
                next = at;
                break;
            }
            if let Some(us) = parse_stamp(&bytes[start..]) {
                return Ok(Some(Line { at, us }));
            }
        }
        if read < READ_BYTES {
            return Ok(None);
        }
        from = next;
    }
    Ok(None)
}
