//! Which calls fail, and how many there were.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_disk::{Error, Op, Result};
use rustix::io::Errno;

#[derive(Debug)]
struct Fault {
    op: Op,
    /// Of the calls of this kind, counted from 1 since the disk was made.
    calls: Range<u64>,
    errno: Errno,
}

#[derive(Debug, Default)]
struct Inner {
    calls: HashMap<&'static str, u64>,
    fault: Option<Fault>,
}

/// The calls so far, and those that are to fail.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Inner>);

fn key(op: Op) -> &'static str {
    match op {
        Op::Open => "open",
        Op::Create => "create",
        Op::Read => "read",
        Op::Write => "write",
        Op::Resize => "resize",
        Op::Allocate => "allocate",
        Op::Sync => "sync",
        Op::SyncDir => "sync_dir",
        Op::Rename => "rename",
        Op::Remove => "remove",
        _ => "other",
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn calls(&self, op: Op) -> u64 {
        self.lock().calls.get(key(op)).copied().unwrap_or(0)
    }

    /// Lets `count` calls of a kind fail, beginning with the `n`-th from now on.
    pub(crate) fn set(&self, op: Op, n: u64, count: u64, errno: Errno) {
        let first = self.calls(op) + n;
        let calls = first..first.saturating_add(count);
        self.lock().fault = Some(Fault { op, calls, errno });
    }

    pub(crate) fn heal(&self) {
        self.lock().fault = None;
    }

    /// Counts a call and lets it pass or fail.
    pub(crate) fn pass(&self, op: Op, name: &str) -> Result<()> {
        let mut inner = self.lock();
        let calls = inner.calls.entry(key(op)).or_default();
        *calls += 1;
        let number = *calls;
        match &inner.fault {
            Some(fault) if fault.op == op && fault.calls.contains(&number) => {
                Err(Error::new(op, format!("{name} (a fault was injected)"), fault.errno))
            }
            _ => Ok(()),
        }
    }
}
