//! Finds the disks below a block device, through stacked devices such as LVM and md.

use std::fs;

use super::files::KernelFiles;
use crate::device::{Device, Queue, disk_and_name};

/// The maximum depth of stacked devices, which ends the search if `/sys` contains a cycle.
const DEPTH_MAX: usize = 8;

/// A disk's type, as its name and vendor indicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKind {
    /// An NVMe disk.
    Nvme,
    /// A SATA, SAS or USB disk.
    Scsi,
    /// An MMC or SD card.
    Card,
    /// A virtual or network disk, whose hardware is unknown.
    Virtual,
    /// A loop device, backed by a file on another file system.
    Loop,
    /// Any other disk, such as a device mapper volume whose disks are unknown.
    Other,
}

impl DiskKind {
    fn of(name: &str, vendor: Option<&str>) -> Self {
        const VIRTUAL: [&str; 6] = ["vd", "xvd", "nbd", "ublk", "rbd", "zram"];
        const HYPERVISORS: [&str; 5] = ["QEMU", "VMware", "Msft", "VBOX", "Google"];
        let begins = |with: &str| name.starts_with(with);
        match name {
            _ if begins("nvme") => Self::Nvme,
            _ if begins("loop") => Self::Loop,
            _ if begins("mmcblk") => Self::Card,
            _ if VIRTUAL.into_iter().any(begins) => Self::Virtual,
            _ if begins("sd") || begins("hd") => {
                let is_virtual = vendor.is_some_and(|vendor| HYPERVISORS.contains(&vendor.trim()));
                if is_virtual { Self::Virtual } else { Self::Scsi }
            }
            _ => Self::Other,
        }
    }
}

/// A whole disk and its request queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// The kernel's name, such as `sda`.
    pub name: String,
    /// The disk's type.
    pub kind: DiskKind,
    /// The attributes of the disk's request queue.
    pub queue: Queue,
    /// The available I/O schedulers, by name.
    pub schedulers: Vec<String>,
    /// Writeback throttling's read latency target in microseconds (`wbt_lat_usec`); 0 if throttling
    /// is disabled, `None` if unsupported.
    pub read_latency_us: Option<u64>,
    /// `true` for a zoned disk, which not every scheduler supports.
    pub is_zoned: bool,
    /// The backing file if the disk is a [`DiskKind::Loop`].
    pub file: Option<String>,
}

/// How much of the dirty memory limit (`vm.dirty_ratio`) the kernel grants to one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceShare {
    /// The maximum share in percent (`max_ratio`).
    pub percent_max: Option<u64>,
    /// `true` if the maximum always applies (`strict_limit`); `false` if it applies only while the
    /// kernel throttles writers, that is, above [`super::DirtyLimits::freerun_ceiling_bytes`].
    pub is_strict: Option<bool>,
}

impl KernelFiles {
    /// Reads a whole disk's request queue attributes.
    pub(super) fn queue(&self, disk: &str) -> Queue {
        let path = |name: &str| format!("/sys/block/{disk}/queue/{name}");
        let queue = Queue::of(|name| self.text(&path(name)));
        for (name, is_unknown) in [
            ("rotational", queue.rotational.is_none()),
            ("write_cache", queue.volatile_write_cache.is_none()),
            ("read_ahead_kb", queue.readahead_bytes.is_none()),
            ("nr_requests", queue.depth.is_none()),
            ("scheduler", queue.scheduler.is_none()),
        ] {
            // The file exists and its value is unknown, so its text is malformed.
            if let Some(text) = self.text(&path(name)).filter(|_| is_unknown) {
                self.report_malformed(&path(name), &text);
            }
        }
        queue
    }

    /// Reads how much of the dirty memory limit the device `disk` may use.
    pub(super) fn share(&self, disk: &str) -> DeviceShare {
        let number = |name| self.number(&format!("/sys/block/{disk}/bdi/{name}"));
        DeviceShare {
            percent_max: number("max_ratio"),
            is_strict: number("strict_limit").map(|strict| strict != 0),
        }
    }

    /// Returns the disks that store the data of `device`; see [`super::MountFacts::disks`].
    pub(super) fn disks(&self, device: &Device) -> Vec<DiskFacts> {
        let mut disks = Vec::new();
        self.collect(&device.disk, 0, &mut disks);
        disks
    }

    fn collect(&self, disk: &str, depth: usize, disks: &mut Vec<DiskFacts>) {
        let below = self.names_in(&format!("/sys/block/{disk}/slaves"));
        if below.is_empty() || depth == DEPTH_MAX {
            if !disks.iter().any(|known| known.name == disk) {
                disks.push(self.disk(disk));
            }
            return;
        }
        for name in below {
            let whole = self.whole_disk(&name).unwrap_or(name);
            self.collect(&whole, depth + 1, disks);
        }
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(dir)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the whole disk behind the device `name`, which may be a partition.
    fn whole_disk(&self, name: &str) -> Option<String> {
        let dir = self.at(&format!("/sys/class/block/{name}"));
        let link = fs::read_link(&dir).ok()?;
        let (disk, _) = disk_and_name(link.to_str()?, dir.join("partition").exists())?;
        Some(disk)
    }

    fn disk(&self, name: &str) -> DiskFacts {
        let text = |file: &str| self.text(&format!("/sys/block/{name}/{file}"));
        let words = text("queue/scheduler").unwrap_or_default();
        let schedulers =
            words.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned());
        DiskFacts {
            name: name.to_owned(),
            kind: DiskKind::of(name, text("device/vendor").as_deref()),
            queue: self.queue(name),
            schedulers: schedulers.collect(),
            read_latency_us: self.number(&format!("/sys/block/{name}/queue/wbt_lat_usec")),
            is_zoned: text("queue/zoned").is_some_and(|zoned| zoned.trim() != "none"),
            file: text("loop/backing_file").map(|path| path.trim().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_kind_follows_from_name_or_vendor() {
        use DiskKind::{Card, Loop, Nvme, Other, Scsi, Virtual};
        for (name, vendor, kind) in [
            ("nvme0n1", None, Nvme),
            ("sda", Some("ATA     \n"), Scsi),
            ("sda", None, Scsi),
            ("sdb", Some("QEMU    \n"), Virtual),
            ("sdc", Some("VMware  \n"), Virtual),
            ("vda", None, Virtual),
            ("xvda", None, Virtual),
            ("loop7", None, Loop),
            ("mmcblk0", None, Card),
            ("dm-0", None, Other),
            ("md127", None, Other),
        ] {
            assert_eq!(DiskKind::of(name, vendor), kind, "{name} {vendor:?}");
        }
    }
}
