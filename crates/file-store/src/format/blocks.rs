//! Checksums for the blocks of an object's data.

/// The bytes of data that each block checksum covers; the last one may cover fewer.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// Returns the checksum of each block of data in a needle. Data of at most one block has no block
/// checksums: it is read completely.
pub(crate) fn block_checksums(data: &[u8]) -> Box<[u32]> {
    if data.len() <= BLOCK_BYTES {
        return Box::default();
    }
    data.chunks(BLOCK_BYTES).map(haul_crc::crc32c).collect()
}

/// Returns the number of block checksums that an object with this length has; `None` if it has only
/// one block or is too long to be stored in its needle.
pub(super) fn block_count(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(u32::try_from(bytes).ok()?).ok()?;
    (bytes > BLOCK_BYTES).then(|| bytes.div_ceil(BLOCK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_one_block_has_no_table() {
        for (bytes, blocks) in
            [(0, 0), (1, 0), (BLOCK_BYTES, 0), (BLOCK_BYTES + 1, 2), (3 * BLOCK_BYTES, 3)]
        {
            let data: Vec<u8> = (0..bytes).map(|at| (at / 100).to_le_bytes()[0]).collect();
            let table = block_checksums(&data);
            assert_eq!(table.len(), blocks, "{bytes} bytes");
            assert_eq!(block_count(bytes as u64).unwrap_or(0), blocks, "{bytes} bytes");
            for (block, checksum) in data.chunks(BLOCK_BYTES).zip(&table) {
                assert_eq!(haul_crc::crc32c(block), *checksum);
            }
        }
        assert_eq!(block_count(u64::from(u32::MAX) + 1), None);
    }
}
