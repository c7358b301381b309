//! Puts of small objects, which hold no thread while they wait for the sync.

use std::io::Write;
use std::thread;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_testing::eventually;

use crate::client::{Running, noise};

#[test]
fn puts_that_wait_for_a_sync_leave_the_blocking_threads_free() {
    let disk = MemoryDisk::default();
    let server = Running::with_blocking_threads(&disk, 1);
    assert_eq!(server.s3.put("/bucket/present", b"bytes").status, 200);
    disk.block(Op::Sync);
    thread::scope(|scope| {
        let put = |n: usize| {
            let target = format!("/bucket/{n}");
            move || server.s3.put(&target, &noise(n * 500)).status
        };
        let putting: Vec<_> = (0..16).map(|n| scope.spawn(put(n))).collect();
        eventually("all puts are in flight", || {
            server.admin.get("/metrics").text().contains("haul_requests_in_flight 16\n")
        });
        assert_eq!(server.s3.get("/bucket/present").text(), "bytes");
        assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["present"]);
        disk.unblock();
        assert!(putting.into_iter().all(|putting| putting.join().unwrap() == 200));
    });
    for n in 0..16 {
        assert!(server.s3.get(&format!("/bucket/{n}")).body == noise(n * 500), "{n}");
    }
}

#[test]
fn put_of_a_client_that_disconnects_during_the_sync_is_completed() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    disk.block(Op::Sync);
    let mut stream = server.s3.connect();
    let headers = [("content-length", "5")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &headers)).unwrap();
    stream.write_all(b"bytes").unwrap();
    disk.wait_until_blocked();
    drop(stream);
    disk.unblock();
    eventually("the object is visible", || server.s3.get("/bucket/key").status == 200);
    assert_eq!(server.s3.put("/bucket/key", b"other").status, 200, "the key is unlocked");
    assert_eq!(server.s3.get("/bucket/key").text(), "other");
}

#[test]
fn puts_of_one_key_with_one_blocking_thread_all_succeed() {
    let disk = MemoryDisk::default();
    let server = Running::with_blocking_threads(&disk, 1);
    let bodies: Vec<_> = (0..8).map(|n| noise(1000 + n)).collect();
    thread::scope(|scope| {
        for body in &bodies {
            let s3 = server.s3;
            scope.spawn(move || {
                (0..20).for_each(|_| assert_eq!(s3.put("/bucket/key", body).status, 200));
            });
        }
    });
    assert!(bodies.contains(&server.s3.get("/bucket/key").body));
}
