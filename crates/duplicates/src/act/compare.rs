//! Whether two files hold the same bytes, at this moment.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use haul_disk::{Error, Op};

use super::left::Left;
use super::side::{Side, Watch};

/// How much of each is read at a time; as often it is looked whether somebody waits to write.
const STEP_BYTES: usize = 1 << 20;

/// Compares byte by byte, and gives up as soon as somebody wants to write to either.
pub(super) fn compare(keep: &Side, drop: &Side, watches: &[Watch<'_>]) -> Result<(), Left> {
    let step = usize::try_from(keep.identity.bytes).unwrap_or(STEP_BYTES).clamp(1, STEP_BYTES - 1);
    // One byte more than expected: a file that grew is another one.
    let (mut one, mut other) = (vec![0; step + 1], vec![0; step + 1]);
    let mut at = 0;
    loop {
        let read = |side: &Side, buffer: &mut [u8]| {
            fill(&side.file, buffer, at).map_err(|source| {
                Left::from(Error::new(Op::Read, &side.path, source).at(at, buffer.len()))
            })
        };
        let (kept, dropped) = (read(keep, &mut one)?, read(drop, &mut other)?);
        watches.iter().try_for_each(Watch::check)?;
        if one[..kept] != other[..dropped] {
            return Err(Left::Differs(keep.path.clone()));
        }
        at += kept as u64;
        if kept < one.len() {
            break;
        }
    }
    if at == keep.identity.bytes { Ok(()) } else { Err(Left::Changed) }
}

/// Reads until the buffer is full or the file ends.
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
