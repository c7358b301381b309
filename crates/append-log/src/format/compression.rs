//! Compresses payloads with LZ4, and decompresses them.
//!
//! A compressed payload is the length of the original in 4 bytes, followed by an LZ4 block. The
//! checksum in the record's header covers these stored bytes, so it is verified before they are
//! decompressed.

use super::{PAYLOAD_BYTES_MAX, record_bytes, u32_at};

/// The length in bytes of the field before the LZ4 block.
const LENGTH_BYTES: usize = 4;

/// The maximum number of bytes that each byte of an LZ4 block decompresses to, rounded up.
const RATIO_MAX: usize = 255;

/// Compresses a payload given in parts. Returns `None` if the record would not become shorter.
pub(crate) fn compress(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let joined;
    let payload = match parts {
        [one] => one,
        several => {
            joined = several.concat();
            &joined[..]
        }
    };
    let length = u32::try_from(payload.len()).ok()?;
    let block_max = lz4_flex::block::get_maximum_output_size(payload.len());
    let mut stored = vec![0; LENGTH_BYTES + block_max];
    stored[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    let block_bytes = lz4_flex::block::compress_into(payload, &mut stored[LENGTH_BYTES..]).ok()?;
    stored.truncate(LENGTH_BYTES + block_bytes);
    (record_bytes(stored.len()) < record_bytes(payload.len())).then_some(stored)
}

/// Decompresses stored bytes whose checksum was verified, and appends the payload to `target`.
/// Returns `false` if they are not what [`compress`] returns.
pub(crate) fn decompress(stored: &[u8], target: &mut Vec<u8>) -> bool {
    let Some(block) = stored.get(LENGTH_BYTES..) else { return false };
    let bytes = u32_at(stored, 0) as usize;
    // Memory is allocated only for a length that a payload can have.
    if bytes > (PAYLOAD_BYTES_MAX as usize).min(block.len().saturating_mul(RATIO_MAX)) {
        return false;
    }
    let from = target.len();
    target.resize(from + bytes, 0);
    lz4_flex::block::decompress_into(block, &mut target[from..]).is_ok_and(|n| n == bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpacked(stored: &[u8]) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        decompress(stored, &mut payload).then_some(payload)
    }

    #[test]
    fn only_payloads_that_become_shorter_are_compressed() {
        assert_eq!(compress(&[b""]), None);
        assert_eq!(compress(&[b"short", b" one"]), None);
        let noise: Vec<u8> =
            (0..1000_u32).flat_map(|n| haul_crc::crc32c(&n.to_le_bytes()).to_le_bytes()).collect();
        assert_eq!(compress(&[&noise]), None);
        let stored = compress(&[&[7; 1000], &[8; 3096]]).unwrap();
        assert!(stored.len() < 100, "{}", stored.len());
        assert_eq!(unpacked(&stored).unwrap(), [&[7; 1000][..], &[8; 3096]].concat());
    }

    #[test]
    fn declared_length_is_checked_before_memory_is_allocated() {
        let stored = compress(&[&[7; 4096]]).unwrap();
        for length in [0, 1, 4095, 4097, 1 << 20, u32::MAX] {
            let mut wrong = stored.clone();
            wrong[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
            let mut target = Vec::new();
            assert!(!decompress(&wrong, &mut target), "{length}");
            assert!(target.capacity() <= RATIO_MAX * stored.len(), "{length}");
        }
        assert_eq!((unpacked(b""), unpacked(&[0; 3]), unpacked(&[1, 0, 0, 0])), (None, None, None));
    }

    proptest! {
        #[test]
        fn decompression_restores_the_payload(
            pieces in prop::collection::vec((any::<u8>(), 0_usize..500), 0..20),
        ) {
            let payload: Vec<u8> =
                pieces.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
            if let Some(stored) = compress(&[&payload]) {
                prop_assert_eq!(unpacked(&stored), Some(payload));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(stored in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(payload) = unpacked(&stored) {
                prop_assert!(payload.len() <= RATIO_MAX * stored.len());
            }
        }
    }
}
