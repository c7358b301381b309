//! Defines an executor for futures whose wakers poll, panic or block.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex as PlainMutex};
use std::task::{Context, Poll, Wake, Waker};

use haul_sync::shuttle::sync::{Condvar, Mutex};
use haul_sync::shuttle::thread::{self, JoinHandle};

type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call that a waker makes before it queues its task.
pub(crate) type Call = Arc<dyn Fn() + Send + Sync>;

/// The behaviour of a waker.
#[derive(Clone)]
pub(crate) enum OnWake {
    /// Queues the task for the thread of the executor.
    Queue,
    /// Polls the task at once, on the thread that wakes.
    PollInline,
    /// Queues the task and panics.
    Panic,
    /// Makes a call, which may wait for the log, and then queues the task.
    Call(Call),
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<Task>>,
    /// The number of tasks not yet done.
    pending: usize,
}

#[derive(Default)]
struct Ready {
    queue: Mutex<Queue>,
    event: Condvar,
}

/// A future, and a flag that requests a poll of it, each behind a plain lock of the standard
/// library. The model does not switch threads at operations on plain locks, so a notification
/// cannot get lost between a check of the flag and the release of the future.
struct Task {
    future: PlainMutex<Option<BoxFuture>>,
    is_notified: PlainMutex<bool>,
    on_wake: OnWake,
    ready: Arc<Ready>,
}

impl Task {
    /// Polls the future until it is not notified any more. If the future is already being polled,
    /// returns at once; the call that is polling it then polls it again.
    fn run(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        loop {
            let Ok(mut future) = self.future.try_lock() else { return };
            if !std::mem::take(&mut *self.is_notified.lock().unwrap()) {
                return;
            }
            let Some(pending) = future.as_mut() else { return };
            if pending.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                let done = future.take();
                drop(future);
                drop(done);
                self.ready.queue.lock().unwrap().pending -= 1;
                self.ready.event.notify_all();
                return;
            }
        }
    }

    /// Queues the task. If all tasks are done, nothing takes it from the queue, which would then keep
    /// the task, and the log that its waker owns, forever.
    fn enqueue(self: &Arc<Self>) {
        let mut queue = self.ready.queue.lock().unwrap();
        if queue.pending > 0 {
            queue.ready.push_back(Arc::clone(self));
            drop(queue);
            self.ready.event.notify_all();
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        *self.is_notified.lock().unwrap() = true;
        match &self.on_wake {
            OnWake::Queue => self.enqueue(),
            OnWake::PollInline => self.run(),
            OnWake::Panic => {
                self.enqueue();
                // Panics without calling the panic hook, which would print the panic.
                std::panic::resume_unwind(Box::new("a waker panics"));
            }
            OnWake::Call(call) => {
                call();
                self.enqueue();
            }
        }
    }
}

/// An executor that polls tasks on one thread, unless their wakers poll them inline.
#[derive(Default)]
pub(crate) struct Executor {
    ready: Arc<Ready>,
}

impl Executor {
    /// Adds a task and polls it for the first time.
    pub(crate) fn spawn(&self, on_wake: OnWake, future: impl Future<Output = ()> + Send + 'static) {
        self.ready.queue.lock().unwrap().pending += 1;
        let task = Arc::new(Task {
            future: PlainMutex::new(Some(Box::pin(future))),
            is_notified: PlainMutex::new(true),
            on_wake,
            ready: Arc::clone(&self.ready),
        });
        task.run();
    }

    /// Starts a thread that polls queued tasks until all tasks are done.
    pub(crate) fn start(&self) -> JoinHandle<()> {
        let ready = Arc::clone(&self.ready);
        thread::spawn(move || {
            loop {
                let mut queue = ready.queue.lock().unwrap();
                let task = loop {
                    if queue.pending == 0 {
                        // A task may have been queued again after it was polled to its end.
                        let done = std::mem::take(&mut queue.ready);
                        drop(queue);
                        return drop(done);
                    }
                    match queue.ready.pop_front() {
                        Some(task) => break task,
                        None => queue = ready.event.wait(queue).unwrap(),
                    }
                };
                drop(queue);
                task.run();
            }
        })
    }
}

/// A task that is owned only by its waker, as if its executor had been dropped.
struct Orphan {
    future: PlainMutex<Option<BoxFuture>>,
}

impl Wake for Orphan {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future once, with a waker that owns it, and drops every other reference to it. The
/// thread that drops the waker then also drops the future and everything it owns.
pub(crate) fn poll_once_and_orphan(future: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Orphan { future: PlainMutex::new(Some(Box::pin(future))) });
    let waker = Waker::from(Arc::clone(&task));
    let mut slot = task.future.lock().unwrap();
    let poll = slot.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&waker)));
    if matches!(poll, Some(Poll::Ready(()))) {
        *slot = None;
    }
}
