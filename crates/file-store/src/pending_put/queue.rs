//! The queue of puts that are appended to the log but not completed.

use haul_append_log::{Position, Ticket};
use haul_sync::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::index::entry::Change;
use crate::locks::KeyGuard;
use crate::object::ObjectInfo;
use crate::pending_put::future::Resolver;
use crate::writers::BucketWriter;

/// A put whose needle is appended. The order of the fields is their drop order.
#[derive(Debug)]
pub(crate) struct AppendedPut {
    pub(crate) ticket: Ticket,
    pub(crate) change: Change,
    /// The other needles of the record.
    pub(crate) others: Vec<Change>,
    pub(crate) info: ObjectInfo,
    pub(crate) locks: Locks,
    /// The last field, because dropping it wakes the caller, which may then put the same key.
    pub(crate) resolver: Resolver,
}

/// A put whose needle is durable or could not be written. The order of the fields is their drop
/// order.
#[derive(Debug)]
pub(crate) struct WaitedPut {
    pub(crate) at: Result<Position>,
    pub(crate) change: Change,
    pub(crate) others: Vec<Change>,
    pub(crate) info: ObjectInfo,
    pub(crate) locks: Locks,
    pub(crate) resolver: Resolver,
}

/// A put's locks, which it holds until its needle is applied to the index.
#[derive(Debug)]
pub(crate) struct Locks {
    pub(crate) _key: KeyGuard,
    pub(crate) _writer: BucketWriter,
}

impl AppendedPut {
    /// Waits until the needle is durable.
    pub(crate) fn wait(self) -> WaitedPut {
        let Self { ticket, change, others, info, locks, resolver } = self;
        let at = ticket.wait().map_err(Error::from);
        WaitedPut { at, change, others, info, locks, resolver }
    }
}

/// The queue between the callers and the completing thread.
#[derive(Debug, Default)]
pub(crate) struct PendingPuts {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    puts: Vec<AppendedPut>,
    /// `true` while the completing thread waits. Otherwise a push makes no system call.
    is_waiting: bool,
    is_stopping: bool,
}

impl PendingPuts {
    /// Queues a put for the completing thread.
    pub(crate) fn push(&self, put: AppendedPut) {
        let mut state = self.state.lock();
        state.puts.push(put);
        let is_waiting = std::mem::take(&mut state.is_waiting);
        drop(state);
        if is_waiting {
            self.changed.notify_one();
        }
    }

    /// Waits for a put and returns all queued puts; `None` if the queue is stopped and empty.
    pub(crate) fn take(&self) -> Option<Vec<AppendedPut>> {
        let mut state = self.state.lock();
        while state.puts.is_empty() && !state.is_stopping {
            state.is_waiting = true;
            self.changed.wait(&mut state);
        }
        state.is_waiting = false;
        let puts = std::mem::take(&mut state.puts);
        (!puts.is_empty()).then_some(puts)
    }

    /// Returns puts to the queue that the completing thread has not completed.
    pub(crate) fn put_back(&self, mut puts: Vec<AppendedPut>) {
        self.state.lock().puts.append(&mut puts);
    }

    /// Makes the completing thread end once the queue is empty.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }
}
