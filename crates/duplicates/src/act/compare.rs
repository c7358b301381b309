//! Compares two open files byte by byte, while a monitor of each file detects writers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use haul_disk::{Error, Op};

use super::open_file::{OpenFile, WriteMonitor};
use super::skip_reason::SkipReason;

/// The number of bytes compared per step. After each step, both monitors are checked.
const STEP_BYTES: usize = 1 << 20;

/// Compares the two files byte by byte. Fails at the first difference, or when a monitor reports
/// that another process opened a file for writing.
pub(super) fn compare(
    keep: &OpenFile,
    drop: &OpenFile,
    monitors: &[WriteMonitor<'_>],
) -> Result<(), SkipReason> {
    let step = usize::try_from(keep.identity.bytes).unwrap_or(STEP_BYTES).clamp(1, STEP_BYTES - 1);
    // The buffers hold one byte more than a step, to detect that a file grew.
    let (mut keep_buffer, mut drop_buffer) = (vec![0; step + 1], vec![0; step + 1]);
    let mut at = 0;
    loop {
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
