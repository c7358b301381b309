//! One run of a tool: what it took, and what it said.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wait4::Wait4;

use super::groups::Groups;
use super::tools::Contender;
use crate::error::{Error, Result};

/// What one run took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// What it had at most, if it lived long enough to be looked at.
    pub(super) memory_bytes: Option<u64>,
}

/// Runs it over `root`. Its words go to files in `home`, which is its home directory too: what it
/// keeps from run to run is there.
pub(super) fn run(contender: &Contender, root: &Path, home: &Path) -> Result<(Cost, Groups)> {
    let name = contender.program().display();
    let fail = |what: &str| Error::other(format!("{what} {name}"));
    let (stdout, stderr) = (home.join("stdout"), home.join("stderr"));
    let out = home.join("out");
    drop(fs::remove_file(&out));
    let mut command = Command::new(contender.program());
    command
        .args(contender.arguments(root, &out))
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).map_err(fail("keep what is said by"))?)
        .stderr(File::create(&stderr).map_err(fail("keep what is said by"))?)
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
        let said = String::from_utf8_lossy(&fs::read(&stderr).unwrap_or_default()).into_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        return Err(Error::Missing(format!("{name} failed ({}): {last}", used.status)));
    }
    let cpu = used.rusage.utime + used.rusage.stime;
    let cost = Cost { wall, cpu, memory_bytes };
    let stdout = fs::read(&stdout).map_err(fail("read what was said by"))?;
    let groups = contender.tool.groups(&stdout, &fs::read(&out).unwrap_or_default());
    Ok((cost, groups))
}

/// How often the memory of a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The most memory a process had, as the kernel remembers it, until it is over. What `wait4` tells
/// is no help: it counts this process's own, from which the other began.
fn peak_memory_bytes(status: &str, over: &AtomicBool) -> Option<u64> {
    let mut peak = None;
    while !over.load(Ordering::Relaxed) {
        peak = fs::read_to_string(status).ok().and_then(|text| peak_of(&text)).or(peak);
        thread::park_timeout(LOOK_EVERY);
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
    fn the_peak_is_read_where_the_kernel_tells_it() {
        assert_eq!(
            peak_of("VmPeak:\t  9 kB\nVmHWM:\t     1540 kB\nVmRSS:\t 8 kB\n"),
            Some(1540 << 10)
        );
        assert_eq!(peak_of("Name:\tx\nState:\tZ (zombie)\n"), None);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(peak_of(&own).is_some_and(|bytes| bytes > 1 << 20));
    }
}
