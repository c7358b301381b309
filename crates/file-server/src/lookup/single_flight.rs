//! Coalesces concurrent work on the same key: one thread does it for all that wait (known as
//! *singleflight* in Go).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use futures_channel::oneshot::{Receiver, Sender, channel};
use parking_lot::Mutex;

/// The work that is queued or being done, by key.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, V> {
    flights: Mutex<HashMap<K, Flight<V>>>,
    /// The result of work that was dropped before it was done.
    dropped: V,
}

struct Flight<V> {
    interest: Weak<()>,
    waiters: Vec<Sender<V>>,
}

impl<V> std::fmt::Debug for Flight<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} waiters", self.waiters.len())
    }
}

/// The share of a caller in some work.
#[derive(Debug)]
pub(crate) struct Joined<K: Eq + Hash, V: Clone> {
    pub(crate) result: Receiver<V>,
    /// Work is not begun once all of its callers have dropped this.
    pub(crate) interest: Arc<()>,
    /// `Some` for the caller that must have the work done.
    pub(crate) leader: Option<Leader<K, V>>,
}

/// The duty to do the work. If it is dropped before [`Self::complete`], the waiters receive the
/// result of dropped work.
#[derive(Debug)]
pub(crate) struct Leader<K: Eq + Hash, V: Clone> {
    all: Arc<SingleFlight<K, V>>,
    key: K,
    interest: Weak<()>,
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// Creates an empty table. `dropped` is the result of work that is dropped.
    pub(crate) fn new(dropped: V) -> Arc<Self> {
        Arc::new(Self { flights: Mutex::default(), dropped })
    }

    /// Waits for the work on `key` with all other callers that do.
    pub(crate) fn join(self: &Arc<Self>, key: K) -> Joined<K, V> {
        let (sender, result) = channel();
        let mut flights = self.flights.lock();
        // Work whose callers are all gone may have been skipped already, so it is never joined: a
        // caller that holds an interest knows that the work will be done.
        if let Some(flight) = flights.get_mut(&key)
            && let Some(interest) = flight.interest.upgrade()
        {
            flight.waiters.push(sender);
            return Joined { result, interest, leader: None };
        }
        let interest = Arc::new(());
        let weak = Arc::downgrade(&interest);
        let flight = Flight { interest: Weak::clone(&weak), waiters: vec![sender] };
        let replaced = flights.insert(key.clone(), flight);
        drop(flights);
        // Wakers of other connections run here, without the lock.
        drop(replaced);
        let leader = Leader { all: Arc::clone(self), key, interest: weak };
        Joined { result, interest, leader: Some(leader) }
    }
}

impl<K: Eq + Hash, V: Clone> Leader<K, V> {
    /// Passes the result to all waiters.
    pub(crate) fn complete(self, value: &V) {
        self.notify(value);
    }

    fn notify(&self, value: &V) {
        let mut flights = self.all.flights.lock();
        // Another flight may have replaced this one, which had no waiters left.
        let is_ours = |flight: &Flight<V>| Weak::ptr_eq(&flight.interest, &self.interest);
        let is_current = flights.get(&self.key).is_some_and(is_ours);
        let flight = if is_current { flights.remove(&self.key) } else { None };
        drop(flights);
        for waiter in flight.into_iter().flat_map(|flight| flight.waiters) {
            // The connection of a waiter may be closed.
            drop(waiter.send(value.clone()));
        }
    }
}

impl<K: Eq + Hash, V: Clone> Drop for Leader<K, V> {
    fn drop(&mut self) {
        // After completion, there are no waiters left.
        self.notify(&self.all.dropped);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use futures_channel::oneshot::Canceled;

    use super::*;

    fn received(joined: &mut Joined<u8, u32>) -> Poll<Result<u32, Canceled>> {
        Pin::new(&mut joined.result).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_leader_does_the_work_for_all_waiters() {
        let all = SingleFlight::new(0);
        let mut first = all.join(1);
        let mut others: Vec<_> = (0..3).map(|_| all.join(1)).collect();
        assert!(others.iter().all(|other| other.leader.is_none()));
        assert!(all.join(2).leader.is_some(), "another key");
        first.leader.take().unwrap().complete(&7);
        assert_eq!(received(&mut first), Poll::Ready(Ok(7)));
        assert!(others.iter_mut().all(|other| received(other) == Poll::Ready(Ok(7))));
        assert!(all.join(1).leader.is_some(), "the first flight has ended");
    }

    #[test]
    fn work_continues_for_the_waiters_that_remain() {
        let all = SingleFlight::new(0);
        let mut first = all.join(1);
        let leader = first.leader.take().unwrap();
        let mut second = all.join(1);
        drop(first);
        assert_eq!(leader.interest.strong_count(), 1, "the second caller still waits");
        leader.complete(&7);
        assert_eq!(received(&mut second), Poll::Ready(Ok(7)));
    }

    #[test]
    fn abandoned_work_is_not_joined_and_takes_no_waiters_of_the_next() {
        let all = SingleFlight::new(0);
        let abandoned = all.join(1).leader.unwrap();
        let mut second = all.join(1);
        let leader = second.leader.take().expect("the abandoned work may be skipped");
        drop(abandoned);
        leader.complete(&7);
        assert_eq!(received(&mut second), Poll::Ready(Ok(7)));
        assert!(all.flights.lock().is_empty());
    }

    #[test]
    fn dropped_work_has_the_result_for_that() {
        let all = SingleFlight::new(0);
        let mut first = all.join(1);
        drop(first.leader.take());
        assert_eq!(received(&mut first), Poll::Ready(Ok(0)));
        assert!(all.flights.lock().is_empty());
    }
}
