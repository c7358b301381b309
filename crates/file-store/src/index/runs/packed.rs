//! A block's compressed form in the file.
//!
//! # Source
//! RFC 8878 (zstd): its entropy coding halves random hexadecimal digits, which many keys contain
//! and which compressors without entropy coding, such as LZ4, do not compress.

use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

use crate::index::runs::block::Block;
use crate::index::runs::format::{
    BLOCK_BYTES, KEY_BYTES_MAX, Malformed, VALUE_BYTES_MAX, number, push_number,
};

/// The compression level. Level 3 takes longer and saves 2 % more.
const LEVEL: i32 = 1;

/// The maximum length of a block's part: its keys or its values. A block longer than
/// [`BLOCK_BYTES`] has a single entry.
const PART_BYTES_MAX: usize = 16 + max(BLOCK_BYTES, max(KEY_BYTES_MAX, VALUE_BYTES_MAX));

/// The maximum number of decompressors kept for reuse. Each uses about 100 KiB of memory.
const DECOMPRESSORS_MAX: usize = 8;

/// Unused decompressors: creating one per page of a listing would take longer than the page.
static DECOMPRESSORS: Mutex<Vec<Decompressor<'static>>> = Mutex::new(Vec::new());

const fn max(one: usize, other: usize) -> usize {
    if one > other { one } else { other }
}

pub(crate) struct Packer {
    /// `None` if it could not be allocated: all blocks are stored uncompressed.
    compressor: Option<Compressor<'static>>,
    frame: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self { compressor: Compressor::new(LEVEL).ok(), frame: Vec::new() }
    }

    /// Appends a block's compressed form.
    pub(crate) fn pack(&mut self, block: &Block, out: &mut Vec<u8>) {
        for part in [&block.keys, &block.values] {
            let stored = if self.compress(part) { &self.frame } else { part };
            push_number(out, part.len());
            push_number(out, stored.len());
            out.extend_from_slice(stored);
        }
    }

    /// Compresses a part into the frame. Returns `false` if the frame is not shorter.
    fn compress(&mut self, part: &[u8]) -> bool {
        self.frame.clear();
        self.frame.reserve(part.len());
        let compressor = self.compressor.as_mut();
        // Without space for the frame this fails: the frame would be longer than the part.
        let bytes = compressor.map(|packer| packer.compress_to_buffer(part, &mut self.frame));
        matches!(bytes, Some(Ok(bytes)) if bytes < part.len())
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// Decompresses a block and replaces the entries of `block`.
pub(crate) fn unpack(packed: &[u8], block: &mut Block) -> Result<(), Malformed> {
    let mut at = 0;
    for part in [&mut block.keys, &mut block.values] {
        let bytes = number(packed, &mut at)?;
        let stored_bytes = number(packed, &mut at)?;
        let stored = packed.get(at..at + stored_bytes).ok_or(Malformed)?;
        at += stored_bytes;
        part.clear();
        if stored_bytes == bytes {
            part.extend_from_slice(stored);
        } else if bytes <= PART_BYTES_MAX {
            part.reserve(bytes);
            decompress(stored, part)?;
        }
        if part.len() != bytes {
            return Err(Malformed);
        }
    }
    if at == packed.len() { Ok(()) } else { Err(Malformed) }
}

/// Decompresses a frame into the capacity of `out`.
fn decompress(frame: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let kept = DECOMPRESSORS.lock().pop();
    let mut decompressor = match kept {
        Some(decompressor) => decompressor,
        None => Decompressor::new().map_err(|_no_memory| Malformed)?,
    };
    decompressor.decompress_to_buffer(frame, out).map_err(|_not_a_frame| Malformed)?;
    let mut kept = DECOMPRESSORS.lock();
    if kept.len() < DECOMPRESSORS_MAX {
        kept.push(decompressor);
    }
    Ok(())
}
