//! A process that is killed while one of its threads waits for its own disk would stay for ever:
//! that thread cannot be interrupted, and it holds open the very descriptor whose closing would
//! end the wait. So another process looks on, and ends the connection instead.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use haul_test_image::mount_detached;
use rustix::fs::{fstat, minor};
use rustix::thread::gettid;

/// The other process, as long as this lives.
#[derive(Debug)]
pub(crate) struct Guard(Child);

impl Guard {
    /// Looks on the calling thread: when it is gone, the FUSE connection of `root` is aborted.
    ///
    /// # Source
    /// \[FuseControl\]: the kernel's directory of connections, mounted nowhere here as well.
    pub(crate) fn over_this_thread(root: &OwnedFd) -> Result<Self, String> {
        let connection = fstat(root.as_fd()).map(|stat| minor(stat.st_dev));
        let connection = connection.map_err(|errno| format!("no FUSE connection: {errno}"))?;
        let connections = mount_detached("fusectl", "none", "")
            .map_err(|errno| format!("cannot mount fusectl: {errno}"))?;
        let path = format!("/proc/self/fd/{}/{connection}/abort", connections.as_raw_fd());
        let abort = OpenOptions::new().write(true).open(&path);
        let abort = abort.map_err(|error| format!("cannot open {path}: {error}"))?;
        let thread = format!("/proc/{}/task/{}", std::process::id(), gettid().as_raw_nonzero());
        // What it says at the end goes to the kernel.
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

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
