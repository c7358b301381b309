use std::time::Duration;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_s3_server::Limits;
use haul_testing::eventually;
use rustix::io::Errno;

use super::wait_for;
use super::{
    HOUR, SOON, configure, delivered_after, document, keys, lines, logged, lost, metric, set,
};
use crate::client::{Running, assert_refused};

#[test]
fn records_are_delivered_after_their_time() {
    let server = logged(delivered_after(SOON));
    assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    wait_for(&server.s3, 1);
    let keys = keys(&server.s3);
    let (date, unique) = keys[0].strip_prefix("log/").unwrap().split_at(20);
    assert!(date.bytes().filter(|byte| *byte == b'-').count() == 6 && unique.len() == 16);
    let object = server.s3.get(&format!("/logs/{}", keys[0]));
    assert_eq!(object.header("content-type"), Some("text/plain"));
    eventually("the record is counted", || metric(&server, "haul_bucket_log_records_total") == 1);
    assert_eq!(metric(&server, "haul_bucket_log_objects_total"), 1);
    assert_eq!(metric(&server, "haul_bucket_log_pending_bytes"), 0);
}

#[test]
fn records_are_delivered_at_their_size() {
    let server = logged(Limits { log_object_bytes: 1000, ..delivered_after(HOUR) });
    let sent = (0..100).find(|number| {
        assert_eq!(server.s3.put(&format!("/bucket/{number}"), b"hello").status, 200);
        !keys(&server.s3).is_empty()
    });
    assert!(sent.is_some());
    let bytes: usize = lines(&server.s3).iter().map(|line| line.len() + 1).sum();
    assert!((1000..1500).contains(&bytes), "{bytes}");
}

#[test]
fn records_are_delivered_when_the_server_stops() {
    let server = logged(delivered_after(HOUR));
    assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "hello");
    assert!(keys(&server.s3).is_empty());
    assert!(metric(&server, "haul_bucket_log_pending_bytes") > 0);
    let server = Running::on(server.into_dir(), None, Limits::default());
    assert_eq!(lines(&server.s3).len(), 2);
}

#[test]
fn records_that_the_target_does_not_take_are_counted_and_not_stored() {
    let server = logged(delivered_after(SOON));
    assert_refused(&server.s3.delete("/logs?policy"), 204, "");
    assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    eventually("the record is counted", || lost(&server, "refused") == 1);
    assert!(keys(&server.s3).is_empty());
    assert_eq!(server.s3.delete("/logs").status, 204);
    assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    eventually("the record is counted", || lost(&server, "refused") == 2);
    let counts = ["memory", "failed"].map(|reason| lost(&server, reason));
    assert_eq!((counts, metric(&server, "haul_bucket_log_pending_bytes")), ([0, 0], 0));
}

#[test]
fn records_beyond_the_memory_are_dropped_and_counted() {
    const MEMORY_BYTES: usize = 3000;
    let server = logged(Limits { log_memory_bytes_max: MEMORY_BYTES, ..delivered_after(HOUR) });
    for _ in 0..30 {
        assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    }
    let pending = metric(&server, "haul_bucket_log_pending_bytes");
    assert!((1000..=MEMORY_BYTES as u64).contains(&pending), "{pending}");
    eventually("the others are counted", || lost(&server, "memory") > 15);
    let server = Running::on(server.into_dir(), None, Limits::default());
    let delivered = lines(&server.s3).len();
    assert!((1..15).contains(&delivered), "{delivered}");
}

#[test]
fn keys_have_the_folders_of_their_format() {
    let server = logged(delivered_after(SOON));
    for (source, time) in [("DeliveryTime", ""), ("EventTime", "-00-00-00-")] {
        let format = format!(
            "<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>{source}\
             </PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>"
        );
        set(&server.s3, &document("logs", &format!("log/{source}/"), &format));
        assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
        let prefix = format!("log/{source}/haul/us-east-1/bucket/");
        let found = || keys(&server.s3).into_iter().find(|key| key.starts_with(&prefix));
        eventually("the record is delivered", || found().is_some());
        let key = found().unwrap();
        let folders: Vec<_> = key[prefix.len()..].split('/').collect();
        let [year, month, day, name] = folders[..] else { panic!("{key}") };
        assert!(name.starts_with(&format!("{year}-{month}-{day}-")), "{key}");
        assert!(name.contains(time), "{key}");
    }
}

#[test]
fn only_buckets_with_an_access_log_leave_the_hot_path() {
    let server = logged(delivered_after(SOON));
    let hits = || metric(&server, "haul_cache_hits_total");
    for bucket in ["other", "bucket"] {
        assert_eq!(server.s3.put(&format!("/{bucket}/key"), b"hello").status, 200);
    }
    let before = hits();
    (0..3).for_each(|_| assert_eq!(server.s3.get("/other/key").text(), "hello"));
    assert_eq!(hits() - before, 3);
    (0..3).for_each(|_| assert_eq!(server.s3.get("/bucket/key").text(), "hello"));
    assert_eq!(hits() - before, 3);
    let lines = wait_for(&server.s3, 4);
    assert!(lines.iter().all(|line| line.starts_with("haul bucket ")), "{lines:#?}");
    set(&server.s3, "<BucketLoggingStatus/>");
    (0..3).for_each(|_| assert_eq!(server.s3.get("/bucket/key").text(), "hello"));
    assert!(hits() - before >= 6, "the bucket is back on the hot path");
}

/// Starts a server whose store refuses all changes after a failed sync.
fn failing(delivery_time: Duration) -> Running {
    let disk = MemoryDisk::default();
    let server = Running::in_memory_with(&disk, delivered_after(delivery_time));
    configure(&server);
    // The injected fault may fail a sync of a background thread instead, and no request.
    let fails = |number: u32| {
        disk.fail(Op::Sync, 1, 1, Errno::IO);
        server.s3.put(&format!("/bucket/lost-{number}"), b"x").status >= 500
    };
    assert!((0..100).any(fails));
    server.s3.get("/bucket/more");
    server
}

#[test]
fn failed_delivery_is_counted_and_its_records_wait_for_the_next_attempt() {
    let server = failing(Duration::from_secs(1));
    eventually("a delivery fails", || metric(&server, "haul_bucket_log_errors_total") > 0);
    let pending_bytes = metric(&server, "haul_bucket_log_pending_bytes");
    let lost = ["memory", "refused", "failed"].map(|reason| lost(&server, reason));
    // On a busy machine, the attempts may have ended already.
    if metric(&server, "haul_bucket_log_errors_total") < 3 {
        assert!(pending_bytes > 0);
        assert_eq!(lost, [0; 3]);
    }
}

#[test]
fn records_are_dropped_and_counted_after_three_failed_deliveries() {
    let server = failing(SOON);
    eventually("the last attempt fails", || {
        lost(&server, "failed") > 0 && metric(&server, "haul_bucket_log_pending_bytes") == 0
    });
    assert!(metric(&server, "haul_bucket_log_errors_total") >= 3);
    assert_eq!(["memory", "refused"].map(|reason| lost(&server, reason)), [0; 2]);
}
