//! Queues of events over all members.
//!
//! An event stays in the member in which its change was made, also when the key moves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use haul_file_store::{EventQueueState, QueuedEvent, Result, Store};

use crate::member::Member;

/// The number of events that are read from a member at once.
const PAGE_EVENTS: usize = 256;

/// The number of events that are dropped at once.
const DROP_EVENTS: usize = 1000;

/// A member with calls that wait for longer than this is not asked to remove events, so that a disk
/// that hangs does not delay the events of the others.
const WAIT_MAX: Duration = Duration::from_secs(1);

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

    /// Removes events of one queue. Events of members that are missing or hang stay in the queue,
    /// and are returned.
    ///
    /// # Errors
    /// Fails like [`haul_file_store::StoreEvents::remove`].
    ///
    /// # Durability
    /// The removal survives a power cut when this returns.
    pub fn remove(&self, queue: &str, mut events: Vec<QueuedEvent>) -> Result<Vec<QueuedEvent>> {
        for member in self.members {
            let Ok(store) = member.store() else { continue };
            if member.waiting().longest > WAIT_MAX {
                continue;
            }
            let its = |event: &mut QueuedEvent| event.member == member.number();
            let removed: Vec<_> = events.extract_if(.., its).collect();
            if !removed.is_empty() {
                store.events().remove(queue, &removed)?;
            }
        }
        Ok(events)
    }

    /// Drops the oldest events of a queue until it has at most `events_max`, and returns the number
    /// of dropped events. Each member drops its share.
    ///
    /// # Errors
    /// Fails like [`haul_file_store::StoreEvents::drop_oldest`].
    pub fn trim(&self, queue: &Arc<str>, events_max: u64) -> Result<u64> {
        let total = self.state(queue).events;
        let Some(excess) = total.checked_sub(events_max).filter(|excess| *excess > 0) else {
            return Ok(0);
        };
        let mut dropped = 0;
        for store in self.stores() {
            let queues = store.events().queues().into_iter();
            let events: u64 =
                queues.filter(|(name, _)| **name == **queue).map(|(_, state)| state.events).sum();
            let share = u128::from(excess) * u128::from(events);
            let mut left = usize::try_from(share.div_ceil(u128::from(total))).unwrap_or(usize::MAX);
            while left > 0 {
                let count = store.events().drop_oldest(queue, left.min(DROP_EVENTS))?;
                dropped += count as u64;
                left = if count == 0 { 0 } else { left - count };
            }
        }
        Ok(dropped)
    }

    /// Returns a reader of all events in a queue.
    #[must_use]
    pub fn reader(&self, queue: &Arc<str>) -> EventReader<'a> {
        let reader =
            |member| MemberReader { member, after: 0, page: VecDeque::new(), is_at_end: false };
        EventReader { queue: Arc::clone(queue), members: self.members.iter().map(reader).collect() }
    }
}

/// Reads the events of a queue in the order of their changes.
#[derive(Debug)]
pub struct EventReader<'a> {
    queue: Arc<str>,
    members: Vec<MemberReader<'a>>,
}

#[derive(Debug)]
struct MemberReader<'a> {
    member: &'a Member,
    /// The number of the last event that was read.
    after: u64,
    page: VecDeque<QueuedEvent>,
    is_at_end: bool,
}

impl EventReader<'_> {
    /// Returns the next events, at most `limit`; none at the end. Skips the members that are
    /// missing.
    ///
    /// # Errors
    /// Fails like [`haul_file_store::StoreEvents::list`].
    pub fn next(&mut self, limit: usize) -> Result<Vec<QueuedEvent>> {
        let mut events = Vec::with_capacity(limit);
        while events.len() < limit {
            for member in &mut self.members {
                member.fill(&self.queue)?;
            }
            let oldest = self.members.iter_mut().filter(|member| !member.page.is_empty());
            let oldest = oldest.min_by_key(|member| member.page.front().map(|it| it.sequence));
            let Some(event) = oldest.and_then(|member| member.page.pop_front()) else { break };
            events.push(event);
        }
        Ok(events)
    }
}

impl MemberReader<'_> {
    /// Reads the next page once all events of the last one were taken.
    fn fill(&mut self, queue: &Arc<str>) -> Result<()> {
        if self.is_at_end || !self.page.is_empty() {
            return Ok(());
        }
        let Ok(store) = self.member.store() else {
            self.is_at_end = true;
            return Ok(());
        };
        self.page = store.events().list(queue, self.after, PAGE_EVENTS)?.into();
        self.is_at_end = self.page.is_empty();
        self.after = self.page.back().map_or(self.after, |event| event.sequence);
        Ok(())
    }
}
