//! Writes a tree of files to a simulated disk, and reads it with cold caches.

use std::fs::{File, ReadDir, read_dir};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::first_extent;
use haul_disk_sim::{Backing, Counters};
use haul_measure::{Error, Result, Watcher};

use super::layout::Layout;
use super::options::ReadOrderBench;
use crate::aging::Step;
use crate::named::named;
use crate::reads::joined;
use crate::simulated::{Drive, Format, SimulatedDisk};

/// A simulated disk that contains the tree.
pub(super) struct Tree {
    disk: SimulatedDisk,
    expected: Checksum,
}

/// A checksum of files that does not depend on their order: the number of files, their total length
/// in bytes, and the sum of the numbers stored in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Checksum {
    files: u64,
    bytes: u64,
    stamps: u64,
}

impl Checksum {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.stamps = self.stamps.wrapping_add(other.stamps);
    }
}

/// The figures of one pass over all files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    pub(super) files: u64,
    /// The requests to the drive during the pass.
    pub(super) requests: Counters,
}

/// Returns the content of a file: its number as 8 bytes, repeated.
fn content(file: u64, bytes: usize) -> Vec<u8> {
    let mut content = file.to_le_bytes().repeat(bytes / 8 + 1);
    content.truncate(bytes);
    content
}

/// Options of mkfs.ext4. `hash_seed` decides the order of names in a directory and the block groups
/// of directories: with a fixed one, two runs read equal trees.
const EXT4_OPTIONS: &str = "lazy_itable_init=1,hash_seed=6a09e667-bb67-4ae8-bc6e-f372fe94f82b";

/// ext4 without background initialization, which would disturb the reads.
const FORMAT: Format =
    Format { mkfs_options: &["-q", "-F", "-E", EXT4_OPTIONS], mount_options: "noinit_itable" };

impl Tree {
    /// Starts a simulated disk and writes the tree to it; the writes take no time of the drive.
    pub(super) fn new(
        options: &ReadOrderBench,
        drive: &Drive,
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let ReadOrderBench { files, dirs, replacements, longest, .. } = *options;
        let disk = SimulatedDisk::new(drive, options.disk_size, Backing::Memory, FORMAT)?;
        let layout = Layout { files, dirs, replacements, bytes_end: longest };
        let expected = age(&layout, &disk.mount()?.path(), watcher)?;
        Ok(Self { disk, expected })
    }

    /// Reads all files in an order with several threads and cold caches.
    pub(super) fn read(&self, order: Order, threads: usize, watcher: &dyn Watcher) -> Result<Pass> {
        let mounted = self.disk.mount_cold()?;
        let before = self.disk.counters();
        let files = listed(&mounted.path(), order)?;
        let found = read_all(&files, threads, watcher)?;
        let requests = self.disk.counters().since(&before);
        if found != self.expected {
            let why = format!("read {found:?}, expected {:?}", self.expected);
            return Err(Error::other("verify the bytes read")(std::io::Error::other(why)));
        }
        Ok(Pass { files: found.files, requests })
    }
}

/// Executes the steps of a layout; returns the checksum of the files that exist at the end.
fn age(layout: &Layout, root: &Path, watcher: &dyn Watcher) -> Result<Checksum> {
    let (steps, live) = layout.steps();
    for dir in 0..layout.dirs {
        let path = root.join(format!("{dir:03}"));
        std::fs::create_dir(&path).map_err(Error::other("create a directory of the tree"))?;
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
        .map_err(Error::other("write the tree"))?;
    }
    let mut sum = Checksum::default();
    for file in live {
        sum.add(&Checksum { files: 1, bytes: layout.bytes_of(file) as u64, stamps: file });
    }
    Ok(sum)
}

fn read_all(files: &[PathBuf], threads: usize, watcher: &dyn Watcher) -> Result<Checksum> {
    let next = AtomicUsize::new(0);
    let end = AtomicUsize::new(files.len());
    let reader = || {
        let (mut sum, mut buffer) = (Checksum::default(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index).filter(|_| index < end.load(Ordering::Relaxed))
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
                end.store(0, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let mut sum = Checksum::default();
        for part in readers.into_iter().map(joined::<Result<Checksum>>) {
            sum.add(&part?);
        }
        watcher.check()?;
        Ok(sum)
    })
}

fn read_one(path: &Path, buffer: &mut Vec<u8>) -> Result<Checksum> {
    buffer.clear();
    File::open(path)
        .and_then(|mut file| file.read_to_end(buffer))
        .map_err(Error::other(format!("read {}", path.display())))?;
    let stamp = buffer.first_chunk().copied().map_or(0, u64::from_le_bytes);
    Ok(Checksum { files: 1, bytes: buffer.len() as u64, stamps: stamp })
}

named! {
    /// The order in which files are read.
    pub(super) enum Order {
        /// In the order in which `readdir` returns the files.
        Unsorted = "unsorted",
        /// By inode number.
        Inode = "inode",
        /// By position on the device.
        Physical = "physical",
    }
}

fn entries(dir: &Path) -> Result<ReadDir> {
    read_dir(dir).map_err(Error::other(format!("list {}", dir.display())))
}

/// Returns the files two levels below `root` in `order`. Reads each directory once; for
/// physical order it also opens every file, in inode order, to query its first extent.
fn listed(root: &Path, order: Order) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for dir in entries(root)? {
        let dir = dir.map_err(Error::other("list the tree"))?.path();
        if !dir.is_dir() {
            continue;
        }
        for entry in entries(&dir)? {
            let entry = entry.map_err(Error::other(format!("list {}", dir.display())))?;
            files.push((entry.ino(), entry.path()));
        }
    }
    if order != Order::Unsorted {
        files.sort_unstable_by_key(|(ino, _)| *ino);
    }
    if order == Order::Physical {
        let placed = files.into_iter().map(|(_, path)| Ok((position(&path)?, path)));
        files = placed.collect::<Result<_>>()?;
        files.sort_by_key(|(position, _)| *position);
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Returns the position of a file's first extent on the device; 0 if it has none.
fn position(path: &Path) -> Result<u64> {
    let file = File::open(path).map_err(Error::other(format!("open {}", path.display())))?;
    let extent = first_extent(&OwnedFd::from(file))?;
    Ok(extent.and_then(|extent| extent.device_offset()).unwrap_or(0))
}
