//! Tar archives that are imported into a store, and exported from it.

use std::error::Error;
use std::path::Path;
use std::sync::LazyLock;

use haul_disk::Error as DiskError;
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_file_store::{Attributes, ListRequest};
use haul_store_pool::Pool;
use haul_transfer::{
    ExportError, ExportEvents, ImportEvents, TarError, TarExport, TarImport, TarImported,
};

use crate::formats::store::{BIG_OBJECT_BYTES, BUCKET, open, read};

const BLOCK_BYTES: usize = 512;

/// A store with an empty bucket.
static EMPTY: LazyLock<Medium> = LazyLock::new(|| {
    let disk = MemoryDisk::default();
    let store = open(&disk).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.close().unwrap();
    disk.medium().cut(Survival::Everything)
});

struct Ignored;

impl ImportEvents for Ignored {
    fn is_stopped(&self) -> bool {
        false
    }
    fn progress(&self, _files: u64, _bytes: u64) {}
    fn failed(&self, _path: &Path, _error: &(dyn Error + 'static)) {}
}

impl ExportEvents for Ignored {
    fn is_stopped(&self) -> bool {
        false
    }
    fn progress(&self, _objects: u64, _bytes: u64) {}
    fn directory_failed(&self, error: DiskError) {
        panic!("{error}");
    }
    fn failed(&self, key: &str, error: ExportError) {
        panic!("{key}: {error}");
    }
}

/// Keys, contents and attributes of objects.
pub(crate) type Objects = Vec<(String, Vec<u8>, Attributes)>;

/// Opens a store with an empty bucket.
///
/// # Panics
/// If the store cannot be opened.
#[must_use]
pub(crate) fn new_store() -> Pool {
    open(&MemoryDisk::on(&EMPTY)).unwrap().into()
}

/// Imports an archive.
pub(crate) fn import(
    store: &Pool,
    mut archive: &[u8],
    skip_existing: bool,
) -> (TarImported, Result<(), TarError>) {
    let (bucket, big_object_bytes) = (BUCKET, BIG_OBJECT_BYTES);
    TarImport { store, bucket, prefix: "", big_object_bytes, skip_existing }
        .run(&mut archive, &Ignored)
}

/// Exports all objects.
///
/// # Panics
/// If that fails.
#[must_use]
pub(crate) fn export(store: &Pool) -> Vec<u8> {
    let mut archive = Vec::new();
    TarExport { store, bucket: BUCKET, prefix: "" }.run(&mut archive, &Ignored).unwrap();
    archive
}

/// Returns all objects.
///
/// # Panics
/// If one cannot be read.
#[must_use]
pub(crate) fn objects(store: &Pool) -> Objects {
    let page = store.list(BUCKET, &ListRequest { limit: usize::MAX, ..ListRequest::default() });
    let entries = page.unwrap().entries.into_iter();
    entries
        .map(|entry| {
            let key = entry.name();
            let attributes = store.head(BUCKET, key).unwrap().attributes.clone();
            let object = store.get(BUCKET, key).unwrap();
            (key.to_owned(), read(&object).unwrap(), attributes)
        })
        .collect()
}

/// Sets the checksums of the headers of an archive, as far as each is where the length of the
/// preceding member declares it.
pub(crate) fn set_checksums(archive: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = archive.get_mut(at..at + BLOCK_BYTES) {
        if header.iter().all(|byte| *byte == 0) {
            return;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136].iter().filter(|byte| matches!(byte, b'0'..=b'7'));
        let bytes = digits.fold(0_usize, |sum, digit| sum << 3 | usize::from(digit - b'0'));
        // Links and directories have no content, even if their headers state a length.
        let content = if matches!(header[156], b'2' | b'5') { 0 } else { bytes };
        at += BLOCK_BYTES + content.next_multiple_of(BLOCK_BYTES);
    }
}
