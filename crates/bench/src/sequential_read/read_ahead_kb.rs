//! The readahead of a device, changed for a while.

use std::path::PathBuf;

use haul_disk::Device;

use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// The setting of a device, which is what it was again when this is dropped, and also when the
/// process is killed.
#[derive(Debug)]
pub(super) struct ReadAheadKb {
    path: PathBuf,
    _restored: Guardian,
}

impl ReadAheadKb {
    pub(super) fn of(device: &Device) -> Result<Self> {
        let path = PathBuf::from(format!("/sys/block/{}/queue/read_ahead_kb", device.disk));
        let was = std::fs::read_to_string(&path)
            .map_err(Error::other(format!("read {}", path.display())))?;
        let restored = Guardian::writing(&path, was.trim())?;
        Ok(Self { path, _restored: restored })
    }

    /// Sets it; files opened from now on are read with it.
    pub(super) fn set(&self, kib: u64) -> Result<()> {
        let what = || format!("write {kib} to {}, which needs root", self.path.display());
        std::fs::write(&self.path, kib.to_string()).map_err(Error::other(what()))
    }
}
