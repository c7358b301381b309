//! Implements [`Disk`] and [`File`] with scheduled reads and syncs.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::blocks::first_extent;
use crate::device::DeviceKind;
use crate::disk::{Allocation, Disk, Durability, File, Locked, Open, SeekScheduler};
use crate::error::Result;
use crate::probe::probe;
use crate::residency::resident;

/// Returns `disk`, or if its device is rotational, a [`Disk`] of the same files whose reads and syncs
/// take turns ([`Disk::scheduler`]).
///
/// With `None` as `kind`, the device is rotational if the drive itself reports a rotation rate
/// (`vpd_pgb1` in `/sys`), as SATA and SAS drives do. Virtual disks, loop devices, NVMe drives and
/// devices that combine several (md, device mapper) report none.
#[must_use]
pub fn scheduled(disk: Arc<dyn Disk>, kind: Option<DeviceKind>) -> Arc<dyn Disk> {
    let reports_rotation = || {
        let device = probe(disk.root()).ok().and_then(|storage| storage.device);
        device.is_some_and(|device| device.reports_rotation(Path::new("/")))
    };
    match kind.map_or_else(reports_rotation, |kind| kind == DeviceKind::Rotational) {
        true => Arc::new(ScheduledDisk::new(disk)),
        false => disk,
    }
}

/// A disk whose reads and syncs are scheduled.
#[derive(Debug)]
struct ScheduledDisk {
    inner: Arc<dyn Disk>,
    scheduler: Arc<SeekScheduler>,
}

impl ScheduledDisk {
    fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, scheduler: Arc::default() }
    }

    fn file(&self, inner: Arc<dyn File>, options: Open) -> Arc<dyn File> {
        let scheduler = Arc::clone(&self.scheduler);
        Arc::new(ScheduledFile { inner, scheduler, options, address: OnceLock::new() })
    }
}

impl Disk for ScheduledDisk {
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(name, options)?, options))
    }

    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name, options)?, options))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.inner.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn link(&self, file: &dyn File, name: &str) -> Result<()> {
        self.inner.link(file, name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        let _turn = self.scheduler.sync_turn();
        self.inner.sync_dir(dir)
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        self.inner.lock(name, holder)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.free_bytes()
    }

    fn scheduler(&self) -> Option<&SeekScheduler> {
        Some(&self.scheduler)
    }

    fn root(&self) -> &Path {
        self.inner.root()
    }
}

#[derive(Debug)]
struct ScheduledFile {
    inner: Arc<dyn File>,
    scheduler: Arc<SeekScheduler>,
    options: Open,
    /// The address of the file's first block on the device; 0 if it is unknown.
    address: OnceLock<u64>,
}

impl ScheduledFile {
    /// Returns an address from which the order of reads follows. Blocks after the first extent are
    /// assumed to follow it: most files that are read at random are allocated at once.
    fn address(&self, offset: u64) -> u64 {
        let first = || first_extent(&*self.inner).ok().flatten()?.device_offset();
        self.address.get_or_init(|| first().unwrap_or(0)).saturating_add(offset)
    }

    /// `true` if a read does not use the device.
    fn is_cached(&self, offset: u64, bytes: usize) -> bool {
        let bytes = bytes as u64;
        // Pages after the end of the file are never resident. A read there has to wait, too.
        let is_whole = |found: crate::Residency| found.resident_bytes >= bytes;
        !self.options.direct && resident(&*self.inner, offset, bytes).is_ok_and(is_whole)
    }
}

impl File for ScheduledFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.inner.is_local() || self.is_cached(offset, buffer.len()) {
            return self.inner.read_some(buffer, offset);
        }
        self.scheduler.read(self.address(offset), || self.inner.read_some(buffer, offset))
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>> {
        // The kernel would begin to read the missing pages at once.
        match self.is_cached(offset, buffer.len()) {
            true => self.inner.read_cached(buffer, offset),
            false => Ok(None),
        }
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.inner.write_some(bytes, offset)
    }

    fn bytes(&self) -> Result<u64> {
        self.inner.bytes()
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.inner.resize(bytes)
    }

    fn allocate(&self, method: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.inner.allocate(method, offset, bytes)
    }

    fn sync(&self, scope: Durability) -> Result<()> {
        let _turn = self.scheduler.sync_turn();
        self.inner.sync(scope)
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Subdir, read_full, write_full};
    use crate::os::OsDisk;
    use crate::residency::evict;

    #[test]
    fn files_have_the_bytes_of_the_disk_below_and_cached_reads_read_no_others() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let disk = ScheduledDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
        let file = disk.create("file", Open { random: true, ..Open::default() }).unwrap();
        write_full(&*file, &[7; 8192], 0).unwrap();
        let mut page = [0; 4096];
        assert_eq!(file.read_cached(&mut page, 4096).unwrap(), Some(4096));
        let turn = disk.scheduler().unwrap().sync_turn();
        file.sync(Durability::Data).unwrap();
        disk.sync_dir("").unwrap();
        // Other threads read cached bytes during the turn of another one.
        let other = std::thread::spawn({
            let file = Arc::clone(&file);
            move || read_full(&*file, &mut [0; 4096], 0)
        });
        assert_eq!(other.join().unwrap().unwrap(), 4096);
        drop(turn);
        evict(&*file, 0, u64::MAX).unwrap();
        if resident(&*file, 0, u64::MAX).unwrap().resident_bytes == 0 {
            assert_eq!(file.read_cached(&mut page, 0).unwrap(), None);
            assert_eq!(resident(&*file, 0, u64::MAX).unwrap().resident_bytes, 0);
        }
        assert_eq!((read_full(&*file, &mut page, 0).unwrap(), page), (4096, [7; 4096]));
        let subdir = Subdir::new(Arc::new(disk), "below");
        assert!(subdir.scheduler().is_some());
    }
}
