//! Runs the load generator wrk with a script that sends a list of requests, and parses its summary.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::bench::Tools;
use super::sample::Sample;
use super::server::Server;
use haul_measure::{Error, Result};

const SCRIPT: &str = include_str!("wrk.lua");

/// A load on a server for [`NetOptions::time`](crate::options::NetOptions::time).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'a> {
    /// The requests, such as `GET /name`, which are sent in random order. `%d` in the target of a
    /// single request stands for a number that grows.
    pub(crate) requests: &'a [String],
    pub(crate) connections: usize,
    /// The length of the body of each request.
    pub(crate) body_bytes: u64,
    /// The smallest length of a response body.
    pub(crate) response_bytes: u64,
    /// The pause of a connection before each request.
    pub(crate) pause: Duration,
    pub(crate) tls: bool,
    /// `true` if each request has a new connection.
    pub(crate) close: bool,
}

impl<'a> Load<'a> {
    /// Returns a load as fast as possible on persistent connections.
    pub(crate) fn new(requests: &'a [String], connections: usize, response_bytes: u64) -> Self {
        let (body_bytes, pause) = (0, Duration::ZERO);
        Self { requests, connections, body_bytes, response_bytes, pause, tls: false, close: false }
    }
}

impl Tools<'_> {
    /// Runs wrk beside a server, and returns its figures and the CPU times.
    ///
    /// # Errors
    /// [`Error::Missing`] if wrk fails, a request fails, or bodies are too short.
    pub(crate) fn load(&self, server: &Server, load: &Load<'_>) -> Result<Sample> {
        self.watcher.check()?;
        let dir = self.scratch.path();
        let (script, list) = (dir.join("wrk.lua"), dir.join("requests"));
        let requests: String = load.requests.iter().map(|request| format!("{request}\n")).collect();
        let written = fs::write(&script, SCRIPT).and_then(|()| fs::write(&list, requests));
        written.map_err(Error::other(format!("write to {}", dir.display())))?;
        let scheme = if load.tls { "https" } else { "http" };
        let mut command = Command::new(&self.wrk);
        command.args(["--threads", "1", "--timeout", "60s"]);
        command.arg("--connections").arg(load.connections.to_string());
        command.arg("--duration").arg(format!("{}s", self.options.time.as_secs()));
        command.arg("--script").arg(&script).arg(format!("{scheme}://{}/", server.address));
        command.arg("--").arg(&list).arg(load.body_bytes.to_string());
        command.arg(if load.close { "close" } else { "keep-alive" });
        command.arg(load.pause.as_millis().to_string());
        let before = server.meter.usage();
        let output = command.stdin(Stdio::null()).output().map_err(Error::other("start wrk"))?;
        let used = before.until(&server.meter.usage());
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = parse(&text).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            let line = error.lines().chain(text.lines()).last().unwrap_or("no output");
            Error::Missing(format!("wrk failed: {line}"))
        })?;
        let Summary { requests, bytes, wall, errors, p50_us, p99_us } = summary;
        if errors != [0; 5] || requests == 0 {
            let [connect, read, write, status, timeout] = errors;
            return Err(Error::Missing(format!(
                "{requests} requests succeeded; errors of wrk: connect {connect}, read {read}, \
                 write {write}, status {status}, timeout {timeout}"
            )));
        }
        if bytes < requests * load.response_bytes {
            return Err(Error::Missing(format!("{requests} responses have only {bytes} bytes")));
        }
        let (p50_us, p99_us) = (Some(p50_us), Some(p99_us));
        Ok(Sample { wall, requests, bytes, used, p50_us, p99_us, ..Sample::default() })
    }
}

/// The summary that the script prints.
#[derive(Debug, PartialEq)]
struct Summary {
    requests: u64,
    bytes: u64,
    wall: Duration,
    p50_us: f64,
    p99_us: f64,
    /// The errors of connect, read and write, of the status, and timeouts.
    errors: [u64; 5],
}

fn parse(output: &str) -> Option<Summary> {
    let line = output.lines().find_map(|line| line.strip_prefix("haul-bench: "))?;
    let numbers: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let ([requests, bytes, wall_us, p50_us, p99_us], errors) = numbers.split_first_chunk()?;
    let (wall, errors) = (Duration::from_micros(*wall_us), errors.try_into().ok()?);
    let (p50_us, p99_us) = (*p50_us as f64, *p99_us as f64);
    Some(Summary { requests: *requests, bytes: *bytes, wall, p50_us, p99_us, errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_found_behind_the_table_of_wrk() {
        let output = "Running 1s test @ http://127.0.0.1:1/\n  508 requests in 1.06s, 100.21KB read\n\
                      haul-bench: 508 102616 1055875 1560 260200 0 1 0 2 0\n";
        let wall = Duration::from_micros(1_055_875);
        let (p50_us, p99_us) = (1560.0, 260_200.0);
        let errors = [0, 1, 0, 2, 0];
        let expected = Summary { requests: 508, bytes: 102_616, wall, p50_us, p99_us, errors };
        assert_eq!(parse(output), Some(expected));
        assert_eq!(parse("haul-bench: 508 102616\n"), None);
        assert_eq!(parse("unable to connect"), None);
    }
}
