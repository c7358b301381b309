//! The tree on a simulated disk: made once, read again and again with nothing in memory.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk_sim::{Counters, Mounted, Options as DiskOptions, SpinningDisk};

use super::layout::Layout;
use super::order::{Order, listed};
use super::{Drive, FileSystem, Options};
use crate::aging::Step;
use crate::error::{Error, Result};
use crate::watch::Watcher;

/// A disk with the tree on it.
pub(super) struct Tree {
    disk: SpinningDisk,
    fs: FileSystem,
    time_scale: f64,
    expected: Sum,
}

/// What reading came to: the same whatever the order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    files: u64,
    bytes: u64,
    stamps: u64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.stamps = self.stamps.wrapping_add(other.stamps);
    }
}

/// One time all files were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) files: u64,
    /// By the clock, from the first directory to the last byte.
    pub(super) elapsed: Duration,
    /// What the drive was asked meanwhile.
    pub(super) asked: Counters,
}

fn missing(why: String) -> Error {
    let advice = "a simulated disk needs root, /dev/fuse, losetup and the file system's mkfs";
    Error::Missing(format!("{why}; {advice}"))
}

/// The first bytes of a file say which one it is.
fn content(file: u64, bytes: usize) -> Vec<u8> {
    let mut content = file.to_le_bytes().repeat(bytes / 8 + 1);
    content.truncate(bytes);
    content
}

impl Tree {
    /// Starts a disk and makes the tree on it; that costs no time of the drive.
    pub(super) fn new(options: &Options, drive: &Drive, watcher: &dyn Watcher) -> Result<Self> {
        let mut disk = DiskOptions::new(drive.0.clone(), options.disk_bytes);
        disk.time_scale = options.time_scale;
        disk.scheduler.clone_from(&options.scheduler);
        let disk = SpinningDisk::start(&disk).map_err(missing)?;
        disk.set_time_scale(0.0).map_err(missing)?;
        let fs = options.file_system;
        disk.make(fs.name(), fs.mkfs_options()).map_err(missing)?;
        let Options { files, dirs, replacements, seed, .. } = *options;
        let layout = Layout { files, dirs, replacements, seed };
        let mounted = disk.mount(fs.name(), fs.mount_options()).map_err(missing)?;
        let expected = age(&layout, &mounted.path(), watcher);
        drop(mounted);
        disk.set_time_scale(options.time_scale).map_err(missing)?;
        Ok(Self { disk, fs, time_scale: options.time_scale, expected: expected? })
    }

    /// Reads all files in an order, by several threads, with nothing in memory before.
    pub(super) fn read(
        &self,
        order: Order,
        threads: usize,
        watcher: &dyn Watcher,
    ) -> Result<Reading> {
        self.disk.forget_cached().map_err(missing)?;
        let mounted = self.mount()?;
        let before = self.disk.counters();
        let started = Instant::now();
        let files = listed(&mounted.path(), order)?;
        let sum = read_all(&files, threads, watcher)?;
        let elapsed = started.elapsed();
        let asked = self.disk.counters().since(&before);
        if sum != self.expected {
            let why = format!("read {sum:?} in place of {:?}", self.expected);
            return Err(Error::other("trust what was read")(std::io::Error::other(why)));
        }
        Ok(Reading { files: sum.files, elapsed, asked })
    }

    /// Time by the drive for time by the clock; `None` where nobody waits.
    pub(super) fn virtual_time(&self, elapsed: Duration) -> Option<Duration> {
        (self.time_scale > 0.0).then(|| elapsed.div_f64(self.time_scale))
    }

    fn mount(&self) -> Result<Mounted<'_>> {
        self.disk.mount(self.fs.name(), self.fs.mount_options()).map_err(missing)
    }
}

/// Carries out the steps of a layout; what reading must come to.
fn age(layout: &Layout, root: &Path, watcher: &dyn Watcher) -> Result<Sum> {
    let (steps, live) = layout.steps();
    for dir in 0..layout.dirs {
        let path = root.join(format!("{dir:03}"));
        std::fs::create_dir(&path).map_err(Error::other("make a directory of the tree"))?;
    }
    let top = File::open(root).map_err(Error::other("open the tree"))?;
    for step in steps {
        watcher.check()?;
        match step {
            Step::Write(file) => File::create(root.join(layout.path_of(file)))
                .and_then(|mut to| to.write_all(&content(file, layout.bytes_of(file)))),
            Step::Remove(file) => std::fs::remove_file(root.join(layout.path_of(file))),
            Step::Sync => rustix::fs::syncfs(&top).map_err(Into::into),
        }
        .map_err(Error::other("make the tree"))?;
    }
    let mut sum = Sum::default();
    for file in live {
        sum.add(&Sum { files: 1, bytes: layout.bytes_of(file) as u64, stamps: file });
    }
    Ok(sum)
}

fn read_all(files: &[PathBuf], threads: usize, watcher: &dyn Watcher) -> Result<Sum> {
    let next = AtomicUsize::new(0);
    let stop = AtomicUsize::new(files.len());
    let reader = || {
        let (mut sum, mut buffer) = (Sum::default(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index).filter(|_| index < stop.load(Ordering::Relaxed))
            else {
                return Ok(sum);
            };
            sum.add(&read_one(path, &mut buffer)?);
        }
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(reader)).collect();
        while !readers.iter().all(thread::ScopedJoinHandle::is_finished) {
            if watcher.is_cancelled() {
                stop.store(0, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let mut sum = Sum::default();
        for reader in readers {
            let part: Result<Sum> =
                reader.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
            sum.add(&part?);
        }
        watcher.check()?;
        Ok(sum)
    })
}

fn read_one(path: &Path, buffer: &mut Vec<u8>) -> Result<Sum> {
    buffer.clear();
    File::open(path)
        .and_then(|mut file| file.read_to_end(buffer))
        .map_err(Error::other(format!("read {}", path.display())))?;
    let stamp = buffer.first_chunk().copied().map_or(0, u64::from_le_bytes);
    Ok(Sum { files: 1, bytes: buffer.len() as u64, stamps: stamp })
}
