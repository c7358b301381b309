//! A file system that is mounted from a disk.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, OFlags};
use rustix::mount::{MoveMountFlags, move_mount};

use crate::disk::{END_MAX, SpinningDisk};

/// A mounted file system of a [`SpinningDisk`], unmounted when dropped: that waits, for ten seconds
/// at most, until the kernel has let go of the device, which it does not while a file is open.
#[derive(Debug)]
pub struct Mounted<'a> {
    root: Option<OwnedFd>,
    disk: &'a SpinningDisk,
}

impl<'a> Mounted<'a> {
    pub(crate) fn new(root: OwnedFd, disk: &'a SpinningDisk) -> Self {
        Self { root: Some(root), disk }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        self.root = None;
        // A process that this one is just starting has the descriptor too, for a moment.
        let started = Instant::now();
        while is_free(self.disk.device()).is_err() && started.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Mounted<'_> {
    fn fd(&self) -> i32 {
        self.root.as_ref().map_or(-1, |root| root.as_raw_fd())
    }

    /// A path to the root directory, good for every process of this user.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd()).into()
    }

    /// Shows it on a directory too, for everybody. That it is taken away again from there, before
    /// the disk ends, is up to the caller: `umount`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(&self, dir: &Path) -> Result<(), String> {
        let Some(root) = &self.root else { return Ok(()) };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(root, "", CWD, dir, flags)
            .map_err(|errno| format!("cannot mount on {}: {errno}", dir.display()))
    }
}

/// Whether nobody has the device to himself, as a mounted file system does.
pub(crate) fn is_free(node: &str) -> std::io::Result<()> {
    let flags = OFlags::EXCL.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(node).map(drop)
}
