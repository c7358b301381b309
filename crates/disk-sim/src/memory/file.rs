//! Implements open files on the disk in memory.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::{Allocation, Durability, Error, File, Op, Open, PAGE_BYTES, Result};
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use crate::memory::faults::{Faults, is_half_written};
use crate::memory::state::State;
use crate::memory::step::{Bytes, Step};

#[derive(Debug)]
pub(crate) struct MemoryFile {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) faults: Faults,
    pub(crate) path: PathBuf,
    /// The name under which the file was opened, for injected faults' errors.
    pub(crate) name: String,
    /// The file's number, in creation order.
    pub(crate) file: usize,
    pub(crate) options: Open,
}

impl MemoryFile {
    /// Returns the kernel's error if the call does not suit the file's options.
    fn check(&self, op: Op, offset: u64, bytes: usize) -> Result<()> {
        let page = PAGE_BYTES as u64;
        let aligned = offset.is_multiple_of(page) && (bytes as u64).is_multiple_of(page);
        if self.options.direct && !aligned {
            return Err(self.fail(op, Errno::INVAL).at(offset, bytes));
        }
        if self.options.read_only && op != Op::Read {
            return Err(self.fail(op, Errno::BADF));
        }
        Ok(())
    }

    fn fail(&self, op: Op, errno: Errno) -> Error {
        Error::new(op, &self.path, errno)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut state = self.lock();
        if state.is_full_for(state.files[self.file].pages_missing(offset, bytes.len())) {
            return Err(self.fail(Op::Write, Errno::NOSPC).at(offset, bytes.len()));
        }
        let step = Step::Write { file: self.file, offset, bytes: Bytes(bytes.into()) };
        state.change(self.file, step);
        if self.options.dsync {
            state.record(Step::Sync { file: self.file });
        }
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.faults.pass(Op::Read, &self.name)?;
        self.check(Op::Read, offset, buffer.len())?;
        let bytes = self.faults.transfer(buffer.len());
        Ok(self.lock().files[self.file].read(&mut buffer[..bytes], offset))
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>> {
        self.read_some(buffer, offset).map(Some)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let passed = self.faults.pass(Op::Write, &self.name);
        self.check(Op::Write, offset, bytes.len())?;
        if let Err(error) = passed {
            if is_half_written(self.options, &error) {
                self.write(&bytes[..bytes.len() / 2], offset)?;
            }
            return Err(error);
        }
        let bytes = &bytes[..self.faults.transfer(bytes.len())];
        self.write(bytes, offset)?;
        self.faults.wrote(bytes.len());
        Ok(bytes.len())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.lock().files[self.file].bytes())
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Resize, &self.name)?;
        self.lock().change(self.file, Step::Resize { file: self.file, bytes });
        Ok(())
    }

    fn allocate(&self, method: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Allocate, &self.name)?;
        if method != Allocation::Reserve {
            return Err(self.fail(Op::Allocate, Errno::OPNOTSUPP));
        }
        let mut state = self.lock();
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        if state.is_full_for(state.files[self.file].pages_missing(offset, length)) {
            return Err(self.fail(Op::Allocate, Errno::NOSPC));
        }
        state.change(self.file, Step::Reserve { file: self.file, offset, bytes });
        Ok(())
    }

    fn sync(&self, _scope: Durability) -> Result<()> {
        let passed = self.faults.pass(Op::Sync, &self.name);
        let mut state = self.lock();
        match &passed {
            Ok(()) => state.record(Step::Sync { file: self.file }),
            Err(_) if self.faults.is_off() => {}
            Err(_) => state.fail_sync(self.file),
        }
        passed
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
