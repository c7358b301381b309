//! Decides whether a later change of a file is certain to change its timestamps, so that its digest
//! may be cached.
//!
//! A store through a shared mapping updates the timestamps only if the page is not writable yet in
//! that mapping. A process that mapped a file for writing before it was read can therefore change
//! it unnoticed. If no process had the file open or mapped for writing at a moment before it was
//! read, every later writer opens it first, and its first store to each page updates the
//! timestamps.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use haul_disk::{Lease, LeaseOutcome, resident};
use rustix::fs::{Mode, OFlags, fdatasync, fstatfs, openat};

use crate::open::open_directory;
use crate::status::status;
use crate::tree::Meta;

/// The file systems in memory, tmpfs and ramfs, which do not update timestamps on a store to a page
/// that was read before through the same mapping.
const IN_MEMORY_MAGICS: [u64; 2] = [0x0102_1994, 0x8584_58F6];

/// Opens the file at `path` if it is still in the state `meta`.
fn open(path: &Path, meta: &Meta) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let dir = open_directory(path.parent()?).ok()?;
    let file = openat(dir, path.file_name()?, flags, Mode::empty()).ok()?;
    let current = status(&file).ok()?.meta;
    ((current.device, current.inode, current.bytes, current.modified_ns, current.changed_ns)
        == (meta.device, meta.inode, meta.bytes, meta.modified_ns, meta.changed_ns))
        .then_some(file)
}

/// `true` if the file is in the state `meta`, and no process has it open or mapped for writing. A
/// read lease, which the kernel refuses while there is a writer, proves it. Without leases (NFS,
/// files of other users), the result is `false`.
pub(super) fn has_no_writer(path: &Path, meta: &Meta) -> bool {
    let Some(file) = open(path, meta) else { return false };
    let is_in_memory = fstatfs(&file).map_or(true, |status| {
        u64::try_from(status.f_type).is_ok_and(|magic| IN_MEMORY_MAGICS.contains(&magic))
    });
    !is_in_memory && matches!(Lease::take(file.as_fd()), Ok(LeaseOutcome::Granted(_)))
}

/// `true` if the file is still in the state `meta`, and all its bytes are on the device. After a
/// power failure, the file could otherwise have its new timestamps and its old bytes.
pub(super) fn is_unchanged_and_clean(path: &Path, meta: &Meta) -> bool {
    let Some(file) = open(path, meta) else { return false };
    match resident(&file, 0, u64::MAX) {
        Ok(pages) => match (pages.dirty_bytes, pages.writeback_bytes) {
            (Some(dirty), Some(writeback)) => dirty == 0 && writeback == 0,
            // The kernel does not report dirty pages.
            _ => fdatasync(&file).is_ok(),
        },
        Err(_) => false,
    }
}
