//! Another disk, such as the kernel's, with faults before it.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use haul_disk::{Allocation, Disk, Durability, File, Op, Open, Result};

use crate::memory::faults::{Faults, half_arrives};

/// Another disk, with faults before it; it derefs to its [`Faults`]. A sync that is made to fail
/// did not happen, and that is all: only a [`crate::MemoryDisk`] forgets.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    faults: Faults,
}

impl FaultyDisk {
    /// Puts faults before this disk; none at first.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, faults: Faults::default() }
    }

    fn faulty(&self, name: &str, how: Open, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { inner, name: name.to_owned(), how, faults: self.faults.clone() })
    }
}

impl Deref for FaultyDisk {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}

impl Disk for FaultyDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open, name)?;
        Ok(self.faulty(name, how, self.inner.open(name, how)?))
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Create, name)?;
        Ok(self.faulty(name, how, self.inner.create(name, how)?))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Create, name)?;
        self.inner.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.faults.pass(Op::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Remove, name)?;
        self.inner.remove(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.faults.pass(Op::List, dir)?;
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.faults.pass(Op::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn root(&self) -> &Path {
        self.inner.root()
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    name: String,
    how: Open,
    faults: Faults,
}

impl File for FaultyFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.faults.pass(Op::Read, &self.name)?;
        let bytes = self.faults.transfer(buffer.len());
        self.inner.read_some(&mut buffer[..bytes], offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        if let Err(error) = self.faults.pass(Op::Write, &self.name) {
            if half_arrives(self.how, &error) {
                self.inner.write_some(&bytes[..bytes.len() / 2], offset)?;
            }
            return Err(error);
        }
        let bytes = &bytes[..self.faults.transfer(bytes.len())];
        let written = self.inner.write_some(bytes, offset)?;
        self.faults.wrote(written);
        Ok(written)
    }

    fn bytes(&self) -> Result<u64> {
        self.inner.bytes()
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Resize, &self.name)?;
        self.inner.resize(bytes)
    }

    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Allocate, &self.name)?;
        self.inner.allocate(how, offset, bytes)
    }

    fn sync(&self, what: Durability) -> Result<()> {
        self.faults.pass(Op::Sync, &self.name)?;
        self.inner.sync(what)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}
