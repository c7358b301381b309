//! A file system in a file that nobody sees, and that goes with the process.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use crate::run;

/// A file system in a file without a name, on a loop device, mounted nowhere.
///
/// The kernel takes all of it away when the last descriptor is closed: the mount has no place, the
/// loop device clears itself, the file has no name. So it does not matter how the process ends,
/// except in the few milliseconds in which the loop device is set up. A program that looks at all
/// loop devices may keep the device for a moment longer.
///
/// # Source
/// \[man-mount\] `fsopen(2)`, `fsmount(2)`: a mount that was never attached is dissolved with its descriptor.
#[derive(Debug)]
pub struct DetachedImage {
    device: String,
    options: String,
    root: OwnedFd,
}

impl DetachedImage {
    /// A fresh `fs` ("ext4", "xfs", "btrfs") of `bytes`, made with the options of `mkfs` given
    /// besides, in a sparse file in `dir`. `mount_options` are those of the file system itself;
    /// reads set no times.
    ///
    /// # Errors
    /// What could not be done and why: no root, no loop device, no `mkfs.<fs>`, ...
    pub fn new(
        fs: &str,
        mkfs_options: &[&str],
        mount_options: &str,
        bytes: u64,
        dir: &Path,
    ) -> Result<Self, String> {
        let file = tempfile::tempfile_in(dir)
            .and_then(|file| file.set_len(bytes).map(|()| file))
            .map_err(|error| format!("no image in {}: {error}", dir.display()))?;
        let device = LoopDevice::attach(file)?;
        let node = device.node();
        run(Command::new(format!("mkfs.{fs}")).args(mkfs_options).arg(node))?;
        let root = mount_detached(fs, node, mount_options)
            .map_err(|errno| format!("cannot mount {fs} of {node}: {errno}"))?;
        let device = device.name().to_owned();
        let options = ["noatime", mount_options].join(",").trim_end_matches(',').to_owned();
        Ok(Self { device, options, root })
    }

    /// A path to the root directory, good within this process.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.root.as_raw_fd()).into()
    }

    /// Shows it on a directory too, for everybody, from where the caller takes it away: `umount`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(&self, dir: &Path) -> Result<(), String> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.root, "", CWD, dir, flags)
            .map_err(|errno| format!("cannot mount on {}: {errno}", dir.display()))
    }

    /// The kernel's name of the loop device, such as `loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// How it is mounted, as `mount` would tell.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.options
    }
}

/// A loop device over a file, past the page cache of the system below. The kernel clears it when
/// this is dropped and nothing is mounted from it any more, however the process ends.
#[derive(Debug)]
pub struct LoopDevice {
    node: String,
    _held: File,
}

impl LoopDevice {
    /// Puts a loop device over a file that can be written; it need not have a name.
    ///
    /// # Errors
    /// What could not be done and why: no root, no loop device, a file without direct I/O, ...
    pub fn attach(file: File) -> Result<Self, String> {
        let attach = ["--find", "--show", "--direct-io=on", "/proc/self/fd/0"];
        let node = run(Command::new("losetup").args(attach).stdin(file))?;
        // As long as this is open the device stays, and is cleared once nobody has it open.
        let held = File::open(&node).map_err(|error| format!("cannot open {node}: {error}"));
        run(Command::new("losetup").args(["--detach", &node]))?;
        Ok(Self { node, _held: held? })
    }

    /// Its path, such as `/dev/loop3`.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The kernel's name of it, such as `loop3`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.trim_start_matches("/dev/")
    }
}

/// Mounts a file system nowhere: the kernel dissolves the mount when the descriptor is closed.
/// Reads set no times. `options` are those of the file system, `key=value` or flags, by commas.
///
/// # Errors
/// What the kernel says.
pub fn mount_detached(fs: &str, source: &str, options: &str) -> Result<OwnedFd, Errno> {
    let context = fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", source)?;
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some((key, value)) => fsconfig_set_string(&context, key, value)?,
            None => fsconfig_set_flag(&context, option)?,
        }
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOATIME;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_detached_image_is_seen_by_nobody_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        for (fs, mkfs, options, bytes) in [
            ("ext4", &["-q", "-F"][..], "commit=300", 32 << 20),
            ("xfs", &["-q", "-f"], "", 320 << 20),
            ("btrfs", &["-q", "-f"], "commit=300", 128 << 20),
        ] {
            let image = match DetachedImage::new(fs, mkfs, options, bytes, dir.path()) {
                Ok(image) => image,
                Err(why) => return crate::skip(&why),
            };
            std::fs::write(image.path().join("greeting"), "hello").unwrap();
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(!mounts.contains(&format!("/dev/{} ", image.device())), "{mounts}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
            // Others may get the device as soon as it is free: what counts is whose file it reads.
            let backing = format!("/sys/block/{}/loop/backing_file", image.device());
            let is_ours = || {
                let file = std::fs::read_to_string(&backing).unwrap_or_default();
                file.starts_with(&format!("{}/", dir.path().display()))
            };
            assert!(is_ours());
            drop(image);
            // Whoever looks for a free loop device has this one open for a moment.
            let started = Instant::now();
            while is_ours() {
                assert!(started.elapsed() < Duration::from_secs(60), "{fs}: still attached");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn what_cannot_be_made_says_why_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let why = DetachedImage::new("no-such-fs", &[], "", 1 << 20, dir.path()).unwrap_err();
        assert!(why.contains("mkfs.no-such-fs") || why.contains("losetup"), "{why}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
