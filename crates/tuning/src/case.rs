//! Holds the facts of a machine and of its file systems, from which findings and predictions are
//! derived.

use haul_disk::{Anomaly, DiskFacts, DiskKind, FileSystem, Machine, MountFacts};
use haul_measure::Rotation;

use crate::rate::{Rate, is_rotational};

/// Prefixes of the kernel's names of remote and user-space file systems.
const REMOTE: [&str; 9] = ["nfs", "fuse", "cifs", "smb", "ceph", "9p", "virtiofs", "afs", "lustre"];

/// A file system to examine.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The mount, the device and the disks of the file system.
    pub facts: MountFacts,
    /// The path given by the user. Reports show it if the mount point is unknown.
    pub path: String,
    /// The sequential write rate of the disks of the file system, measured, given or estimated.
    pub rate: Rate,
    /// The result of the measurement that checks whether the disk rotates.
    pub rotation: Rotation,
    /// Remarks on the measured rate, as sentences without a final dot.
    pub notes: Vec<String>,
}

impl Target {
    /// Returns the mount point, or the user's path if there is none.
    pub fn point(&self) -> &str {
        self.facts.mount.as_ref().map_or(&self.path, |mount| &mount.point)
    }

    /// Returns a printable name such as `/ (ext4 on vda)`.
    pub fn name(&self) -> String {
        match &self.facts.device {
            Some(device) => {
                format!("{} ({} on {})", self.point(), self.facts.file_system, device.name)
            }
            None => format!("{} ({})", self.point(), self.facts.file_system),
        }
    }

    /// Returns `Some(true)` if any disk below the file system is rotational, `Some(false)` if none
    /// is, and `None` if unknown. The measurement is used only if there is a single disk.
    pub fn is_rotational(&self) -> Option<bool> {
        let each: Vec<_> = self
            .facts
            .disks
            .iter()
            .map(|disk| is_rotational(disk, self.rotation_of(disk)))
            .collect();
        if each.contains(&Some(true)) {
            return Some(true);
        }
        (!each.is_empty() && each.iter().all(Option::is_some)).then_some(false)
    }

    /// `true` if the limits of dirty memory may be derived from the rate of this file system.
    /// `false` without a block device, for loop devices, and for remote and user-space file
    /// systems, since their rate is not the rate of a disk of this machine.
    pub fn decides(&self) -> bool {
        let is_remote = match &self.facts.file_system {
            FileSystem::Nfs | FileSystem::Fuse => true,
            FileSystem::Other(name) => REMOTE.iter().any(|remote| name.starts_with(remote)),
            _ => false,
        };
        let is_loop = self.facts.disks.iter().any(|disk| disk.kind == DiskKind::Loop);
        self.facts.device.is_some() && !is_remote && !is_loop
    }

    /// Returns the measured rotation if `disk` is the only disk of the file system, so that the
    /// measurement applies to it; otherwise [`Rotation::Unknown`].
    pub fn rotation_of(&self, disk: &DiskFacts) -> Rotation {
        match self.facts.disks.as_slice() {
            [only] if only == disk => self.rotation,
            _ => Rotation::Unknown,
        }
    }
}

/// The known facts of a machine and of the file systems to examine.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The memory and the limits of dirty memory of the machine, and the control group of this
    /// process.
    pub machine: Machine,
    /// The file systems to examine.
    pub targets: Vec<Target>,
    /// The kernel files that were missing, unreadable or malformed.
    pub oddities: Vec<Anomaly>,
}

impl Case {
    /// Returns the file system with the slowest disk, from whose rate the limits of dirty memory
    /// are derived: the limits apply to the dirty data of all disks together.
    pub fn slowest(&self) -> Option<&Target> {
        let on_disks = self.targets.iter().filter(|place| place.decides());
        on_disks.min_by_key(|place| (place.rate.high, place.rate.low))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use haul_disk::{
        Device, DeviceShare, DirtySettings, DiskKind, FileSystem, Memory, Mount, Queue,
    };

    use super::*;
    use crate::rate::RateSource;

    pub(crate) const MIB: u64 = 1 << 20;
    pub(crate) const GIB: u64 = 1 << 30;

    /// Returns a machine with 16 GiB of memory, of which 10 GiB are dirtyable, and with the
    /// kernel's default settings.
    pub(crate) fn machine() -> Machine {
        Machine {
            page_bytes: 4096,
            memory: Memory {
                total_bytes: Some(16 * GIB),
                free_bytes: Some(4 * GIB),
                file_bytes: Some(6 * GIB),
                reserve_bytes: Some(0),
                dirty_bytes: Some(0),
                writeback_bytes: Some(0),
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
            kernel_limits: None,
            group: None,
            swaps: Vec::new(),
        }
    }

    /// Returns a well-configured rotational disk.
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

    /// Returns a well-configured ext4 on `sda1`.
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

    pub(crate) fn place(facts: MountFacts) -> Target {
        let path = "path".to_owned();
        let rate = Rate::exactly(410 * MIB, RateSource::Measured);
        Target { facts, path, rate, rotation: Rotation::Unknown, notes: Vec::new() }
    }

    pub(crate) fn case(targets: Vec<Target>) -> Case {
        Case { machine: machine(), targets, oddities: Vec::new() }
    }

    #[test]
    fn slowest_disk_is_selected() {
        let at = |point: &str, rate| Target {
            rate: Rate::exactly(rate, RateSource::Given),
            ..place(mount(point))
        };
        let mut in_memory = at("/tmp", 1);
        in_memory.facts.device = None;
        let case = case(vec![at("/", 200), at("/usb", 5), in_memory]);
        assert_eq!(case.slowest().unwrap().point(), "/usb");
        assert_eq!(case.targets[0].name(), "/ (ext4 on sda1)");
        assert_eq!(Case { targets: vec![], ..case }.slowest(), None);
    }

    #[test]
    fn loop_devices_and_remote_file_systems_do_not_decide() {
        let decides = |facts| place(facts).decides();
        assert!(decides(mount("/")));
        let disks = vec![disk("loop0", DiskKind::Loop)];
        assert!(!decides(MountFacts { disks, ..mount("/image") }));
        for file_system in [
            FileSystem::Nfs,
            FileSystem::Fuse,
            FileSystem::Other("cifs".to_owned()),
            FileSystem::Other("fuseblk".to_owned()),
        ] {
            assert!(!decides(MountFacts { file_system, ..mount("/far") }));
        }
        let slow = Target {
            rate: Rate::exactly(1, RateSource::Measured),
            ..place(MountFacts { disks: vec![disk("loop0", DiskKind::Loop)], ..mount("/image") })
        };
        assert_eq!(case(vec![slow, place(mount("/"))]).slowest().unwrap().point(), "/");
    }

    #[test]
    fn one_rotational_disk_is_enough() {
        let of = |disks| place(MountFacts { disks, ..mount("/") }).is_rotational();
        let (spinning, nvme) = (disk("sda", DiskKind::Scsi), disk("nvme0n1", DiskKind::Nvme));
        let unknown = disk("vda", DiskKind::Virtual);
        assert_eq!(of(vec![nvme.clone(), spinning]), Some(true));
        assert_eq!(of(vec![nvme.clone()]), Some(false));
        assert_eq!(of(vec![nvme, unknown.clone()]), None);
        assert_eq!(of(vec![]), None);
        let denied = Target {
            rotation: Rotation::Denied,
            ..place(MountFacts { disks: vec![unknown], ..mount("/") })
        };
        assert_eq!(denied.is_rotational(), Some(false));
    }
}
