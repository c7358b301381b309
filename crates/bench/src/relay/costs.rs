//! Counts the pipes that a relay creates per connection, and the descriptors that the relay holds
//! per idle connection.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::exchange::{Ends, Exchanges};
use super::workload::{Exchange, FIELDS};
use crate::net::comparison::Variant;
use crate::net::programs::find;
use crate::net::sample::Extent;
use crate::net::server::Server;
use crate::net::usage::processes;
use crate::report::{Ratio, Row, Samples, Value};
use haul_measure::{Error, Result};

/// The number of connections over which the costs are averaged.
const CONNECTIONS: u64 = 50;
/// The length in bytes of an answer, long enough that a relay uses a pipe.
const LONG_BYTES: u64 = 1 << 20;

/// The time within which strace must attach.
const ATTACH_MAX: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The number of equal counts in a row after which descriptors have settled, and of counts at most.
const SETTLED_POLLS: u32 = 10;
const SETTLE_POLLS_MAX: u32 = 200;

/// The average costs of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    /// The number of calls of `pipe` and `pipe2`; `None` if strace is not installed, or its output
    /// is invalid.
    pub(super) pipes: Option<f64>,
    pub(super) descriptors: f64,
}

/// Counts pipes and descriptors per connection, after earlier connections, which are not counted,
/// have filled the relay's pool of pipes.
pub(super) fn costs(ends: Ends<'_>, server: &Server, path: &OsStr, dir: &Path) -> Result<Costs> {
    let answer_bytes = LONG_BYTES;
    let long = Exchange { connections: 4, request_bytes: 64, answer_bytes, persistent: false };
    let meter = server.meter;
    let transfer = || -> Result<u64> {
        let mut exchanges = Exchanges::new(ends, long)?;
        exchanges.run(Extent::Requests(CONNECTIONS), meter)?;
        Ok(exchanges.connections)
    };
    transfer()?;
    let pipes = match find(path, "strace") {
        Some(strace) => {
            let trace = Trace::start(&strace, meter.group, dir)?;
            let connections = transfer()?;
            trace.calls()?.map(|calls| calls as f64 / connections as f64)
        }
        None => None,
    };
    let before = settled_descriptors(server)?;
    let idle = Exchange { connections: 50, persistent: true, ..long };
    let mut exchanges = Exchanges::new(ends, idle)?;
    exchanges.run(Extent::Requests(2 * CONNECTIONS), meter)?;
    let more = server.descriptors()? as f64 - before as f64;
    drop(exchanges);
    Ok(Costs { pipes, descriptors: more / CONNECTIONS as f64 })
}

/// Returns the number of descriptors once it does not change any more: the relay closes those of
/// earlier connections after their clients have ended.
fn settled_descriptors(server: &Server) -> Result<usize> {
    let (mut last, mut same) = (server.descriptors()?, 0);
    for _ in 0..SETTLE_POLLS_MAX {
        thread::sleep(POLL_INTERVAL);
        let now = server.descriptors()?;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same == SETTLED_POLLS {
            break;
        }
    }
    Ok(last)
}

/// Returns the row with the costs of a connection, or with the reason why they were not measured.
pub(super) fn costs_row(variant: &Variant, costs: std::result::Result<Costs, String>) -> Row {
    let mut values: Vec<Value> =
        vec!["1 MiB each".into(), variant.program.into(), variant.setting.into()];
    if let Ok(costs) = &costs {
        values.resize(FIELDS.len() - 2, Value::NotMeasured);
        values.extend([costs.pipes.into(), costs.descriptors.into()]);
    }
    let row = Row::new("pipes and descriptors for a connection", "", values);
    match costs {
        Ok(_) => row,
        Err(why) => row.without_numbers(why),
    }
}

/// Returns the ratios, whose names contain the program and its setting, such as
/// `pipes_per_connection_haul_auto` and `descriptors_per_idle_connection_haul_auto`.
pub(super) fn costs_ratios(variant: &Variant, costs: Costs) -> Vec<(String, Ratio)> {
    let words = variant.setting.split(|c: char| !c.is_ascii_alphanumeric());
    let words = [variant.program].into_iter().chain(words.filter(|word| !word.is_empty()));
    let name = words.collect::<Vec<_>>().join("_");
    let amounts = [
        ("pipes_per_connection", costs.pipes),
        ("descriptors_per_idle_connection", Some(costs.descriptors)),
    ];
    let amount = |(key, number): (&str, Option<f64>)| {
        let amount = Ratio::amount(Samples::new(&name, number))?;
        Some((format!("{key}_{name}"), amount))
    };
    amounts.into_iter().filter_map(amount).collect()
}

/// A running `strace`.
struct Trace {
    child: Child,
    out: PathBuf,
}

impl Trace {
    /// Attaches strace to all processes of a group, and to processes that these start.
    fn start(strace: &Path, group: u32, dir: &Path) -> Result<Self> {
        let out = dir.join("strace.out");
        let processes = processes(group);
        let mut command = Command::new(strace);
        command.args(["-f", "-c", "-e", "trace=pipe,pipe2", "-o"]).arg(&out);
        for process in &processes {
            command.arg("-p").arg(process.to_string());
        }
        let log = dir.join("strace.log");
        let file = File::create(&log).map_err(Error::other("create a log for strace"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(Error::other("start strace"))?;
        let trace = Self { child, out };
        let end = Instant::now() + ATTACH_MAX;
        while Instant::now() < end {
            let text = fs::read_to_string(&log).map_err(Error::other("read the log of strace"))?;
            match attached(&text, processes.len()) {
                None => thread::sleep(POLL_INTERVAL),
                Some(true) => return Ok(trace),
                Some(false) => break,
            }
        }
        Err(Error::Missing("strace is not permitted to trace other processes".to_owned()))
    }

    /// Stops strace and returns the number of counted calls.
    fn calls(mut self) -> Result<Option<u64>> {
        self.stop()?;
        let text =
            fs::read_to_string(&self.out).map_err(Error::other("read the counts of strace"))?;
        Ok(calls(&text))
    }

    fn stop(&mut self) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        if let Some(pid) = pid {
            kill_process(pid, Signal::INT).map_err(Error::other("stop strace"))?;
        }
        self.child.wait().map(drop).map_err(Error::other("wait for strace"))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // If strace has ended, there is nothing to stop.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop().ok();
        }
    }
}

/// Returns `None` until the log of strace has a line about each of `processes` processes, and then
/// `Some(true)` if strace has attached to at least one process. Processes that ended too early
/// cannot be attached to.
fn attached(log: &str, processes: usize) -> Option<bool> {
    let about = |line: &&str| line.contains(" attached") || line.contains("attach:");
    let lines: Vec<_> = log.lines().filter(about).collect();
    (lines.len() >= processes).then(|| lines.iter().any(|line| line.contains(" attached")))
}

/// Returns the sum of the calls in a table of `strace -c`; 0 if there is no table.
fn calls(text: &str) -> Option<u64> {
    let mut sum = 0;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_pipe = words.last().is_some_and(|name| matches!(*name, "pipe" | "pipe2"));
        if is_pipe {
            sum += words.get(3)?.parse::<u64>().ok()?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::CommandExt;

    use super::super::relays::VARIANTS;
    use super::*;

    #[test]
    fn calls_of_pipe_and_pipe2_are_added() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            \x20 90.00    0.000123           1       120           pipe2\n\
            \x20 10.00    0.000013           1         3         1 pipe\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.000136           1       123         1 total\n";
        assert_eq!(calls(text), Some(123));
        assert_eq!(calls(""), Some(0));
        assert_eq!(calls("a b c many pipe2\n"), None);
    }

    #[test]
    fn pipes_of_another_process_are_counted() {
        let path = std::env::var_os("PATH").unwrap();
        let Some(strace) = find(&path, "strace") else {
            return haul_testing::skip("strace is not on PATH");
        };
        let script = "read x; true | true; true | true; echo done; read x";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (mut stdin, stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let counted = Trace::start(&strace, shell.id(), dir.path()).and_then(|trace| {
            stdin.write_all(b"go\n").unwrap();
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            assert_eq!(line, "done\n");
            trace.calls()
        });
        drop(stdin);
        shell.wait().unwrap();
        match counted {
            Err(Error::Missing(why)) => haul_testing::skip(&why),
            counted => assert_eq!(counted.unwrap(), Some(2)),
        }
    }

    #[test]
    fn strace_is_attached_after_a_line_for_each_process() {
        let yes = "strace: Process 7 attached\n";
        let no = "strace: attach: ptrace(PTRACE_SEIZE, 8): No such process\n";
        let both = format!("{no}{yes}");
        for (log, processes, expected) in [
            (yes, 2, None),
            (yes, 1, Some(true)),
            ("strace: Process 7 attached with 5 threads\n", 1, Some(true)),
            (no, 1, Some(false)),
            (&both, 2, Some(true)),
        ] {
            assert_eq!(attached(log, processes), expected, "{log}");
        }
    }

    fn variant(setting: &str) -> &'static Variant {
        VARIANTS.iter().find(|one| one.setting == setting).unwrap()
    }

    #[test]
    fn costs_have_a_value_for_each_column_or_a_reason() {
        let costs = Costs { pipes: Some(0.0), descriptors: 2.0 };
        let auto = variant("auto");
        assert_eq!(costs_row(auto, Ok(costs)).values.len(), FIELDS.len());
        assert_eq!(costs_row(auto, Err("no".into())).state.as_deref(), Some("no"));
        let ratios = costs_ratios(variant("-b 65536"), costs);
        assert_eq!(ratios[0].0, "pipes_per_connection_socat_b_65536");
        assert!(ratios[0].1.value.abs() < 1e-9 && (ratios[1].1.value - 2.0).abs() < 1e-9);
        assert_eq!(ratios[1].0, "descriptors_per_idle_connection_socat_b_65536");
    }
}
