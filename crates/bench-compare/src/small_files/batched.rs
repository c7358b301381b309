//! Stores the objects of all writers with one thread, which commits all waiting puts in one
//! transaction. This is a group commit for databases without one.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use haul_bench::log::{Contender, Failure};
use haul_bench::small_files::key;

use super::database::{Database, Object};

/// An object that waits for the commit thread.
struct Put {
    writer: usize,
    key: String,
    bytes: Vec<u8>,
}

/// The outcome of the transaction of a put; the error is a message.
type Outcome = Result<(), String>;

/// A database with a commit thread.
pub(crate) struct Batched<D> {
    database: Arc<D>,
    next: AtomicU64,
    /// The queue of the commit thread; `None` once this is dropped, which ends the thread.
    queue: Option<Sender<Put>>,
    /// The outcomes of the puts of each writer.
    outcomes: Vec<Mutex<Receiver<Outcome>>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Database> Batched<D> {
    /// Starts the commit thread of a database with `writers` writers.
    pub(crate) fn new(database: D, writers: usize) -> Self {
        let database = Arc::new(database);
        let (queue, puts) = channel();
        // A writer has one put at a time, so sending its outcome never blocks.
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..writers).map(|_| sync_channel(1)).unzip();
        let target = Arc::clone(&database);
        let thread = thread::spawn(move || commit(&*target, &puts, &senders));
        Self {
            database,
            next: AtomicU64::new(0),
            queue: Some(queue),
            outcomes: receivers.into_iter().map(Mutex::new).collect(),
            thread: Some(thread),
        }
    }
}

/// Commits all waiting puts in one transaction, until the queue is closed.
fn commit(database: &impl Database, puts: &Receiver<Put>, outcomes: &[SyncSender<Outcome>]) {
    while let Ok(first) = puts.recv() {
        let batch: Vec<_> = iter::once(first).chain(puts.try_iter()).collect();
        let objects: Vec<_> =
            batch.iter().map(|put| Object { key: &put.key, bytes: &put.bytes }).collect();
        let outcome = database.store(0, &objects).map_err(|failure| failure.to_string());
        for put in &batch {
            // An error means that the writer has ended; it needs no outcome.
            outcomes[put.writer].send(outcome.clone()).ok();
        }
    }
}

impl<D: Database> Contender for Batched<D> {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed));
        let put = Put { writer, key, bytes: record.to_vec() };
        let queue = self.queue.as_ref().ok_or("the database is closed")?;
        queue.send(put).map_err(|_unsent| "the commit thread has ended")?;
        let outcomes = self.outcomes[writer].lock().unwrap_or_else(PoisonError::into_inner);
        Ok(outcomes.recv()??)
    }

    fn warm_up(&self) -> Result<(), Failure> {
        self.database.warm_up()
    }
}

impl<D> Drop for Batched<D> {
    fn drop(&mut self) {
        drop(self.queue.take());
        // An error is a panic of the thread, which the writers have reported.
        self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that counts transactions and objects, and refuses the object 30.
    #[derive(Default)]
    struct Fake {
        transactions: AtomicU64,
        keys: Mutex<Vec<String>>,
    }

    impl Database for Arc<Fake> {
        fn store(&self, _writer: usize, objects: &[Object<'_>]) -> Result<(), Failure> {
            self.transactions.fetch_add(1, Ordering::Relaxed);
            if objects.iter().any(|object| object.key == key(30)) {
                return Err("the disk is full".into());
            }
            // Other writers queue their puts meanwhile.
            thread::sleep(std::time::Duration::from_millis(5));
            self.keys.lock().unwrap().extend(objects.iter().map(|it| it.key.to_owned()));
            Ok(())
        }
    }

    #[test]
    fn waiting_puts_share_a_transaction_and_its_failure_is_reported() {
        let fake = Arc::new(Fake::default());
        let batched = Batched::new(Arc::clone(&fake), 3);
        thread::scope(|scope| {
            for writer in 0..3 {
                let batched = &batched;
                scope.spawn(move || (0..10).try_for_each(|_| batched.append(writer, b"x")));
            }
        });
        let stored = fake.keys.lock().unwrap().len();
        assert_eq!(stored, 30);
        assert!(fake.transactions.load(Ordering::Relaxed) < 30);
        let failure = batched.append(0, b"x").unwrap_err();
        assert_eq!(failure.to_string(), "the disk is full");
        batched.append(1, b"x").unwrap();
    }
}
