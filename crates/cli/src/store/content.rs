//! The bytes of an object, piece by piece.

use std::ops::Range;

use haul_file_store::Object;

use crate::report::{Failure, OrFail, Result};

/// How much is asked for at once.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// Hands the bytes of `range` to `sink`, in order. `name` is for messages.
pub(super) fn read(
    object: &Object,
    range: Range<u64>,
    name: impl Fn() -> String,
    mut sink: impl FnMut(&[u8]) -> Result,
) -> Result {
    let mut at = range.start;
    while at < range.end {
        let ask = usize::try_from(range.end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let bytes = object.read(at, ask).or_fail(|| format!("cannot read {}", name()))?;
        if bytes.is_empty() {
            return Err(Failure::new(format!("cannot read {}: it ends at byte {at}", name())));
        }
        sink(&bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}
