//! Creates simulated spinning disks, and formats and mounts file systems on them.

use std::str::FromStr;

use haul_disk_sim::{
    Backing, Counters, MountedFs, Options as DiskOptions, Parameters, SpinningDisk,
};
use haul_measure::{Error, Result};

/// A drive model, such as a particular laptop disk, that the simulator can imitate.
#[derive(Debug, Clone)]
pub struct Drive(Parameters);

impl Drive {
    /// Returns all drives that can be simulated.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Parameters::all().into_iter().map(Self).collect()
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.0
    }

    /// Returns the drive with physical sectors of `bytes` bytes.
    pub(crate) fn with_physical_sectors(&self, bytes: u64) -> Self {
        Self(Parameters { physical_sector_bytes: bytes, ..self.0.clone() })
    }

    /// Returns the name of the drive, such as `travelstar-7k320`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name
    }
}

impl FromStr for Drive {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::all();
        let names: Vec<_> = all.iter().map(|drive| drive.name().to_owned()).collect();
        let found = all.into_iter().find(|drive| drive.name() == name);
        found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
    }
}

/// The options of the ext4 to create on a simulated disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    pub(crate) mkfs_options: &'static [&'static str],
    pub(crate) mount_options: &'static str,
}

/// ext4 with pages as blocks, also on a small disk, and without background initialization, which
/// would disturb the measurement.
pub(crate) const EXT4: Format = Format {
    mkfs_options: &["-q", "-F", "-b4096", "-Elazy_itable_init=0,lazy_journal_init=0"],
    mount_options: "noinit_itable",
};

/// A simulated disk with a file system.
pub(crate) struct SimulatedDisk {
    disk: SpinningDisk,
    format: Format,
}

/// Starts a simulated disk of `bytes` bytes without a file system, whose requests complete without
/// delay. Its content is stored in `backing`.
pub(crate) fn start(drive: &Drive, bytes: u64, backing: Backing) -> Result<SpinningDisk> {
    let mut options = DiskOptions::new(drive.parameters().clone(), bytes);
    options.time_scale = 0.0;
    options.backing = backing;
    options.holds_clock = true;
    SpinningDisk::start(&options).map_err(missing)
}

fn missing(why: String) -> Error {
    let advice = "a simulated disk needs root, /dev/fuse, losetup and the file system's mkfs";
    Error::Missing(format!("{why}; {advice}"))
}

impl SimulatedDisk {
    /// Starts a simulated disk as [`start`] does, and formats it.
    pub(crate) fn new(drive: &Drive, bytes: u64, backing: Backing, format: Format) -> Result<Self> {
        let disk = start(drive, bytes, backing)?;
        disk.mkfs("ext4", format.mkfs_options).map_err(missing)?;
        Ok(Self { disk, format })
    }

    pub(crate) fn mount(&self) -> Result<MountedFs<'_>> {
        self.disk.mount("ext4", self.format.mount_options).map_err(missing)
    }

    /// Mounts the file system with none of its blocks cached in memory.
    pub(crate) fn mount_cold(&self) -> Result<MountedFs<'_>> {
        self.mount_cold_with(self.format.mount_options)
    }

    /// Mounts the file system with none of its blocks cached in memory, with other mount options.
    pub(crate) fn mount_cold_with(&self, options: &str) -> Result<MountedFs<'_>> {
        self.disk.drop_buffers().map_err(missing)?;
        self.disk.mount("ext4", options).map_err(missing)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.disk.counters()
    }

    /// Returns the disk without its file system.
    pub(crate) fn device(&self) -> &SpinningDisk {
        &self.disk
    }

    /// Sets the real time per time of the drive; 0 if requests complete without delay.
    pub(crate) fn set_time_scale(&self, scale: f64) -> Result<()> {
        self.disk.set_time_scale(scale).map_err(missing)
    }
}
