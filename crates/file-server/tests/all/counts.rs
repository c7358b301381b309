//! What a request costs, as system calls of the thread that serves.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

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

#[test]
fn a_request_is_one_receive_and_one_send_when_hot_and_five_calls_when_open() {
    let place = Place::new();
    place.write("hot", noise(1, 10_000));
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
    let thread = serving_thread("counted");
    for (target, calls) in [
        ("/hot", &["recvfrom", "sendmsg"][..]),
        ("/open", &["recvfrom", "preadv2", "sendmsg", "sendfile"]),
    ] {
        let Some(counting) = Counting::of(&place, &thread) else { return };
        const REQUESTS: u64 = 500;
        for _ in 0..REQUESTS {
            client.get(target, "");
        }
        let mut counted = counting.end();
        // One for each request when there is one client; with many it is one for all that are ready.
        assert!(counted.remove("epoll_wait").unwrap_or(0) <= REQUESTS + 20, "{counted:?}");
        // What belongs to being looked at.
        counted.remove("restart_syscall");
        // Newer than many an strace, which then does not count it.
        if let Some(calls) = counted.remove("cachestat") {
            assert_eq!((target, calls), ("/open", REQUESTS));
        }
        let expected = calls.iter().map(|name| ((*name).to_owned(), REQUESTS)).collect();
        assert_eq!(counted, expected, "{target}");
    }
}
