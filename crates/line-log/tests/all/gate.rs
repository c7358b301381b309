//! A disk whose writes wait until the test lets them through.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use haul_disk::{Allocation, Disk, Durability, File, Open, Result};
use haul_test_disk::TestDisk;

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_shut: bool,
    waiting: usize,
}

/// A disk in memory with a gate before its writes. Its clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct GateDisk {
    pub(crate) disk: TestDisk,
    gate: Arc<Gate>,
}

impl GateDisk {
    pub(crate) fn shut(&self) {
        self.gate.state.lock().unwrap().is_shut = true;
    }

    pub(crate) fn open_gate(&self) {
        self.gate.state.lock().unwrap().is_shut = false;
        self.gate.changed.notify_all();
    }

    /// Waits until somebody stands before the gate.
    pub(crate) fn somebody_waits(&self) {
        let state = self.gate.state.lock().unwrap();
        drop(self.gate.changed.wait_while(state, |state| state.waiting == 0).unwrap());
    }

    fn behind(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GateFile { file, gate: Arc::clone(&self.gate) })
    }
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.is_shut).unwrap();
        state.waiting -= 1;
    }
}

impl Disk for GateDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        Ok(self.behind(self.disk.open(name, how)?))
    }
    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        Ok(self.behind(self.disk.create(name, how)?))
    }
    fn create_dir(&self, name: &str) -> Result<()> {
        self.disk.create_dir(name)
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.disk.remove(name)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.disk.sync_dir(dir)
    }
    fn root(&self) -> &Path {
        self.disk.root()
    }
}

#[derive(Debug)]
struct GateFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl File for GateFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_some(buffer, offset)
    }
    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.gate.pass();
        self.file.write_some(bytes, offset)
    }
    fn bytes(&self) -> Result<u64> {
        self.file.bytes()
    }
    fn resize(&self, bytes: u64) -> Result<()> {
        self.file.resize(bytes)
    }
    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.file.allocate(how, offset, bytes)
    }
    fn sync(&self, what: Durability) -> Result<()> {
        self.file.sync(what)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }
}
