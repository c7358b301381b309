//! Opens a file of cached digests, and looks up each record that its bytes could contain.
//!
//! The first byte selects the hash function. With its highest bit, the number of records and the
//! checksum are set.

use std::path::PathBuf;
use std::sync::LazyLock;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{DigestCache, DigestForm, Meta};
use tempfile::TempDir;

use crate::input::Input;

const HEADER_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 16;
const FIXED_BYTES: usize = 72;

static DIR: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().unwrap());

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let kind = HashKind::ALL[usize::from(flags & 127) % HashKind::ALL.len()];
    let mut file = input.take(usize::MAX).to_vec();
    if let Some(end) = file.len().checked_sub(CHECKSUM_BYTES).filter(|_| flags & 128 != 0) {
        if let Some(record_bytes) = end.checked_sub(HEADER_BYTES) {
            let count = (record_bytes / (FIXED_BYTES + kind.bytes())) as u64;
            file[16..24].copy_from_slice(&count.to_le_bytes());
        }
        let checksum = HashKind::Xxh3.of(&file[..end]);
        file[end..].copy_from_slice(checksum.as_bytes());
    }
    let path: PathBuf = DIR.path().join("digests");
    std::fs::write(&path, &file).unwrap();
    let Ok(cache) = DigestCache::open(&path, kind) else { return };
    assert_eq!(cache.hash(), kind);
    let records = &file[HEADER_BYTES.min(file.len())..];
    let records = records.chunks_exact(FIXED_BYTES + kind.bytes());
    let has_samples = records.clone().any(|record| record[64] & 1 != 0);
    for record in records {
        let meta = Meta {
            device: number(record),
            inode: number(&record[8..]),
            bytes: number(&record[16..]),
            modified_ns: number(&record[24..]).cast_signed(),
            changed_ns: number(&record[32..]).cast_signed(),
            links: 1,
        };
        for form in [DigestForm::Bytes, DigestForm::ZeroRuns] {
            if let Some(digest) = cache.digest(&meta, form) {
                assert_eq!(digest.as_bytes().len(), kind.bytes());
            }
            let fingerprint = record[44..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
            assert!(has_samples || cache.sample(&meta, form, fingerprint).is_none());
        }
    }
}
