//! Creates the directory of a corpus, counts the requests to its disk, and drops or fills caches.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use haul_disk::{DeviceCounters, Disk, Open, OsDisk, Storage, probe, resident};
use haul_disk_sim::{Backing, MountedFs, SpinningDisk};
use haul_testing::files_below;
use rustix::mount::{MountFlags, mount_remount};

use super::corpus::Corpus;
use crate::guardian::Guardian;
use crate::log::Scratch;
use crate::simulated::{Drive, start};
use haul_measure::{Error, Result};

/// A shell script that waits for EOF on stdin, and then unmounts and removes a directory.
const UNMOUNT: &str = r#"cat > /dev/null; umount -l "$1"; rmdir "$1""#;
/// The size of the simulated disk in bytes: room for some thousand files and the file system.
const SPINNING_BYTES: u64 = 8 << 30;

/// A directory for a corpus, on a real or a simulated disk.
pub(super) struct Place {
    /// The absolute path without symbolic links, as in the results of the tools.
    pub(super) root: PathBuf,
    pub(super) storage: Storage,
    _files: Option<Scratch>,
    // Dropped in this order: the mount before its disk.
    _mount: Option<Guardian>,
    spinning: Option<SpinningDisk>,
}

/// The read requests to a disk during one run of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    /// The time in which a simulated disk was reading, by its own clock, and its seeks.
    pub(super) disk_s: Option<f64>,
    pub(super) seeks: Option<f64>,
}

impl Place {
    /// Creates the directory of `corpus`: in `dir`, or on a simulated disk whose sectors are in `dir`.
    pub(super) fn new(corpus: Corpus, dir: &Path) -> Result<Self> {
        let name = format!("haul-bench-duplicates.{}-{corpus}", std::process::id());
        let root = dir.join(&name);
        let (files, mount, spinning) = match corpus {
            Corpus::Spinning => {
                let drive: Drive = "travelstar-7k320".parse().map_err(Error::Missing)?;
                let disk = start(&drive, SPINNING_BYTES, Backing::Dir(dir.to_path_buf()))?;
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                disk.mkfs("ext4", &["-q", "-F", "-E", lazy]).map_err(Error::Missing)?;
                let mounted = disk.mount("ext4", "").map_err(Error::Missing)?;
                fs::create_dir(&root)
                    .map_err(Error::other(format!("create {}", root.display())))?;
                // Visible to all processes, and unmounted on drop and when the process ends.
                let guardian = Guardian::with(UNMOUNT, &[root.as_os_str()])?;
                MountedFs::attach(&mounted, &root).map_err(Error::Missing)?;
                drop(mounted);
                (None, Some(guardian), Some(disk))
            }
            _ => (Some(Scratch::new(dir, &name)?), None, None),
        };
        let storage = probe(&root)?;
        Ok(Self { root, storage, _files: files, _mount: mount, spinning })
    }

    /// Runs `write` on the directory; on a simulated disk its requests take no time, and later ones
    /// take real time, because some tools measure seek times.
    pub(super) fn write(&self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        write(&self.root)?;
        rustix::fs::sync();
        let Some(disk) = &self.spinning else { return Ok(()) };
        // Writes the metadata in the journal to its place: `drop_caches` cannot drop it before that,
        // so the first tool would read less metadata than the others.
        for flags in [MountFlags::NOATIME | MountFlags::RDONLY, MountFlags::NOATIME] {
            let remounted = mount_remount(&self.root, flags, "").map_err(io::Error::from);
            remounted.map_err(Error::other(format!("remount {}", self.root.display())))?;
        }
        disk.set_time_scale(1.0).map_err(Error::Missing)
    }

    /// Runs `body`; returns its result and the requests to the disk in the meantime.
    pub(super) fn watch<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<(T, Traffic)> {
        let counters = || DeviceCounters::of(self.storage.device.as_ref()?).ok();
        let simulated = || self.spinning.as_ref().map(SpinningDisk::counters);
        let (before, simulated_before) = (counters(), simulated());
        let done = body()?;
        let mut traffic = Traffic::default();
        if let (Some(before), Some(after)) = (before, counters()) {
            let since = after.since(&before);
            (traffic.reads, traffic.read_bytes) = (since.reads, since.read_bytes);
        }
        if let (Some(before), Some(after)) = (simulated_before, simulated()) {
            let since = after.since(&before);
            traffic.disk_s = Some(since.reading_ns() as f64 / 1e9);
            traffic.seeks = Some(since.seeks as f64);
        }
        Ok((done, traffic))
    }

    /// Reads every file once, so that it is in the page cache.
    pub(super) fn warm(&self) -> Result<()> {
        let read = |path: PathBuf| io::copy(&mut File::open(path)?, &mut io::sink()).map(drop);
        let read = files_below(&self.root).into_iter().try_for_each(read);
        read.map_err(Error::other(format!("read the files in {}", self.root.display())))
    }

    /// Returns the number of bytes of the corpus that are in the page cache.
    pub(super) fn cached_bytes(&self) -> Result<u64> {
        let disk = OsDisk::open(&self.root)?;
        let cached = |path: PathBuf| -> io::Result<u64> {
            let name = path.strip_prefix(&self.root).map_err(io::Error::other)?;
            let open = Open { read_only: true, ..Open::default() };
            let file = disk.open(&name.to_string_lossy(), open);
            let resident = file.and_then(|file| resident(&*file, 0, u64::MAX));
            Ok(resident.map_err(io::Error::other)?.resident_bytes)
        };
        let what = format!("query the cached pages of {}", self.root.display());
        files_below(&self.root)
            .into_iter()
            .map(cached)
            .sum::<io::Result<_>>()
            .map_err(Error::other(what))
    }
}

/// Drops the page, dentry and inode caches, which needs root.
pub(super) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, "3").map_err(Error::other(format!("write to {path}")))
}
