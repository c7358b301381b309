//! Reads a volume's index.

use haul_disk::{Disk, Open, read_full};

use crate::names;
use crate::volume_index::format::{VolumeIndex, decode};

/// Reads the intact part of a volume's index. `nonce` is the volume's nonce, if known. Returns
/// `None` if the volume has no index, or if it cannot be read.
pub(crate) fn read(volumes: &dyn Disk, volume: u32, nonce: Option<u64>) -> Option<VolumeIndex> {
    read_after(volumes, volume, nonce, 0)
}

/// Reads a volume's index like [`read`], without needles in blocks that end at or before
/// `skip_before`.
pub(crate) fn read_after(
    volumes: &dyn Disk,
    volume: u32,
    nonce: Option<u64>,
    skip_before: u32,
) -> Option<VolumeIndex> {
    let how = Open { read_only: true, ..Open::default() };
    let file = volumes.open(&names::index(volume), how).ok()?;
    let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).ok()?];
    let read = read_full(&*file, &mut bytes, 0).ok()?;
    decode(&bytes[..read], volume, nonce, skip_before)
}
