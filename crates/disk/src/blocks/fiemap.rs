//! Queries files' extents and their location on the device (FIEMAP).

use std::io;

use super::extent::{DelayedAllocation, Extent, ExtentFlags, ExtentMap};
use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::sys::{Fiemap, FiemapExtent, fiemap};

/// The number of extents fetched per call, enough for most files.
const BATCH: usize = 64;

/// Returns a file's first extent, for sorting files in disk order; `None` for a file without
/// extents. Makes one system call, which reads the file's metadata and no data.
///
/// # Errors
/// [`Error::is_unsupported`] if the file system cannot map extents (tmpfs, FUSE, NFS) and for a
/// simulated file. Otherwise returns the system call's error.
pub fn first_extent(file: &(impl HasFd + ?Sized)) -> Result<Option<Extent>> {
    let mut one = Fiemap::<1>::new(0, u64::MAX, false);
    fetch(file, &mut one)?;
    Ok(one.extents().next().map(extent))
}

/// Returns the extents in the `bytes` bytes at `offset`; `u64::MAX` means up to the end of the
/// file. An extent that crosses a range boundary is returned whole.
///
/// A file with more than 64 extents takes several system calls. If the file is written meanwhile,
/// the result may combine extents from different moments.
///
/// # Errors
/// Fails like [`first_extent`].
///
/// # Source
/// The kernel's `Documentation/filesystems/fiemap.rst`.
pub fn extents(
    file: &(impl HasFd + ?Sized),
    offset: u64,
    bytes: u64,
    delayed_allocation: DelayedAllocation,
) -> Result<ExtentMap> {
    let mut map = ExtentMap { extents: Vec::new(), delayed_allocation };
    let (mut at, end) = (offset, offset.saturating_add(bytes));
    while at < end {
        let mut batch =
            Fiemap::<BATCH>::new(at, end - at, delayed_allocation == DelayedAllocation::Sync);
        fetch(file, &mut batch)?;
        map.extents.extend(batch.extents().map(extent));
        let last = map.extents.last().filter(|last| !last.flags.last);
        let next = last.map_or(at, |last| last.logical.saturating_add(last.bytes));
        if next <= at {
            break;
        }
        at = next;
    }
    Ok(map)
}

fn fetch<const N: usize>(file: &(impl HasFd + ?Sized), request: &mut Fiemap<N>) -> Result<()> {
    let fail = |source: io::Error| Error::new(Op::Blocks, path_of(file), source);
    let why = "a simulated file has no device";
    let fd = file.fd().ok_or_else(|| fail(io::Error::new(io::ErrorKind::Unsupported, why)))?;
    fiemap(fd, request).map_err(|source| match source.raw_os_error() {
        // ENOTTY: the file system does not implement the ioctl.
        Some(libc::ENOTTY) => fail(io::ErrorKind::Unsupported.into()),
        _ => fail(source),
    })
}

fn extent(reported: &FiemapExtent) -> Extent {
    let FiemapExtent { logical, physical, bytes, flags, .. } = *reported;
    Extent { logical, physical, bytes, flags: ExtentFlags::of(flags) }
}
