//! Objects of volumes that are locked in the page cache and sent from there: the same responses, and
//! never other bytes than those that were verified.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use haul_file_store::{Attributes, Options, Precondition};
use haul_testing::{disk_dir, eventually, memory_lock, until_full};
use tempfile::TempDir;

use crate::client::{Reply, Running, noise, small};

const MIB: usize = 1 << 20;

/// The lengths of the objects: some are verified by threads of connections, and some by others.
const LENGTHS: [usize; 4] = [300_001, MIB, MIB + 1, 3_900_000];

fn options() -> Options {
    Options { locked_bytes_max: 64 << 20, ..small() }
}

fn body(number: usize) -> Vec<u8> {
    haul_testing::noise(1 + number as u64, LENGTHS[number])
}

/// A server on a store whose first volumes have these objects, and are no longer written.
fn server(dir: TempDir) -> Running {
    let store = crate::client::open(dir.path(), options());
    store.create_bucket("bucket").unwrap();
    let put = |key: &str, body: &[u8]| {
        store.put("bucket", key, body, &Attributes::new(), &Precondition::None).unwrap();
    };
    (0..LENGTHS.len()).for_each(|number| put(&number.to_string(), &body(number)));
    let filler = noise(3_000_000);
    (0..12).for_each(|number| put(&format!("filler/{number}"), &filler));
    store.close().unwrap();
    Running::with_store(dir, options())
}

fn locked_bytes(server: &Running) -> usize {
    let text = server.admin.get("/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix("haul_locked_bytes "));
    value.unwrap().parse().unwrap()
}

fn target(number: usize) -> String {
    format!("/bucket/{number}")
}

/// Requests each object until it is locked.
fn lock_all(server: &Running) {
    for number in 0..LENGTHS.len() {
        (0..3).for_each(|_| assert!(server.s3.get(&target(number)).body() == body(number)));
    }
    assert_eq!(locked_bytes(server), LENGTHS.iter().sum::<usize>());
}

#[test]
fn locked_object_has_the_responses_of_one_that_is_copied() {
    if crate::client::needs_one_directory() {
        return;
    }
    let Some(_lock) = memory_lock(64 << 20) else { return };
    let locked = server(disk_dir());
    lock_all(&locked);
    let copied = Running::with_options(small());
    let ranges =
        ["bytes=0-0", "bytes=4095-4096", "bytes=131071-299000", "bytes=-1", "bytes=300000-"];
    for number in 0..LENGTHS.len() {
        assert_eq!(copied.s3.put(&target(number), &body(number)).status, 200);
        for header in ranges.map(|range| ("range", range)).into_iter().chain([("if-match", "*")]) {
            for method in ["GET", "HEAD"] {
                let [locked, copied] = [&locked, &copied]
                    .map(|server| server.s3.send(method, &target(number), &[header], b""));
                let described = |reply: &Reply| {
                    ["content-length", "content-range", "etag", "content-type"]
                        .map(|name| reply.header(name).map(str::to_owned))
                };
                assert_eq!(locked.status, copied.status, "{number} {method} {header:?}");
                assert_eq!(described(&locked), described(&copied), "{number} {method} {header:?}");
                assert!(locked.body() == copied.body(), "{number} {method} {header:?}");
            }
        }
    }
}

#[test]
fn object_that_is_being_sent_keeps_its_bytes_while_its_volume_is_removed() {
    let Some(_lock) = memory_lock(64 << 20) else { return };
    let server = server(disk_dir());
    lock_all(&server);
    let request = b"GET /bucket/3 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut slow = server.s3.connect();
    slow.write_all(request).unwrap();
    until_full(slow.tcp());
    // All of the volume is dead, so compaction removes it. New objects need new volumes.
    for number in 0..LENGTHS.len() {
        assert_eq!(server.s3.put(&target(number), b"short").status, 200);
    }
    for number in 0..12 {
        assert_eq!(
            server.s3.send("DELETE", &format!("/bucket/filler/{number}"), &[], b"").status,
            204
        );
    }
    let other = noise(3_500_000);
    // Its last bytes may already be in the buffer of the socket, which refers to the same pages.
    eventually("at most the object that is being sent is locked", || {
        assert_eq!(server.s3.put("/bucket/other", &other).status, 200);
        locked_bytes(&server) <= LENGTHS[3]
    });
    for _ in 0..8 {
        assert_eq!(server.s3.put("/bucket/other", &other).status, 200);
    }
    let reply = Reply::read(&mut slow);
    assert!(reply.is_whole() && reply.body() == body(3));
    eventually("nothing is locked", || locked_bytes(&server) == 0);
}

#[test]
fn damage_on_the_disk_is_never_sent() {
    let Some(_lock) = memory_lock(64 << 20) else { return };
    let dir = disk_dir();
    let root = dir.path().to_path_buf();
    let server = server(dir);
    let wanted = body(1);
    let (volume, at) = find(&root, &wanted[..64]).unwrap();
    let file = OpenOptions::new().write(true).open(&volume).unwrap();
    let flip = || file.write_all_at(&[wanted[70_000] ^ 1], at + 70_000).unwrap();
    flip();
    for _ in 0..3 {
        let reply = server.s3.get(&target(1));
        assert!(
            reply.status >= 500 && !reply.body().ends_with(&wanted[80_000..]),
            "{}",
            reply.status
        );
    }
    assert_eq!(locked_bytes(&server), 0);
    file.write_all_at(&[wanted[70_000]], at + 70_000).unwrap();
    assert!(server.s3.get(&target(0)).body() == body(0));
}

/// Returns the file and the offset of these bytes.
fn find(root: &std::path::Path, bytes: &[u8]) -> Option<(PathBuf, u64)> {
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                // A volume that is prepared gets another name meanwhile.
                let Ok(content) = fs::read(&path) else { continue };
                if let Some(at) = content.windows(bytes.len()).position(|window| window == bytes) {
                    return Some((path, at as u64));
                }
            }
        }
    }
    None
}
