//! Where the bytes of a file are on the device, as its file system tells (FIEMAP).

mod same;

use std::io;

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::sys::{Fiemap, fiemap};

pub use same::same_blocks;

/// How many extents are asked for in one call: most files have fewer.
const BATCH: usize = 64;

/// What is done about bytes that were written but have no place on the device yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unplaced {
    /// Nothing: they are told as they are, [`ExtentFlags::delayed`] or at the place of older bytes.
    #[default]
    Tell,
    /// The file is written to the medium first, so that the map is the one of its present bytes.
    /// This writes to the disk, if anything is dirty, and waits for it.
    Write,
}

/// Some bytes of a file that lie together on the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file.
    pub logical: u64,
    /// Where on the device; see [`Extent::place`].
    pub physical: u64,
    /// How many bytes, in whole blocks: the last one may go beyond the end of the file.
    pub bytes: u64,
    /// What the file system says about them.
    pub flags: ExtentFlags,
}

/// What a file system says of an extent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentFlags {
    /// The last one of the file.
    pub last: bool,
    /// Its place is not known.
    pub unknown: bool,
    /// Written, and not yet given a place.
    pub delayed: bool,
    /// Compressed or encrypted: what is on the device are not the bytes of the file.
    pub encoded: bool,
    /// Among the metadata, or in a block with others: on no blocks of its own.
    pub inline: bool,
    /// Blocks set aside: they read as zeros, unless what was written to them is still in memory.
    pub unwritten: bool,
    /// Other files have these blocks too.
    pub shared: bool,
    /// Something newer than this crate.
    pub other: bool,
}

impl Extent {
    /// Where it begins on the device, for putting reads in order; `None` where that means nothing.
    ///
    /// On btrfs this is an address in the file system, which may be made of several devices.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        let ExtentFlags { unknown, delayed, inline, .. } = self.flags;
        (!unknown && !delayed && !inline).then_some(self.physical)
    }
}

/// All extents of a range of a file, by rising offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtentMap {
    /// Between them are holes, which read as zeros.
    pub extents: Vec<Extent>,
    /// How it was asked for.
    pub unplaced: Unplaced,
}

/// The first extent of a file, for putting files in the order of the disk; `None` for a file that
/// has none. One call that reads no data, and no metadata beyond the file's own.
///
/// # Errors
/// [`Error::is_unsupported`] where the file system does not tell (tmpfs, FUSE, NFS) and for a
/// simulated file; else as the kernel says.
pub fn first_extent(file: &(impl HasFd + ?Sized)) -> Result<Option<Extent>> {
    let mut one = Fiemap::<1>::new(0, u64::MAX, false);
    ask(file, &mut one)?;
    Ok(one.extents().next())
}

/// The extents of the `bytes` at `offset`; `u64::MAX` means up to the end. Those that reach over
/// the ends of the range are told whole.
///
/// A file of many extents is asked for in several calls: while somebody writes it, the answer may
/// never have been true as a whole.
///
/// # Errors
/// As [`first_extent`].
///
/// # Source
/// `Documentation/filesystems/fiemap.rst` of the kernel.
pub fn extents(
    file: &(impl HasFd + ?Sized),
    offset: u64,
    bytes: u64,
    unplaced: Unplaced,
) -> Result<ExtentMap> {
    let mut map = ExtentMap { extents: Vec::new(), unplaced };
    let (mut at, end) = (offset, offset.saturating_add(bytes));
    while at < end {
        let mut batch = Fiemap::<BATCH>::new(at, end - at, unplaced == Unplaced::Write);
        ask(file, &mut batch)?;
        map.extents.extend(batch.extents());
        match batch.extents().last() {
            Some(last) if !last.flags.last && last.logical + last.bytes > at => {
                at = last.logical + last.bytes;
            }
            _ => break,
        }
    }
    Ok(map)
}

fn ask<const N: usize>(file: &(impl HasFd + ?Sized), request: &mut Fiemap<N>) -> Result<()> {
    let fail = |source: io::Error| Error::new(Op::Blocks, path_of(file), source);
    let why = "a simulated file is on no device";
    let fd = file.fd().ok_or_else(|| fail(io::Error::new(io::ErrorKind::Unsupported, why)))?;
    fiemap(fd, request).map_err(|source| match source.raw_os_error() {
        // What is no file system of the kernel's says so in this way.
        Some(libc::ENOTTY) => fail(io::ErrorKind::Unsupported.into()),
        _ => fail(source),
    })
}
