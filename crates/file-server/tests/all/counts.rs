//! The system calls of the serving thread for a request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::helper::{ServedDir, noise};

/// Returns the serving thread with this name.
fn serving_thread(named: &str) -> String {
    loop {
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let task = task.unwrap();
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if name.trim() == named {
                return task.file_name().into_string().unwrap();
            }
        }
        std::thread::yield_now();
    }
}

/// A running `strace` that counts the system calls of one thread.
struct SyscallCounter {
    child: Child,
    report: std::path::PathBuf,
}

impl SyscallCounter {
    fn attach(place: &ServedDir, thread: &str) -> Option<Self> {
        let report = place.path("calls");
        let child = Command::new("strace")
            .args(["-c", "-U", "name,calls", "-p", thread, "-o"])
            .arg(&report)
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            haul_testing::skip("strace is not installed");
            return None;
        };
        let mut line = String::new();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut line).unwrap();
        if !line.contains("attached") {
            child.wait().unwrap();
            haul_testing::skip(&format!("strace is not permitted: {}", line.trim()));
            return None;
        }
        std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
        Some(Self { child, report })
    }

    /// Stops counting; returns the number of calls by name.
    fn end(mut self) -> BTreeMap<String, u64> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(&self.report).unwrap();
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let (name, calls) = (words.next()?, words.next()?.parse().ok()?);
            (name != "total").then(|| (name.to_owned(), calls))
        };
        text.lines().filter_map(row).collect()
    }
}

/// Counts the system calls of the serving thread while requests are sent in batches. `wait` waits
/// until the server has counted all responses.
fn calls(
    place: &ServedDir,
    client: &mut Client,
    target: &str,
    batch: usize,
    wait: impl Fn(),
) -> Calls {
    let counting = SyscallCounter::attach(place, &serving_thread("counted"))?;
    let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(batch);
    for _ in 0..REQUESTS {
        client.say(&text);
        for _ in 0..batch {
            assert_eq!(client.answer("GET").status, 200);
        }
    }
    // Responses are counted after their system call, which strace has counted then.
    wait();
    let mut counted = counting.end();
    // One for each batch when there is one client; with many it is one for all that are ready.
    assert!(counted.remove("epoll_wait").unwrap_or(0) <= REQUESTS + 20, "{counted:?}");
    // Caused by strace.
    counted.remove("restart_syscall");
    // The allocator of the process grows now and then, whoever the requests are from.
    counted
        .retain(|name, count| !["futex", "mprotect"].contains(&&**name) || *count > REQUESTS / 50);
    Some(counted)
}

type Calls = Option<BTreeMap<String, u64>>;

const REQUESTS: u64 = 500;

#[test]
fn hot_batches_cost_a_receive_and_a_send_and_open_files_two_calls_more() {
    let place = ServedDir::new();
    place.write("hot", noise(1, 4096));
    place.write("open", noise(2, 100_000));
    let running = place.serve(|config| {
        config.tiers.valid = std::time::Duration::from_hours(1);
        // No other server of these tests has a thread of this name.
        config.threads = 1;
        config.thread_name = "counted".to_owned();
    });
    let mut client = Client::new(running.address);
    client.get("/hot", "");
    client.get("/open", "");
    running.after(2);
    let mut requests = 2;
    for (target, batch, expected) in [
        ("/hot", 1, &["recvfrom", "sendmsg"][..]),
        ("/hot", 16, &["recvfrom", "sendmsg"]),
        ("/open", 1, &["recvfrom", "statx", "sendmsg", "sendfile"]),
    ] {
        requests += REQUESTS * batch as u64;
        let started = Instant::now();
        let wait = || drop(running.after(requests));
        let Some(mut counted) = calls(&place, &mut client, target, batch, wait) else { return };
        // Older versions of strace do not know this call.
        let checks = counted.remove("cachestat").into_iter().chain(counted.remove("preadv2"));
        // The server checks once in 50 ms that the file is in memory.
        let checks_max = if target == "/open" { started.elapsed().as_millis() / 50 + 1 } else { 0 };
        assert!(checks.into_iter().all(|count| u128::from(count) <= checks_max), "{target}");
        let expected = expected.iter().map(|name| ((*name).to_owned(), REQUESTS)).collect();
        assert_eq!(counted, expected, "{target} in batches of {batch}");
    }
}
