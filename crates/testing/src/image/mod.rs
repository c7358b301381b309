//! Creates loop-mounted file systems, for tests that count requests or fill a disk.
//!
//! # What it is
//! [`LoopImage`] creates a sparse file with a file system and mounts it through a loop device that
//! uses direct I/O on the file. No other process uses the device, so its counters count only the
//! requests of the test, and the test may fill the disk.
//!
//! # Example
//! ```
//! use haul_testing::LoopImage;
//!
//! if let Some(image) = LoopImage::new("ext4", 32 << 20) {
//!     std::fs::write(image.mount().join("greeting"), "hello").unwrap();
//!     println!("counters are in /sys/block/{}/stat", image.device());
//! } // unmounted, detached and removed here; without root, "skipped: ..." was printed to stderr
//! ```
//!
//! # What it is not
//! [`LoopImage`] is not suitable for measuring time: every write passes through two file systems.
//!
//! # Use in programs
//! [`DetachedImage`] is the equivalent for a program: creating the image returns an error instead
//! of skipping a test, and the kernel removes the image even if the process is killed. It is built
//! from [`LoopDevice`] and [`mount_detached`].

mod detached;

pub use detached::{DetachedImage, LoopDevice, mount_detached};

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{run, skip};

/// A loop-mounted file system. It is removed with its contents when dropped.
#[derive(Debug)]
pub struct LoopImage {
    device: String,
    mount: PathBuf,
    _dir: TempDir,
}

impl LoopImage {
    /// Creates and mounts a file system `fs` ("ext4", "xfs" or "btrfs") of `bytes` bytes. If that
    /// fails, reports the reason with [`skip`] and returns `None`. xfs requires at least 300 MiB,
    /// btrfs 110 MiB. The file is sparse and takes only the space that is written to it.
    ///
    /// Background work that would affect the counters is disabled: inode tables and journal are
    /// initialized immediately, `noatime` is set, and ext4 commits only on a sync or every five
    /// minutes.
    #[must_use]
    pub fn new(fs: &str, bytes: u64) -> Option<Self> {
        Self::create(fs, bytes).map_err(|reason| skip(&reason)).ok()
    }

    fn create(fs: &str, bytes: u64) -> Result<Self, String> {
        let (mkfs_options, mount_options): (&[&str], _) = match fs {
            "ext4" => (
                &["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
                "noatime,commit=300",
            ),
            _ => (&["-q", "-f"], "noatime"),
        };
        let dir = tempfile::tempdir()
            .map_err(|error| format!("cannot create a temporary directory: {error}"))?;
        let (image, mount) = (dir.path().join("image"), dir.path().join("mount"));
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .and_then(|()| std::fs::create_dir(&mount))
            .map_err(|error| {
                format!("cannot create an image in {}: {error}", dir.path().display())
            })?;

        run(Command::new(format!("mkfs.{fs}")).args(mkfs_options).arg(&image))?;
        let attach = ["--find", "--show", "--direct-io=on"];
        let device = run(Command::new("losetup").args(attach).arg(&image))?;
        let mounted = run(Command::new("mount").args(["-o", mount_options, &device]).arg(&mount));
        // The kernel detaches a mounted device only when the file system is unmounted. If mounting
        // failed, the kernel detaches the device at once.
        run(Command::new("losetup").args(["--detach", &device]))?;
        mounted?;
        Ok(Self { device: device.trim_start_matches("/dev/").to_owned(), mount, _dir: dir })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// Returns the kernel's name of the loop device, such as `loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Waits until no request is in flight. The kernel updates the counters only after it has woken
    /// the process that waited for the request.
    ///
    /// # Panics
    /// Panics if the device does not exist.
    pub fn settle(&self) {
        let inflight = format!("/sys/block/{}/inflight", self.device);
        loop {
            let counts = std::fs::read_to_string(&inflight).expect("the loop device has counters");
            if counts.split_whitespace().all(|count| count == "0") {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for LoopImage {
    #[expect(clippy::print_stderr, reason = "the mount must be removed manually")]
    fn drop(&mut self) {
        // The unmount is lazy, because a file still open in the test must not prevent it.
        if let Err(reason) = run(Command::new("umount").arg("--lazy").arg(&self.mount)) {
            eprintln!("cannot unmount {}: {reason}", self.mount.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_stores_files_and_is_removed() {
        for (fs, bytes) in [("ext4", 32 << 20), ("xfs", 320 << 20), ("btrfs", 128 << 20)] {
            let Some(image) = LoopImage::new(fs, bytes) else { return };
            let (mount, device) = (image.mount().to_owned(), image.device().to_owned());
            std::fs::write(mount.join("greeting"), "hello").unwrap();
            let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
            let line = format!("/dev/{device} {} {fs} ", mount.display());
            assert!(mounts().contains(&line), "{line}");
            drop(image);
            assert!(!mounts().contains(&line), "still mounted: {line}");
            assert!(!mount.exists());
        }
    }

    #[test]
    fn failed_creation_reports_the_reason() {
        let error = LoopImage::create("no-such-fs", 1 << 20).unwrap_err();
        assert!(error.contains("mkfs.no-such-fs"), "{error}");
    }
}
