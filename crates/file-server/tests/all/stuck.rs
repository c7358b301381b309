//! Requests while reads of the disk hang.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haul_file_server::{Config, Tier};
use rustix::net::sockopt::set_socket_linger;

use crate::client::{Client, get};
use crate::helper::{Running, ServedDir, noise, resident};

/// Marks a file or directory with fanotify(7), so that reads of it wait for permission, and never
/// gives it: reads continue when the program ends.
const HOLD: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
FAN_CLOEXEC, FAN_CLASS_CONTENT, FAN_MARK_ADD, AT_FDCWD = 0x1, 0x4, 0x1, -100
FAN_ACCESS_PERM, FAN_ONDIR = 0x20000, 0x40000000
group = libc.fanotify_init(FAN_CLOEXEC | FAN_CLASS_CONTENT, os.O_RDONLY)
path = os.fsencode(sys.argv[1])
if group < 0 or libc.fanotify_mark(group, FAN_MARK_ADD, FAN_ACCESS_PERM | FAN_ONDIR, AT_FDCWD, path) < 0:
    print(os.strerror(ctypes.get_errno()), flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
"#;

/// A file or directory whose reads hang until this is dropped.
struct HangingReads(Child);

impl HangingReads {
    fn at(path: &Path) -> Option<Self> {
        let child = Command::new("python3")
            .args(["-c", HOLD])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            haul_testing::skip("python3 is not installed");
            return None;
        };
        let mut message = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut message).unwrap();
        if message.trim() == "held" {
            return Some(Self(child));
        }
        child.wait().unwrap();
        haul_testing::skip(&format!("fanotify is not permitted: {}", message.trim()));
        None
    }
}

impl Drop for HangingReads {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Configures one disk thread, and lookups that stay valid.
fn one_disk_thread(config: &mut Config) {
    config.tiers.disk_threads = 1;
    config.tiers.valid = Duration::from_hours(1);
    config.content.listings = true;
    // Lookups of encoded forms would need the disk thread.
    config.content.precompressed = false;
}

fn ask(address: haul_testing::Endpoint, target: &str) -> Client {
    let mut client = Client::new(address);
    client.say(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client
}

/// Closes a connection by a reset.
fn reset(client: Client) {
    set_socket_linger(client.stream(), Some(Duration::ZERO)).unwrap();
    drop(client);
}

#[test]
fn reads_for_closed_connections_are_dropped() {
    let place = ServedDir::new();
    let stuck = place.write_cold("stuck", &noise(1, 10_000));
    let names: Vec<_> = (0..10).map(|number| format!("cold-{number}")).collect();
    let cold = |name: &String| place.write_cold(name, &noise(2, 10_000));
    let paths: Vec<_> = names.iter().map(cold).collect();
    let Some(held) = HangingReads::at(&stuck) else { return };
    let running = place.serve(one_disk_thread);
    let mut first = ask(running.address, "/stuck");
    running.wait_until("the read has begun", |stats| {
        stats.disk_jobs == 1 && stats.disk_jobs_waiting == 0
    });
    let mut waiting: Vec<_> =
        names.iter().map(|name| ask(running.address, &format!("/{name}"))).collect();
    running.wait_until("all jobs are queued", |stats| stats.disk_jobs_waiting == 10);
    let mut stays = waiting.pop().unwrap();
    waiting.into_iter().for_each(reset);
    running.wait_until("their connections are closed", |stats| stats.connections_open == 2);
    drop(held);
    assert_eq!(first.answer("GET").body, noise(1, 10_000));
    assert_eq!(stays.answer("GET").body, noise(2, 10_000));
    let stats = running.stats();
    assert_eq!((stats.disk_jobs_dropped, stats.cached_files), (9, 2));
    assert!(paths[..9].iter().all(|path| resident(path) == 0), "files were read");
    assert!(stats.statuses.contains(&(499, 9)), "{stats:?}");
}

#[test]
fn request_beyond_the_disk_queue_is_answered_with_503() {
    let place = ServedDir::new();
    let stuck = place.write_cold("stuck", &noise(1, 10_000));
    for name in ["a", "b", "c"] {
        place.write_cold(name, name.as_bytes());
    }
    let Some(held) = HangingReads::at(&stuck) else { return };
    let running = place.serve(|config| {
        one_disk_thread(config);
        config.tiers.disk_queue_max = 2;
    });
    let mut first = ask(running.address, "/stuck");
    running.wait_until("the read has begun", |stats| {
        stats.disk_jobs == 1 && stats.disk_jobs_waiting == 0
    });
    let mut waiting = ["/a", "/b"].map(|target| ask(running.address, target));
    running.wait_until("all jobs are queued", |stats| stats.disk_jobs_waiting == 2);
    let mut refused = Client::new(running.address);
    for target in ["/c", "/"] {
        let answer = refused.get(target, "");
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{target}");
    }
    assert_eq!(running.stats().disk_jobs_refused, 2);
    drop(held);
    assert_eq!(first.answer("GET").body, noise(1, 10_000));
    let taken = waiting.each_mut().map(|client| client.answer("GET").body);
    assert_eq!(taken, [b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(refused.get("/c", "").text(), "c", "the queue has room again");
}

#[test]
fn read_for_a_closed_connection_is_completed_for_the_cache() {
    let place = ServedDir::new();
    let stuck = place.write_cold("stuck", &noise(1, 10_000));
    let Some(held) = HangingReads::at(&stuck) else { return };
    let running = place.serve(one_disk_thread);
    let goes = ask(running.address, "/stuck");
    running.wait_until("the read has begun", |stats| {
        stats.disk_jobs == 1 && stats.disk_jobs_waiting == 0
    });
    reset(goes);
    running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
    drop(held);
    running.wait_until("the file is cached", |stats| stats.cached_files == 1);
    assert_eq!(get(running.address, "/stuck", "").body, noise(1, 10_000));
    let stats = running.after(2);
    assert_eq!((stats.disk_jobs, stats.tier(Tier::Memory).0), (1, 1));
}

#[test]
fn concurrent_requests_for_a_file_read_it_once() {
    let place = ServedDir::new();
    let file = place.write_cold("file", &noise(1, 10_000));
    place.write("dir/name", "");
    place.write("hot", "hot");
    // The kernel caches that the file does not exist.
    assert!(!place.path("dir/index.html").exists());
    for (target, held) in [("/file", file), ("/dir/", place.path("dir"))] {
        let Some(held) = HangingReads::at(&held) else { return };
        let running = place.serve(one_disk_thread);
        let mut clients: Vec<_> = (0..20).map(|_| ask(running.address, target)).collect();
        running.wait_until("all are connected", |stats| stats.connections == 20);
        reset(clients.remove(0));
        running.wait_until("one is closed", |stats| stats.connections_open == 19);
        assert_eq!(get(running.address, "/hot", "").text(), "hot");
        drop(held);
        let bodies: Vec<_> = clients.iter_mut().map(|client| client.answer("GET").body).collect();
        assert!(!bodies[0].is_empty() && bodies.iter().all(|body| *body == bodies[0]), "{target}");
        assert_eq!(running.stats().disk_jobs, 1, "{target}");
    }
}

/// Removes a missing name from the caches of the kernel.
fn uncache(place: &ServedDir, name: &str) {
    let other = place.write("other", "");
    std::fs::rename(&other, place.path(name)).unwrap();
    std::fs::rename(place.path(name), &other).unwrap();
}

/// Starts a server whose only disk thread is busy until the hanging reads are dropped.
fn busy(place: &ServedDir, valid: Duration) -> Option<(Running, Client, HangingReads)> {
    let stuck = place.write_cold("stuck", &noise(1, 10_000));
    // The kernel caches that these files do not exist.
    assert!(["br", "zst", "gz"].iter().all(|form| !stuck.with_added_extension(form).exists()));
    let held = HangingReads::at(&stuck)?;
    let running = place.serve(|config| {
        one_disk_thread(config);
        config.tiers.valid = valid;
        config.content.precompressed = true;
    });
    let first = ask(running.address, "/stuck");
    running.wait_until("the read has begun", |stats| {
        stats.disk_jobs == 1 && stats.disk_jobs_waiting == 0
    });
    Some((running, first, held))
}

#[test]
fn request_for_a_cached_file_does_not_wait_for_its_check() {
    let place = ServedDir::new();
    let sizes = [("small", 10), ("long", 100_000)];
    for (name, bytes) in sizes {
        let path = place.write(name, vec![1; bytes]);
        assert!(["br", "zst", "gz"].iter().all(|form| !path.with_added_extension(form).exists()));
    }
    let Some((running, mut first, held)) = busy(&place, Duration::from_secs(3)) else { return };
    let are = |byte| {
        let is = |(name, bytes): &(&str, usize)| {
            get(running.address, &format!("/{name}"), "").body == vec![byte; *bytes]
        };
        sizes.iter().all(is)
    };
    assert!(are(1));
    for (name, bytes) in sizes {
        uncache(&place, &format!("{name}.br"));
        let new = place.write("new", vec![2; bytes]);
        std::fs::rename(new, place.path(name)).unwrap();
    }
    // Both are requested continuously.
    running.wait_until("both checks are queued", |stats| are(1) && stats.disk_jobs_waiting == 2);
    drop(held);
    assert_eq!(first.answer("GET").body, noise(1, 10_000));
    running.wait_until("the new files are served", |_| are(2));
}

#[test]
fn concurrent_requests_for_a_name_look_it_up_once() {
    let place = ServedDir::new();
    place.write("file", "file");
    for target in ["/file", "/none"] {
        let hour = Duration::from_hours(1);
        let Some((running, mut first, held)) = busy(&place, hour) else { return };
        uncache(&place, "file.br");
        uncache(&place, "none");
        let mut clients: Vec<_> = (0..20).map(|_| ask(running.address, target)).collect();
        running.wait_until("all are connected", |stats| stats.connections == 21);
        running.wait_until("the lookup is queued", |stats| stats.disk_jobs_waiting == 1);
        reset(clients.remove(0));
        running.wait_until("one is closed", |stats| stats.connections_open == 20);
        drop(held);
        assert_eq!(first.answer("GET").body, noise(1, 10_000));
        let status = if target == "/none" { 404 } else { 200 };
        assert!(clients.iter_mut().all(|client| client.answer("GET").status == status), "{target}");
        assert_eq!(running.stats().disk_jobs, 2, "{target}");
    }
}
