//! The format of sorted runs, which `FORMAT.md` describes.

use haul_crc::{crc32c, crc32c_append};

use crate::format::{u32_at, u64_at};

/// The maximum length of a key.
pub(crate) const KEY_BYTES_MAX: usize = 4 << 10;

/// The maximum length of a value.
pub(crate) const VALUE_BYTES_MAX: usize = 1 << 20;

/// The maximum length of an unpacked block with more than one entry.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;

pub(crate) const FOOTER_BYTES: usize = 64;

/// The length of the checksum with which a block starts.
pub(crate) const CHECKSUM_BYTES: usize = 4;

const MAGIC: [u8; 8] = *b"HAUL-RUN";
const VERSION: u32 = 1;

/// The error for malformed bytes, which no writer produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) id: u64,
    pub(crate) entries: u64,
    pub(crate) deletions: u64,
    pub(crate) blocks: u32,
    pub(crate) index_checksum: u32,
    pub(crate) index_offset: u64,
    pub(crate) index_bytes: u64,
}

impl Footer {
    pub(crate) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut footer = [0; FOOTER_BYTES];
        footer[..8].copy_from_slice(&MAGIC);
        footer[12..16].copy_from_slice(&VERSION.to_le_bytes());
        footer[16..24].copy_from_slice(&self.id.to_le_bytes());
        footer[24..32].copy_from_slice(&self.entries.to_le_bytes());
        footer[32..40].copy_from_slice(&self.deletions.to_le_bytes());
        footer[40..44].copy_from_slice(&self.blocks.to_le_bytes());
        footer[44..48].copy_from_slice(&self.index_checksum.to_le_bytes());
        footer[48..56].copy_from_slice(&self.index_offset.to_le_bytes());
        footer[56..64].copy_from_slice(&self.index_bytes.to_le_bytes());
        let checksum = crc32c(&footer[12..]);
        footer[8..12].copy_from_slice(&checksum.to_le_bytes());
        footer
    }

    /// Decodes the footer in a file with `file_bytes` bytes.
    pub(crate) fn decode(
        footer: &[u8; FOOTER_BYTES],
        file_bytes: u64,
    ) -> Result<Self, &'static str> {
        if footer[..8] != MAGIC {
            return Err("the file does not end with the footer of a run");
        }
        if u32_at(footer, 8) != crc32c(&footer[12..]) {
            return Err("the checksum of the footer does not match");
        }
        if u32_at(footer, 12) != VERSION {
            return Err("the version of the run is not supported");
        }
        let footer = Self {
            id: u64_at(footer, 16),
            entries: u64_at(footer, 24),
            deletions: u64_at(footer, 32),
            blocks: u32_at(footer, 40),
            index_checksum: u32_at(footer, 44),
            index_offset: u64_at(footer, 48),
            index_bytes: u64_at(footer, 56),
        };
        let end = footer.index_offset.checked_add(footer.index_bytes);
        if end.and_then(|end| end.checked_add(FOOTER_BYTES as u64)) != Some(file_bytes) {
            return Err("the footer does not match the length of the file");
        }
        Ok(footer)
    }
}

/// Computes the checksum of the block at `offset`. It includes the run and the offset, so that a
/// misplaced block is detected.
fn block_checksum(run: u64, offset: u64, packed: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&run.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c_append(crc32c(&place), packed)
}

/// Writes the checksum to the start of a block.
pub(crate) fn seal_block(block: &mut [u8], run: u64, offset: u64) {
    let (checksum, packed) = block.split_at_mut(CHECKSUM_BYTES);
    checksum.copy_from_slice(&block_checksum(run, offset, packed).to_le_bytes());
}

/// Returns a block without its checksum; `None` if the checksum does not match.
pub(crate) fn checked_block(block: &[u8], run: u64, offset: u64) -> Option<&[u8]> {
    let (checksum, packed) = block.split_first_chunk::<CHECKSUM_BYTES>()?;
    (u32::from_le_bytes(*checksum) == block_checksum(run, offset, packed)).then_some(packed)
}

/// Returns the shortest prefix of `first` that is greater than `last`, which is less than `first`.
pub(crate) fn separator<'a>(last: &[u8], first: &'a [u8]) -> &'a [u8] {
    &first[..first.len().min(shared_prefix(last, first) + 1)]
}

/// Appends a block to the block index.
pub(crate) fn push_index_entry(out: &mut Vec<u8>, separator: &[u8], block_bytes: usize) {
    push_number(out, separator.len());
    push_number(out, block_bytes);
    out.extend_from_slice(separator);
}

/// Decodes the block-index entry at `at` and advances `at`. Returns the block's separator and
/// length.
pub(crate) fn decode_index_entry<'a>(
    index: &'a [u8],
    at: &mut usize,
) -> Result<(&'a [u8], usize), Malformed> {
    let separator_bytes = number(index, at)?;
    let block_bytes = number(index, at)?;
    let separator = index.get(*at..*at + separator_bytes).ok_or(Malformed)?;
    *at += separator_bytes;
    if block_bytes <= CHECKSUM_BYTES || separator_bytes > KEY_BYTES_MAX {
        return Err(Malformed);
    }
    Ok((separator, block_bytes))
}

/// Returns the length of two keys' common prefix.
#[inline]
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut shared = 0;
    for (a, b) in words {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}

/// Encodes a number of at most 28 bits in LEB128.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Decodes a number at `at` and advances `at`.
#[inline]
pub(super) fn number(bytes: &[u8], at: &mut usize) -> Result<usize, Malformed> {
    let byte = *bytes.get(*at).ok_or(Malformed)?;
    *at += 1;
    if byte < 0x80 { Ok(usize::from(byte)) } else { long_number(bytes, at, byte) }
}

fn long_number(bytes: &[u8], at: &mut usize, first: u8) -> Result<usize, Malformed> {
    let mut number = usize::from(first & 0x7f);
    for shift in [7, 14, 21] {
        let byte = *bytes.get(*at).ok_or(Malformed)?;
        *at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footer_that_does_not_fit_the_file_or_the_version_is_refused() {
        let footer = Footer {
            id: 7,
            entries: 9,
            deletions: 1,
            blocks: 2,
            index_checksum: 5,
            index_offset: 100,
            index_bytes: 20,
        };
        let good = footer.encode();
        assert_eq!(Footer::decode(&good, 184), Ok(footer));
        for file_bytes in [0, 64, 183, 185, u64::MAX] {
            let error = Footer::decode(&good, file_bytes).unwrap_err();
            assert!(error.contains("length of the file"), "{file_bytes}: {error}");
        }
        let endless = Footer { index_offset: u64::MAX, ..footer };
        assert!(Footer::decode(&endless.encode(), 83).is_err());
        for bit in 0..FOOTER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::decode(&bad, 184).is_err(), "bit {bit}");
        }
        let mut later = good;
        later[12] = 3;
        let checksum = crc32c(&later[12..]);
        later[8..12].copy_from_slice(&checksum.to_le_bytes());
        let error = Footer::decode(&later, 184).unwrap_err();
        assert!(error.contains("version"), "{error}");
    }

    #[test]
    fn numbers_have_at_most_28_bits() {
        for value in [0, 0x7f, 0x80, 0x3fff, 0x4000, (1 << 28) - 1] {
            let (mut bytes, mut at) = (Vec::new(), 0);
            push_number(&mut bytes, value);
            assert_eq!((number(&bytes, &mut at), at), (Ok(value), bytes.len()));
        }
        for bytes in [&[][..], &[0x80], &[0xff; 3], &[0xff; 4], &[0xff, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(number(bytes, &mut 0), Err(Malformed), "{bytes:02x?}");
        }
    }

    #[test]
    fn index_entry_of_an_impossible_block_is_malformed() {
        let entry = |separator: &[u8], block_bytes: usize| {
            let mut index = Vec::new();
            push_index_entry(&mut index, separator, block_bytes);
            index
        };
        let decoded = |index: &[u8]| {
            let decoded = decode_index_entry(index, &mut 0);
            decoded.map(|(separator, bytes)| (separator.len(), bytes))
        };
        let longest = [b'k'; KEY_BYTES_MAX];
        assert_eq!(decoded(&entry(&longest, CHECKSUM_BYTES + 1)), Ok((KEY_BYTES_MAX, 5)));
        assert_eq!(decoded(&entry(b"k", CHECKSUM_BYTES)), Err(Malformed));
        assert_eq!(decoded(&entry(&[b'k'; KEY_BYTES_MAX + 1], 100)), Err(Malformed));
        assert_eq!(decoded(&entry(&longest, 100)[..KEY_BYTES_MAX]), Err(Malformed));
    }
}
