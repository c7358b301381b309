//! Which calls fail, wait or take long, and what was asked so far.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{Error, Op, Open, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

/// The calls that are counted and may fail.
pub const CALLS: [Op; 11] = [
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
    Op::List,
];

/// The calls that [`haul_disk::OsDisk`] repeats when a signal interrupts them. A disk below the
/// traits that did not would break their promise, so the same is done here.
const REPEATED: [Op; 6] = [Op::Read, Op::Write, Op::Open, Op::Create, Op::Allocate, Op::Resize];

/// What is done to the calls of a disk, and what they were. Its clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct Fault {
    op: Op,
    /// Of the calls of this kind, counted from 1 since the disk was made.
    calls: std::ops::Range<u64>,
    errno: Errno,
}

#[derive(Debug, Default)]
struct State {
    calls: [u64; CALLS.len()],
    written_bytes: u64,
    fault: Option<Fault>,
    met: Option<String>,
    forbidden: Option<String>,
    slow: Vec<(Op, Duration)>,
    transfer_max: Option<usize>,
    seen: Option<Vec<(Op, String)>>,
    shut: Option<Op>,
    waiting: usize,
}

impl State {
    fn count(&mut self, op: Op) -> &mut u64 {
        let at = CALLS.iter().position(|call| *call == op);
        &mut self.calls[at.unwrap_or(CALLS.len() - 1)]
    }
}

fn thread_name() -> String {
    thread::current().name().unwrap_or("a writer").to_owned()
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Lets `count` calls of a kind fail, beginning with the `n`-th from now on, counted from 1.
    /// What failed before does no more.
    ///
    /// An interruption (`EINTR`) comes through only from the calls that [`haul_disk::OsDisk`] does
    /// not repeat: syncs, renames and removals. Any other call is counted once more and goes on.
    ///
    /// Of a write past the page cache that fails with `EIO` the first half arrives, as on a medium
    /// that gives up in the middle; any other that fails did nothing, since the kernel would tell
    /// how much it took. What a failed sync leaves says
    /// [`crate::MemoryDisk::after_a_failed_sync`].
    pub fn fail(&self, op: Op, n: u64, count: u64, errno: Errno) {
        let mut state = self.state();
        let first = *state.count(op) + n;
        let calls = first..first.saturating_add(count);
        state.fault = Some(Fault { op, calls, errno });
    }

    /// Lets the `n`-th call of a kind from now on fail, counted from 1.
    pub fn fail_once(&self, op: Op, n: u64, errno: Errno) {
        self.fail(op, n, 1, errno);
    }

    /// Lets all calls of a kind fail from now on.
    pub fn fail_always(&self, op: Op, errno: Errno) {
        self.fail(op, 1, u64::MAX, errno);
    }

    /// Lets all calls succeed again.
    pub fn heal(&self) {
        self.state().fault = None;
    }

    /// The name of the thread that the last fault met.
    #[must_use]
    pub fn met(&self) -> Option<String> {
        self.state().met.clone()
    }

    /// Lets no file of this name be made.
    pub fn forbid(&self, name: &str) {
        self.state().forbidden = Some(name.to_owned());
    }

    /// Lets calls of a kind take longer, as on a busy device.
    pub fn slow_down(&self, op: Op, by: Duration) {
        self.state().slow.push((op, by));
    }

    /// Reads and writes at most so many bytes at a time.
    pub fn transfer_at_most(&self, bytes: usize) {
        self.state().transfer_max = Some(bytes);
    }

    /// Lets calls of a kind wait until [`Faults::open_gate`].
    pub fn shut(&self, op: Op) {
        self.state().shut = Some(op);
    }

    /// Lets those who wait go on.
    pub fn open_gate(&self) {
        self.state().shut = None;
        self.0.changed.notify_all();
    }

    /// Waits until somebody stands before the gate.
    pub fn somebody_waits(&self) {
        let mut state = self.state();
        self.0.changed.wait_while(&mut state, |state| state.waiting == 0);
    }

    /// Runs `body` while a sync is under way that ends only behind it. `begin` causes that sync.
    pub fn during_a_sync<B, T>(
        &self,
        begin: impl FnOnce() -> B,
        body: impl FnOnce() -> T,
    ) -> (B, T) {
        self.shut(Op::Sync);
        let begun = begin();
        self.somebody_waits();
        let result = body();
        self.open_gate();
        (begun, result)
    }

    /// How many calls of a kind there were.
    #[must_use]
    pub fn calls(&self, op: Op) -> u64 {
        *self.state().count(op)
    }

    /// Waits until there were so many.
    pub fn wait_for_calls(&self, op: Op, calls: u64) {
        let mut state = self.state();
        self.0.changed.wait_while(&mut state, |state| *state.count(op) < calls);
    }

    /// How many bytes were written.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.state().written_bytes
    }

    /// Remembers from now on who asks for what.
    pub fn watch(&self) {
        self.state().seen = Some(Vec::new());
    }

    /// Who asked for what since.
    #[must_use]
    pub fn seen(&self) -> Vec<(Op, String)> {
        self.state().seen.clone().unwrap_or_default()
    }

    /// Counts a call and lets it pass, wait or fail.
    pub(crate) fn pass(&self, op: Op, name: &str) -> Result<()> {
        let mut state = self.state();
        if state.shut == Some(op) {
            state.waiting += 1;
            self.0.changed.notify_all();
            self.0.changed.wait_while(&mut state, |state| state.shut == Some(op));
            state.waiting -= 1;
        }
        *state.count(op) += 1;
        let number = *state.count(op);
        self.0.changed.notify_all();
        if let Some(seen) = &mut state.seen {
            seen.push((op, thread_name()));
        }
        let outcome = state.outcome(op, number, name);
        let slow = state.slow.iter().find(|slow| slow.0 == op).map(|slow| slow.1);
        drop(state);
        slow.into_iter().for_each(thread::sleep);
        outcome
    }

    /// How many of so many bytes are read or written at once.
    pub(crate) fn transfer(&self, bytes: usize) -> usize {
        bytes.min(self.state().transfer_max.unwrap_or(bytes))
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.state().written_bytes += bytes as u64;
    }
}

impl State {
    fn outcome(&mut self, op: Op, number: u64, name: &str) -> Result<()> {
        let is_met = |fault: &&Fault| fault.op == op && fault.calls.contains(&number);
        if let Some(errno) = self.fault.as_ref().filter(is_met).map(|fault| fault.errno) {
            self.met = Some(thread_name());
            if errno == Errno::INTR && REPEATED.contains(&op) {
                *self.count(op) += 1;
                return Ok(());
            }
            return Err(injected(op, name, errno));
        }
        if op == Op::Create && self.forbidden.as_deref() == Some(name) {
            return Err(injected(op, name, Errno::IO));
        }
        Ok(())
    }
}

fn injected(op: Op, name: &str, errno: Errno) -> Error {
    Error::new(op, format!("{name} (a fault was injected)"), errno)
}

/// Whether some of what was to be written arrived all the same.
pub(crate) fn half_arrives(how: Open, error: &Error) -> bool {
    how.direct && error.source.raw_os_error() == Some(Errno::IO.raw_os_error())
}
