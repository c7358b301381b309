//! The disks below a file system, whatever lies between.

use std::fs;

use super::files::KernelFiles;
use crate::probe::{Device, Queue, sysfs};

/// How many devices may lie on each other before it is called strange.
const DEPTH_MAX: usize = 8;

/// What sort of disk it is, by its name and its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKind {
    /// NVMe, with many queues of its own.
    Nvme,
    /// SATA, SAS or USB.
    Scsi,
    /// A memory card.
    Card,
    /// Made up by a host or by another machine: what is below it is not known.
    Virtual,
    /// A file on another file system.
    Loop,
    /// Anything else, such as a volume whose disks are not told.
    Other,
}

impl DiskKind {
    fn of(name: &str, vendor: Option<&str>) -> Self {
        const MADE_UP: [&str; 6] = ["vd", "xvd", "nbd", "ublk", "rbd", "zram"];
        const HOSTS: [&str; 5] = ["QEMU", "VMware", "Msft", "VBOX", "Google"];
        let begins = |with: &str| name.starts_with(with);
        match name {
            _ if begins("nvme") => Self::Nvme,
            _ if begins("loop") => Self::Loop,
            _ if begins("mmcblk") => Self::Card,
            _ if MADE_UP.into_iter().any(begins) => Self::Virtual,
            _ if begins("sd") || begins("hd") => {
                let made_up = vendor.is_some_and(|vendor| HOSTS.contains(&vendor.trim()));
                if made_up { Self::Virtual } else { Self::Scsi }
            }
            _ => Self::Other,
        }
    }
}

/// A whole disk, and how the kernel treats its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// The kernel's name of it, such as `sda`.
    pub name: String,
    /// What sort it is.
    pub kind: DiskKind,
    /// What its request queue says of itself.
    pub queue: Queue,
    /// The schedulers it can have.
    pub schedulers: Vec<String>,
    /// How long reads may take before writes in the background are held back
    /// (`wbt_lat_usec`); 0 means they never are, `None` that the kernel cannot do it.
    pub read_latency_us: Option<u64>,
    /// Whether it is written in zones, which not every scheduler may.
    pub is_zoned: bool,
    /// Of a [`DiskKind::Loop`], the file it is.
    pub file: Option<String>,
}

/// How much of what may be dirty one device may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceShare {
    /// At most so many hundredths (`max_ratio`).
    pub percent_max: Option<u64>,
    /// Whether that holds from the beginning (`strict_limit`), and not only once all of the machine
    /// is half way to its limit.
    pub is_strict: Option<bool>,
}

impl KernelFiles {
    /// What the request queue of a whole disk says.
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
            // There, and yet unknown: it says something strange.
            if let Some(text) = self.text(&path(name)).filter(|_| is_unknown) {
                self.not_understood(&path(name), &text);
            }
        }
        queue
    }

    /// The share of what may be dirty that the device has.
    pub(super) fn share(&self, disk: &str) -> DeviceShare {
        let number = |name| self.number(&format!("/sys/block/{disk}/bdi/{name}"));
        DeviceShare {
            percent_max: number("max_ratio"),
            is_strict: number("strict_limit").map(|strict| strict != 0),
        }
    }

    /// The disks that `device` is made of: itself, unless it is a volume on others.
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

    /// The whole disk a device is on, which may be a partition.
    fn whole_disk(&self, name: &str) -> Option<String> {
        let dir = self.at(&format!("/sys/class/block/{name}"));
        let link = fs::read_link(&dir).ok()?;
        let (disk, _) = sysfs::disk_and_name(link.to_str()?, dir.join("partition").exists())?;
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
    fn the_kind_of_a_disk_is_in_its_name_or_its_makers() {
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
