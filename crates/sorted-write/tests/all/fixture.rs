//! Creates and reads the files that the tests share.

use std::sync::Arc;

use haul_disk::{Disk, Open, write_full};
use haul_disk_sim::MemoryDisk;
use haul_sorted_write::{FileId, Options, SortedWriter};

/// Creates a disk with a durable file of `bytes` bytes, which are not all zeros.
pub(crate) fn disk_with(name: &str, bytes: usize) -> MemoryDisk {
    let disk = MemoryDisk::default();
    add_file(&disk, name, bytes);
    disk
}

pub(crate) fn add_file(disk: &MemoryDisk, name: &str, bytes: usize) {
    let file = disk.create(name, Open::default()).unwrap();
    write_full(&*file, &original(bytes), 0).unwrap();
    file.sync(haul_disk::Durability::Everything).unwrap();
    disk.sync_dir("").unwrap();
}

/// Returns the initial content of a file.
pub(crate) fn original(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

/// Returns the content of a file, read from the disk without a writer.
pub(crate) fn content(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name, Open { read_only: true, ..Open::default() }).unwrap();
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
    haul_disk::read_full(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// Starts a writer on the file `big` of a disk.
pub(crate) fn writer_on(disk: &MemoryDisk, options: Options) -> (SortedWriter, FileId) {
    let writer = SortedWriter::start(options).unwrap();
    let file = writer.open(disk, "big").unwrap();
    (writer, file)
}

/// Applies a write to a model of the file.
pub(crate) fn put(model: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if model.len() < offset + bytes.len() {
        model.resize(offset + bytes.len(), 0);
    }
    model[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Returns a shared handle to the disk.
pub(crate) fn shared(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}
