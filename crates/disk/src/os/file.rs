//! Implements [`File`] with system calls that take an explicit offset.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{self, FallocateFlags};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};

use crate::disk::{Allocation, Durability, File};
use crate::error::{Error, Op, Result};

/// The `fallocate` mode `FALLOC_FL_WRITE_ZEROES` (Linux 6.17), not yet in libc.
const WRITE_ZEROES: FallocateFlags = FallocateFlags::from_bits_retain(0x80);

/// An open file, with its path for messages.
#[derive(Debug)]
pub(super) struct OsFile {
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
}

impl OsFile {
    fn fail(&self, op: Op) -> impl FnOnce(Errno) -> Error {
        move |errno| Error::new(op, &self.path, errno)
    }
}

impl File for OsFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = buffer.len();
        retry_on_intr(|| rustix::io::pread(&self.fd, &mut *buffer, offset))
            .map_err(|errno| self.fail(Op::Read)(errno).at(offset, bytes))
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>> {
        let bytes = buffer.len();
        let mut parts = [IoSliceMut::new(buffer)];
        match preadv2(&self.fd, &mut parts, offset, ReadWriteFlags::NOWAIT) {
            Ok(read) => Ok(Some(read)),
            Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(self.fail(Op::Read)(errno).at(offset, bytes)),
        }
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        retry_on_intr(|| rustix::io::pwrite(&self.fd, bytes, offset))
            .map_err(|errno| self.fail(Op::Write)(errno).at(offset, bytes.len()))
    }

    fn bytes(&self) -> Result<u64> {
        let status = fs::fstat(&self.fd).map_err(self.fail(Op::Status))?;
        u64::try_from(status.st_size)
            .map_err(|source| Error::new(Op::Status, &self.path, io::Error::other(source)))
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        retry_on_intr(|| fs::ftruncate(&self.fd, bytes)).map_err(self.fail(Op::Resize))
    }

    fn allocate(&self, method: Allocation, offset: u64, bytes: u64) -> Result<()> {
        let flags = match method {
            Allocation::Reserve => FallocateFlags::empty(),
            Allocation::ZeroRange => FallocateFlags::ZERO_RANGE,
            Allocation::WriteZeroes => WRITE_ZEROES,
        };
        retry_on_intr(|| fs::fallocate(&self.fd, flags, offset, bytes)).map_err(|errno| {
            let mut error = self.fail(Op::Allocate)(errno);
            error.offset = Some(offset);
            error.bytes = Some(bytes);
            error
        })
    }

    fn sync(&self, scope: Durability) -> Result<()> {
        // An interrupted call is not retried: a failed sync is final.
        match scope {
            Durability::Data => fs::fdatasync(&self.fd),
            Durability::Everything => fs::fsync(&self.fd),
        }
        .map_err(self.fail(Op::Sync))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}
