//! A file in memory without a descriptor, for functions that must work on simulated disks.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_disk::{Allocation, Durability, File, Result};

#[derive(Debug, Default)]
pub(crate) struct SimulatedFile {
    pub(crate) bytes: Mutex<Vec<u8>>,
    pub(crate) syncs: AtomicUsize,
}

impl File for SimulatedFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.bytes.lock().unwrap();
        let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or(&[]);
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let (mut all, start) = (self.bytes.lock().unwrap(), usize::try_from(offset).unwrap());
        // Writes only one half, to test that callers write the rest.
        let written = bytes.len().div_ceil(2);
        let length = all.len().max(start + written);
        all.resize(length, 0);
        all[start..start + written].copy_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn resize(&self, _bytes: u64) -> Result<()> {
        unimplemented!("no test needs it")
    }

    fn allocate(&self, _method: Allocation, _offset: u64, _bytes: u64) -> Result<()> {
        unimplemented!("no test needs it")
    }

    fn sync(&self, scope: Durability) -> Result<()> {
        assert_eq!(scope, Durability::Data);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
