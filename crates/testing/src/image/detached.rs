//! Creates a file system on an unlinked file with a detached mount. The kernel removes the file
//! system when the process ends.

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

/// A file system on a loop device over an unlinked file, with a detached mount.
///
/// The kernel removes the file system completely when the last descriptor is closed: the mount is
/// not attached, the loop device is cleared automatically, and the file is unlinked. This holds
/// even if the process is killed, except during the few milliseconds in which the loop device is
/// set up. A program that scans all loop devices may keep the device open for a moment longer.
///
/// # Source
/// \[man-mount\] `fsopen(2)`, `fsmount(2)`: a mount that was never attached is dissolved when its
/// descriptor is closed.
#[derive(Debug)]
pub struct DetachedImage {
    device: String,
    options: String,
    root: OwnedFd,
}

impl DetachedImage {
    /// Creates a file system in a sparse file in `dir`. `fs` is "ext4", "xfs" or "btrfs", `bytes`
    /// is the size of the file system, and `mkfs_options` are passed to `mkfs`. `mount_options` are
    /// options of the file system; `noatime` is added.
    ///
    /// # Errors
    /// Fails with a description of the failed step and its reason, for example missing root
    /// privileges, no free loop device, or no `mkfs.<fs>`.
    pub fn new(
        fs: &str,
        mkfs_options: &[&str],
        mount_options: &str,
        bytes: u64,
        dir: &Path,
    ) -> Result<Self, String> {
        let file =
            tempfile::tempfile_in(dir)
                .and_then(|file| file.set_len(bytes).map(|()| file))
                .map_err(|error| format!("cannot create an image in {}: {error}", dir.display()))?;
        let device = LoopDevice::attach(file)?;
        let node = device.node();
        run(Command::new(format!("mkfs.{fs}")).args(mkfs_options).arg(node))?;
        let root = mount_detached(fs, node, mount_options)
            .map_err(|errno| format!("cannot mount {fs} on {node}: {errno}"))?;
        let device = device.name().to_owned();
        let options = ["noatime", mount_options].join(",").trim_end_matches(',').to_owned();
        Ok(Self { device, options, root })
    }

    /// Returns a path to the root directory, which is valid only within this process.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.root.as_raw_fd()).into()
    }

    /// Attaches the mount to a directory, too, where all processes can see it. The caller must
    /// unmount it.
    ///
    /// # Errors
    /// Fails with the error of `move_mount(2)`.
    pub fn attach(&self, dir: &Path) -> Result<(), String> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.root, "", CWD, dir, flags)
            .map_err(|errno| format!("cannot mount on {}: {errno}", dir.display()))
    }

    /// Returns the kernel's name of the loop device, such as `loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns the mount options in the format of `mount(8)`.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.options
    }
}

/// A loop device with direct I/O on its backing file. When this value is dropped, or the process
/// ends in any way, the kernel clears the device unless it is mounted.
#[derive(Debug)]
pub struct LoopDevice {
    node: String,
    _open: File,
}

impl LoopDevice {
    /// Attaches a loop device to a writable file, which may be unlinked.
    ///
    /// # Errors
    /// Fails with a description of the failed step and its reason, for example missing root
    /// privileges, no free loop device, or no support for direct I/O.
    pub fn attach(file: File) -> Result<Self, String> {
        let attach = ["--find", "--show", "--direct-io=on", "/proc/self/fd/0"];
        let node = run(Command::new("losetup").args(attach).stdin(file))?;
        // After `losetup --detach`, the kernel clears the device when its last descriptor is
        // closed. This descriptor is therefore opened first.
        let open = File::open(&node).map_err(|error| format!("cannot open {node}: {error}"));
        run(Command::new("losetup").args(["--detach", &node]))?;
        Ok(Self { node, _open: open? })
    }

    /// Returns the path of the device, such as `/dev/loop3`.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the kernel's name of the device, such as `loop3`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.trim_start_matches("/dev/")
    }
}

/// Creates a detached mount with `noatime`. The kernel removes the mount when the returned
/// descriptor is closed. `options` are comma-separated options of the file system: flags, or
/// `key=value`.
///
/// # Errors
/// Fails with the error of the failed system call.
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
    use super::*;

    #[test]
    fn detached_image_is_invisible_and_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        for (fs, mkfs, options, bytes) in [
            ("ext4", &["-q", "-F"][..], "commit=300", 32 << 20),
            ("xfs", &["-q", "-f"], "", 320 << 20),
            ("btrfs", &["-q", "-f"], "commit=300", 128 << 20),
        ] {
            let image = match DetachedImage::new(fs, mkfs, options, bytes, dir.path()) {
                Ok(image) => image,
                Err(reason) => return crate::skip(&reason),
            };
            std::fs::write(image.path().join("greeting"), "hello").unwrap();
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(!mounts.contains(&format!("/dev/{} ", image.device())), "{mounts}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is unlinked");
            // Another process may reuse the device as soon as it is free, so compare the backing
            // file.
            let backing = format!("/sys/block/{}/loop/backing_file", image.device());
            let is_ours = || {
                let file = std::fs::read_to_string(&backing).unwrap_or_default();
                file.starts_with(&format!("{}/", dir.path().display()))
            };
            assert!(is_ours());
            drop(image);
            // A process that searches for a free loop device may keep this one open for a moment.
            crate::eventually(&format!("{fs} is detached"), || !is_ours());
        }
    }

    #[test]
    fn failed_creation_reports_the_reason_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let error = DetachedImage::new("no-such-fs", &[], "", 1 << 20, dir.path()).unwrap_err();
        assert!(error.contains("mkfs.no-such-fs") || error.contains("losetup"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
