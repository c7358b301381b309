//! Restores a copy into an empty directory.

use haul_append_log::{Lsn, RebuiltSegment};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::manifest::object::ManifestObject;
use crate::manifest::{Chunk, Manifest, SegmentCopy};
use crate::names;
use crate::remote::Remote;
use crate::session::Sessions;

/// The result of a restoration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The end of the log.
    pub end: Lsn,
    /// The time of the manifest, in milliseconds since 1970, by the clock of its writer.
    pub written_ms: u64,
    /// The number of segments.
    pub segments: u64,
    /// The number of bytes that were fetched.
    pub fetched_bytes: u64,
}

/// Restores a log into the root of a disk, which must be empty.
///
/// # Errors
/// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy is of a file store, [`Error::Invalid`] if
/// the directory is not empty, [`Error::Damaged`], [`Error::Remote`], [`Error::Disk`]. An incomplete
/// directory remains: remove it.
///
/// # Durability
/// The log survives a power cut when this returns.
pub fn restore_log(remote: &Remote, disk: &dyn Disk) -> Result<Restored> {
    let manifest = load(remote)?;
    if manifest.kind != "log" {
        return Err(Error::NotThisLog { what: format!("it is of a {}", manifest.kind) });
    }
    verify_empty(disk)?;
    let restored = restore_segments(remote, &manifest, disk)?;
    // Last, so that an incomplete directory cannot claim the copy.
    Sessions::restored(manifest.session).store(disk)?;
    Ok(restored)
}

/// Loads the manifest of a copy.
pub(crate) fn load(remote: &Remote) -> Result<Manifest> {
    let object = ManifestObject::load(remote)?;
    let no_copy = || Error::NoCopy { name: remote.full_name(names::MANIFEST) };
    Ok(object.ok_or_else(no_copy)?.current().clone())
}

/// Refuses a directory with files.
pub(crate) fn verify_empty(disk: &dyn Disk) -> Result<()> {
    match disk.list("")?.first() {
        None => Ok(()),
        Some(name) => {
            let dir = disk.root().display();
            Err(Error::Invalid(format!("{dir} is not empty: it contains {name}")))
        }
    }
}

/// Rebuilds all segments of a manifest in the root of a disk.
pub(crate) fn restore_segments(
    remote: &Remote,
    manifest: &Manifest,
    disk: &dyn Disk,
) -> Result<Restored> {
    let mut restored =
        Restored { end: manifest.end(), written_ms: manifest.written_ms, ..Restored::default() };
    let last = manifest.segments.len().saturating_sub(1);
    for (number, segment) in manifest.segments.iter().enumerate() {
        let tail = if number == last { &manifest.tail[..] } else { &[] };
        restored.fetched_bytes += restore_segment(remote, segment, tail, disk)?;
        restored.segments += 1;
    }
    disk.sync_dir("")?;
    Ok(restored)
}

/// Rebuilds a segment. Returns the number of bytes fetched.
fn restore_segment(
    remote: &Remote,
    segment: &SegmentCopy,
    tail: &[u8],
    disk: &dyn Disk,
) -> Result<u64> {
    let rebuilt = RebuiltSegment::create(disk, &segment.header_page())?;
    let mut fetched = 0;
    for chunk in &segment.chunks {
        let bytes = fetch_chunk(remote, segment, chunk)?;
        rebuilt.write(chunk.from, &bytes)?;
        fetched += bytes.len() as u64;
    }
    rebuilt.write(segment.chunks_end(), tail)?;
    rebuilt.finish()?;
    Ok(fetched)
}

/// Fetches a chunk and verifies it.
fn fetch_chunk(remote: &Remote, segment: &SegmentCopy, chunk: &Chunk) -> Result<bytes::Bytes> {
    let bytes = fetch(remote, &names::chunk(segment, chunk), chunk.checksum)?;
    if bytes.len() as u64 == u64::from(chunk.to - chunk.from) {
        return Ok(bytes);
    }
    let what = format!("it has {} bytes instead of {}", bytes.len(), chunk.to - chunk.from);
    Err(Error::Damaged { name: remote.full_name(&names::chunk(segment, chunk)), what })
}

/// Fetches an object and verifies its checksum.
pub(crate) fn fetch(remote: &Remote, name: &str, checksum: u32) -> Result<bytes::Bytes> {
    let damaged =
        |what: &str| Error::Damaged { name: remote.full_name(name), what: what.to_owned() };
    let (bytes, _) = remote.get(name)?.ok_or_else(|| damaged("it does not exist"))?;
    if haul_crc::crc32c(&bytes) != checksum {
        return Err(damaged("its checksum does not match"));
    }
    Ok(bytes)
}
