//! All that is known before anything is advised: numbers alone. Pure.

use haul_bench::storage::Rotation;
use haul_disk::{DiskFacts, Machine, MountFacts, Oddity};

use super::rate::{Rate, spins};

/// A file system that was asked about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) facts: MountFacts,
    /// The path it was asked by, which tells it apart when it has no mount.
    pub(super) path: String,
    pub(super) rate: Rate,
    pub(super) rotation: Rotation,
    /// What must be known to read a measured rate.
    pub(super) notes: Vec<String>,
}

impl Place {
    /// Where it is mounted.
    pub(super) fn point(&self) -> &str {
        self.facts.mount.as_ref().map_or(&self.path, |mount| &mount.point)
    }

    /// What it is called by: `/ (ext4 on vda)`.
    pub(super) fn name(&self) -> String {
        match &self.facts.device {
            Some(device) => {
                format!("{} ({} on {})", self.point(), self.facts.file_system, device.name)
            }
            None => format!("{} ({})", self.point(), self.facts.file_system),
        }
    }

    /// Whether what is below it spins: as soon as one of the disks does. What was measured holds
    /// for one disk alone.
    pub(super) fn spins(&self) -> Option<bool> {
        let each: Vec<_> =
            self.facts.disks.iter().map(|disk| spins(disk, self.rotation_of(disk))).collect();
        if each.contains(&Some(true)) {
            return Some(true);
        }
        (!each.is_empty() && each.iter().all(Option::is_some)).then_some(false)
    }

    /// What was measured of this disk.
    pub(super) fn rotation_of(&self, disk: &DiskFacts) -> Rotation {
        match self.facts.disks.as_slice() {
            [only] if only == disk => self.rotation,
            _ => Rotation::Unknown,
        }
    }
}

/// Everything that is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    pub(super) machine: Machine,
    pub(super) places: Vec<Place>,
    pub(super) oddities: Vec<Oddity>,
}

impl Case {
    /// The slowest disk: the limits on dirty data are the same for all. What is in a file is
    /// written to the disk below that, too, which counts by itself.
    pub(super) fn slowest(&self) -> Option<&Place> {
        let on_disks = self.places.iter().filter(|place| place.facts.device.is_some());
        on_disks.min_by_key(|place| (place.rate.high, place.rate.low))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use haul_disk::{
        Device, DeviceShare, DirtySettings, DiskKind, FileSystem, Memory, Mount, Queue,
    };

    use super::*;
    use crate::tune::rate::Known;

    pub(crate) const MIB: u64 = 1 << 20;
    pub(crate) const GIB: u64 = 1 << 30;

    /// A machine of 16 GiB, 10 of which may be dirty, with settings as kernels come with.
    pub(crate) fn machine() -> Machine {
        Machine {
            page_bytes: 4096,
            memory: Memory {
                total_bytes: Some(16 * GIB),
                free_bytes: Some(4 * GIB),
                file_bytes: Some(6 * GIB),
                reserve_bytes: Some(0),
                dirty_bytes: Some(0),
                under_way_bytes: Some(0),
                swap_bytes: Some(0),
            },
            settings: DirtySettings {
                background_percent: Some(10),
                background_bytes: Some(0),
                limit_percent: Some(20),
                limit_bytes: Some(0),
                expire_centisecs: Some(3000),
                writeback_centisecs: Some(500),
                laptop_mode: Some(0),
            },
            told: None,
            group: None,
            swaps: Vec::new(),
        }
    }

    /// A spinning disk, with everything as it should be.
    pub(crate) fn disk(name: &str, kind: DiskKind) -> DiskFacts {
        DiskFacts {
            name: name.to_owned(),
            kind,
            queue: Queue {
                rotational: Some(kind != DiskKind::Nvme),
                volatile_write_cache: Some(true),
                fua: Some(true),
                readahead_bytes: Some(MIB),
                depth: Some(64),
                scheduler: Some(if kind == DiskKind::Nvme { "none" } else { "mq-deadline" }.into()),
                ..Queue::default()
            },
            schedulers: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
            read_latency_us: Some(if kind == DiskKind::Nvme { 2000 } else { 75_000 }),
            is_zoned: false,
            file: None,
        }
    }

    /// An ext4 on `sda1`, mounted with nothing worth a word.
    pub(crate) fn mount(point: &str) -> MountFacts {
        let disk = disk("sda", DiskKind::Scsi);
        let options = ["rw", "noatime", "data=ordered", "barrier", "commit=5"].map(str::to_owned);
        MountFacts {
            file_system: FileSystem::Ext4,
            mount: Some(Mount {
                point: point.to_owned(),
                file_system: "ext4".to_owned(),
                source: "/dev/sda1".to_owned(),
                options: options[..2].to_vec(),
            }),
            options: options.to_vec(),
            journal: Some(true),
            journal_info: None,
            device: Some(Device {
                major: 8,
                minor: 1,
                name: "sda1".to_owned(),
                disk: "sda".to_owned(),
            }),
            queue: disk.queue.clone(),
            share: DeviceShare { percent_max: Some(100), is_strict: Some(false) },
            disks: vec![disk],
        }
    }

    pub(crate) fn place(facts: MountFacts) -> Place {
        let path = "asked".to_owned();
        let rate = Rate::exactly(410 * MIB, Known::Measured);
        Place { facts, path, rate, rotation: Rotation::Unknown, notes: Vec::new() }
    }

    pub(crate) fn case(places: Vec<Place>) -> Case {
        Case { machine: machine(), places, oddities: Vec::new() }
    }

    #[test]
    fn the_slowest_disk_is_the_one_that_counts() {
        let at = |point: &str, rate| Place {
            rate: Rate::exactly(rate, Known::Given),
            ..place(mount(point))
        };
        let mut in_memory = at("/tmp", 1);
        in_memory.facts.device = None;
        let case = case(vec![at("/", 200), at("/usb", 5), in_memory]);
        assert_eq!(case.slowest().unwrap().point(), "/usb");
        assert_eq!(case.places[0].name(), "/ (ext4 on sda1)");
        assert_eq!(Case { places: vec![], ..case }.slowest(), None);
    }

    #[test]
    fn one_disk_that_spins_is_enough() {
        let of = |disks| place(MountFacts { disks, ..mount("/") }).spins();
        let (spinning, nvme) = (disk("sda", DiskKind::Scsi), disk("nvme0n1", DiskKind::Nvme));
        let unknown = disk("vda", DiskKind::Virtual);
        assert_eq!(of(vec![nvme.clone(), spinning]), Some(true));
        assert_eq!(of(vec![nvme.clone()]), Some(false));
        assert_eq!(of(vec![nvme, unknown.clone()]), None);
        assert_eq!(of(vec![]), None);
        let denied = Place {
            rotation: Rotation::Denied,
            ..place(MountFacts { disks: vec![unknown], ..mount("/") })
        };
        assert_eq!(denied.spins(), Some(false));
    }
}
