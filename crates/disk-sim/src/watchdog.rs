//! A watchdog process that aborts a simulated disk's FUSE connection when the thread that serves it
//! ends.
//!
//! Without the watchdog, a process that is killed while its thread waits for its own disk would
//! never end. The waiting thread cannot be interrupted, and it keeps the FUSE descriptor open,
//! although only closing this descriptor would end the wait.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use haul_testing::mount_detached;
use rustix::fs::{fstat, minor};
use rustix::thread::gettid;

/// The watchdog process, which is killed on drop.
#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Starts a watchdog for the calling thread: when the thread ends, the watchdog aborts the FUSE
    /// connection of `root`.
    ///
    /// # Source
    /// \[FuseControl\]: the kernel's FUSE connection directory, mounted without attaching it to the
    /// directory tree.
    pub(crate) fn for_this_thread(root: &OwnedFd) -> Result<Self, String> {
        let connection = fstat(root.as_fd()).map(|stat| minor(stat.st_dev));
        let connection =
            connection.map_err(|errno| format!("cannot identify the FUSE connection: {errno}"))?;
        let connections = mount_detached("fusectl", "none", "")
            .map_err(|errno| format!("cannot mount fusectl: {errno}"))?;
        let path = format!("/proc/self/fd/{}/{connection}/abort", connections.as_raw_fd());
        let abort = OpenOptions::new().write(true).open(&path);
        let abort = abort.map_err(|error| format!("cannot open {path}: {error}"))?;
        let thread = format!("/proc/{}/task/{}", std::process::id(), gettid().as_raw_nonzero());
        // The script's standard output is the connection's file `abort`.
        let script = r#"while [ -d "$1" ]; do sleep 1; done; echo 1"#;
        Command::new("sh")
            .args(["-c", script, "spinning-disk-guard", &thread])
            .stdin(Stdio::null())
            .stdout(abort)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self)
            .map_err(|error| format!("cannot start sh: {error}"))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
