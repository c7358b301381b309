//! Injects faults into the calls to another disk, such as a [`haul_disk::OsDisk`].

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use haul_disk::{Allocation, Disk, Durability, File, Locked, Op, Open, Result};

use crate::memory::faults::{Faults, is_half_written};

/// A wrapper that injects faults into the calls to a disk. The type dereferences to its [`Faults`].
/// A sync that fails by an injected fault is not executed, and the wrapped disk loses no data,
/// unlike a [`crate::MemoryDisk`].
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    faults: Faults,
}

impl FaultyDisk {
    /// Wraps the disk `inner`, initially without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, faults: Faults::default() }
    }

    fn wrap_file(&self, name: &str, options: Open, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { inner, name: name.to_owned(), options, faults: self.faults.clone() })
    }
}

impl Deref for FaultyDisk {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}

impl Disk for FaultyDisk {
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open, name)?;
        Ok(self.wrap_file(name, options, self.inner.open(name, options)?))
    }

    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Create, name)?;
        Ok(self.wrap_file(name, options, self.inner.create(name, options)?))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Create, name)?;
        self.inner.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.faults.pass(Op::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn link(&self, file: &dyn File, name: &str) -> Result<()> {
        self.faults.pass(Op::Link, name)?;
        self.inner.link(file, name)
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

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        self.inner.lock(name, holder)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.free_bytes()
    }

    fn root(&self) -> &Path {
        self.inner.root()
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    name: String,
    options: Open,
    faults: Faults,
}

impl File for FaultyFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.faults.pass(Op::Read, &self.name)?;
        let bytes = self.faults.transfer(buffer.len());
        self.inner.read_some(&mut buffer[..bytes], offset)
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>> {
        self.faults.pass(Op::Read, &self.name)?;
        let bytes = self.faults.transfer(buffer.len());
        self.inner.read_cached(&mut buffer[..bytes], offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        if let Err(error) = self.faults.pass(Op::Write, &self.name) {
            if is_half_written(self.options, &error) {
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

    fn allocate(&self, method: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Allocate, &self.name)?;
        self.inner.allocate(method, offset, bytes)
    }

    fn sync(&self, scope: Durability) -> Result<()> {
        self.faults.pass(Op::Sync, &self.name)?;
        self.inner.sync(scope)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}
