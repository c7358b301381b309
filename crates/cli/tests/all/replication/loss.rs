//! Kills servers at random times, removes their directories, and verifies which acknowledged writes
//! the restored stores have.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use haul_testing::{PrintOnPanic, Random, eventually, replay_command, seed};
use rustix::process::Signal;

use super::{RemoteStore, admin};
use crate::helper::{Serving, TestDir};

const CLIENTS: u64 = 4;

/// The number of keys of each client.
const KEYS: u64 = 8;

/// The number of servers that are lost before a new remote store is used.
const LOSSES_OF_A_COPY: u32 = 20;

/// The interval of shipping with `--ack local`.
const SHIP_EVERY: Duration = Duration::from_millis(250);

/// The longest time of one round of shipping on a busy machine.
const ROUND_MAX: Duration = Duration::from_mins(1);

/// Returns the number of servers that a test loses.
fn losses() -> u32 {
    3 * u32::try_from(haul_testing::depth()).unwrap()
}

#[test]
fn no_confirmed_write_is_lost_with_a_machine() {
    let ages = lose_machines(&["--ack", "remote"], 300);
    assert!(ages.is_empty(), "lost writes, acknowledged before so long a time: {ages:?}");
}

#[test]
fn writes_lost_with_a_machine_are_younger_than_the_interval_and_a_round() {
    let every = format!("{}ms", SHIP_EVERY.as_millis());
    let ages = lose_machines(&["--ship-every", &every], 1500);
    let longest = ages.iter().max().copied().unwrap_or_default();
    assert!(longest < SHIP_EVERY + ROUND_MAX, "{longest:?}");
}

/// An acknowledged write.
struct Acknowledged {
    key: u64,
    version: u64,
    at: Instant,
}

/// Loses one server after another while clients write, each after up to `writes_max` acknowledged
/// writes, and restores the next one from the copy. Returns the age of each acknowledged write that
/// was lost, at the time of the loss.
fn lose_machines(arguments: &[&str], writes_max: u64) -> Vec<Duration> {
    let seed = seed();
    let _seed = PrintOnPanic(replay_command(seed));
    let mut random = Random(seed);
    let (mut ages, mut longest_of_each, mut writes) = (Vec::new(), Vec::new(), 0);
    let mut lost = 0;
    while lost < losses() {
        let place = TestDir::on_disk();
        let remote = RemoteStore::start(&place);
        let mut server = remote.serve(&place, "data-0", arguments);
        assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
        // A restored store without the bucket would refuse writes.
        thread::sleep(2 * SHIP_EVERY);
        let is_copied = "haul_replication_behind_seconds 0\n";
        let metrics = || String::from_utf8_lossy(&admin(&server, "/metrics")).into_owned();
        eventually("the bucket is copied", || metrics().contains(is_copied));
        let mut sent = HashMap::new();
        for number in 1..=LOSSES_OF_A_COPY.min(losses() - lost) {
            let acknowledged = write_and_kill(server, &mut sent, 1 + random.below(writes_max));
            let killed = Instant::now();
            std::fs::remove_dir_all(place.path(format!("data-{}", number - 1))).unwrap();
            let data = format!("data-{number}");
            remote.restore(&place, &data);
            server = remote.serve(&place, &data, arguments);
            let found = read_all(&server, &sent);
            writes += acknowledged.len();
            let is_lost = |write: &&Acknowledged| found[&write.key] < write.version;
            let age = |write: &Acknowledged| killed.duration_since(write.at);
            let lost_ages: Vec<_> = acknowledged.iter().filter(is_lost).map(age).collect();
            longest_of_each.push(lost_ages.iter().max().copied().unwrap_or_default());
            ages.extend(lost_ages);
            lost += 1;
        }
    }
    longest_of_each.sort_unstable();
    let median = longest_of_each[longest_of_each.len() / 2];
    let longest = longest_of_each[longest_of_each.len() - 1];
    println!(
        "{lost} servers with {arguments:?} were lost: {} of {writes} acknowledged writes were \
         lost; the oldest one of each server was {median:?} old (median), at most {longest:?}",
        ages.len()
    );
    ages
}

/// Lets clients write until so many writes were acknowledged, and kills the server. Returns all
/// acknowledged writes, and adds the last version of each key that was sent to `sent`.
fn write_and_kill(server: Serving, sent: &mut HashMap<u64, u64>, writes: u64) -> Vec<Acknowledged> {
    let (sender, receiver) = channel();
    let address = server.address("S3").to_owned();
    let mut all = Vec::new();
    let versions = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (sender, address) = (sender.clone(), &address);
                let keys = client * KEYS..(client + 1) * KEYS;
                let versions = keys.map(|key| (key, sent.get(&key).copied().unwrap_or(0)));
                let versions: Vec<_> = versions.collect();
                scope.spawn(move || write_until_killed(address, versions, &sender))
            })
            .collect();
        drop(sender);
        all.extend(receiver.iter().take(usize::try_from(writes).unwrap()));
        server.signal(Signal::KILL);
        all.extend(receiver.iter());
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let (_, _, stderr) = server.wait();
    for versions in versions {
        sent.extend(versions.unwrap_or_else(|what| panic!("{what}\n{stderr}")));
    }
    all
}

/// Writes the keys of a client until a request fails. Returns the last version of each key that was
/// sent.
fn write_until_killed(
    address: &str,
    mut versions: Vec<(u64, u64)>,
    acknowledged: &Sender<Acknowledged>,
) -> Result<Vec<(u64, u64)>, String> {
    for index in (0..versions.len()).cycle() {
        let (key, version) = &mut versions[index];
        *version += 1;
        let content = content(*key, *version);
        match request(address, "PUT", *key, &content) {
            Some((200, _)) => {
                let write = Acknowledged { key: *key, version: *version, at: Instant::now() };
                acknowledged.send(write).unwrap();
            }
            Some((status, answer)) => {
                let answer = String::from_utf8_lossy(&answer);
                return Err(format!("PUT of key {key}: {status} {answer}"));
            }
            None => break,
        }
    }
    Ok(versions)
}

/// Returns the version of each key in a store, and verifies the contents.
fn read_all(server: &Serving, sent: &HashMap<u64, u64>) -> HashMap<u64, u64> {
    let version_of = |(&key, &sent): (&u64, &u64)| {
        let (status, found) = request(server.address("S3"), "GET", key, b"").unwrap();
        if status == 404 {
            return (key, 0);
        }
        assert_eq!(status, 200, "key {key}");
        let version = u64::from_le_bytes(found[8..16].try_into().unwrap());
        assert!(found == content(key, version), "key {key}, version {version}");
        assert!(version <= sent, "key {key}: version {version} was not sent");
        (key, version)
    };
    sent.iter().map(version_of).collect()
}

/// Returns the content of a version of a key. Each 64th one is an object with a file of its own.
fn content(key: u64, version: u64) -> Vec<u8> {
    let block = [key.to_le_bytes(), version.to_le_bytes()].concat();
    block.repeat(if version % 64 == 63 { 128 << 10 } else { 200 })
}

/// Sends a request on a new connection, and returns the status and the body of the response; `None`
/// if the server was killed before it answered.
fn request(address: &str, method: &str, key: u64, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!(
        "{method} /bucket/{key} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    Some((status, answer.split_off(end)))
}
