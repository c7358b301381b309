//! Injects faults into the calls to a disk: a call fails, blocks or is slow. Counts the calls.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{Error, Op, Open, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

/// The call kinds that are counted and can fail.
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

/// The call kinds that change nothing.
const READS: [Op; 3] = [Op::Read, Op::Open, Op::List];

/// The call kinds that [`haul_disk::OsDisk`] retries after `EINTR`. Simulated disks retry them,
/// too, so that tests observe the same behaviour.
const RETRIED: [Op; 6] = [Op::Read, Op::Write, Op::Open, Op::Create, Op::Allocate, Op::Resize];

/// A disk's injected faults and call counters. Clones share the same state.
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
    /// The numbers of the calls of kind `op` that fail; the first call since the disk was created
    /// has the number 1.
    calls: std::ops::Range<u64>,
    errno: Errno,
}

#[derive(Debug, Default)]
struct State {
    calls: [u64; CALLS.len()],
    written_bytes: u64,
    fault: Option<Fault>,
    faulted_thread: Option<String>,
    denied: Option<String>,
    /// How many changes and syncs are left until the power fails.
    power: Option<u64>,
    slow: Vec<(Op, Duration)>,
    transfer_max: Option<usize>,
    recorded: Option<Vec<(Op, String)>>,
    blocked: Option<Blocked>,
    waiting: usize,
}

/// The calls that wait until [`Faults::unblock`].
#[derive(Debug)]
struct Blocked {
    op: Op,
    /// The only thread whose calls are blocked, by name; `None` for all threads.
    thread: Option<String>,
}

impl State {
    fn is_blocked(&self, op: Op) -> bool {
        self.blocked.as_ref().is_some_and(|blocked| {
            blocked.op == op && blocked.thread.as_ref().is_none_or(|name| *name == thread_name())
        })
    }

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

    /// Makes `count` calls of the kind `op` fail, beginning with the `n`-th call from now on; the
    /// next call is the first. Replaces any earlier fault.
    ///
    /// Only the calls that [`haul_disk::OsDisk`] does not retry return `EINTR`: syncs, renames,
    /// removals and listings. A retried call is counted twice and succeeds.
    ///
    /// A direct write that fails with `EIO` writes its first half, as on a device that fails in the
    /// middle of a write. Any other failed write has no effect, since after a partial write the
    /// kernel would report a short write instead of an error.
    /// [`crate::MemoryDisk::after_a_failed_sync`] sets the effect of a failed sync.
    pub fn fail(&self, op: Op, n: u64, count: u64, errno: Errno) {
        let mut state = self.state();
        let first = *state.count(op) + n;
        let calls = first..first.saturating_add(count);
        state.fault = Some(Fault { op, calls, errno });
    }

    /// Makes the `n`-th call of the kind `op` from now on fail; the next call is the first.
    pub fn fail_once(&self, op: Op, n: u64, errno: Errno) {
        self.fail(op, n, 1, errno);
    }

    /// Makes all calls of the kind `op` fail from now on.
    pub fn fail_always(&self, op: Op, errno: Errno) {
        self.fail(op, 1, u64::MAX, errno);
    }

    /// Removes the fault set by `fail`, `fail_once` or `fail_always`.
    pub fn heal(&self) {
        self.state().fault = None;
    }

    /// Returns the name of the thread in which a call failed last; `None` if no call has failed.
    #[must_use]
    pub fn faulted_thread(&self) -> Option<String> {
        self.state().faulted_thread.clone()
    }

    /// Makes creating the file or directory `name` fail with `EIO`.
    pub fn deny_create(&self, name: &str) {
        self.state().denied = Some(name.to_owned());
    }

    /// Cuts the power after `count` more changes and syncs: all later calls fail with `ENODEV`, and
    /// none of them has an effect. [`crate::Medium`] has the states that the machine may leave.
    pub fn cut_power_after(&self, count: u64) {
        self.state().power = Some(count);
    }

    /// Cancels a power cut that has not happened yet.
    pub fn keep_power(&self) {
        let mut state = self.state();
        state.power = state.power.filter(|left| *left == 0);
    }

    /// Returns `true` if the power was cut.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state().power == Some(0)
    }

    /// Delays each call of the kind `op` by the time `by`, as on a busy device.
    pub fn slow_down(&self, op: Op, by: Duration) {
        self.state().slow.push((op, by));
    }

    /// Limits each read and write to `bytes` bytes per call (short transfers).
    pub fn transfer_at_most(&self, bytes: usize) {
        self.state().transfer_max = Some(bytes);
    }

    /// Blocks calls of the kind `op` until [`Faults::unblock`]. Replaces any other blocked kind.
    pub fn block(&self, op: Op) {
        self.state().blocked = Some(Blocked { op, thread: None });
    }

    /// Resumes the blocked calls, and blocks no further calls.
    pub fn unblock(&self) {
        self.state().blocked = None;
        self.0.changed.notify_all();
    }

    /// Waits until at least one call is blocked.
    pub fn wait_until_blocked(&self) {
        let mut state = self.state();
        self.0.changed.wait_while(&mut state, |state| state.waiting == 0);
    }

    /// Calls `begin`, which must start a sync in the thread with the name `thread`, waits until
    /// this sync is blocked, runs `body`, and resumes the sync. Other threads' syncs are not
    /// blocked.
    pub fn during_a_sync_of<B, T>(
        &self,
        thread: &str,
        begin: impl FnOnce() -> B,
        body: impl FnOnce() -> T,
    ) -> (B, T) {
        self.block_only(Op::Sync, Some(thread), begin, body)
    }

    /// Like [`Faults::during_a_sync_of`], but blocks all threads' syncs.
    pub fn during_a_sync<B, T>(
        &self,
        begin: impl FnOnce() -> B,
        body: impl FnOnce() -> T,
    ) -> (B, T) {
        self.block_only(Op::Sync, None, begin, body)
    }

    fn block_only<B, T>(
        &self,
        op: Op,
        thread: Option<&str>,
        begin: impl FnOnce() -> B,
        body: impl FnOnce() -> T,
    ) -> (B, T) {
        self.state().blocked = Some(Blocked { op, thread: thread.map(str::to_owned) });
        let begun = begin();
        self.wait_until_blocked();
        let result = body();
        self.unblock();
        (begun, result)
    }

    /// Returns the number of calls of the kind `op` since the disk was created.
    #[must_use]
    pub fn calls(&self, op: Op) -> u64 {
        *self.state().count(op)
    }

    /// Waits until the number of calls of the kind `op` reaches `calls`.
    pub fn wait_for_calls(&self, op: Op, calls: u64) {
        let mut state = self.state();
        self.0.changed.wait_while(&mut state, |state| *state.count(op) < calls);
    }

    /// Returns how many bytes were written since the disk was created.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.state().written_bytes
    }

    /// Starts recording calls with their threads' names; drops an earlier record.
    pub fn record_calls(&self) {
        self.state().recorded = Some(Vec::new());
    }

    /// Returns the recorded calls in order, each with its thread's name.
    #[must_use]
    pub fn recorded_calls(&self) -> Vec<(Op, String)> {
        self.state().recorded.clone().unwrap_or_default()
    }

    /// Counts a call; blocks, delays or fails it as the faults require.
    pub(crate) fn pass(&self, op: Op, name: &str) -> Result<()> {
        let mut state = self.state();
        if state.is_blocked(op) {
            state.waiting += 1;
            self.0.changed.notify_all();
            self.0.changed.wait_while(&mut state, |state| state.is_blocked(op));
            state.waiting -= 1;
        }
        *state.count(op) += 1;
        let number = *state.count(op);
        self.0.changed.notify_all();
        if let Some(recorded) = &mut state.recorded {
            recorded.push((op, thread_name()));
        }
        let outcome = state.outcome(op, number, name);
        let slow = state.slow.iter().find(|slow| slow.0 == op).map(|slow| slow.1);
        drop(state);
        slow.into_iter().for_each(thread::sleep);
        outcome
    }

    /// Returns the next transfer's length, of up to `bytes` bytes.
    pub(crate) fn transfer(&self, bytes: usize) -> usize {
        bytes.min(self.state().transfer_max.unwrap_or(bytes))
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.state().written_bytes += bytes as u64;
    }
}

impl State {
    fn outcome(&mut self, op: Op, number: u64, name: &str) -> Result<()> {
        if let Some(left) = &mut self.power {
            if *left == 0 {
                return Err(injected(op, name, Errno::NODEV));
            }
            *left -= u64::from(!READS.contains(&op));
        }
        let is_met = |fault: &&Fault| fault.op == op && fault.calls.contains(&number);
        if let Some(errno) = self.fault.as_ref().filter(is_met).map(|fault| fault.errno) {
            self.faulted_thread = Some(thread_name());
            if errno == Errno::INTR && RETRIED.contains(&op) {
                *self.count(op) += 1;
                return Ok(());
            }
            return Err(injected(op, name, errno));
        }
        if op == Op::Create && self.denied.as_deref() == Some(name) {
            return Err(injected(op, name, Errno::IO));
        }
        Ok(())
    }
}

fn injected(op: Op, name: &str, errno: Errno) -> Error {
    Error::new(op, format!("{name} (injected fault)"), errno)
}

/// `true` if a write that fails with `error` writes its first half: a direct write that fails with
/// `EIO`.
pub(crate) fn is_half_written(options: Open, error: &Error) -> bool {
    options.direct && error.source.raw_os_error() == Some(Errno::IO.raw_os_error())
}
