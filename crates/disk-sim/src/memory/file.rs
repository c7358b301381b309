//! The bytes of a file of the disk.

use std::os::fd::BorrowedFd;

use haul_disk::{Allocation, Durability, Error, File, Op, Open, PAGE_BYTES, Result};
use rustix::io::Errno;

use crate::memory::disk::MemoryDisk;
use crate::memory::faults::half_arrives;
use crate::memory::step::{Bytes, Step};

/// A file of a [`MemoryDisk`].
#[derive(Debug)]
pub(crate) struct MemoryFile {
    pub(crate) disk: MemoryDisk,
    pub(crate) name: String,
    /// Its number.
    pub(crate) file: usize,
    pub(crate) how: Open,
}

impl MemoryFile {
    /// Refuses what the kernel would.
    fn check(&self, op: Op, offset: u64, bytes: usize) -> Result<()> {
        let page = PAGE_BYTES as u64;
        let aligned = offset.is_multiple_of(page) && (bytes as u64).is_multiple_of(page);
        if self.how.direct && !aligned {
            return Err(self.fail(op, Errno::INVAL).at(offset, bytes));
        }
        if self.how.read_only && op != Op::Read {
            return Err(self.fail(op, Errno::BADF));
        }
        Ok(())
    }

    fn fail(&self, op: Op, errno: Errno) -> Error {
        self.disk.fail_with(op, &self.name, errno)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut state = self.disk.lock();
        if state.is_full_for(state.files[self.file].pages_missing(offset, bytes.len())) {
            return Err(self.fail(Op::Write, Errno::NOSPC).at(offset, bytes.len()));
        }
        let step = Step::Write { file: self.file, offset, bytes: Bytes(bytes.into()) };
        state.change(self.file, step);
        if self.how.dsync {
            state.record(Step::Sync { file: self.file });
        }
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.disk.faults.pass(Op::Read, &self.name)?;
        self.check(Op::Read, offset, buffer.len())?;
        let bytes = self.disk.faults.transfer(buffer.len());
        Ok(self.disk.lock().files[self.file].read(&mut buffer[..bytes], offset))
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let passed = self.disk.faults.pass(Op::Write, &self.name);
        self.check(Op::Write, offset, bytes.len())?;
        if let Err(error) = passed {
            if half_arrives(self.how, &error) {
                self.write(&bytes[..bytes.len() / 2], offset)?;
            }
            return Err(error);
        }
        let bytes = &bytes[..self.disk.faults.transfer(bytes.len())];
        self.write(bytes, offset)?;
        self.disk.faults.wrote(bytes.len());
        Ok(bytes.len())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.disk.lock().files[self.file].bytes())
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.disk.faults.pass(Op::Resize, &self.name)?;
        self.disk.lock().change(self.file, Step::Resize { file: self.file, bytes });
        Ok(())
    }

    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.disk.faults.pass(Op::Allocate, &self.name)?;
        if how != Allocation::Reserve {
            return Err(self.fail(Op::Allocate, Errno::OPNOTSUPP));
        }
        let mut state = self.disk.lock();
        let bytes_at_once = usize::try_from(bytes).unwrap_or(usize::MAX);
        if state.is_full_for(state.files[self.file].pages_missing(offset, bytes_at_once)) {
            return Err(self.fail(Op::Allocate, Errno::NOSPC));
        }
        state.change(self.file, Step::Reserve { file: self.file, offset, bytes });
        Ok(())
    }

    fn sync(&self, _what: Durability) -> Result<()> {
        let passed = self.disk.faults.pass(Op::Sync, &self.name);
        let mut state = self.disk.lock();
        match &passed {
            Ok(()) => state.record(Step::Sync { file: self.file }),
            Err(_) => state.fail_sync(self.file),
        }
        passed
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
