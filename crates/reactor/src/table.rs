//! Stores the connections of a thread in reusable slots, and finds those whose deadline has passed.

use std::time::Instant;

use crate::admission::Permit;
use crate::key::{Key, SLOTS_MAX};

/// The connections of a thread, by key. The deadlines are in a separate array, which the reactor
/// scans at each tick, every 100 ms.
pub(crate) struct Table<C> {
    slots: Vec<Slot<C>>,
    deadlines: Vec<Option<Instant>>,
    free: Vec<u32>,
    deadlines_set: usize,
}

struct Slot<C> {
    generation: u32,
    /// `true` if the connection is in the queue of connections that yielded.
    is_queued: bool,
    entry: Option<(C, Permit)>,
}

impl<C> Table<C> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), deadlines: Vec::new(), free: Vec::new(), deadlines_set: 0 }
    }

    /// Returns the key for the next connection; `None` if the table is full.
    pub(crate) fn next_key(&mut self) -> Option<Key> {
        if self.free.is_empty() {
            let index = u32::try_from(self.slots.len()).ok()?;
            if self.slots.len() >= SLOTS_MAX {
                return None;
            }
            self.slots.push(Slot { generation: 0, is_queued: false, entry: None });
            self.deadlines.push(None);
            self.free.push(index);
        }
        let index = *self.free.last()?;
        Some(Key { index, generation: self.slots[index as usize].generation })
    }

    /// Inserts a connection at the key that [`Self::next_key`] returned.
    pub(crate) fn insert(&mut self, connection: C, permit: Permit) {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize].entry = Some((connection, permit));
        }
    }

    /// Returns the connection with this key, or `None` if it was removed.
    pub(crate) fn get(&mut self, key: Key) -> Option<&mut C> {
        let slot = self.slots.get_mut(key.index as usize)?;
        let (connection, _permit) = slot.entry.as_mut()?;
        (slot.generation == key.generation).then_some(connection)
    }

    /// Returns the permit of the connection with this key, or `None` if it was removed.
    pub(crate) fn permit(&self, key: Key) -> Option<&Permit> {
        let slot = self.slots.get(key.index as usize)?;
        let (_connection, permit) = slot.entry.as_ref()?;
        (slot.generation == key.generation).then_some(permit)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<C> {
        self.get(key)?;
        self.set_deadline(key, None);
        let slot = &mut self.slots[key.index as usize];
        slot.generation = Key::generation_after(slot.generation);
        slot.is_queued = false;
        self.free.push(key.index);
        slot.entry.take().map(|(connection, _permit)| connection)
    }

    /// Sets the queued flag of a connection; returns `true` if the call changed the flag.
    pub(crate) fn set_queued(&mut self, key: Key, is_queued: bool) -> bool {
        let slot = &mut self.slots[key.index as usize];
        let changes = slot.generation == key.generation && slot.is_queued != is_queued;
        slot.is_queued ^= changes;
        changes
    }

    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Option<Instant>) {
        let Some(old) = self.deadlines.get_mut(key.index as usize) else { return };
        self.deadlines_set += usize::from(deadline.is_some());
        self.deadlines_set -= usize::from(old.is_some());
        *old = deadline;
    }

    pub(crate) fn has_deadlines(&self) -> bool {
        self.deadlines_set > 0
    }

    /// Returns the connections whose deadline has passed.
    pub(crate) fn expired(&self, now: Instant) -> Vec<Key> {
        let expired = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let slots = self.deadlines.iter().enumerate().filter(|(_, deadline)| expired(deadline));
        slots.filter_map(|(index, _)| self.key_at(index)).collect()
    }

    /// Returns the keys of all connections.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let is_used = |index: &usize| self.slots[*index].entry.is_some();
        (0..self.slots.len()).filter(is_used).filter_map(|index| self.key_at(index)).collect()
    }

    fn key_at(&self, index: usize) -> Option<Key> {
        let generation = self.slots[index].generation;
        Some(Key { index: u32::try_from(index).ok()?, generation })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::AdmissionLimit;

    fn insert(table: &mut Table<char>, limit: &AdmissionLimit, connection: char) -> Key {
        let key = table.next_key().unwrap();
        table.insert(connection, limit.try_acquire().unwrap());
        key
    }

    #[test]
    fn reused_slot_is_not_found_by_its_old_key() {
        let (mut table, limit) = (Table::new(), AdmissionLimit::new(2));
        let first = insert(&mut table, &limit, 'a');
        let second = insert(&mut table, &limit, 'b');
        assert!(limit.try_acquire().is_none());
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!(table.remove(first), None);
        let third = insert(&mut table, &limit, 'c');
        assert_eq!(third.index, first.index);
        assert_eq!(table.get(first), None);
        assert_eq!(table.get(third), Some(&mut 'c'));
        assert_eq!(table.keys(), [third, second]);
        table.remove(second);
        table.remove(third);
        assert!(table.is_empty() && limit.open() == 0);
    }

    #[test]
    fn deadlines_are_counted_and_removed_with_their_connection() {
        let (mut table, limit, now) = (Table::new(), AdmissionLimit::new(9), Instant::now());
        let later = now + std::time::Duration::from_secs(1);
        let keys = ['a', 'b', 'c'].map(|name| insert(&mut table, &limit, name));
        assert!(!table.has_deadlines());
        table.set_deadline(keys[0], Some(now));
        table.set_deadline(keys[1], Some(later));
        table.set_deadline(keys[1], Some(later));
        assert_eq!(table.expired(now), [keys[0]]);
        assert_eq!(table.expired(later), [keys[0], keys[1]]);
        table.remove(keys[1]);
        table.set_deadline(keys[0], None);
        assert!(!table.has_deadlines() && table.expired(later).is_empty());
    }
}
