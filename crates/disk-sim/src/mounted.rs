//! Keeps a file system of a simulated disk mounted until its handle is dropped.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, OFlags};
use rustix::mount::{MoveMountFlags, move_mount};

/// The maximum time to wait until the kernel has released the disk.
pub(crate) const END_MAX: Duration = Duration::from_secs(10);

/// A mounted file system of a [`crate::SpinningDisk`]. Dropping the value unmounts the file system
/// and waits up to ten seconds until the kernel has released the device. The kernel does so only
/// after all files of the file system are closed.
#[derive(Debug)]
pub struct MountedFs<'a> {
    root: Option<OwnedFd>,
    /// The device node.
    device: &'a str,
}

impl<'a> MountedFs<'a> {
    pub(crate) fn new(root: OwnedFd, device: &'a str) -> Self {
        Self { root: Some(root), device }
    }
}

impl Drop for MountedFs<'_> {
    fn drop(&mut self) {
        self.root = None;
        // A child process between fork and exec may share the descriptor for a moment, so the
        // device may remain in use after this process has closed the descriptor.
        let started = Instant::now();
        while is_free(self.device).is_err() && started.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl MountedFs<'_> {
    fn fd(&self) -> i32 {
        self.root.as_ref().map_or(-1, |root| root.as_raw_fd())
    }

    /// Returns a path of the root directory of the file system, valid for all processes of this
    /// user.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd()).into()
    }

    /// Mounts the file system on the directory `dir`, where all processes see it. The caller must
    /// unmount it from `dir` before the disk is dropped.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn attach(&self, dir: &Path) -> Result<(), String> {
        let Some(root) = &self.root else { return Ok(()) };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(root, "", CWD, dir, flags)
            .map_err(|errno| format!("cannot mount on {}: {errno}", dir.display()))
    }
}

/// Fails if a program or a mounted file system has opened the device exclusively.
pub(crate) fn is_free(node: &str) -> std::io::Result<()> {
    let flags = OFlags::EXCL.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(node).map(drop)
}
