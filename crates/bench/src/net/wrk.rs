//! Runs the load generator wrk with a script that sends a list of requests, and parses its summary.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::bench::{Bench, Case, Tools};
use super::sample::Sample;
use super::server::Server;
use super::site::Files;
use haul_measure::{Error, Result};

const SCRIPT: &str = include_str!("wrk.lua");

/// A load on a server for [`NetOptions::time`](crate::options::NetOptions::time).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load<'a> {
    /// The requests, such as `GET /name`, which are sent in random order. `%d` in the target of a
    /// single request stands for a number that grows.
    pub(crate) requests: &'a [String],
    /// Requests as they are sent, one after another, in place of the others; empty for none.
    pub(crate) whole_requests: &'a [Vec<u8>],
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
        Self { requests, connections, response_bytes, ..Self::default() }
    }

    /// Returns the list of requests as the script reads it.
    fn list(&self) -> Vec<u8> {
        let lines = self.requests.iter().map(|request| format!("{request}\n").into_bytes());
        let whole = self.whole_requests.iter();
        let framed =
            whole.map(|request| [format!("{}\n", request.len()).as_bytes(), request].concat());
        lines.chain(framed).collect::<Vec<_>>().concat()
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
        let written = fs::write(&script, SCRIPT).and_then(|()| fs::write(&list, load.list()));
        written.map_err(Error::other(format!("write to {}", dir.display())))?;
        let scheme = if load.tls { "https" } else { "http" };
        let mut command = Command::new(&self.wrk);
        command.args(["--threads", "1", "--timeout", "60s"]);
        command.arg("--connections").arg(load.connections.to_string());
        command.arg("--duration").arg(format!("{}s", self.options.time.as_secs()));
        command.arg("--script").arg(&script).arg(format!("{scheme}://{}/", server.address));
        let is_whole = !load.whole_requests.is_empty();
        let bytes = if is_whole { "whole".to_owned() } else { load.body_bytes.to_string() };
        command.arg("--").arg(&list).arg(bytes);
        command.arg(if load.close { "close" } else { "keep-alive" });
        command.arg(load.pause.as_millis().to_string());
        let before = server.meter.usage();
        let output = command.stdin(Stdio::null()).output().map_err(Error::other("start wrk"))?;
        let used = before.until(&server.meter.usage());
        let text = String::from_utf8_lossy(&output.stdout);
        let (sample, errors) = parse(&text).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            let line = error.lines().chain(text.lines()).last().unwrap_or("no output");
            Error::Missing(format!("wrk failed: {line}"))
        })?;
        let Sample { requests, bytes, .. } = sample;
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
        Ok(Sample { used, ..sample })
    }
}

impl Bench<'_> {
    /// Measures requests of files by wrk, with a new connection for each if `close` is `true`. Before
    /// the first round, all files are compared.
    pub(crate) fn run_files(
        &mut self,
        case: &Case<'_>,
        files: &Files,
        connections: usize,
        close: bool,
    ) -> Result<()> {
        let requests = files.requests();
        let load = Load { close, ..Load::new(&requests, connections, files.bytes) };
        self.run(
            case,
            |tools, one| files.compare(one.server(tools)?.address),
            |tools, one| tools.load(one.server(tools)?, &load),
        )
    }
}

/// Parses the summary that the script prints: the figures, and the errors of connect, read and
/// write, of the status, and timeouts.
fn parse(output: &str) -> Option<(Sample, [u64; 5])> {
    let line = output.lines().find_map(|line| line.strip_prefix("haul-bench: "))?;
    let numbers: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let ([requests, bytes, wall_us, p50_us, p99_us], errors) = numbers.split_first_chunk()?;
    let sample = Sample {
        wall: Duration::from_micros(*wall_us),
        requests: *requests,
        bytes: *bytes,
        p50_us: Some(*p50_us as f64),
        p99_us: Some(*p99_us as f64),
        ..Sample::default()
    };
    Some((sample, errors.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_found_behind_the_table_of_wrk() {
        let output = "Running 1s test @ http://127.0.0.1:1/\n  508 requests in 1.06s, 100.21KB read\n\
                      haul-bench: 508 102616 1055875 1560 260200 0 1 0 2 0\n";
        let (sample, errors) = parse(output).unwrap();
        assert_eq!((sample.requests, sample.bytes, errors), (508, 102_616, [0, 1, 0, 2, 0]));
        assert_eq!(sample.wall, Duration::from_micros(1_055_875));
        assert_eq!((sample.p50_us, sample.p99_us), (Some(1560.0), Some(260_200.0)));
        assert!(parse("haul-bench: 508 102616\n").is_none());
        assert!(parse("unable to connect").is_none());
    }
}
