//! A disk that fails when it is told to, and counts what it is asked.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use haul_disk::{Allocation, Disk, Durability, Error, File, Op, Open, Result};
use rustix::io::Errno;

/// The calls that are counted and may fail.
pub(crate) const CALLS: [Op; 10] = [
    Op::Read,
    Op::Write,
    Op::Sync,
    Op::SyncDir,
    Op::Open,
    Op::Create,
    Op::Allocate,
    Op::Resize,
    Op::Rename,
    Op::Remove,
];

/// Which calls fail.
#[derive(Debug, Clone, Copy)]
struct Fault {
    op: Op,
    /// Counted from 1, since the fault was set.
    from: u64,
    until: u64,
    errno: Errno,
}

#[derive(Debug, Default)]
struct Faults {
    counts: [AtomicU64; CALLS.len()],
    written_bytes: AtomicU64,
    /// The name of the thread the last fault met.
    met: Mutex<Option<String>>,
    /// Who asked for what, when that is wanted.
    seen: Mutex<Option<Vec<(Op, String)>>>,
    /// A name no file may have.
    forbidden: Mutex<Option<String>>,
    /// A kind of call that takes longer.
    slow: Mutex<Vec<(Op, Duration)>>,
    /// At most so many bytes are read or written at a time, when that is wanted.
    transfer_max: AtomicU64,
    /// With the number of calls of its kind before it was set.
    fault: Mutex<Option<(Fault, u64)>>,
    syncs: Gate,
}

/// Where syncs wait while it is shut.
#[derive(Debug, Default)]
struct Gate {
    is_shut: Mutex<bool>,
    waiting: AtomicU64,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut is_shut = self.is_shut.lock().unwrap();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        while *is_shut {
            is_shut = self.changed.wait(is_shut).unwrap();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn set(&self, shut: bool) {
        *self.is_shut.lock().unwrap() = shut;
        self.changed.notify_all();
    }

    fn wait_for_somebody(&self) {
        let mut is_shut = self.is_shut.lock().unwrap();
        while self.waiting.load(Ordering::SeqCst) == 0 {
            is_shut = self.changed.wait(is_shut).unwrap();
        }
    }
}

impl Faults {
    fn count(&self, op: Op) -> &AtomicU64 {
        &self.counts[CALLS.iter().position(|call| *call == op).expect("it is counted")]
    }

    fn transfer(&self, bytes: usize) -> usize {
        match self.transfer_max.load(Ordering::SeqCst) {
            0 => bytes,
            most => bytes.min(usize::try_from(most).unwrap()),
        }
    }

    fn pass(&self, op: Op) -> Result<()> {
        let number = self.count(op).fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(seen) = &mut *self.seen.lock().unwrap() {
            seen.push((op, thread_name()));
        }
        let slow = self.slow.lock().unwrap().iter().find(|slow| slow.0 == op).map(|slow| slow.1);
        slow.into_iter().for_each(thread::sleep);
        match *self.fault.lock().unwrap() {
            Some((fault, before))
                if fault.op == op
                    && (fault.from..fault.until).contains(&(number.saturating_sub(before))) =>
            {
                *self.met.lock().unwrap() = Some(thread_name());
                Err(Error::new(op, "injected", fault.errno))
            }
            _ => Ok(()),
        }
    }
}

fn thread_name() -> String {
    thread::current().name().unwrap_or("a writer").to_owned()
}

/// Another disk, with faults.
#[derive(Debug)]
pub(crate) struct FaultyDisk {
    inner: Arc<dyn Disk>,
    faults: Arc<Faults>,
}

impl FaultyDisk {
    pub(crate) fn new(inner: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self { inner, faults: Arc::default() })
    }

    /// Lets the `n`-th call of a kind from now on fail, counted from 1.
    pub(crate) fn fail_once(&self, op: Op, n: u64, errno: Errno) {
        self.fail(Fault { op, from: n, until: n + 1, errno });
    }

    /// Lets all calls of a kind fail from now on.
    pub(crate) fn fail_always(&self, op: Op, errno: Errno) {
        self.fail(Fault { op, from: 1, until: u64::MAX, errno });
    }

    fn fail(&self, fault: Fault) {
        *self.faults.fault.lock().unwrap() = Some((fault, self.calls(fault.op)));
    }

    /// The thread the last fault met.
    pub(crate) fn met(&self) -> Option<String> {
        self.faults.met.lock().unwrap().clone()
    }

    /// Waits until there were so many calls of a kind.
    pub(crate) fn wait_for_calls(&self, op: Op, calls: u64) {
        while self.calls(op) < calls {
            thread::yield_now();
        }
    }

    /// Lets calls of a kind take longer, as on a busy device.
    pub(crate) fn slow_down(&self, op: Op, by: Duration) {
        self.faults.slow.lock().unwrap().push((op, by));
    }

    /// Remembers from now on who asks for what.
    pub(crate) fn watch(&self) {
        *self.faults.seen.lock().unwrap() = Some(Vec::new());
    }

    /// Who asked for what since.
    pub(crate) fn seen(&self) -> Vec<(Op, String)> {
        self.faults.seen.lock().unwrap().clone().unwrap_or_default()
    }

    /// Reads and writes at most so many bytes at a time.
    pub(crate) fn transfer_at_most(&self, bytes: u64) {
        self.faults.transfer_max.store(bytes, Ordering::SeqCst);
    }

    pub(crate) fn heal(&self) {
        *self.faults.fault.lock().unwrap() = None;
    }

    /// Runs `body` while a sync is under way that ends only behind it. `begin` causes that sync.
    pub(crate) fn during_a_sync<B, T>(
        &self,
        begin: impl FnOnce() -> B,
        body: impl FnOnce() -> T,
    ) -> (B, T) {
        self.faults.syncs.set(true);
        let begun = begin();
        self.faults.syncs.wait_for_somebody();
        let result = body();
        self.faults.syncs.set(false);
        (begun, result)
    }

    /// Lets no file of this name be made.
    pub(crate) fn forbid(&self, name: &str) {
        *self.faults.forbidden.lock().unwrap() = Some(name.to_owned());
    }

    /// How many calls of a kind there were.
    pub(crate) fn calls(&self, op: Op) -> u64 {
        self.faults.count(op).load(Ordering::SeqCst)
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.faults.written_bytes.load(Ordering::SeqCst)
    }

    fn faulty(&self, file: Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
        Ok(Arc::new(FaultyFile { inner: file?, faults: Arc::clone(&self.faults) }))
    }
}

impl Disk for FaultyDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open)?;
        self.faulty(self.inner.open(name, how))
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Create)?;
        if self.faults.forbidden.lock().unwrap().as_deref() == Some(name) {
            return Err(Error::new(Op::Create, "injected", Errno::IO));
        }
        self.faulty(self.inner.create(name, how))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.inner.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.faults.pass(Op::Rename)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Remove)?;
        self.inner.remove(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.faults.pass(Op::SyncDir)?;
        self.inner.sync_dir(dir)
    }

    fn root(&self) -> &Path {
        self.inner.root()
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    faults: Arc<Faults>,
}

impl File for FaultyFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.faults.pass(Op::Read)?;
        let bytes = self.faults.transfer(buffer.len());
        self.inner.read_some(&mut buffer[..bytes], offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        if let Err(error) = self.faults.pass(Op::Write) {
            // As a medium that gives up in the middle: some of it is there.
            let some = bytes.len() / 2;
            self.inner.write_some(&bytes[..some], offset)?;
            return Err(error);
        }
        let bytes = &bytes[..self.faults.transfer(bytes.len())];
        self.faults.written_bytes.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.inner.write_some(bytes, offset)
    }

    fn bytes(&self) -> Result<u64> {
        self.inner.bytes()
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Resize)?;
        self.inner.resize(bytes)
    }

    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.faults.pass(Op::Allocate)?;
        self.inner.allocate(how, offset, bytes)
    }

    fn sync(&self, what: Durability) -> Result<()> {
        self.faults.syncs.pass();
        self.faults.pass(Op::Sync)?;
        self.inner.sync(what)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}
