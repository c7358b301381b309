//! A copied segment's local file.

use bytes::Bytes;
use haul_append_log::RebuiltSegment;
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::follow::fetch::{Between, fetch};
use crate::manifest::names;
use crate::manifest::{Chunk, SegmentCopy};
use crate::remote::Remote;

/// A copied segment in a local file.
#[derive(Debug, Default)]
pub(super) struct LocalSegment {
    /// The file, until the segment is complete.
    file: Option<RebuiltSegment>,
    /// `true` if the file exists and this process has compared it with the copy.
    is_verified: bool,
    chunks: Vec<Chunk>,
    /// The offset at which the file's bytes end.
    end: u32,
    fetched_bytes: u64,
}

impl LocalSegment {
    /// Returns the number of bytes that were fetched since the last call.
    pub(super) fn take_fetched_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.fetched_bytes)
    }

    /// Brings the file to the copy's state, which ends with `tail`. Passes the new records to
    /// `each`.
    ///
    /// # Durability
    /// The content is durable when this returns, the name of a new file after [`Disk::sync_dir`].
    pub(super) fn advance(
        &mut self,
        remote: &Remote,
        dir: &dyn Disk,
        (copy, tail): (&SegmentCopy, &[u8]),
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
        between: Between<'_>,
    ) -> Result<()> {
        let end = copy.chunks_end() + u32::try_from(tail.len()).unwrap_or(u32::MAX);
        if self.is_verified && self.chunks == copy.chunks && self.end == end {
            return Ok(());
        }
        let (file, is_existing) = match self.file.take() {
            Some(file) => (file, true),
            None => open(dir, copy)?,
        };
        for chunk in &copy.chunks {
            if self.chunks.contains(chunk) {
                continue;
            }
            // A complete segment's chunks are replaced by one with the same bytes.
            let is_local = chunk.to <= self.end;
            let may_be_local = is_local || is_existing && !self.is_verified;
            if !may_be_local || checksum(&file, chunk)? != chunk.checksum {
                if is_local {
                    return Err(differs(copy, chunk));
                }
                let bytes = fetch_chunk(remote, copy, chunk)?;
                append(&file, (remote, copy), chunk.from, &bytes, each)?;
                self.fetched_bytes += bytes.len() as u64;
                between()?;
            }
            self.end = self.end.max(chunk.to);
        }
        let from = copy.chunks_end();
        if self.end < end {
            append(&file, (remote, copy), from, tail, each)?;
            self.end = end;
        }
        if !self.is_verified && is_existing && !copy.is_complete && !file.is_zero_from(end)? {
            let what = format!(
                "segment {} of this directory has records after {end}, where the copy ends",
                copy.number
            );
            return Err(Error::NotThisLog { what });
        }
        file.sync()?;
        (self.is_verified, self.chunks) = (true, copy.chunks.clone());
        self.file = (!copy.is_complete).then_some(file);
        Ok(())
    }
}

/// Opens or creates the file. Also returns `true` if it existed.
fn open(dir: &dyn Disk, copy: &SegmentCopy) -> Result<(RebuiltSegment, bool)> {
    let header = copy.header_page();
    match RebuiltSegment::open(dir, &header) {
        Ok(Some(file)) => Ok((file, true)),
        Ok(None) => Ok((RebuiltSegment::create(dir, &header)?, false)),
        Err(haul_append_log::Error::Damaged { what, .. }) => {
            let what = format!("segment {} of this directory: {what}", copy.number);
            Err(Error::NotThisLog { what })
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes bytes from the copy after their records were verified.
fn append(
    file: &RebuiltSegment,
    (remote, copy): (&Remote, &SegmentCopy),
    from: u32,
    bytes: &[u8],
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut passed = Ok(());
    let verified = file.verify_records(from, bytes, &mut |payload| {
        if passed.is_ok() {
            passed = each(payload);
        }
    });
    verified.map_err(|error| Error::Damaged {
        name: remote.full_name(names::MANIFEST),
        what: format!("segment {} at {from}: {error}", copy.number),
    })?;
    passed?;
    Ok(file.write(from, bytes)?)
}

fn checksum(file: &RebuiltSegment, chunk: &Chunk) -> Result<u32> {
    let mut checksum = haul_crc::crc32c(b"");
    file.read(chunk.from, chunk.to, &mut |piece| {
        checksum = haul_crc::crc32c_append(checksum, piece);
    })?;
    Ok(checksum)
}

fn differs(copy: &SegmentCopy, chunk: &Chunk) -> Error {
    let (number, Chunk { from, to, .. }) = (copy.number, chunk);
    let what = format!("segment {number} differs from this directory between {from} and {to}");
    Error::NotThisLog { what }
}

/// Fetches a chunk and verifies it.
fn fetch_chunk(remote: &Remote, segment: &SegmentCopy, chunk: &Chunk) -> Result<Bytes> {
    let name = names::chunk(segment, chunk);
    let bytes = fetch(remote, &name, chunk.checksum)?;
    if bytes.len() as u64 == u64::from(chunk.to - chunk.from) {
        return Ok(bytes);
    }
    let what = format!("it has {} bytes instead of {}", bytes.len(), chunk.to - chunk.from);
    Err(Error::Damaged { name: remote.full_name(&name), what })
}
