//! Crashes after each step of requests that store encrypted objects.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere};

use super::helper::{A, DEFAULT, SSE_S3, get, put};
use crate::client::{Header, Running, noise};

/// The key of the operator, which protects nothing.
const KEYS: &str = "haul-encryption-key-1 6b+WOZ1T3cqZMxgThRcXAQBrS5mXKdDUphvpxptl9/4=";

/// One of so many states is served, because each of them needs a server.
const SERVED_ONE_IN: u64 = 4;

const VERSIONING: &str =
    "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const TAGS: &str = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";

/// The readable versions: their keys, and their contents.
type State = Vec<(String, Vec<u8>)>;

/// The number of acknowledged requests.
struct Acknowledged(usize);

/// Returns the requests: targets, headers and bodies.
fn requests() -> Vec<(&'static str, Vec<Header<'static>>, Vec<u8>)> {
    let copy = ("x-amz-copy-source", "/bucket/long");
    vec![
        ("/bucket", Vec::new(), Vec::new()),
        ("/bucket?versioning", Vec::new(), VERSIONING.into()),
        ("/bucket/key", vec![SSE_S3], b"first".to_vec()),
        ("/bucket/key", A.to_vec(), b"second, of a customer".to_vec()),
        // In a file of its own.
        ("/bucket/long", vec![SSE_S3], noise(100_000)),
        ("/bucket/copy", vec![SSE_S3, copy], Vec::new()),
        ("/bucket/copy?tagging", Vec::new(), TAGS.into()),
        ("/bucket?encryption", Vec::new(), DEFAULT.into()),
        ("/bucket/key", Vec::new(), b"third, by default".to_vec()),
        ("/bucket/long", A.to_vec(), noise(70_000)),
    ]
}

/// Reads all versions. Each that is listed must be readable with one of the keys.
fn state(server: &Running) -> State {
    let listed = server.s3.get("/bucket?versions");
    let names = listed.all_xml("Key").into_iter().zip(listed.all_xml("VersionId"));
    let read = |(key, id): (String, String)| {
        let target = format!("/bucket/{key}?versionId={id}");
        let mut found = server.s3.get(&target);
        if found.status == 400 {
            found = get(server, &target, &A);
        }
        assert_eq!(found.status, 200, "{target}: {}", found.text());
        assert!(found.is_whole(), "{target}");
        (key, found.body)
    };
    names.map(read).collect()
}

/// Returns the states before each request and after the last one.
fn run(disk: &MemoryDisk) -> Vec<State> {
    let server = Running::encrypted_in_memory(disk, KEYS);
    let mut states = vec![state(&server)];
    for (number, (target, headers, body)) in (1..).zip(requests()) {
        put(&server, target, &headers, &body);
        disk.note(Acknowledged(number));
        states.push(state(&server));
    }
    states
}

#[test]
fn crash_leaves_no_encrypted_object_without_its_key() {
    let crashes = Crashes { draws: 2, all_up_to: 4, again_one_in: 1 << 20, ..Crashes::default() };
    let (seen, served) = (AtomicU64::new(crashes.seed), AtomicU64::new(0));
    let check = |states: &Vec<State>, crash: &Crash| {
        if seen.fetch_add(1, Relaxed) % SERVED_ONE_IN != 0 {
            return;
        }
        let acknowledged = crash.notes().last().map_or(0, |Acknowledged(requests)| *requests);
        let server = Running::encrypted_in_memory(&crash.disk, KEYS);
        let found = state(&server);
        let possible = &states[acknowledged..=(acknowledged + 1).min(states.len() - 1)];
        assert!(possible.contains(&found), "after {acknowledged}: {} versions", found.len());
        served.fetch_add(1, Relaxed);
    };
    crash_everywhere(&crashes, run, check);
    assert!(served.load(Relaxed) > 20, "{served:?}");
}
