//! Queues of events over several members, and while keys move between them.

use std::time::Instant;

use haul_disk::Op;
use haul_disk_sim::FaultyDisk;
use haul_file_store::{
    Deletion, Event, EventFields, EventQueues, QueuedEvent, Taken, TargetBucket,
};
use rustix::io::Errno;

use super::*;

const QUEUE: &str = "queue";

fn event(what: &str) -> Event {
    let mut fields = EventFields::default();
    fields.add("what", what);
    Event { queues: vec![QUEUE.into()], fields }
}

fn put_with(pool: &Pool, key: &str, what: usize) {
    let event = event(&what.to_string());
    let bucket = TargetBucket::from(BUCKET).with_event(Some(&event));
    let (none, always) = (Attributes::new(), Precondition::None);
    pool.put_located(bucket, key, b"bytes", &none, &always).unwrap();
}

/// Returns all queued events, which are read in pages.
fn queued(pool: &Pool) -> Vec<QueuedEvent> {
    let queues = EventQueues::new([]);
    let (mut reader, mut events) = (pool.events().restart(&queues, &QUEUE.into()), Vec::new());
    loop {
        let page = reader.next(7).unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

/// Returns what the events of each key tell, in the order of the events.
fn by_key(events: &[QueuedEvent]) -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for event in events {
        let field = |name: &str| event.fields.get(name).unwrap().to_owned();
        found.entry(field("key")).or_default().push(field("what").parse().unwrap());
    }
    found
}

#[test]
fn events_of_a_key_are_in_order_although_it_moves() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..2);
    pool.create_bucket(BUCKET).unwrap();
    pool.events().create(QUEUE).unwrap();
    let key = |number: usize| format!("key {}", number % 40);
    (0..200).for_each(|number| put_with(&pool, &key(number), number));
    pool.close().unwrap();
    let pool = open(&disk, 0..3);
    pool.events().create(QUEUE).unwrap();
    (200..300).for_each(|number| put_with(&pool, &key(number), number));
    wait_for_moves(&pool);
    (300..400).for_each(|number| put_with(&pool, &key(number), number));
    let moved =
        (0..40).filter(|number| pool.stores().nth(2).unwrap().stat(BUCKET, &key(*number)).is_ok());
    assert!(moved.count() > 0, "some keys have moved to the new member");
    let events = queued(&pool);
    assert_eq!(pool.events().state(QUEUE).events, 400);
    for (key, found) in by_key(&events) {
        let first: usize = key.strip_prefix("key ").unwrap().parse().unwrap();
        let expected: Vec<usize> = (0..10).map(|round| first + 40 * round).collect();
        assert_eq!(found, expected, "{key}");
    }
    assert!(pool.events().remove(QUEUE, events).unwrap().is_empty());
    assert_eq!(pool.events().state(QUEUE), haul_file_store::EventQueueState::default());
    pool.close().unwrap();
}

#[test]
fn oldest_events_of_each_member_are_dropped() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.events().create(QUEUE).unwrap();
    (0..300).for_each(|number| put_with(&pool, &format!("key {number}"), number));
    assert_eq!(pool.events().trim(&QUEUE.into(), 300).unwrap(), 0);
    let dropped = pool.events().trim(&QUEUE.into(), 100).unwrap();
    assert!((200..=203).contains(&dropped), "{dropped}");
    let left: Vec<usize> = by_key(&queued(&pool)).into_values().flatten().collect();
    assert_eq!(left.len() as u64, 300 - dropped);
    assert!(left.iter().all(|what| *what > 100), "the newest are kept: {left:?}");
    assert!(left.contains(&299));
    pool.close().unwrap();
}

#[test]
fn member_leaves_once_its_events_are_removed() {
    let disk = MemoryDisk::default();
    let mut pool = open(&disk, 0..2);
    pool.create_bucket(BUCKET).unwrap();
    pool.events().create(QUEUE).unwrap();
    (0..40).for_each(|number| put_with(&pool, &format!("key {number}"), number));
    let deleted = event("100");
    let deletion = Deletion { event: Some(&deleted), ..Deletion::of("key 1") };
    pool.delete_objects(BUCKET, &[deletion]).remove(0).unwrap();
    let dir = pool.members()[0].dir().to_owned();
    pool.remove_member(&dir).unwrap();
    haul_testing::eventually("all keys have moved", || {
        pool.members()[0].store().unwrap().stats().objects == 0
    });
    pool.close().unwrap();
    let pool = open(&disk, 0..2);
    assert_eq!(pool.members().len(), 2, "it still has events");
    let events = queued(&pool);
    assert_eq!(events.len(), 41);
    pool.events().remove(QUEUE, events).unwrap();
    pool.close().unwrap();
    let pool = open(&disk, 0..2);
    wait_for_moves(&pool);
    pool.close().unwrap();
    assert_eq!(open(&disk, 0..2).members().len(), 1);
}

/// Opens a pool of two members with 60 events, with faults in the first one. Returns the number of
/// events in each member.
fn open_faulty(disk: &MemoryDisk) -> (Pool, FaultyDisk, [u64; 2]) {
    let mut dirs = dirs(disk, 0..2);
    let faulty = FaultyDisk::new(Arc::clone(&dirs[0]));
    dirs[0] = Arc::new(faulty.clone());
    let pool = Pool::open_on(&dirs, &OpenWith::default(), &small()).unwrap().0;
    pool.create_bucket(BUCKET).unwrap();
    pool.events().create(QUEUE).unwrap();
    (0..60).for_each(|number| put_with(&pool, &format!("key {number}"), number));
    let counts = counts(&pool);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    (pool, faulty, counts)
}

fn counts(pool: &Pool) -> [u64; 2] {
    let count = |store: &haul_file_store::Store| store.events().queues()[0].1.events;
    let counts: Vec<u64> = pool.stores().map(count).collect();
    counts.try_into().unwrap()
}

/// Reads events until the end, or until an error, which is returned.
fn read_until_error(pool: &Pool) -> (Vec<QueuedEvent>, Option<String>) {
    let queues = EventQueues::new([]);
    let (mut reader, mut events) = (pool.events().restart(&queues, &QUEUE.into()), Vec::new());
    loop {
        match reader.next(7) {
            Ok(page) if page.is_empty() => return (events, None),
            Ok(page) => events.extend(page),
            Err(error) => {
                assert!(reader.next(7).unwrap().is_empty(), "the error is the end");
                return (events, Some(error.to_string()));
            }
        }
    }
}

#[test]
fn events_of_a_disk_that_fails_do_not_hold_up_the_others() {
    let disk = MemoryDisk::default();
    let (pool, faulty, counts_before) = open_faulty(&disk);
    faulty.fail_always(Op::Read, Errno::IO);
    let (events, error) = read_until_error(&pool);
    assert!(events.iter().all(|event| event.member == 1), "{events:?}");
    assert_eq!(events.len() as u64, counts_before[1]);
    assert!(error.is_some(), "the events of the first member are left out without an error");
    faulty.heal();
    let all = queued(&pool);
    assert_eq!(all.len(), 60);
    faulty.fail_always(Op::Sync, Errno::IO);
    let left = pool.events().remove(QUEUE, all).unwrap();
    assert!(left.iter().all(|event| event.member == 0), "{left:?}");
    assert_eq!(left.len() as u64, counts_before[0]);
    assert_eq!(counts(&pool)[1], 0);
    pool.events().remove(QUEUE, left).unwrap_err();
    drop(pool);
}

#[test]
fn events_of_a_disk_that_hangs_do_not_hold_up_the_others() {
    let disk = MemoryDisk::default();
    let (pool, faulty, counts_before) = open_faulty(&disk);
    let all = queued(&pool);
    faulty.block(Op::Read);
    let (events, error) = read_until_error(&pool);
    assert_eq!(events.len() as u64, counts_before[1]);
    assert!(error.unwrap().contains("does not respond"));
    faulty.unblock();
    let is_free = || pool.members()[0].waiting() == haul_store_pool::Waiting::default();
    haul_testing::eventually("the read ends", is_free);
    faulty.block(Op::Sync);
    let left = pool.events().remove(QUEUE, all).unwrap();
    assert_eq!(left.len() as u64, counts_before[0]);
    assert_eq!(counts(&pool)[1], 0);
    faulty.unblock();
    haul_testing::eventually("the events are removed", || counts(&pool)[0] == 0 && is_free());
    assert!(pool.events().remove(QUEUE, left).unwrap().is_empty());
    pool.close().unwrap();
}

/// A change whose number is smaller can become visible after one with a greater number, so that the
/// store does not show the order of events that are being queued.
#[test]
fn events_after_the_restart_of_a_queue_come_from_memory_only() {
    let disk = MemoryDisk::default();
    let queues = Arc::new(EventQueues::new([QUEUE.into()]));
    let options = Options { event_queues: Some(Arc::clone(&queues)), ..small() };
    let pool = Pool::open_on(&dirs(&disk, 0..2), &OpenWith::default(), &options).unwrap().0;
    pool.create_bucket(BUCKET).unwrap();
    pool.events().create(QUEUE).unwrap();
    let key = |number: usize| format!("key {}", number % 40);
    (0..100).for_each(|number| put_with(&pool, &key(number), number));
    let (mut reader, mut events) = (pool.events().restart(&queues, &QUEUE.into()), Vec::new());
    events.extend(reader.next(1).unwrap());
    (100..200).for_each(|number| put_with(&pool, &key(number), number));
    loop {
        let page = reader.next(7).unwrap();
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    assert_eq!(events.len(), 100, "those before the restart");
    let now = Instant::now();
    let Taken::Events(recent) = queues.take(QUEUE, 1000, now, now) else { panic!("incomplete") };
    assert_eq!(recent.len(), 100, "those after it");
    events.extend(recent);
    for (key, found) in by_key(&events) {
        let first: usize = key.strip_prefix("key ").unwrap().parse().unwrap();
        let expected: Vec<usize> = (0..5).map(|round| first + 40 * round).collect();
        assert_eq!(found, expected, "{key}");
    }
    pool.close().unwrap();
}
