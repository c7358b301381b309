//! Keeps a simulated disk's file system mounted until its handle is dropped.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, OFlags};
use rustix::mount::{MoveMountFlags, move_mount};

/// The maximum time to wait until the kernel has released the disk.
pub(crate) const END_MAX: Duration = Duration::from_secs(10);

/// A mounted file system on a [`crate::SpinningDisk`]. Dropping the value unmounts the file system
/// and waits up to ten seconds until the kernel has released the device. The kernel does so only
/// after all files in the file system are closed.
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
        wait_until_free(self.device, END_MAX).ok();
    }
}

impl MountedFs<'_> {
    fn fd(&self) -> i32 {
        self.root.as_ref().map_or(-1, |root| root.as_raw_fd())
    }

    /// Returns a path to the file system's root directory, valid for all this user's processes.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd()).into()
    }

    /// Mounts the file system on the directory `dir`, where all processes see it. The caller must
    /// unmount it from `dir` before the disk is dropped.
    ///
    /// # Errors
    /// Returns the system call's error.
    pub fn attach(&self, dir: &Path) -> Result<(), String> {
        let Some(root) = &self.root else { return Ok(()) };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(root, "", CWD, dir, flags)
            .map_err(|errno| format!("cannot mount on {}: {errno}", dir.display()))
    }
}

/// Waits until no program and no mounted file system has the device open exclusively, for at most
/// `most`.
///
/// A child process between fork and exec may share a descriptor for a moment, also this function's
/// own, so that a device may remain in use after this process has closed it.
pub(crate) fn wait_until_free(node: &str, most: Duration) -> std::io::Result<()> {
    let flags = OFlags::EXCL.bits().cast_signed();
    let started = Instant::now();
    loop {
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(node);
        if opened.is_ok() || started.elapsed() >= most {
            return opened.map(drop);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
