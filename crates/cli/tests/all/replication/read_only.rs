//! Tests `haul serve --read-only`: servers of a copy that another server extends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use haul_testing::{Finished, Random, eventually};

use super::{RemoteStore, admin, get, stop};
use crate::helper::{Serving, TestDir, noise};

const WRITER: [&str; 2] = ["--ship-every", "50ms"];
const READER: [&str; 3] = ["--read-only", "--poll-every", "100ms"];

fn put(server: &Serving, path: &str, content: &[u8]) {
    assert_eq!(server.request("PUT", path, content).0, 200, "{path}");
}

fn status(server: &Serving, path: &str) -> u16 {
    server.request("GET", path, b"").0
}

#[test]
fn readers_serve_the_newest_state_and_refuse_changes() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let writer = remote.serve(&place, "data", &WRITER);
    put(&writer, "/bucket", b"");
    put(&writer, "/bucket/changed", b"one");
    let big = noise(1, 9 << 20);
    put(&writer, "/bucket/big", &big);
    put(&writer, "/bucket/deleted", b"content");
    eventually("the copy exists", || {
        let metrics = String::from_utf8_lossy(&admin(&writer, "/metrics")).into_owned();
        metrics.contains("haul_replication_behind_seconds 0\n")
    });
    let readers = ["reader-1", "reader-2"].map(|data| remote.serve(&place, data, &READER));
    put(&writer, "/bucket/changed", b"two");
    put(&writer, "/bucket/new", &noise(2, 100_000));
    assert_eq!(writer.request("DELETE", "/bucket/deleted", b"").0, 204);
    put(&writer, "/bucket/last", b"x");
    for reader in &readers {
        eventually("the reader has the last object", || status(reader, "/bucket/last") == 200);
        assert_eq!(get(reader, "/bucket/changed"), b"two");
        assert!(get(reader, "/bucket/new") == noise(2, 100_000));
        assert!(get(reader, "/bucket/big") == big);
        assert_eq!(status(reader, "/bucket/deleted"), 404);
        let list = String::from_utf8(get(reader, "/bucket?list-type=2")).unwrap();
        assert!(list.contains("<KeyCount>4</KeyCount>"), "{list}");
        for (method, path) in [
            ("PUT", "/bucket/refused"),
            ("PUT", "/another-bucket"),
            ("DELETE", "/bucket/last"),
            ("POST", "/bucket/refused?uploads"),
        ] {
            let (status, answer) = reader.request(method, path, b"");
            let text = String::from_utf8_lossy(&answer);
            let is_refused = text.contains("AccessDenied") && text.contains("is read-only");
            assert!(status == 403 && is_refused, "{method} {path}: {text}");
        }
        let metrics = String::from_utf8_lossy(&admin(reader, "/metrics")).into_owned();
        assert!(metrics.contains("haul_objects 4\n"), "{metrics}");
        assert!(metrics.contains("haul_replication_requests_total"), "{metrics}");
    }
    // A download that is not read keeps its state, and later states are served.
    let address = readers[0].address("S3");
    let mut slow = TcpStream::connect(address).unwrap();
    let head = format!("GET /bucket/big HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    slow.write_all(head.as_bytes()).unwrap();
    slow.read_exact(&mut [0; 100]).unwrap();
    for number in 0..4 {
        let path = format!("/bucket/later/{number}");
        put(&writer, &path, b"x");
        eventually("the reader has a later object", || status(&readers[0], &path) == 200);
    }
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&big[1 << 20..]), "{}", answer.len());
    for reader in readers {
        stop(reader);
    }
    stop(writer);
    let files = |dir: &str| fs::read_dir(place.path(dir)).map_or(0, Iterator::count);
    assert_eq!(files("reader-1/state-0/volumes") + files("reader-1/state-1/volumes"), 0);
    // It starts again, also without the writer.
    let again = remote.serve(&place, "reader-1", &READER);
    assert!(get(&again, "/bucket/big") == big);
    drop(remote.server);
    // While the remote store does not answer, the last state is served.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(get(&again, "/bucket/changed"), b"two");
    stop(again);
}

/// Each object has the number of its round. A reader never sees an earlier round than before, and no
/// other error than a missing object.
#[test]
fn reads_beside_a_busy_writer_never_go_back_or_fail() {
    const KEYS: usize = 30;
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let writer = remote.serve(&place, "data", &WRITER);
    put(&writer, "/bucket", b"");
    let content = |round: u64, key: usize| {
        let bytes = if key == 0 { 5 << 20 } else { 20_000 + 3000 * key };
        [&round.to_le_bytes()[..], &noise(round, bytes)].concat()
    };
    let path = |key: usize| format!("/bucket/{key}");
    (0..KEYS).for_each(|key| put(&writer, &path(key), &content(0, key)));
    eventually("the copy exists", || {
        let metrics = String::from_utf8_lossy(&admin(&writer, "/metrics")).into_owned();
        metrics.contains("haul_replication_behind_seconds 0\n")
    });
    let reader = remote.serve(&place, "reader", &READER);
    // The copy has all earlier objects, too.
    eventually("the reader has the last object", || status(&reader, &path(KEYS - 1)) == 200);
    let is_over = AtomicBool::new(false);
    let (rounds, seen) = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut random = Random::from_environment();
            let mut round = 0;
            while !is_over.load(Relaxed) {
                round += 1;
                let key = random.index(KEYS);
                put(&writer, &path(key), &content(round, key));
            }
            round
        });
        let reading = (0..2).map(|_| {
            scope.spawn(|| {
                let mut random = Random::from_environment();
                let mut newest = vec![0; KEYS];
                // Enough to see rounds of all ages.
                for reads in 0.. {
                    if reads >= 300 && newest.iter().any(|round| *round > 10) {
                        break;
                    }
                    let key = random.index(KEYS);
                    let found = get(&reader, &path(key));
                    let round = u64::from_le_bytes(found[..8].try_into().unwrap());
                    assert!(found == content(round, key), "{key}");
                    let seen = &mut newest[key];
                    assert!(round >= *seen, "{key}: round {round} after {seen}");
                    *seen = round;
                }
                newest.into_iter().max().unwrap()
            })
        });
        let reading: Vec<_> = reading.collect();
        let ended: Vec<_> = reading.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Relaxed);
        let seen = ended.into_iter().map(Result::unwrap).max().unwrap();
        (writing.join().unwrap(), seen)
    });
    println!("{rounds} puts, of which readers saw the {seen}th");
    assert!(seen > 10, "{seen} of {rounds}");
    stop(reader);
}

#[test]
fn reader_needs_a_copy_and_a_directory_of_its_own() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let start = |data: &str, more: &[&str]| {
        let mut command = remote.command(&place, data, &[&READER[..], more].concat());
        Finished(command.output().unwrap())
    };
    start("reader", &[]).code(3).stderr_contains(&["holds no copy", "without --read-only"]);
    let writer = remote.serve(&place, "data", &WRITER);
    put(&writer, "/bucket", b"");
    stop(writer);
    start("data", &[]).code(3).stderr_contains(&["neither empty nor of a read-only server"]);
    start("reader", &["--ack", "remote"]).code(2).stderr_contains(&["cannot be used with"]);
    start("reader", &["--standby"]).code(2).stderr_contains(&["cannot be used with"]);
    stop(remote.serve(&place, "reader", &READER));
    let refused = place.run(&["store", "--data", "reader", "ls"]);
    refused.code(3).stderr_contains(&["is not a store"]);
}
