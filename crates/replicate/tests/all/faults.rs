//! Tests faults of the remote store, and the loss of the machine after each of its changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_append_log::Log;
use haul_disk::{Disk, File};
use haul_replicate::{Error, Progress, Remote, Replica, Source};

use crate::faulty::{Fault, FaultyStore};
use crate::{TestLog, options, record, records, restore};

/// Runs a workload whose n-th change of the remote store has a fault, for each n.
fn sweep(fault: Fault) {
    let mut number = 1;
    loop {
        let store = FaultyStore::new();
        store.set_plan(move |change| if change == number { fault } else { Fault::None });
        let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
        let log = TestLog::new();
        log.put(b"first");
        let mut written = vec![b"first".to_vec()];
        let claimed = log.follow(&remote).or_else(|_| log.follow(&remote));
        let replica = claimed.unwrap();
        for batch in 0..8 {
            for payload in (0..6).map(|index| record(batch * 6 + index, 25_000)) {
                log.put(&payload);
                written.push(payload);
            }
            replica.wait().unwrap();
            let copied = records(&restore(Arc::new(store.clone())));
            assert!(copied == written, "change {number}, batch {batch}");
        }
        replica.stop().unwrap();
        if store.changes() < number {
            assert!(number > 20, "only {number} changes");
            return;
        }
        number += 1;
    }
}

#[test]
fn refused_request_is_retried() {
    sweep(Fault::Refused);
}

#[test]
fn request_whose_answer_is_lost_is_recognized() {
    sweep(Fault::AnswerLost);
}

#[test]
fn local_log_works_on_while_the_remote_store_is_down() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"first");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    store.set_plan(|_| Fault::Refused);
    log.put_numbers(0..50, 30_000);
    log.put(b"last");
    let shipped = replica.status().copied;
    assert!(shipped < log.log.synced());
    store.set_plan(|_| Fault::None);
    replica.wait().unwrap();
    assert!(replica.status().behind.is_none());
    assert_eq!(records(&restore(Arc::new(store))).len(), 52);
}

#[test]
fn copy_is_claimed_later_if_the_remote_store_is_down_at_the_start() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"first");
    store.set_plan(|_| Fault::Refused);
    let progress = || Arc::new(Progress::without_waiting());
    let replica = Replica::follow_with(log.source(), &remote, options(), progress()).unwrap();
    assert!(replica.status().last_error.unwrap().contains("503"));
    store.set_plan(|_| Fault::None);
    replica.wait().unwrap();
    assert_eq!(replica.status().last_error, None);
    replica.stop().unwrap();
    // A log that must wait for its copy does not start, and another log is refused later.
    store.set_plan(|_| Fault::Refused);
    assert!(matches!(log.follow(&remote), Err(Error::Remote { .. })));
    let other = TestLog::new();
    other.put(b"another");
    let refused = Replica::follow_with(other.source(), &remote, options(), progress());
    assert!(matches!(refused, Err(Error::NotThisLog { .. })));
    assert_eq!(records(&restore(Arc::new(store))), [b"first"]);
}

/// At each time, the copy is a state that the log had, with all confirmed records.
#[test]
fn machine_can_be_lost_after_each_change_of_the_remote_store() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    store.record();
    let mut written = Vec::new();
    // The number of snapshots at which so many records were confirmed.
    let mut confirmed = Vec::new();
    for batch in 0..16 {
        let (count, bytes) = if batch % 3 == 0 { (1, 50) } else { (4, 25_000) };
        for index in 0..count {
            let payload = record(batch * 10 + index, bytes);
            log.put(&payload);
            written.push(payload);
        }
        replica.wait().unwrap();
        confirmed.push((store.snapshots().len(), written.len()));
    }
    replica.stop().unwrap();
    let snapshots = store.snapshots();
    assert!(snapshots.len() > 30, "{}", snapshots.len());
    for (number, snapshot) in snapshots.into_iter().enumerate() {
        let copied = records(&restore(snapshot));
        let before = confirmed.iter().rev().find(|(snapshots, _)| *snapshots <= number + 1);
        let confirmed = before.map_or(0, |(_, records)| *records);
        assert!(copied.len() >= confirmed, "snapshot {number}: {} < {confirmed}", copied.len());
        assert!(copied[..] == written[..copied.len()], "snapshot {number}");
    }
}

/// A log whose file is removed while it is shipped, after a record that replaces it was appended.
struct RemovedFile {
    log: TestLog,
    has_removed: AtomicBool,
}

impl Source for RemovedFile {
    fn log(&self) -> &Log {
        &self.log.log
    }

    fn disk(&self) -> &dyn Disk {
        &self.log.disk
    }

    fn record_files(&self, payload: &[u8]) -> haul_replicate::Result<Vec<String>> {
        let refers = payload == b"refers to a file";
        Ok(refers.then(|| "file".to_owned()).into_iter().collect())
    }

    fn open_file(&self, _name: &str) -> haul_replicate::Result<Option<Arc<dyn File>>> {
        if !self.has_removed.swap(true, Ordering::Relaxed) {
            // So many records that the last one is in another segment.
            self.log.put_numbers(0..60, 30_000);
            self.log.put(b"replaces the file");
        }
        Ok(None)
    }
}

#[test]
fn copy_that_lacks_a_removed_file_has_the_record_that_replaced_it() {
    let store = FaultyStore::new();
    store.record();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let source = RemovedFile { log: TestLog::new(), has_removed: AtomicBool::new(false) };
    source.log.put(b"refers to a file");
    let replica = Replica::follow(source, &remote, options()).unwrap();
    replica.wait().unwrap();
    replica.stop().unwrap();
    let copies: Vec<_> =
        store.snapshots().into_iter().map(|copy| records(&restore(copy))).collect();
    let is_whole =
        |copy: &Vec<Vec<u8>>| copy.last().is_some_and(|last| last == b"replaces the file");
    assert!(copies.iter().all(|copy| copy.is_empty() || is_whole(copy)));
    assert!(copies.last().is_some_and(is_whole));
}
