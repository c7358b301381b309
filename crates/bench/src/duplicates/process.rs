//! One run of a tool: what it took, and what it said.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
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
    pub(super) memory_bytes: u64,
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
    let used = child.wait4().map_err(fail("wait for"))?;
    let wall = started.elapsed();
    if !used.status.success() {
        let said = String::from_utf8_lossy(&fs::read(&stderr).unwrap_or_default()).into_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        return Err(Error::Missing(format!("{name} failed ({}): {last}", used.status)));
    }
    let cpu = used.rusage.utime + used.rusage.stime;
    let cost = Cost { wall, cpu, memory_bytes: used.rusage.maxrss };
    let stdout = fs::read(&stdout).map_err(fail("read what was said by"))?;
    let groups = contender.tool.groups(&stdout, &fs::read(&out).unwrap_or_default());
    Ok((cost, groups))
}
