//! Runs a tool once, and measures its elapsed time, CPU time and peak memory.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_measure::{Error, Result};
use wait4::Wait4;

use super::tools::{Competitor, Groups};

/// The cost of one run of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// The peak memory in bytes; `None` if the run was too short to sample it.
    pub(super) memory_bytes: Option<u64>,
}

/// Runs a tool over `root`, with its output and its caches in `home`; returns its cost and results.
pub(super) fn run(competitor: &Competitor, root: &Path, home: &Path) -> Result<(Cost, Groups)> {
    let name = competitor.program.display();
    let fail = |what: &str| Error::other(format!("{what} {name}"));
    let (stdout, stderr) = (home.join("stdout"), home.join("stderr"));
    let out = home.join("out");
    drop(fs::remove_file(&out));
    let mut command = Command::new(&competitor.program);
    command
        .args(competitor.tool.arguments(competitor.setting.1, root, &out))
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).map_err(fail("create a file for the output of"))?)
        .stderr(File::create(&stderr).map_err(fail("create a file for the output of"))?)
        .current_dir(home);
    let started = Instant::now();
    let child = command.spawn().map_err(fail("start"))?;
    let status = format!("/proc/{}/status", child.id());
    let over = AtomicBool::new(false);
    let (used, wall, memory_bytes) = thread::scope(|scope| {
        let watch = scope.spawn(|| peak_memory_bytes(&status, &over));
        let used = child.wait4();
        let wall = started.elapsed();
        over.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (used, wall, watch.join().ok().flatten())
    });
    let used = used.map_err(fail("wait for"))?;
    if !used.status.success() {
        let text = String::from_utf8_lossy(&fs::read(&stderr).unwrap_or_default()).into_owned();
        let last = text.lines().last().unwrap_or_default().to_owned();
        return Err(Error::Missing(format!("{name} failed ({}): {last}", used.status)));
    }
    let cpu = used.rusage.utime + used.rusage.stime;
    let cost = Cost { wall, cpu, memory_bytes };
    let stdout = fs::read(&stdout).map_err(fail("read the output of"))?;
    let groups = competitor.tool.groups(&stdout, &fs::read(&out).unwrap_or_default());
    Ok((cost, groups))
}

/// The interval between samples of the memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(5);

/// Samples the peak memory of a process until `over` is set. The peak that `wait4` returns is not
/// used, because it includes the memory of this process before `exec`.
fn peak_memory_bytes(status: &str, over: &AtomicBool) -> Option<u64> {
    let mut peak = None;
    while !over.load(Ordering::Relaxed) {
        peak = fs::read_to_string(status).ok().and_then(|text| peak_of(&text)).or(peak);
        thread::park_timeout(SAMPLE_EVERY);
    }
    peak
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_parsed_from_the_status() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t     1540 kB\nVmRSS:\t 8 kB\n";
        assert_eq!(peak_of(status), Some(1540 << 10));
        assert_eq!(peak_of("Name:\tx\nState:\tZ (zombie)\n"), None);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(peak_of(&own).is_some_and(|bytes| bytes > 1 << 20));
    }
}
