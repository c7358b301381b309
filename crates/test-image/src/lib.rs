//! A file system of its own in a file, for tests that count or fill.
//!
//! # What it is
//! [`LoopImage`] makes an empty file, puts a file system into it, and mounts it through a loop
//! device that reads and writes past the page cache of the system below. Nobody else uses the
//! device, so its request counters belong to the test alone, and the disk may be filled up.
//!
//! # Example
//! ```
//! use haul_test_image::LoopImage;
//!
//! if let Some(image) = LoopImage::new("ext4", 32 << 20) {
//!     std::fs::write(image.mount().join("greeting"), "hello").unwrap();
//!     println!("counters are in /sys/block/{}/stat", image.device());
//! } // unmounted, detached and removed here; without root, "skipped: ..." went to stderr
//! ```
//!
//! # What it is not
//! A disk to be timed: every write goes through two file systems.
//!
//! # Beside tests
//! [`DetachedImage`] is the same for a program: it says why it cannot be made, and even a process
//! that is killed leaves nothing of it behind. [`LoopDevice`] and [`mount_detached`] are its parts.

mod detached;

pub use detached::{DetachedImage, LoopDevice, mount_detached};

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted file system in a file, gone with all its contents when dropped.
#[derive(Debug)]
pub struct LoopImage {
    device: String,
    mount: PathBuf,
    _dir: TempDir,
}

impl LoopImage {
    /// A fresh `fs` ("ext4", "xfs" or "btrfs") of `bytes`, mounted; `None` where that cannot be
    /// done, after saying so as [`skip`] does. xfs wants 300 MiB at least, btrfs 110 MiB. The
    /// file is sparse: it takes only the space that is written to it.
    ///
    /// Background work that would disturb counters is off: inode tables and journal are written
    /// out at once, reads set no times, and ext4 commits only when asked or every five minutes.
    #[must_use]
    pub fn new(fs: &str, bytes: u64) -> Option<Self> {
        Self::make(fs, bytes).map_err(|why| skip(&why)).ok()
    }

    fn make(fs: &str, bytes: u64) -> Result<Self, String> {
        let (mkfs_options, mount_options): (&[&str], _) = match fs {
            "ext4" => (
                &["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
                "noatime,commit=300",
            ),
            _ => (&["-q", "-f"], "noatime"),
        };
        let dir =
            tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
        let (image, mount) = (dir.path().join("image"), dir.path().join("mount"));
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .and_then(|()| std::fs::create_dir(&mount))
            .map_err(|error| format!("no image in {}: {error}", dir.path().display()))?;

        run(Command::new(format!("mkfs.{fs}")).args(mkfs_options).arg(&image))?;
        let attach = ["--find", "--show", "--direct-io=on"];
        let device = run(Command::new("losetup").args(attach).arg(&image))?;
        let mounted = run(Command::new("mount").args(["-o", mount_options, &device]).arg(&mount));
        // A mounted device detaches itself when it is unmounted; an unmounted one does so now.
        run(Command::new("losetup").args(["--detach", &device]))?;
        mounted?;
        Ok(Self { device: device.trim_start_matches("/dev/").to_owned(), mount, _dir: dir })
    }

    /// The directory the file system is mounted on.
    #[must_use]
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The kernel's name of the loop device, such as `loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Waits until no request is under way: the kernel wakes a reader first and counts then.
    ///
    /// # Panics
    /// When the device is gone.
    pub fn settle(&self) {
        let inflight = format!("/sys/block/{}/inflight", self.device);
        loop {
            let counts = std::fs::read_to_string(&inflight).expect("a loop device counts");
            if counts.split_whitespace().all(|count| count == "0") {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for LoopImage {
    #[expect(clippy::print_stderr, reason = "whoever runs the test must clean up by hand")]
    fn drop(&mut self) {
        // Lazily: a file the test still holds open must not keep the mount in the way.
        if let Err(why) = run(Command::new("umount").arg("--lazy").arg(&self.mount)) {
            eprintln!("left behind: {why}");
        }
    }
}

/// Says on stderr that a test cannot run here, and why; the test then returns.
///
/// # Panics
/// Where the environment says `CI=true`: there, everything must run.
#[expect(clippy::panic, reason = "it speaks to whoever runs the tests")]
pub fn skip(why: &str) {
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("cannot run, and CI=true forbids to skip: {why}");
    }
    // Not by `eprintln!`, which the test harness keeps to itself; and on a line of its own, since
    // the harness has the test's name on this one.
    let line = format!("\nskipped: {why}\n");
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// Runs a program and gives what it printed.
///
/// # Errors
/// That it does not start, or what it said when it failed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} does not start: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_holds_files_and_leaves_nothing_behind() {
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
    fn what_cannot_be_made_says_why() {
        let why = LoopImage::make("no-such-fs", 1 << 20).unwrap_err();
        assert!(why.contains("mkfs.no-such-fs"), "{why}");
    }
}
