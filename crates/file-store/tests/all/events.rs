//! Queues of events: each change queues its events atomically, in the order of the changes.

use std::sync::Arc;
use std::time::Instant;

use crate::crash::until_compacted;
use crate::start_put::block_on;
use crate::*;
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_file_store::{
    Deletion, Error, Event, EventFields, EventQueues, Expiry, Lifecycle, LifecycleAction,
    LifecycleEvents, LifecycleRule, QueuedEvent, Taken, TargetBucket, VersionId, Versioning,
};

const QUEUE: &str = "queue";

fn event(what: &str) -> Event {
    let mut fields = EventFields::default();
    fields.add("what", what);
    Event { queues: vec![QUEUE.into()], fields }
}

/// Creates a store with one bucket and one queue.
fn store() -> (TempDir, Store) {
    let (dir, store) = new_store();
    store.events().create(QUEUE).unwrap();
    (dir, store)
}

fn put_with(store: &Store, key: &str, bytes: &[u8], event: &Event) {
    let bucket = TargetBucket::from(BUCKET).with_event(Some(event));
    store.put_located(bucket, key, bytes, &Attributes::new(), &Precondition::None).unwrap();
}

fn queued(store: &Store) -> Vec<QueuedEvent> {
    store.events().list(&QUEUE.into(), 0, usize::MAX).unwrap()
}

/// Returns what happened to which key, for each event.
fn texts(events: &[QueuedEvent]) -> Vec<String> {
    let text = |event: &QueuedEvent| {
        let get = |name: &str| event.fields.get(name).unwrap_or("-");
        assert_eq!(get("bucket"), BUCKET);
        format!("{} {} {}", get("what"), get("key"), get("bytes"))
    };
    events.iter().map(text).collect()
}

#[test]
fn each_kind_of_change_queues_its_event() {
    let (_dir, store) = store();
    let (none, always) = (Attributes::new(), Precondition::None);
    let target = |event| TargetBucket::from(BUCKET).with_event(Some(event));
    put_with(&store, "small", b"small", &event("put"));
    let put = event("big put");
    let mut writer = store.object_writer(BUCKET, None).unwrap();
    writer.write(&vec![7; BIG]).unwrap();
    let written = writer.finish().unwrap();
    store.put_written(target(&put), "big", written, &none, &always).unwrap();
    let started = event("started put");
    let put = store.start_put(target(&started), "started", b"", &none, &always).unwrap().unwrap();
    block_on(put).unwrap();
    let copy = event("copy");
    let object = store.get(BUCKET, "big").unwrap();
    store.copy_object(&object, target(&copy), "copy", None, &always).unwrap();
    let upload = store.start_upload(BUCKET, "upload", &none).unwrap();
    let part = put_part(&store, "upload", &upload, 1, b"part");
    let complete = event("complete");
    store.complete_upload(target(&complete), "upload", &upload, &[part], &none, &always).unwrap();
    let tag = event("tag");
    let change = |attributes: &mut Attributes| {
        attributes.set("tag", "new");
        Ok(())
    };
    store.update_attributes(target(&tag), "small", None, &change).unwrap();
    let delete = event("delete");
    let deletion = |key| Deletion { event: Some(&delete), ..Deletion::of(key) };
    let deleted = store.delete_objects(BUCKET, &["small", "absent", "copy"].map(deletion));
    assert!(deleted.into_iter().all(|deleted| deleted.is_ok()));
    let expected = [
        "put small 5".to_owned(),
        format!("big put big {BIG}"),
        "started put started 0".to_owned(),
        format!("copy copy {BIG}"),
        "complete upload 4".to_owned(),
        "tag small 5".to_owned(),
        "delete small 5".to_owned(),
        format!("delete copy {BIG}"),
    ];
    assert_eq!(texts(&queued(&store)), expected, "and none for an absent key");
    let first = &queued(&store)[0].fields;
    let md5 = "eb5c1399a871211c7e7ed732d15e3a8b";
    assert_eq!((first.get("etag"), first.get("version")), (Some(md5), None));
}

#[test]
fn flipped_bit_in_an_event_affects_only_that_event() {
    let (dir, store) = store();
    for what in ["first", "damaged", "last"] {
        put_with(&store, what, b"content", &event(what));
    }
    store.close().unwrap();
    let volume = dir.path().join("volumes/0000000001.segment");
    let bytes = std::fs::read(&volume).unwrap();
    let at = bytes.windows(11).position(|it| it == b"\x07\0\0\0damaged").unwrap();
    flip(&volume, at as u64 + 5);
    let (store, _) = reopen(dir.path());
    let mut events = queued(&store);
    assert_eq!(events.len(), 3);
    assert!(events[1].is_damaged());
    store.events().remove(QUEUE, &[events.remove(1)]).unwrap();
    assert_eq!(texts(&events), ["first first 7", "last last 7"]);
    assert_eq!(texts(&queued(&store)), texts(&events));
}

#[test]
fn versions_and_markers_queue_events_with_their_ids() {
    let (_dir, store) = store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    put_with(&store, "key", b"one", &event("put"));
    put_with(&store, "key", b"second", &event("put"));
    let delete = |version, what: &str| {
        let event = event(what);
        let deletion = Deletion { version, event: Some(&event), ..Deletion::of("key") };
        store.delete_objects(BUCKET, &[deletion]).remove(0).unwrap().version_id.unwrap()
    };
    let marker = delete(None, "marker");
    let ids: Vec<VersionId> = queued(&store)
        .iter()
        .map(|event| event.fields.get("version").unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids[2], marker);
    delete(Some(ids[0]), "delete");
    delete(Some(marker), "delete");
    let expected = ["put key 3", "put key 6", "marker key 0", "delete key 3", "delete key 0"];
    assert_eq!(texts(&queued(&store)), expected);
    assert_eq!(get(&store, "key"), b"second");
    let stats = store.stats();
    assert_eq!((stats.objects, stats.versions), (1, 0), "events are neither");
}

#[test]
fn rules_queue_events_for_what_they_expire() {
    let dir = disk_dir();
    let make = |bucket: &str, _: &haul_file_store::BucketSettings, action, key: &str| {
        assert_eq!(bucket, BUCKET);
        let what = match action {
            LifecycleAction::ExpireObject => "expire",
            LifecycleAction::CreateMarker => "mark",
            LifecycleAction::ExpireVersion(_) => "expire version",
            LifecycleAction::AbortUpload => "abort",
        };
        (key != "quiet").then(|| event(what))
    };
    let options = Options { lifecycle_events: LifecycleEvents::new(make), ..small() };
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.events().create(QUEUE).unwrap();
    let expire = Some(Expiry::At(std::time::UNIX_EPOCH));
    let noncurrent =
        haul_file_store::NoncurrentExpiry { after: Duration::from_millis(1), newer_versions: 0 };
    let rule = LifecycleRule {
        enabled: true,
        expire,
        expire_noncurrent: Some(noncurrent),
        ..LifecycleRule::default()
    };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
    ["a", "quiet", "b"].iter().for_each(|key| drop(put(&store, key, b"bytes")));
    store.expire_now(BUCKET).unwrap();
    assert_eq!(texts(&queued(&store)), ["expire a 5", "expire b 5"]);
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    put(&store, "a", b"version");
    store.expire_now(BUCKET).unwrap();
    let found = texts(&queued(&store));
    assert_eq!(found[2], "mark a 0", "{found:?}");
}

#[test]
fn events_stay_over_reopening_and_compaction_until_they_are_removed() {
    let (dir, store) = store();
    for number in 0..300 {
        put_with(&store, "key", &random_bytes(number, 40_000), &event(&number.to_string()));
    }
    store.compact().unwrap();
    assert!(store.stats().volumes_compacted > 0);
    let all = queued(&store);
    assert_eq!(all.len(), 300);
    assert_eq!(all[299].fields.get("what"), Some("299"));
    store.events().remove(QUEUE, &all[..290]).unwrap();
    store.events().remove(QUEUE, &all[..2]).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    let left = queued(&store);
    assert_eq!(texts(&left), texts(&all[290..]));
    assert_eq!(store.events().queues()[0].1.events, 10);
    assert_eq!(store.events().drop_oldest(&QUEUE.into(), 4).unwrap(), 4);
    store.events().create(QUEUE).unwrap();
    assert_eq!(texts(&queued(&store)), texts(&all[294..]));
    assert_eq!(store.events().list(&QUEUE.into(), left[8].sequence, 9).unwrap().len(), 1);
    assert_eq!(store.buckets().unwrap().len(), 1, "a queue is no bucket");
    assert!(matches!(store.get("queue:events", "0"), Err(Error::NoSuchBucket { .. })));
    for name in ["", "a:b", "A", &"q".repeat(64)] {
        assert!(matches!(store.events().create(name), Err(Error::Invalid { .. })), "{name}");
    }
}

#[test]
fn consumer_gets_new_events_from_memory() {
    let dir = disk_dir();
    let queues = Arc::new(EventQueues::new([QUEUE.into()]));
    let options = Options { event_queues: Some(Arc::clone(&queues)), member: 3, ..small() };
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.events().create(QUEUE).unwrap();
    put_with(&store, "before", b"", &event("put"));
    let take = || queues.take(QUEUE, 10, Instant::now(), Instant::now());
    assert!(matches!(take(), Taken::Incomplete));
    let bounds = queues.restart(QUEUE, &[store.events().clock()]);
    put_with(&store, "key", b"1", &event("put"));
    let started = event("started");
    let target = TargetBucket::from(BUCKET).with_event(Some(&started));
    let (none, always) = (Attributes::new(), Precondition::None);
    block_on(store.start_put(target, "key", b"22", &none, &always).unwrap().unwrap()).unwrap();
    let reads = store.stats().needle_reads;
    let Taken::Events(events) = take() else { panic!("incomplete") };
    assert_eq!(texts(&events), ["put key 1", "started key 2"]);
    assert!(events.iter().all(|event| event.member == 3 && event.sequence > bounds[0]));
    store.events().remove(QUEUE, &events).unwrap();
    assert_eq!(store.stats().needle_reads, reads, "neither was read from the disk");
    assert_eq!(texts(&queued(&store)), ["put before 0"]);
    assert!(queued(&store)[0].sequence <= bounds[0]);
}

/// The states of the keys, and the events, after each act.
#[derive(Default)]
struct Workload {
    /// The content of each key after each act; `None` if it is deleted.
    keys: Vec<BTreeMap<String, String>>,
    /// The number of events that were queued, and removed, before each act.
    counts: Vec<(usize, usize)>,
    volumes_compacted: u64,
}

struct Acknowledged(usize);

/// Puts and deletes keys, with an event for each change, and removes the oldest events.
fn workload(disk: &MemoryDisk, seed: u64, acts: usize, length: usize) -> Workload {
    let open = || {
        let options = Options { volume_bytes: 2 << 20, ..small() };
        Store::open_on(Arc::new(disk.clone()), options).unwrap().0
    };
    let (mut store, mut random) = (open(), Random(seed));
    store.create_bucket(BUCKET).unwrap();
    store.events().create(QUEUE).unwrap();
    disk.note(Acknowledged(0));
    let (mut keys, mut queued_count, mut removed) = (BTreeMap::<String, String>::new(), 0, 0);
    let mut workload = Workload::default();
    for act in 1..=acts {
        workload.keys.push(keys.clone());
        workload.counts.push((queued_count, removed));
        let key = format!("key {}", random.below(4));
        match random.below(10) {
            0..7 => {
                let what = queued_count.to_string();
                let bytes = format!("{what}.").repeat(1 + length / (what.len() + 1));
                put_with(&store, &key, bytes.as_bytes(), &event(&what));
                keys.insert(key, what);
                queued_count += 1;
            }
            7 => {
                let event = event(&queued_count.to_string());
                let deletion = Deletion { event: Some(&event), ..Deletion::of(&key) };
                store.delete_objects(BUCKET, &[deletion]).remove(0).unwrap();
                queued_count += usize::from(keys.remove(&key).is_some());
            }
            8 => {
                let oldest = store.events().list(&QUEUE.into(), 0, 5).unwrap();
                store.events().remove(QUEUE, &oldest).unwrap();
                removed += oldest.len();
            }
            _ if length > 0 && random.below(2) == 0 => drop(store.compact().unwrap()),
            _ => {
                workload.volumes_compacted += store.stats().volumes_compacted;
                store.close().unwrap();
                store = open();
            }
        }
        disk.note(Acknowledged(act));
    }
    workload.keys.push(keys);
    workload.counts.push((queued_count, removed));
    workload.volumes_compacted += store.stats().volumes_compacted;
    workload
}

/// Checks that the queue has the events of the changes that the store has, and no others.
fn recover(workload: &Workload, crash: &Crash) {
    let options = Options { volume_bytes: 2 << 20, ..small() };
    let store = Store::open_on(Arc::new(crash.disk.clone()), options).unwrap().0;
    let Some(Acknowledged(acts)) = crash.notes().last() else { return };
    let content = |key: &String| {
        let object = store.get(BUCKET, key).unwrap();
        let text = String::from_utf8(content(&object).unwrap()).unwrap();
        text.split_once('.').unwrap().0.to_owned()
    };
    let found: BTreeMap<String, String> =
        list(&store, BUCKET).into_iter().map(|it| (it.key.clone(), content(&it.key))).collect();
    let numbers: Vec<usize> = queued(&store)
        .iter()
        .map(|event| event.fields.get("what").unwrap().parse().unwrap())
        .collect();
    let is_state = |acts: usize| {
        let (queued, removed) = workload.counts[acts];
        found == workload.keys[acts] && numbers.iter().copied().eq(removed..queued)
    };
    let next = (acts + 1).min(workload.keys.len() - 1);
    let count = workload.counts[*acts];
    assert!(is_state(*acts) || is_state(next), "after {acts}: {count:?}, {numbers:?}, {found:?}");
    store.compact().unwrap();
    assert_eq!(queued(&store).len(), numbers.len());
}

#[test]
fn crash_loses_no_event_of_a_change_and_leaves_none_without_its_change() {
    let crashes = Crashes { draws: 2, ..Crashes::default() };
    crash_until(800, &crashes, |crashes| {
        crash_everywhere(crashes, |disk| workload(disk, crashes.seed, 60, 0), recover)
    });
}

#[test]
fn crash_during_compaction_loses_no_event() {
    let crashes = Crashes { draws: 1, all_up_to: 4, ..Crashes::default() };
    until_compacted(&crashes, |crashes| {
        let mut compacted = 0;
        crash_until(400, crashes, |crashes| {
            let run = |disk: &MemoryDisk| {
                let workload = workload(disk, crashes.seed, 150, 50_000);
                compacted += workload.volumes_compacted;
                workload
            };
            crash_everywhere(crashes, run, recover)
        });
        compacted
    });
}
