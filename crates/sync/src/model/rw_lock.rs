//! A lock for many readers or one writer.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use shuttle::sync::{Condvar, Mutex, MutexGuard};

/// A lock for many readers or one writer, without poisoning. As in `parking_lot`, readers wait
/// behind a writer that waits, so a thread that locks for reading twice can block forever.
#[derive(Default)]
pub struct RwLock<T> {
    usage: Mutex<Usage>,
    changed: Condvar,
    /// The value. `usage` decides who may use it, so its own lock is always free.
    value: std::sync::RwLock<T>,
}

#[derive(Debug, Default)]
struct Usage {
    readers: usize,
    /// `true` from the time at which a writer waits for the readers to leave.
    has_writer: bool,
}

/// A [`RwLock`] that is locked for reading.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T> {
    lock: &'a RwLock<T>,
    /// `None` only while the guard is dropped.
    value: Option<std::sync::RwLockReadGuard<'a, T>>,
}

/// A [`RwLock`] that is locked for writing.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    /// `None` only while the guard is dropped.
    value: Option<std::sync::RwLockWriteGuard<'a, T>>,
}

/// A lock for reading that owns a reference to the [`RwLock`].
#[derive(Debug)]
pub struct ArcRwLockReadGuard<T>(Arc<RwLock<T>>);

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self {
            usage: Mutex::default(),
            changed: Condvar::new(),
            value: std::sync::RwLock::new(value),
        }
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, usage: MutexGuard<'a, Usage>) -> MutexGuard<'a, Usage> {
        self.changed.wait(usage).unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_reading(&self) {
        let mut usage = self.usage();
        while usage.has_writer {
            usage = self.wait(usage);
        }
        usage.readers += 1;
    }

    fn end_reading(&self) {
        let mut usage = self.usage();
        usage.readers -= 1;
        if usage.readers == 0 {
            self.changed.notify_all();
        }
    }

    /// Locks for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.begin_reading();
        let value = self.value.read().unwrap_or_else(PoisonError::into_inner);
        RwLockReadGuard { lock: self, value: Some(value) }
    }

    /// Locks for reading. The result may outlive the borrowed lock.
    pub fn read_arc(self: &Arc<Self>) -> ArcRwLockReadGuard<T> {
        self.begin_reading();
        ArcRwLockReadGuard(Arc::clone(self))
    }

    /// Locks for reading if that does not wait.
    pub fn try_read_arc(self: &Arc<Self>) -> Option<ArcRwLockReadGuard<T>> {
        let mut usage = self.usage();
        let is_free = !usage.has_writer;
        usage.readers += usize::from(is_free);
        drop(usage);
        is_free.then(|| ArcRwLockReadGuard(Arc::clone(self)))
    }

    /// Locks for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let mut usage = self.usage();
        while usage.has_writer {
            usage = self.wait(usage);
        }
        usage.has_writer = true;
        while usage.readers > 0 {
            usage = self.wait(usage);
        }
        drop(usage);
        let value = self.value.write().unwrap_or_else(PoisonError::into_inner);
        RwLockWriteGuard { lock: self, value: Some(value) }
    }

    /// Locks for writing if that does not wait: in the model, the time is always over at once.
    pub fn try_write_until(&self, _until: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        let mut usage = self.usage();
        let is_free = !usage.has_writer && usage.readers == 0;
        usage.has_writer |= is_free;
        drop(usage);
        is_free.then(|| {
            let value = self.value.write().unwrap_or_else(PoisonError::into_inner);
            RwLockWriteGuard { lock: self, value: Some(value) }
        })
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.lock.end_reading();
    }
}

impl<T> Drop for ArcRwLockReadGuard<T> {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.lock.usage().has_writer = false;
        self.lock.changed.notify_all();
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the lock is held")
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the lock is held")
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("the lock is held")
    }
}
