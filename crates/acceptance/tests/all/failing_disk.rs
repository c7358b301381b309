//! Tests that a server whose disk refuses or delays every call of a kind says so, does not spin, and
//! ends when it is told to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_testing::{disk_dir, eventually, noise, skip};

use crate::http::Client;
use crate::keys::target;
use crate::server::Server;

const OPTIONS: &[&str] =
    &["--volume", "4MiB", "--big-object", "64KiB", "--drain-time", "1s", "--lifecycle-check", "1s"];

/// The drain time, the least time to close the store, and some time for a busy machine.
const END_TIME: Duration = Duration::from_secs(1 + 5 + 10);

/// The CPU time that a server without requests may use: a tenth of a second each second.
const IDLE_TICKS_A_SECOND: u64 = 10;

/// What is done to the server.
enum Failure {
    /// All calls of this name fail with this error, or begin after hours.
    Call(&'static str, &'static str),
    /// The directory with the volumes is removed.
    Removed,
    /// No name can be added to the directory with the volumes.
    Immutable,
}

/// The effect of a failure, which ends when this is dropped.
enum Effect {
    Traced(Child),
    Immutable(PathBuf),
    Removed,
}

impl Failure {
    /// Returns `None` if the machine cannot do it.
    fn begin(&self, server: &Server, data: &Path) -> Option<Effect> {
        let volumes = data.join("volumes");
        match self {
            Self::Removed => {
                // The server may create a file in the directory while it is emptied.
                eventually("the directory is removed", || {
                    drop(std::fs::remove_dir_all(&volumes));
                    !volumes.exists()
                });
                Some(Effect::Removed)
            }
            Self::Immutable => {
                let changed = Command::new("chattr").arg("+i").arg(&volumes).status();
                changed.is_ok_and(|status| status.success()).then_some(Effect::Immutable(volumes))
            }
            Self::Call(name, effect) => {
                let inject = format!("inject={name}:{effect}");
                let mut child = Command::new("strace")
                    .args(["-f", "-o", "/dev/null", "-e", &inject, "-p", &server.id().to_string()])
                    .stderr(Stdio::piped())
                    .spawn()
                    .ok()?;
                let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
                messages
                    .find(|line| line.as_ref().is_ok_and(|line| line.contains("attached")))?
                    .ok()?;
                thread::spawn(move || messages.for_each(drop));
                Some(Effect::Traced(child))
            }
        }
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        match self {
            Self::Traced(strace) => {
                strace.kill().ok();
                strace.wait().ok();
            }
            Self::Immutable(dir) => {
                Command::new("chattr").arg("-i").arg(dir).status().ok();
            }
            Self::Removed => {}
        }
    }
}

/// Sends PUTs and DELETEs until `stop`, and adds the bodies of errors to `errors`.
fn change_objects(server: &str, client: usize, stop: &AtomicBool, errors: &Mutex<Vec<String>>) {
    let mut connection = None;
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(open) = connection.take().or_else(|| Client::connect(server).ok()) else {
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let mut open: Client = open;
        let key = target("bucket", &format!("{client}-{}", n % 20));
        let length = if n % 5 == 0 { 100_000 } else { 30_000 };
        let response = match n % 4 {
            3 => open.request("DELETE", &key, b""),
            _ => open.request("PUT", &key, &noise(n, length)),
        };
        if let Ok(response) = response {
            if response.status >= 300 {
                errors.lock().unwrap().push(format!("{} {}", response.status, response.text()));
                thread::sleep(Duration::from_millis(20));
            }
            connection = Some(open);
        }
    }
}

/// Returns the CPU time of a process in hundredths of a second.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let behind = stat.rsplit(')').next().unwrap();
    let words: Vec<&str> = behind.split_whitespace().collect();
    words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap()
}

fn fail(what: &str, failure: &Failure, answers: bool) {
    println!("{what}");
    let dir = disk_dir();
    let data = dir.path().join("data");
    let mut server = Server::start_with(&data, OPTIONS);
    assert_eq!(server.client().request("PUT", "/bucket", b"").unwrap().status, 200);
    let (stop, errors) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let address = server.listen.clone();
    thread::scope(|scope| {
        for client in 0..4 {
            let (address, stop, errors) = (&address, &stop, &errors);
            scope.spawn(move || change_objects(address, client, stop, errors));
        }
        thread::sleep(Duration::from_millis(300));
        let Some(_effect) = failure.begin(&server, &data) else {
            stop.store(true, Ordering::Relaxed);
            return skip(&format!("this machine cannot do it: {what}"));
        };
        if answers {
            let check = || {
                let mut admin = Client::connect(&server.admin).unwrap();
                let health = admin.request("GET", "/health", b"").unwrap();
                health.status == 503 || health.text().starts_with("degraded: ")
            };
            eventually("the health is not ok", check);
            let is_told = || !errors.lock().unwrap().is_empty();
            eventually("a client gets an error", is_told);
            stop.store(true, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(1));
            let before = ticks(server.id());
            thread::sleep(Duration::from_secs(2));
            let used = ticks(server.id()) - before;
            assert!(used <= 2 * IDLE_TICKS_A_SECOND, "{what}: {used} ticks in two seconds");
        } else {
            thread::sleep(Duration::from_secs(1));
        }
        let begun = Instant::now();
        assert!(server.ends_within(END_TIME), "{what}: the server does not end");
        println!("{what}: ended after {:?}", begun.elapsed());
        stop.store(true, Ordering::Relaxed);
    });
    let path = data.to_str().unwrap();
    for error in errors.into_inner().unwrap() {
        assert!(error.starts_with('5') && !error.contains(path), "{what}: {error}");
    }
}

#[test]
fn server_whose_disk_refuses_a_call_says_so_and_ends() {
    fail("no directory", &Failure::Removed, true);
    fail("an immutable directory", &Failure::Immutable, true);
    for (call, error) in [
        ("openat2", "error=EMFILE"),
        ("openat2", "error=EROFS"),
        ("renameat", "error=EIO"),
        ("fallocate", "error=EDQUOT"),
        ("fdatasync", "error=EIO"),
    ] {
        fail(&format!("{call}: {error}"), &Failure::Call(call, error), true);
    }
}

#[test]
fn server_whose_disk_never_answers_ends() {
    for call in ["fdatasync", "openat2", "fallocate", "pwritev2,pwrite64"] {
        fail(&format!("{call} never returns"), &Failure::Call(call, "delay_enter=100000s"), false);
    }
}
