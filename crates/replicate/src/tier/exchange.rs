//! Exchanges local files for parts of the copy, and parts of the copy for local files.

use std::sync::Arc;

use haul_append_log::{Log, RebuiltSegment, SegmentInfo, segment_name};
use haul_disk::{Disk, File, Open, Subdir, read_full};

use crate::error::{Error, Result};
use crate::follow::exists;
use crate::manifest::names::{self, BIG_FILES, VOLUMES};
use crate::manifest::{HEADER_PAGE_BYTES, SegmentCopy};
use crate::remote::Remote;
use crate::tier::disk::{INCOMPLETE, TieredDisk, create_marker};
use crate::tier::stub;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

impl TieredDisk {
    /// Drops a segment's local file if the copy has the same bytes, which are read from there and
    /// compared. Returns `false` if the copy does not have it yet.
    ///
    /// 1. Creates the marker and the segment's stub. After a crash the segment is still on the
    ///    local disk, and the next opening removes the stub.
    /// 2. Removes the file. After a crash the segment is on the local disk, or only in the copy.
    pub(super) fn drop_segment(&self, log: &Log, segment: SegmentInfo) -> Result<bool> {
        let Some(copy) = self.catalog.segment(segment.number, segment.nonce) else {
            return Ok(false);
        };
        let name = segment_name(segment.number);
        let volumes = Subdir::new(Arc::clone(&self.local), VOLUMES);
        let file = volumes.open(&name, READ)?;
        if !has_same_bytes(self.catalog.remote(), &copy, &*file)? {
            return Ok(false);
        }
        create_marker(&*self.local)?;
        stub::create(&volumes, &name, &copy)?;
        volumes.sync_dir("")?;
        let exchanged = log.replace_file(segment.number, &mut || {
            volumes.remove(&name)?;
            volumes.sync_dir("")
        });
        if exchanged.is_err() && exists(&volumes, &name).unwrap_or(true) {
            drop(volumes.remove(&stub::name(&name)));
        }
        Ok(exchanged.map(|()| true)?)
    }

    /// Fetches a segment that is only in the copy.
    ///
    /// 1. Writes the file beside the store, and verifies the chunks' checksums. After a crash the
    ///    next opening removes it.
    /// 2. Renames it to the segment, and then removes the stub. After a crash in between, the next
    ///    opening removes the stub.
    pub(super) fn fetch_segment(&self, log: &Log, segment: SegmentInfo) -> Result<()> {
        let incomplete = Subdir::new(Arc::clone(&self.local), INCOMPLETE);
        let name = segment_name(segment.number);
        self.catalog.with_segment(segment.number, segment.nonce, &mut |copy| {
            let rebuilt = RebuiltSegment::create(&incomplete, &copy.header_page())?;
            let is_whole = fetch_chunks(self.catalog.remote(), copy, &rebuilt);
            if !matches!(is_whole, Ok(true)) {
                incomplete.remove(&name)?;
                return is_whole.map(|_| None);
            }
            rebuilt.finish()?;
            Ok(Some(()))
        })?;
        let volumes = Subdir::new(Arc::clone(&self.local), VOLUMES);
        let exchanged = log.replace_file(segment.number, &mut || {
            self.local.rename(&format!("{INCOMPLETE}/{name}"), &format!("{VOLUMES}/{name}"))?;
            volumes.sync_dir("")?;
            volumes.remove(&stub::name(&name))?;
            volumes.sync_dir("")
        });
        match exchanged {
            // Compaction has removed the segment meanwhile.
            Err(haul_append_log::Error::Invalid(_)) => match incomplete.remove(&name) {
                Err(error) if !error.is_not_found() => Err(error.into()),
                _ => Ok(()),
            },
            exchanged => Ok(exchanged?),
        }
    }

    /// Drops a big object's local file if the copy has the same bytes. Returns `false` if it does
    /// not.
    ///
    /// 1. Creates the marker.
    /// 2. Removes the file. After a crash it is on the local disk, or only in the copy.
    pub(super) fn drop_object(&self, name: &str) -> Result<bool> {
        let file = self.local.open(name, READ)?;
        let bytes = file.bytes()?;
        let (remote, remote_name) = (self.catalog.remote(), names::file(name));
        let mut is_same = remote.length(&remote_name)? == Some(bytes);
        if is_same {
            let mut compare = |at: u64, piece: &[u8]| {
                is_same = is_same && is_at(&*file, at, piece)?;
                Ok(())
            };
            let found = remote.get_pieces(&remote_name, &mut compare)?;
            is_same &= found == Some(bytes);
        }
        if is_same {
            create_marker(&*self.local)?;
            self.local.remove(name)?;
            self.local.sync_dir(BIG_FILES)?;
        }
        Ok(is_same)
    }
}

/// `true` if the copy has the same record bytes as `file`.
fn has_same_bytes(remote: &Remote, copy: &SegmentCopy, file: &dyn File) -> Result<bool> {
    for chunk in &copy.chunks {
        let mut is_same = true;
        let mut compare = |at: u64, piece: &[u8]| {
            let at = u64::from(chunk.from) + at;
            // The header page is not compared: the log may have repaired it.
            let skipped = u64::from(HEADER_PAGE_BYTES).saturating_sub(at);
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(piece.len());
            is_same = is_same && is_at(file, at + skipped as u64, &piece[skipped..])?;
            Ok(())
        };
        let bytes = remote.get_pieces(&names::chunk(copy, chunk), &mut compare)?;
        if !is_same || bytes != Some(u64::from(chunk.to - chunk.from)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `true` if `file` has these bytes at `offset`.
fn is_at(file: &dyn File, offset: u64, bytes: &[u8]) -> Result<bool> {
    let mut local = vec![0; bytes.len()];
    Ok(read_full(file, &mut local, offset)? == bytes.len() && local == bytes)
}

/// Fetches and verifies a segment's chunks; `false` if a chunk does not exist.
pub(crate) fn fetch_chunks(
    remote: &Remote,
    copy: &SegmentCopy,
    rebuilt: &RebuiltSegment,
) -> Result<bool> {
    for chunk in &copy.chunks {
        let name = names::chunk(copy, chunk);
        let mut checksum = haul_crc::crc32c(b"");
        let mut write = |at: u64, piece: &[u8]| {
            checksum = haul_crc::crc32c_append(checksum, piece);
            let at = u32::try_from(u64::from(chunk.from) + at).unwrap_or(u32::MAX);
            Ok(rebuilt.write(at, piece)?)
        };
        let Some(bytes) = remote.get_pieces(&name, &mut write)? else { return Ok(false) };
        if bytes != u64::from(chunk.to - chunk.from) || checksum != chunk.checksum {
            let what = format!("its {bytes} bytes do not match their checksum");
            return Err(Error::Damaged { name: remote.full_name(&name), what });
        }
    }
    Ok(true)
}
