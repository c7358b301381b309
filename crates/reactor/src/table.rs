//! The connections of a thread, and their deadlines.

use std::time::Instant;

use crate::gate::Place;
use crate::key::{Key, PLACES_MAX};

/// Connections by their keys. Deadlines stand apart, so that looking at all of them is a walk
/// through one array.
pub(crate) struct Table<C> {
    slots: Vec<Slot<C>>,
    deadlines: Vec<Option<Instant>>,
    free: Vec<u32>,
    deadlines_set: usize,
}

struct Slot<C> {
    generation: u32,
    /// It stands in the queue for another turn.
    is_queued: bool,
    held: Option<(C, Place)>,
}

impl<C> Table<C> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), deadlines: Vec::new(), free: Vec::new(), deadlines_set: 0 }
    }

    /// The key the next connection will have; `None` when there are too many.
    pub(crate) fn next_key(&mut self) -> Option<Key> {
        if self.free.is_empty() {
            let index = u32::try_from(self.slots.len()).ok()?;
            if self.slots.len() >= PLACES_MAX {
                return None;
            }
            self.slots.push(Slot { generation: 0, is_queued: false, held: None });
            self.deadlines.push(None);
            self.free.push(index);
        }
        let index = *self.free.last()?;
        Some(Key { index, generation: self.slots[index as usize].generation })
    }

    /// Puts a connection where [`Self::next_key`] said.
    pub(crate) fn insert(&mut self, connection: C, place: Place) {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize].held = Some((connection, place));
        }
    }

    /// The connection of this name, unless it is gone.
    pub(crate) fn get(&mut self, key: Key) -> Option<&mut C> {
        let slot = self.slots.get_mut(key.index as usize)?;
        let (connection, _place) = slot.held.as_mut()?;
        (slot.generation == key.generation).then_some(connection)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<C> {
        self.get(key)?;
        self.set_deadline(key, None);
        let slot = &mut self.slots[key.index as usize];
        slot.generation = Key::generation_after(slot.generation);
        slot.is_queued = false;
        self.free.push(key.index);
        slot.held.take().map(|(connection, _place)| connection)
    }

    /// Says that a connection stands in the queue, or does not; and whether that is news.
    pub(crate) fn set_queued(&mut self, key: Key, is_queued: bool) -> bool {
        let slot = &mut self.slots[key.index as usize];
        let is_news = slot.generation == key.generation && slot.is_queued != is_queued;
        slot.is_queued ^= is_news;
        is_news
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

    /// Those whose deadline has passed.
    pub(crate) fn late(&self, now: Instant) -> Vec<Key> {
        let late = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let places = self.deadlines.iter().enumerate().filter(|(_, deadline)| late(deadline));
        places.filter_map(|(index, _)| self.key_at(index)).collect()
    }

    /// All of them.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let is_held = |index: &usize| self.slots[*index].held.is_some();
        (0..self.slots.len()).filter(is_held).filter_map(|index| self.key_at(index)).collect()
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
    use crate::gate::Gate;

    fn insert(table: &mut Table<char>, gate: &Gate, connection: char) -> Key {
        let key = table.next_key().unwrap();
        table.insert(connection, gate.enter().unwrap());
        key
    }

    #[test]
    fn a_place_used_again_does_not_answer_to_its_old_name() {
        let (mut table, gate) = (Table::new(), Gate::new(2));
        let first = insert(&mut table, &gate, 'a');
        let second = insert(&mut table, &gate, 'b');
        assert!(gate.enter().is_none());
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!(table.remove(first), None);
        let third = insert(&mut table, &gate, 'c');
        assert_eq!(third.index, first.index);
        assert_eq!(table.get(first), None);
        assert_eq!(table.get(third), Some(&mut 'c'));
        assert_eq!(table.keys(), [third, second]);
        table.remove(second);
        table.remove(third);
        assert!(table.is_empty() && gate.open() == 0);
    }

    #[test]
    fn deadlines_are_counted_and_go_with_their_connection() {
        let (mut table, gate, now) = (Table::new(), Gate::new(9), Instant::now());
        let later = now + std::time::Duration::from_secs(1);
        let keys = ['a', 'b', 'c'].map(|name| insert(&mut table, &gate, name));
        assert!(!table.has_deadlines());
        table.set_deadline(keys[0], Some(now));
        table.set_deadline(keys[1], Some(later));
        table.set_deadline(keys[1], Some(later));
        assert_eq!(table.late(now), [keys[0]]);
        assert_eq!(table.late(later), [keys[0], keys[1]]);
        table.remove(keys[1]);
        table.set_deadline(keys[0], None);
        assert!(!table.has_deadlines() && table.late(later).is_empty());
    }
}
