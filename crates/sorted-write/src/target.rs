//! A file that is written to: past the page cache in whole units, through it where it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::{Disk, Durability, File, Open, PAGE_BYTES, align_down, probe};

use crate::error::Result;
use crate::options::{Options, Role, Ways};
use crate::plan::Rules;

/// An open file, and how it is written.
///
/// It has two descriptors. Requests of whole units, all within the file, go past the page cache:
/// so they reach the device in the order they are made and at once, and memory holds no second
/// copy. What lies behind the last whole unit goes through the cache, byte for byte, for a direct
/// write there would make the file longer than it is. The two never share a page in one round, and
/// one sync is for both.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) direct: Arc<dyn File>,
    pub(crate) buffered: Arc<dyn File>,
    pub(crate) role: Role,
    pub(crate) ways: Ways,
    unit_bytes: u64,
    request_bytes_max: u64,
    end: AtomicU64,
    unsynced_bytes: AtomicU64,
}

impl Target {
    pub(crate) fn open(disk: &dyn Disk, name: &str, role: Role, options: &Options) -> Result<Self> {
        let how = Open { read_only: options.is_rehearsal, ..Open::default() };
        let buffered = disk.open(name, Open { random: true, ..how })?;
        let direct = disk.open(name, Open { direct: true, ..how })?;
        // A simulated disk has a root that is not there.
        let storage = probe(disk.root().join(name)).ok();
        let unit_bytes = storage.as_ref().map_or(PAGE_BYTES as u64, |s| s.write_unit_bytes());
        let end = AtomicU64::new(buffered.bytes()?);
        Ok(Self {
            direct,
            buffered,
            role,
            ways: options.ways(storage.as_ref()),
            unit_bytes,
            request_bytes_max: options.request_bytes_max.max(unit_bytes),
            end,
            unsynced_bytes: AtomicU64::new(0),
        })
    }

    /// What its requests must look like now.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            unit_bytes: self.unit_bytes,
            units_end: align_down(self.end(), self.unit_bytes),
            request_bytes_max: self.request_bytes_max,
            costs: self.ways.costs,
        }
    }

    /// Where it ends, without what is still in memory.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn unsynced_bytes(&self) -> u64 {
        self.unsynced_bytes.load(Ordering::Relaxed)
    }

    /// So many bytes are about to be written.
    pub(crate) fn will_write(&self, bytes: u64) {
        self.unsynced_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The file reaches to here.
    pub(crate) fn reaches(&self, end: u64) {
        self.end.fetch_max(end, Ordering::AcqRel);
    }

    /// Waits until all that was written is on the medium. A failure is final.
    pub(crate) fn sync(&self) -> Result<()> {
        self.buffered.sync(Durability::Data)?;
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }
}
