//! Creates the directory of a corpus, counts the requests to its disk, and drops or fills caches.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use haul_disk::{
    AlignedBuf, DelayedAllocation, Device, DeviceCounters, Disk, Open, OsDisk, Storage, extents,
    probe, read_full, resident,
};
use haul_disk_sim::{
    Backing, Drive, MountedFs, Options as SimOptions, Parameters, SECTOR_BYTES, SpinningDisk,
};
use haul_testing::DetachedImage;
use rustix::mount::{MountFlags, mount_remount};

use super::corpus::Corpus;
use super::sweep::Sweep;
use crate::guardian::Guardian;
use crate::log::Scratch;
use haul_measure::{Error, Result};

/// A shell script that waits for EOF on stdin, and then unmounts and removes a directory.
const UNMOUNT: &str = r#"cat > /dev/null; umount -l "$1"; rmdir "$1""#;
/// The size of the simulated disk in bytes: room for some thousand files and the file system.
const SPINNING_BYTES: u64 = 8 << 30;
/// The time scale of the simulated disk: real time, because some tools measure seek times.
const TIME_SCALE: f64 = 1.0;
/// The number of MiB read to replace the content of the drive's cache; the cache is smaller.
const DRIVE_CACHE_MIB: u64 = 32;

/// A directory for a corpus, on a real or a simulated disk.
pub(super) struct CorpusDir {
    /// The absolute path without symbolic links, as in the results of the tools.
    pub(super) root: PathBuf,
    pub(super) storage: Storage,
    device: Option<Device>,
    kind: Kind,
}

enum Kind {
    Plain { _files: Scratch },
    Image { _mounted: Attached, _image: DetachedImage },
    Spinning { _mounted: Attached, disk: Box<SpinningDisk> },
}

/// A directory with a mounted file system, visible to all processes. The file system is unmounted
/// on drop and when the process ends.
struct Attached {
    _guardian: Guardian,
}

impl Attached {
    fn new(dir: &Path, attach: impl FnOnce(&Path) -> Result<(), String>) -> Result<Self> {
        let what = || format!("create the directory {}", dir.display());
        fs::create_dir(dir).map_err(Error::other(what()))?;
        let guardian = Guardian::with(UNMOUNT, &[dir.as_os_str()])?;
        attach(dir).map_err(Error::Missing)?;
        Ok(Self { _guardian: guardian })
    }
}

/// The read requests to a disk during one run of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    /// The figures of a simulated disk.
    pub(super) simulated: Option<Sweep>,
}

impl CorpusDir {
    /// Creates the directory of `corpus`: in `dir`, or on a file system in an image file in `dir`.
    pub(super) fn new(corpus: Corpus, dir: &Path, big_bytes: u64) -> Result<Self> {
        let name = format!("haul-bench-duplicates.{}-{}", std::process::id(), corpus.name());
        let root = dir.join(&name);
        let kind = match corpus {
            Corpus::Reflinks => {
                let image = DetachedImage::new("btrfs", &["-q"], "", big_bytes + (1 << 30), dir)
                    .map_err(Error::Missing)?;
                let mounted = Attached::new(&root, |root| image.attach(root))?;
                Kind::Image { _mounted: mounted, _image: image }
            }
            corpus if corpus.is_on_spinning_disk() => spinning(dir, &root)?,
            _ => Kind::Plain { _files: Scratch::new(dir, &name)? },
        };
        let storage = probe(&root)?;
        let device = storage.device.clone();
        Ok(Self { root, storage, device, kind })
    }

    /// Runs `write` on the directory; on a simulated disk its requests take no time.
    pub(super) fn write(&self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let scale = |scale: f64| match &self.kind {
            Kind::Spinning { disk, .. } => disk.set_time_scale(scale).map_err(Error::Missing),
            _ => Ok(()),
        };
        scale(0.0)?;
        write(&self.root)?;
        rustix::fs::sync();
        if matches!(self.kind, Kind::Spinning { .. }) {
            empty_journal(&self.root)?;
        }
        scale(TIME_SCALE)
    }

    /// Returns `true` if the disk reports itself as rotational and may be wrong, as virtual disks
    /// often are.
    pub(super) fn is_rotational_in_doubt(&self) -> bool {
        matches!(self.kind, Kind::Plain { .. }) && self.storage.queue.rotational == Some(true)
    }

    /// Returns the path of the disk's setting `rotational`.
    pub(super) fn rotational_setting(&self) -> Option<PathBuf> {
        let disk = &self.device.as_ref()?.disk;
        Some(Path::new("/sys/block").join(disk).join("queue/rotational"))
    }

    /// Runs `body`; returns its result and the requests to the disk in the meantime.
    pub(super) fn watch<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<(T, Traffic)> {
        let counters = || self.device.as_ref().and_then(|device| DeviceCounters::of(device).ok());
        let sim = || match &self.kind {
            Kind::Spinning { disk, .. } => Some(disk.counters()),
            _ => None,
        };
        let (before, sim_before) = (counters(), sim());
        if let Kind::Spinning { disk, .. } = &self.kind {
            disk.record_reads();
        }
        let done = body()?;
        let mut traffic = Traffic::default();
        if let (Some(before), Some(after)) = (before, counters()) {
            let since = after.since(&before);
            (traffic.reads, traffic.read_bytes) = (since.reads, since.read_bytes);
        }
        if let (Some(before), Some(after), Kind::Spinning { disk, .. }) =
            (sim_before, sim(), &self.kind)
        {
            let drive = Drive::new(Parameters::travelstar_7k320(), SPINNING_BYTES);
            let data = self.data_sectors()?;
            let sweep = Sweep::new(&drive, &after.since(&before), disk.take_reads(), &data);
            traffic.simulated = Some(sweep);
        }
        Ok((done, traffic))
    }

    /// Returns the sectors of the contents of all files, in ascending order.
    fn data_sectors(&self) -> Result<Vec<Range<u64>>> {
        let mut ranges = Vec::new();
        let disk = OsDisk::open(&self.root)?;
        each_file(&self.root, &mut |path| {
            let name = path.strip_prefix(&self.root).map_err(io::Error::other)?;
            let name = name.to_str().ok_or_else(|| io::Error::other("a name that is not UTF-8"))?;
            let file = disk.open(name, Open { read_only: true, ..Open::default() });
            let map = file.and_then(|f| extents(&*f, 0, u64::MAX, DelayedAllocation::Report));
            let extents = map.map_err(io::Error::other)?.extents;
            ranges.extend(extents.iter().filter_map(|extent| {
                let start = extent.device_offset()? / SECTOR_BYTES;
                Some(start..start + extent.bytes / SECTOR_BYTES)
            }));
            Ok(())
        })
        .map_err(Error::other(format!("locate the files in {}", self.root.display())))?;
        ranges.sort_unstable_by_key(|range| range.start);
        Ok(ranges)
    }

    /// Drops the page, dentry and inode caches, which needs root. On a simulated disk, also
    /// replaces the content of the drive's cache.
    pub(super) fn drop_caches(&self) -> Result<()> {
        rustix::fs::sync();
        let path = "/proc/sys/vm/drop_caches";
        fs::write(path, "3").map_err(Error::other(format!("write to {path}")))?;
        match &self.kind {
            Kind::Spinning { disk, .. } => fill_drive_cache(disk),
            _ => Ok(()),
        }
    }

    /// Reads every file once, so that it is in the page cache.
    pub(super) fn warm(&self) -> Result<()> {
        let what = || format!("read the files in {}", self.root.display());
        each_file(&self.root, &mut |path| {
            io::copy(&mut File::open(path)?, &mut io::sink()).map(drop)
        })
        .map_err(Error::other(what()))
    }

    /// Returns the number of bytes of the corpus that are in the page cache.
    pub(super) fn cached_bytes(&self) -> Result<u64> {
        let disk = OsDisk::open(&self.root)?;
        let mut cached = 0;
        let what = || format!("query the cached pages of {}", self.root.display());
        each_file(&self.root, &mut |path| {
            let name = path.strip_prefix(&self.root).map_err(io::Error::other)?;
            let name = name.to_str().ok_or_else(|| io::Error::other("a name that is not UTF-8"))?;
            let file = disk.open(name, Open { read_only: true, ..Open::default() });
            let resident = file.and_then(|file| resident(&*file, 0, u64::MAX));
            cached += resident.map_err(io::Error::other)?.resident_bytes;
            Ok(())
        })
        .map_err(Error::other(what()))?;
        Ok(cached)
    }
}

fn spinning(dir: &Path, root: &Path) -> Result<Kind> {
    let mut options = SimOptions::new(Parameters::travelstar_7k320(), SPINNING_BYTES);
    options.time_scale = TIME_SCALE;
    options.backing = Backing::Dir(dir.to_path_buf());
    let disk = SpinningDisk::start(&options).map_err(Error::Missing)?;
    disk.mkfs("ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
        .map_err(Error::Missing)?;
    let mounted = disk.mount("ext4", "").map_err(Error::Missing)?;
    let attached = Attached::new(root, |root| MountedFs::attach(&mounted, root))?;
    drop(mounted);
    Ok(Kind::Spinning { _mounted: attached, disk: Box::new(disk) })
}

/// Writes all metadata in the journal to its place: `drop_caches` cannot drop it before that, so
/// the first tool would read less metadata than the others.
fn empty_journal(root: &Path) -> Result<()> {
    for flags in [MountFlags::NOATIME | MountFlags::RDONLY, MountFlags::NOATIME] {
        mount_remount(root, flags, "")
            .map_err(io::Error::from)
            .map_err(Error::other(format!("remount {}", root.display())))?;
    }
    Ok(())
}

/// Replaces the content of the drive's cache with blocks that no file uses.
fn fill_drive_cache(disk: &SpinningDisk) -> Result<()> {
    let node = Path::new(disk.device());
    let name = node.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let flags = Open { direct: true, read_only: true, ..Open::default() };
    let device = OsDisk::open(node.parent().unwrap_or(node))?.open(name, flags)?;
    let mut buffer = AlignedBuf::zeroed(1 << 20);
    for number in 1..=DRIVE_CACHE_MIB {
        read_full(&*device, &mut buffer, SPINNING_BYTES - (number << 20))?;
    }
    Ok(())
}

fn each_file(dir: &Path, body: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => each_file(&entry.path(), body)?,
            kind if kind.is_file() => body(&entry.path())?,
            _ => {}
        }
    }
    Ok(())
}
