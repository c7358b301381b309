//! Compares two open files byte by byte, while a monitor of each file detects writers.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use haul_disk::{Error, Op, next_hole};

use super::open_file::{OpenFile, WriteMonitor};
use super::skip_reason::SkipReason;

/// The number of bytes compared per step. After each step, both monitors are checked.
const STEP_BYTES: usize = 1 << 20;

/// The minimum length in bytes of a hole that is not read.
const HOLE_BYTES_MIN: u64 = 8 << 20;

/// Compares the two files byte by byte. Ranges that are holes in both files are not read, because
/// both consist of zeros. Fails at the first difference, or when a monitor reports that another
/// process opened a file for writing.
pub(super) fn compare(
    keep: &OpenFile,
    drop: &OpenFile,
    monitors: &[WriteMonitor<'_>],
) -> Result<(), SkipReason> {
    let step = usize::try_from(keep.identity.bytes).unwrap_or(STEP_BYTES).clamp(1, STEP_BYTES - 1);
    // The buffers hold one byte more than a step, to detect that a file grew.
    let (mut keep_buffer, mut drop_buffer) = (vec![0; step + 1], vec![0; step + 1]);
    let (mut at, bytes) = (0, keep.identity.bytes);
    let mut holes = [keep, drop].map(|file| Holes { file, next: 0..0 });
    loop {
        let [keep_end, drop_end] = holes.each_mut().map(|holes| holes.end_of_hole(at, bytes));
        if keep_end.min(drop_end) > at {
            monitors.iter().try_for_each(WriteMonitor::check)?;
            at = keep_end.min(drop_end);
        }
        let read = |file: &OpenFile, buffer: &mut [u8]| {
            fill(&file.file, buffer, at).map_err(|source| {
                SkipReason::from(Error::new(Op::Read, &file.path, source).at(at, buffer.len()))
            })
        };
        let keep_bytes = read(keep, &mut keep_buffer)?;
        let drop_bytes = read(drop, &mut drop_buffer)?;
        monitors.iter().try_for_each(WriteMonitor::check)?;
        if keep_buffer[..keep_bytes] != drop_buffer[..drop_bytes] {
            return Err(SkipReason::ContentDiffers(keep.path.clone()));
        }
        at += keep_bytes as u64;
        if keep_bytes < keep_buffer.len() {
            break;
        }
    }
    if at == keep.identity.bytes { Ok(()) } else { Err(SkipReason::Changed) }
}

/// The holes of a file.
struct Holes<'a> {
    file: &'a OpenFile,
    /// The last hole found.
    next: Range<u64>,
}

impl Holes<'_> {
    /// Returns the end of the hole at `at`, or `at` if no long hole contains this offset. `bytes`
    /// is the length of the file. The last byte of a file counts as data, so that reading it
    /// verifies the length.
    fn end_of_hole(&mut self, at: u64, bytes: u64) -> u64 {
        if at >= self.next.end {
            let range = at..bytes.saturating_sub(1);
            // After an error, and after the last hole, all bytes are read.
            let found = next_hole(self.file.file.as_fd(), range, HOLE_BYTES_MIN).ok().flatten();
            self.next = found.unwrap_or(u64::MAX..u64::MAX);
        }
        if self.next.start <= at { self.next.end } else { at }
    }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
