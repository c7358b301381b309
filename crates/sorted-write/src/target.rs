//! Opens a file for sweeps: whole units are written with direct I/O, and the bytes after the last
//! whole unit through the page cache. A unit is the smallest write that the device executes without
//! reading.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul_disk::{DeviceKind, Disk, Durability, File, Open, PAGE_BYTES, Storage, align_down, probe};
use haul_sync::{AtomicU64, Mutex};

use crate::device::{IoSettings, device_kind};
use crate::error::Result;
use crate::options::Options;
use crate::plan::Rules;

/// An open file and its I/O settings.
///
/// The file has two descriptors. Requests for whole units use `O_DIRECT`: they reach the device
/// immediately and in order, without a copy in the page cache. Bytes after the last whole unit are
/// written through the page cache, because a direct write of a whole unit would extend the file.
/// Within a round, no page is written through both descriptors, and one sync covers both.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) direct: Arc<dyn File>,
    pub(crate) buffered: Arc<dyn File>,
    pub(crate) path: PathBuf,
    options: Options,
    storage: Option<Storage>,
    /// `None` until the device kind could be determined.
    kind: Mutex<Option<DeviceKind>>,
    unit_bytes: u64,
    request_bytes_max: u64,
    end: AtomicU64,
    unsynced_bytes: AtomicU64,
}

impl Target {
    pub(crate) fn open(disk: &dyn Disk, name: &str, options: &Options) -> Result<Self> {
        let open = Open { read_only: options.is_dry_run, ..Open::default() };
        let buffered = disk.open(name, Open { random: true, ..open })?;
        let direct = disk.open(name, Open { direct: true, ..open })?;
        // Probing fails on a disk in memory, whose root does not exist. The unit is then a page.
        let path = disk.root().join(name);
        let storage = probe(&path).ok();
        let unit_bytes = storage.as_ref().map_or(PAGE_BYTES as u64, |s| s.write_unit_bytes());
        let end = AtomicU64::new(buffered.bytes()?);
        let target = Self {
            direct,
            buffered,
            path,
            options: options.clone(),
            storage,
            kind: Mutex::new(options.kind),
            unit_bytes,
            request_bytes_max: options.request_bytes_max.max(unit_bytes),
            end,
            unsynced_bytes: AtomicU64::new(0),
        };
        target.measure_kind();
        Ok(target)
    }

    /// Determines the device kind, if it is not known yet. A file that is opened without written
    /// blocks cannot be measured before it has some.
    pub(crate) fn measure_kind(&self) {
        let mut kind = self.kind.lock();
        *kind = kind.or_else(|| device_kind(self.storage.as_ref(), &self.direct));
    }

    /// Returns the device kind, if it is known.
    pub(crate) fn kind(&self) -> Option<DeviceKind> {
        *self.kind.lock()
    }

    /// Returns the I/O settings for the device kind.
    pub(crate) fn io(&self) -> IoSettings {
        IoSettings::new(&self.options, self.kind(), self.buffered.descriptor().is_none())
    }

    /// Returns the constraints on requests for the current file length.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            unit_bytes: self.unit_bytes,
            units_end: align_down(self.end(), self.unit_bytes),
            request_bytes_max: self.request_bytes_max,
            costs: self.io().costs,
        }
    }

    /// Returns the file length in bytes, without buffered writes.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn unsynced_bytes(&self) -> u64 {
        self.unsynced_bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes that are about to be written to the unsynced bytes.
    pub(crate) fn add_unsynced(&self, bytes: u64) {
        self.unsynced_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records that the file is at least `end` bytes long.
    pub(crate) fn extend_to(&self, end: u64) {
        self.end.fetch_max(end, Ordering::AcqRel);
    }

    /// Syncs the file. If this fails, the writer stops permanently.
    pub(crate) fn sync(&self) -> Result<()> {
        self.buffered.sync(Durability::Data)?;
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }
}
