//! A disk that is full, fails, or returns damaged data.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_s3_server::Limits;
use haul_testing::Transport;
use rustix::io::Errno;

use crate::client::{Running, assert_refused, noise};

/// Flips a bit of these bytes in every file below `dir` that contains them. Returns the file.
fn damage(dir: &Path, bytes: &[u8]) -> PathBuf {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let content = fs::read(&path).unwrap();
            let found = content.windows(bytes.len()).position(|window| window == bytes);
            if let Some(at) = found {
                let file: File = OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[bytes[0] ^ 1], at as u64).unwrap();
                return path;
            }
        }
    }
    panic!("no file holds the bytes");
}

#[test]
fn damaged_object_is_an_error_that_names_no_file() {
    // Otherwise the object would be sent from memory.
    let limits = Limits { cache_bytes_max: 0, ..Limits::default() };
    let server = Running::over_with(Transport::Plain, limits);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let body = noise(100_000);
    server.s3.put("/bucket/damaged", &body);
    server.s3.put("/bucket/good", b"hello");
    damage(server.dir(), &body[50_000..50_064]);
    let reply = server.s3.get("/bucket/damaged");
    assert_refused(&reply, 500, "InternalError");
    let message = reply.xml("Message").unwrap();
    assert!(message.contains("damaged") && !message.contains('/'), "{message}");
    assert_eq!(server.s3.get("/bucket/good").text(), "hello");
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key").len(), 2);
}

#[test]
fn damage_within_a_big_object_closes_the_connection() {
    let server = Running::new();
    let body = noise(12 << 20);
    server.s3.put("/bucket/damaged", &body);
    let dir = server.into_dir();
    damage(dir.path(), &body[9 << 20..(9 << 20) + 64]);
    let again = Running::on(dir, None, Limits::default());
    let reply = again.s3.get("/bucket/damaged");
    assert_eq!(reply.status, 200);
    assert!(!reply.is_whole() && body.starts_with(&reply.body), "{}", reply.body.len());
    let range = [("range", "bytes=0-1000000")];
    let start = again.s3.send("GET", "/bucket/damaged", &range, b"");
    assert!(start.is_whole() && start.body == body[..=1_000_000]);
    let range = [("range", "bytes=9437180-9437190")];
    let middle = again.s3.send("GET", "/bucket/damaged", &range, b"");
    assert_refused(&middle, 500, "InternalError");
}

/// Damages the newest needle of `bucket/key` so that its names are lost, and removes the index of the
/// volume.
fn hide(dir: &Path) {
    const HEAD_BYTES: usize = 34;
    const RECORD_HEADER_BYTES: usize = 32;
    let volumes = dir.join("volumes");
    fs::remove_file(volumes.join("0000000001.index")).unwrap();
    let path = volumes.join("0000000001.segment");
    let mut bytes = fs::read(&path).unwrap();
    let names = b"bucketkey";
    let at = bytes.windows(names.len()).rposition(|window| window == names).unwrap();
    bytes[at - HEAD_BYTES] ^= 1;
    bytes[at - HEAD_BYTES - RECORD_HEADER_BYTES] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn objects_are_stored_and_deleted_while_damage_hides_the_state_of_their_bucket() {
    if crate::client::needs_one_directory() {
        return;
    }
    let server = Running::new();
    for (target, body) in [("key", "old"), ("key", "new"), ("after", "certain")] {
        assert_eq!(server.s3.put(&format!("/bucket/{target}"), body.as_bytes()).status, 200);
    }
    let dir = server.into_dir();
    hide(dir.path());
    let server = Running::on(dir, None, Limits::default());
    assert_refused(&server.s3.get("/bucket/key"), 500, "InternalError");
    assert_refused(&server.s3.put("/no-bucket/key", b"x"), 500, "InternalError");
    let delete = "<Delete><Object><Key>deleted</Key></Object></Delete>";
    assert_eq!(server.s3.post("/bucket?delete", delete).status, 200);
    assert_eq!(server.s3.put("/bucket/key", b"newest").status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "newest");
    assert_refused(&server.s3.get("/bucket/deleted"), 404, "NoSuchKey");
    assert_refused(&server.s3.get("/bucket/other"), 500, "InternalError");
}

#[test]
fn full_disk_refuses_writes_and_allows_reads_and_deletes() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    let (small, big) = (noise(500_000), noise(3_000_000));
    assert_eq!(server.s3.put("/bucket/big", &big).status, 200);
    disk.limit(Some(disk.used_bytes() + 1_000_000));
    assert_refused(&server.s3.put("/bucket/other", &big), 507, "XHaulStorageFull");
    let mut stored = 0;
    while server.s3.put(&format!("/bucket/small-{stored}"), &small).status == 200 {
        stored += 1;
        assert!(stored < 100, "the disk is never full");
    }
    assert_refused(&server.s3.put("/bucket/more", &small), 507, "XHaulStorageFull");
    assert_eq!(server.admin.get("/health").status, 200);
    assert!(server.s3.get("/bucket/big").body == big);
    let listed = server.s3.get("/bucket?list-type=2").all_xml("Key");
    assert_eq!(listed.len(), stored + 1);
    for key in listed {
        let target = format!("/bucket/{key}");
        assert_eq!(server.s3.get(&target).status, 200, "{key}");
        assert_eq!(server.s3.delete(&target).status, 204, "{key}");
    }
    disk.limit(None);
    assert_eq!(server.s3.put("/bucket/more", &small).status, 200);
}

#[test]
fn failed_sync_refuses_writes_and_allows_reads() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    server.s3.put("/bucket/good", b"hello");
    // The injected fault may fail a sync of a background thread instead, and no request.
    let fails = |number: u32| {
        disk.fail(Op::Sync, 1, 1, Errno::IO);
        server.s3.put(&format!("/bucket/lost-{number}"), b"x").status >= 500
    };
    assert!((0..100).any(fails));
    for _ in 0..2 {
        assert_refused(&server.s3.put("/bucket/more", b"x"), 503, "ServiceUnavailable");
    }
    assert_refused(&server.s3.delete("/bucket/good"), 503, "ServiceUnavailable");
    assert_eq!(server.s3.get("/bucket/good").text(), "hello");
    assert_eq!(server.admin.get("/health").status, 503);
    assert!(server.admin.get("/metrics").text().contains("\nhaul_latched 1\n"));
}
