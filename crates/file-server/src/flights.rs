//! Work that is done once for all who wait for it (what Go's users know as *singleflight*).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

type Waiter<V> = Box<dyn FnOnce(V) + Send>;

/// What is under way, by what it is about.
#[derive(Debug)]
pub(crate) struct Flights<K, V> {
    under_way: Mutex<HashMap<K, Flight<V>>>,
    /// What those who wait are told of work that was not done.
    undone: V,
}

struct Flight<V> {
    asker: Weak<()>,
    waiters: Vec<Waiter<V>>,
}

impl<V> std::fmt::Debug for Flight<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} wait", self.waiters.len())
    }
}

/// The duty to do the work. Dropped without that, it tells everybody so.
#[derive(Debug)]
pub(crate) struct Landing<K: Eq + Hash, V: Clone> {
    flights: Arc<Flights<K, V>>,
    key: K,
    asker: Weak<()>,
}

impl<K: Eq + Hash + Clone, V: Clone> Flights<K, V> {
    pub(crate) fn new(undone: V) -> Arc<Self> {
        Arc::new(Self { under_way: Mutex::default(), undone })
    }

    /// Waits for the work on `key` with all others who do. What is given is to be kept for as long
    /// as somebody waits: work whose askers are all gone need not be done. Whoever gets the
    /// `Landing` has the work done.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: K,
        waiter: impl FnOnce(V) + Send + 'static,
    ) -> (Arc<()>, Option<Landing<K, V>>) {
        let waiter: Waiter<V> = Box::new(waiter);
        let mut under_way = self.under_way.lock();
        // One whose askers are all gone may have been passed over already, and is never joined: who
        // holds an asker knows that the work is still to be done.
        if let Some(flight) = under_way.get_mut(&key)
            && let Some(asker) = flight.asker.upgrade()
        {
            flight.waiters.push(waiter);
            return (asker, None);
        }
        let asker = Arc::new(());
        let weak = Arc::downgrade(&asker);
        let flight = Flight { asker: Weak::clone(&weak), waiters: vec![waiter] };
        under_way.insert(key.clone(), flight);
        (asker, Some(Landing { flights: Arc::clone(self), key, asker: weak }))
    }
}

impl<K: Eq + Hash, V: Clone> Landing<K, V> {
    /// The work is done: tells everybody.
    pub(crate) fn land(self, value: &V) {
        self.tell(value);
    }

    fn tell(&self, value: &V) {
        let mut under_way = self.flights.under_way.lock();
        // Another one may have taken the place of this one, which nobody waited for.
        let is_ours = |flight: &Flight<V>| Weak::ptr_eq(&flight.asker, &self.asker);
        let ours = under_way.get(&self.key).is_some_and(is_ours);
        let landed = if ours { under_way.remove(&self.key) } else { None };
        drop(under_way);
        for waiter in landed.into_iter().flat_map(|flight| flight.waiters) {
            waiter(value.clone());
        }
    }
}

impl<K: Eq + Hash, V: Clone> Drop for Landing<K, V> {
    fn drop(&mut self) {
        // Nobody is left where it has landed.
        self.tell(&self.flights.undone);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    type Joined = (Arc<()>, Option<Landing<u8, u32>>, Receiver<u32>);

    fn join(flights: &Arc<Flights<u8, u32>>, key: u8) -> Joined {
        let (tell, told) = channel();
        let (asker, landing) = flights.join(key, move |value| tell.send(value).unwrap_or_default());
        (asker, landing, told)
    }

    #[test]
    fn one_does_the_work_and_all_who_wait_are_told() {
        let flights = Flights::new(0);
        let (_first, landing, told) = join(&flights, 1);
        let others: Vec<_> = (0..3).map(|_| join(&flights, 1)).collect();
        assert!(others.iter().all(|other| other.1.is_none()));
        let (_other, of_other_key, _) = join(&flights, 2);
        assert!(of_other_key.is_some());
        landing.unwrap().land(&7);
        assert_eq!(told.recv(), Ok(7));
        assert!(others.iter().all(|other| other.2.recv() == Ok(7)));
        assert!(join(&flights, 1).1.is_some(), "it is over");
    }

    #[test]
    fn it_goes_on_for_those_who_stay() {
        let flights = Flights::new(0);
        let (first, landing, _) = join(&flights, 1);
        let landing = landing.unwrap();
        let (_second, _, told) = join(&flights, 1);
        drop(first);
        assert_eq!(landing.asker.strong_count(), 1, "still wanted");
        landing.land(&7);
        assert_eq!(told.recv(), Ok(7));
    }

    #[test]
    fn what_everybody_left_is_not_joined_and_takes_nothing_from_the_next_one() {
        let flights = Flights::new(0);
        let (first, left, _) = join(&flights, 1);
        drop(first);
        let (_second, landing, told) = join(&flights, 1);
        let landing = landing.expect("the first one may not be done any more");
        drop(left);
        landing.land(&7);
        assert_eq!(told.recv(), Ok(7));
        assert!(flights.under_way.lock().is_empty());
    }

    #[test]
    fn work_that_is_not_done_is_told_as_that() {
        let flights = Flights::new(0);
        let (_first, landing, told) = join(&flights, 1);
        drop(landing);
        assert_eq!(told.recv(), Ok(0));
        assert!(flights.under_way.lock().is_empty());
    }
}
