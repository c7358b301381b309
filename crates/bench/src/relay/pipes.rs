//! What a connection through a relay costs besides time: pipes made for it, and descriptors while
//! it is idle.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::exchange::{Ends, Talk, Until};
use super::traffic::Exchange;
use crate::error::{Error, Result};
use crate::net::programs::find;
use crate::net::server::Server;
use crate::net::usage::processes;

/// How many connections are looked at.
const CONNECTIONS: usize = 50;
/// Long enough to be worth a pipe.
const LONG_BYTES: u64 = 1 << 20;

/// How long it takes to attach strace at most.
const ATTACH_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What one connection costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    /// Calls of `pipe` and `pipe2`; `None` where nobody can count them.
    pub(super) pipes: Option<f64>,
    pub(super) descriptors: f64,
}

/// Counts them. What is built up once is there before.
pub(super) fn costs(ends: Ends<'_>, server: &Server, path: &OsStr, dir: &Path) -> Result<Costs> {
    let long = Exchange { connections: 4, ask_bytes: 64, answer_bytes: LONG_BYTES, kept: false };
    let meter = server.meter;
    let some = || -> Result<u64> {
        let mut talk = Talk::new(ends, long)?;
        talk.run(Until::Done(CONNECTIONS as u64), meter)?;
        Ok(talk.answered)
    };
    some()?;
    let pipes = match find(path, "strace") {
        Some(strace) => {
            let trace = Trace::start(&strace, meter.group, dir)?;
            let answered = some()?;
            trace.calls()?.map(|calls| calls as f64 / answered as f64)
        }
        None => None,
    };
    let before = server.descriptors()?;
    let idle = Exchange { connections: CONNECTIONS, kept: true, ..long };
    let mut talk = Talk::new(ends, idle)?;
    talk.run(Until::Done(2 * CONNECTIONS as u64), meter)?;
    let more = server.descriptors()? as f64 - before as f64;
    drop(talk);
    Ok(Costs { pipes, descriptors: more / CONNECTIONS as f64 })
}

/// `strace`, which counts.
struct Trace {
    child: Child,
    out: PathBuf,
}

impl Trace {
    /// Attaches it to all processes of a group, and to those they start.
    fn start(strace: &Path, group: u32, dir: &Path) -> Result<Self> {
        let out = dir.join("strace.out");
        let processes = processes(group);
        let mut command = Command::new(strace);
        command.args(["-f", "-c", "-e", "trace=pipe,pipe2", "-o"]).arg(&out);
        for process in &processes {
            command.arg("-p").arg(process.to_string());
        }
        let said = dir.join("strace.said");
        let file = File::create(&said).map_err(Error::other("keep what strace says"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(Error::other("start strace"))?;
        let trace = Self { child, out };
        let end = Instant::now() + ATTACH_MAX;
        while Instant::now() < end {
            let said = fs::read_to_string(&said).map_err(Error::other("read what strace says"))?;
            match attached(&said, processes.len()) {
                None => thread::sleep(LOOK_EVERY),
                Some(true) => return Ok(trace),
                Some(false) => break,
            }
        }
        Err(Error::Missing("strace may not look at other processes here".to_owned()))
    }

    /// How often they were called until now.
    fn calls(mut self) -> Result<Option<u64>> {
        self.stop()?;
        let text =
            fs::read_to_string(&self.out).map_err(Error::other("read what strace counted"))?;
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
        // Where it has ended there is nothing to stop.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop().ok();
        }
    }
}

/// Whether it has attached itself to anybody, once it has said of all `processes` how that went:
/// some may have ended by then.
fn attached(said: &str, processes: usize) -> Option<bool> {
    let about = |line: &&str| line.contains(" attached") || line.contains("attach:");
    let lines: Vec<_> = said.lines().filter(about).collect();
    (lines.len() >= processes).then(|| lines.iter().any(|line| line.contains(" attached")))
}

/// The sum of the calls in a table of `strace -c`; no table is no call.
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

    use super::*;

    #[test]
    fn the_calls_of_both_names_are_added() {
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
            return haul_test_image::skip("strace is not on PATH");
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
            Err(Error::Missing(why)) => haul_test_image::skip(&why),
            counted => assert_eq!(counted.unwrap(), Some(2)),
        }
    }

    #[test]
    fn it_is_attached_once_it_has_said_so_of_all() {
        let yes = "strace: Process 7 attached\n";
        let no = "strace: attach: ptrace(PTRACE_SEIZE, 8): No such process\n";
        let both = format!("{no}{yes}");
        for (said, processes, expected) in [
            (yes, 2, None),
            (yes, 1, Some(true)),
            ("strace: Process 7 attached with 5 threads\n", 1, Some(true)),
            (no, 1, Some(false)),
            (&both, 2, Some(true)),
        ] {
            assert_eq!(attached(said, processes), expected, "{said}");
        }
    }
}
