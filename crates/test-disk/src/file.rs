//! The bytes of a file of the disk.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use haul_disk::{Allocation, Durability, Error, File, Op, Open, PAGE_BYTES, Result};
use rustix::io::Errno;

use crate::disk::TestDisk;
use crate::medium::Step;

/// A file of a [`TestDisk`].
#[derive(Debug)]
pub(crate) struct TestFile {
    pub(crate) disk: TestDisk,
    pub(crate) name: String,
    /// Its number.
    pub(crate) file: usize,
    pub(crate) how: Open,
}

impl TestFile {
    fn check(&self, op: Op, offset: u64, bytes: usize) -> Result<()> {
        self.disk.faults.pass(op, &self.name)?;
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
}

impl File for TestFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.check(Op::Read, offset, buffer.len())?;
        Ok(self.disk.lock().files[self.file].read(buffer, offset))
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.check(Op::Write, offset, bytes.len())?;
        let mut state = self.disk.lock();
        if state.is_full_for(state.files[self.file].pages_missing(offset, bytes.len())) {
            return Err(self.fail(Op::Write, Errno::NOSPC).at(offset, bytes.len()));
        }
        let step = Step::Write { file: self.file, offset, bytes: Arc::new(bytes.to_vec()) };
        state.change(self.file, step);
        if self.how.dsync {
            state.record(Step::Sync { file: self.file });
        }
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
        if passed.is_err() {
            // Programs still see it, and the next sync succeeds without it.
            self.disk.lock().medium.forget_unsynced(self.file);
        }
        passed?;
        self.disk.lock().record(Step::Sync { file: self.file });
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
