//! Queues of events over all members.
//!
//! An event stays in the member in which its change was made, also when the key moves.
//!
//! A disk that fails or hangs holds up its own events only: a member is called on a thread of its
//! own, for which the others wait for a limited time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use haul_disk::{Error as DiskError, Op};
use haul_file_store::{Error, EventQueueState, EventQueues, QueuedEvent, Result, Store};
use haul_sync::Mutex;

use crate::member::Member;
use crate::waiting::Call;

/// The number of events that are read from a member at once. A spinning disk reads them in less than
/// [`CALL_TIME_MAX`], although each may be at another place.
const PAGE_EVENTS: usize = 64;

/// The number of events that are dropped at once.
const DROP_EVENTS: usize = 1000;

/// The time after which a call of one member counts as failed. It continues on its thread.
const CALL_TIME_MAX: Duration = Duration::from_secs(5);

/// A member with calls that wait for longer than this is not called, so that a disk that hangs takes
/// few threads, and delays the events of the others once only.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Calls one of `members` on a thread of its own, unless there are no others that would wait for it.
/// `begin` counts the call, until it has returned.
///
/// # Errors
/// [`Error::MemberMissing`]; [`Error::MemberStalled`] if the member does not respond in time;
/// otherwise fails like `work`.
fn call<T: Send + 'static>(
    members: &[Member],
    member: &Member,
    begin: fn(&Member) -> Result<Call>,
    work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
) -> Result<T> {
    let store = Arc::clone(member.store()?);
    if members.len() == 1 {
        return work(&store);
    }
    let result = Arc::new(Mutex::new(None));
    let its_result = Arc::clone(&result);
    let work = move || *its_result.lock() = Some(work(&store));
    run_apart(member, begin, Box::new(work))?;
    let result = result.lock().take();
    result.unwrap_or(Err(Error::Stopped { what: "a thread of the pool panicked" }))
}

/// Runs `work` on a thread of its own, and waits for its end or its panic. It is no part of [`call`],
/// because that would compile the thread and the channel for each kind of result.
fn run_apart(
    member: &Member,
    begin: fn(&Member) -> Result<Call>,
    work: Box<dyn FnOnce() + Send>,
) -> Result<()> {
    if member.waiting().longest > WAIT_MAX {
        return Err(member.stalled());
    }
    let call = begin(member)?;
    let (end, ended) = channel();
    let run = move || {
        work();
        drop(call);
        // The receiver may have given up.
        end.send(()).ok();
    };
    let thread = thread::Builder::new().name("pool events".to_owned());
    thread
        .spawn(run)
        .map_err(|source| Error::Disk(DiskError::new(Op::Open, "a thread of the pool", source)))?;
    match ended.recv_timeout(CALL_TIME_MAX) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        Err(RecvTimeoutError::Timeout) => Err(member.stalled()),
    }
}

/// The queues of events of a pool, from [`crate::Pool::events`].
#[derive(Debug, Clone, Copy)]
pub struct PoolEvents<'a> {
    members: &'a [Member],
}

impl<'a> PoolEvents<'a> {
    pub(crate) fn new(members: &'a [Member]) -> Self {
        Self { members }
    }

    fn stores(&self) -> impl Iterator<Item = &'a Store> {
        self.members.iter().filter_map(|member| member.store().ok().map(|store| &**store))
    }

    /// Creates a queue in all open members, unless it exists.
    ///
    /// # Errors
    /// Fails like [`haul_file_store::StoreEvents::create`].
    ///
    /// # Durability
    /// The queue survives a power cut when this returns.
    pub fn create(&self, queue: &str) -> Result<()> {
        self.stores().try_for_each(|store| store.events().create(queue))
    }

    /// Returns the total of a queue in all open members.
    #[must_use]
    pub fn state(&self, queue: &str) -> EventQueueState {
        let queues = self.stores().flat_map(|store| store.events().queues());
        let states = queues.filter(|(name, _)| name == queue);
        states.fold(EventQueueState::default(), |all, (_, state)| EventQueueState {
            events: all.events + state.events,
            bytes: all.bytes + state.bytes,
        })
    }

    /// Removes events of one queue. Events of members that are missing, fail or hang are returned:
    /// they stay in the queue, unless a member that hangs removes them later.
    ///
    /// # Errors
    /// The first failure of a member, if no member has removed any: all events are then left.
    ///
    /// # Durability
    /// The removal survives a power cut when this returns.
    pub fn remove(&self, queue: &str, mut events: Vec<QueuedEvent>) -> Result<Vec<QueuedEvent>> {
        let (mut left, mut failure, mut is_any_removed) = (Vec::new(), None, false);
        for member in self.members.iter().filter(|member| member.store.is_ok()) {
            let its = |event: &mut QueuedEvent| event.member == member.number();
            let removed: Arc<[QueuedEvent]> = events.extract_if(.., its).collect();
            if removed.is_empty() {
                continue;
            }
            let (queue, chosen) = (queue.to_owned(), Arc::clone(&removed));
            let remove = move |store: &Store| store.events().remove(&queue, &chosen);
            match call(self.members, member, Member::begin_write, remove) {
                Ok(()) => is_any_removed = true,
                Err(error) => {
                    // That a member hangs is no failure.
                    failure = failure.or(Some(error).filter(|error| !is_stalled(error)));
                    left.extend(removed.iter().cloned());
                }
            }
        }
        left.append(&mut events);
        match failure {
            Some(error) if !is_any_removed => Err(error),
            _ => Ok(left),
        }
    }

    /// Drops the oldest events of a queue until it has at most `events_max`, and returns the number
    /// of dropped events. Each member drops its share.
    ///
    /// # Errors
    /// Fails like [`haul_file_store::StoreEvents::drop_oldest`]; [`Error::MemberStalled`].
    pub fn trim(&self, queue: &Arc<str>, events_max: u64) -> Result<u64> {
        let total = self.state(queue).events;
        let Some(excess) = total.checked_sub(events_max).filter(|excess| *excess > 0) else {
            return Ok(0);
        };
        let mut dropped = 0;
        for member in self.members {
            let Ok(store) = member.store() else { continue };
            let queues = store.events().queues().into_iter();
            let events: u64 =
                queues.filter(|(name, _)| **name == **queue).map(|(_, state)| state.events).sum();
            let share = u128::from(excess) * u128::from(events);
            let mut left = usize::try_from(share.div_ceil(u128::from(total))).unwrap_or(usize::MAX);
            while left > 0 {
                let (queue, limit) = (Arc::clone(queue), left.min(DROP_EVENTS));
                let drop_some = move |store: &Store| store.events().drop_oldest(&queue, limit);
                let count = call(self.members, member, Member::begin_write, drop_some)?;
                dropped += count as u64;
                left = if count == 0 { 0 } else { left - count };
            }
        }
        Ok(dropped)
    }

    /// Restarts a queue in memory, and returns a reader of the events that were queued before. An
    /// event of a change that was being made meanwhile can be in both.
    ///
    /// Reader and memory together have a key's events in order. When an event gets its number, those
    /// of the key before it are in memory or visible in their store. So if the reader has the event,
    /// it has them, too: they got their numbers earlier, and no store gave a number while the bounds
    /// were taken that memory did not wait for.
    pub fn restart(&self, queues: &EventQueues, queue: &Arc<str>) -> EventReader<'a> {
        let stores: Vec<_> = self.members.iter().map(|member| member.store().ok()).collect();
        let clocks: Vec<_> = stores.iter().flatten().map(|store| store.events().clock()).collect();
        let mut bounds = queues.restart(queue, &clocks).into_iter();
        let reader = |(member, store): (&'a Member, &Option<_>)| {
            let until = store.as_ref().and_then(|_| bounds.next()).unwrap_or(0);
            MemberReader { member, after: 0, until, page: VecDeque::new(), is_at_end: false }
        };
        let members = self.members.iter().zip(&stores).map(reader).collect();
        EventReader { queue: Arc::clone(queue), all: self.members, members, failure: None }
    }
}

fn is_stalled(error: &Error) -> bool {
    matches!(error, Error::MemberStalled { .. })
}

/// Reads the events of a queue in the order of their changes.
#[derive(Debug)]
pub struct EventReader<'a> {
    queue: Arc<str>,
    all: &'a [Member],
    members: Vec<MemberReader<'a>>,
    /// The first failure of a member, which is returned at the end.
    failure: Option<Error>,
}

#[derive(Debug)]
struct MemberReader<'a> {
    member: &'a Member,
    /// The number of the last event that was read.
    after: u64,
    /// Events with greater numbers are in memory.
    until: u64,
    page: VecDeque<QueuedEvent>,
    is_at_end: bool,
}

impl EventReader<'_> {
    /// Returns the next events, at most `limit`; none at the end. Skips the members that are
    /// missing, and the remaining events of a member that fails or hangs. Those of the others
    /// continue in the order of each key's changes, except for a key that has moved from such a
    /// member: its later events come first.
    ///
    /// # Errors
    /// The first failure of a member, once, after all events of the others: the queue then has
    /// events that were not read.
    pub fn next(&mut self, limit: usize) -> Result<Vec<QueuedEvent>> {
        let mut events = Vec::with_capacity(limit);
        while events.len() < limit {
            for member in &mut self.members {
                if let Err(error) = member.fill(self.all, &self.queue) {
                    member.is_at_end = true;
                    self.failure.get_or_insert(error);
                }
            }
            let oldest = self.members.iter_mut().filter(|member| !member.page.is_empty());
            let oldest = oldest.min_by_key(|member| member.page.front().map(|it| it.sequence));
            let Some(event) = oldest.and_then(|member| member.page.pop_front()) else { break };
            events.push(event);
        }
        match self.failure.take_if(|_| events.is_empty()) {
            Some(failure) => Err(failure),
            None => Ok(events),
        }
    }
}

impl MemberReader<'_> {
    /// Reads the next page once all events of the last one were taken.
    fn fill(&mut self, all: &[Member], queue: &Arc<str>) -> Result<()> {
        if self.is_at_end || !self.page.is_empty() {
            return Ok(());
        }
        if self.member.store.is_err() {
            self.is_at_end = true;
            return Ok(());
        }
        let (queue, after) = (Arc::clone(queue), self.after);
        let list = move |store: &Store| store.events().list(&queue, after, PAGE_EVENTS);
        self.page = call(all, self.member, Member::begin_read, list)?.into();
        self.page.truncate(self.page.partition_point(|event| event.sequence <= self.until));
        self.is_at_end = self.page.is_empty();
        self.after = self.page.back().map_or(self.after, |event| event.sequence);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use haul_file_store::Options;

    use super::*;
    use crate::Pool;

    #[test]
    fn call_that_panics_fails_and_does_not_count_as_waiting() {
        let parent = tempfile::tempdir().unwrap();
        let dirs = ["d0", "d1"].map(|name| parent.path().join(name));
        let options = Options {
            volume_bytes: 2 << 20,
            big_object_bytes: 64 << 10,
            index_memory_bytes: 1 << 20,
            ..Options::default()
        };
        let pool = Pool::open(&dirs, &options).unwrap().0;
        let member = &pool.members[1];
        let panics = |_: &Store| -> Result<u8> { panic!("as the test wants") };
        let failed = call(&pool.members, member, Member::begin_write, panics).unwrap_err();
        assert!(matches!(failed, Error::Stopped { .. }), "{failed}");
        assert_eq!(member.waiting().calls, 0);
        assert_eq!(call(&pool.members, member, Member::begin_write, |_| Ok(7)).unwrap(), 7);
        pool.close().unwrap();
    }
}
