//! What a request costs, as system calls of the thread that serves.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::helper::{Place, noise};

/// The thread of this process that serves, of which there is one while a test of this file runs.
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

/// Counts the calls of one thread, once it is attached.
struct Counting {
    child: Child,
    report: std::path::PathBuf,
}

impl Counting {
    fn of(place: &Place, thread: &str) -> Option<Self> {
        let report = place.path("calls");
        let child = Command::new("strace")
            .args(["-c", "-U", "name,calls", "-p", thread, "-o"])
            .arg(&report)
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            haul_testing::skip("there is no strace");
            return None;
        };
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        if !line.contains("attached") {
            child.wait().unwrap();
            haul_testing::skip(&format!("strace may not look: {}", line.trim()));
            return None;
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(Self { child, report })
    }

    /// Calls and how often each was made.
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
fn calls(place: &Place, client: &mut Client, target: &str, batch: usize, wait: impl Fn()) -> Calls {
    let counting = Counting::of(place, &serving_thread("counted"))?;
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
    Some(counted)
}

type Calls = Option<BTreeMap<String, u64>>;

const REQUESTS: u64 = 500;

#[test]
fn hot_requests_cost_one_receive_and_one_send_a_batch_and_open_files_three_calls() {
    let place = Place::new();
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
        ("/open", 1, &["recvfrom", "sendmsg", "sendfile"]),
    ] {
        requests += REQUESTS * batch as u64;
        let started = Instant::now();
        let wait = || drop(running.after(requests));
        let Some(mut counted) = calls(&place, &mut client, target, batch, wait) else { return };
        // Newer than many an strace, which then does not count it.
        let checks = counted.remove("cachestat").into_iter().chain(counted.remove("preadv2"));
        // The server checks once in 50 ms that the file is in memory.
        let checks_max = if target == "/open" { started.elapsed().as_millis() / 50 + 1 } else { 0 };
        assert!(checks.into_iter().all(|count| u128::from(count) <= checks_max), "{target}");
        let expected = expected.iter().map(|name| ((*name).to_owned(), REQUESTS)).collect();
        assert_eq!(counted, expected, "{target} in batches of {batch}");
    }
}
