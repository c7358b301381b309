//! Collects the facts about the machine and its storage that a report states.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::read_to_string;
use std::thread::available_parallelism;

use haul_disk::{KernelFiles, Storage};
use serde_json::{Value as Json, json};

/// The machine, the storage and the programs of a measurement; unknown facts are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// The processor's name.
    pub cpu: Option<String>,
    /// The number of cores this process may use.
    pub cores: Option<usize>,
    /// The memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The versions of the measured programs, by name; `haul` is always included.
    pub versions: BTreeMap<String, String>,
    /// The storage that was measured.
    pub storage: Vec<StorageFacts>,
}

/// The facts about the storage below a path; unknown facts are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageFacts {
    /// The heading of the rows measured on this storage; may be empty if there is only one storage.
    pub name: String,
    /// The type of the file system, such as `ext4`.
    pub file_system: String,
    /// The mount options.
    pub mount_options: Option<String>,
    /// `true` if the file system has a journal.
    pub journal: Option<bool>,
    /// The name of the whole disk, such as `sda`, even if the file system is on a partition.
    pub device: Option<String>,
    /// `true` if the device reports itself as rotational.
    pub rotational: Option<bool>,
    /// `true` if the device has a volatile write cache.
    pub volatile_write_cache: Option<bool>,
    /// `true` if the device supports FUA: writes that bypass its volatile write cache.
    pub fua: Option<bool>,
    /// A remark, such as that the device is an image file.
    pub remark: String,
}

impl Host {
    /// Returns the facts of this machine, without storage.
    #[must_use]
    pub fn here() -> Self {
        let read = |path| read_to_string(path).ok();
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        let haul = format!("{} ({build} build)", env!("CARGO_PKG_VERSION"));
        Self {
            cpu: read("/proc/cpuinfo").and_then(|text| cpu_model(&text)),
            cores: available_parallelism().ok().map(usize::from),
            memory_bytes: KernelFiles::default().machine().memory.total_bytes,
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            versions: BTreeMap::from([("haul".to_owned(), haul)]),
            storage: Vec::new(),
        }
    }

    /// Returns the host with one more storage added, whose rows have the heading `name`.
    #[must_use]
    pub fn with_storage(mut self, name: &str, storage: &Storage) -> Self {
        self.storage.push(StorageFacts::of(name, storage));
        self
    }

    /// Returns the facts as JSON.
    pub(crate) fn json(&self) -> Json {
        json!({
            "cpu": self.cpu, "cores": self.cores, "memory_bytes": self.memory_bytes,
            "kernel": self.kernel, "versions": self.versions,
            "storage": self.storage.iter().map(StorageFacts::json).collect::<Vec<_>>(),
        })
    }
}

impl StorageFacts {
    /// Returns the facts about `storage`, whose rows have the heading `name`.
    #[must_use]
    pub fn of(name: &str, storage: &Storage) -> Self {
        Self {
            name: name.to_owned(),
            file_system: storage.file_system.to_string(),
            mount_options: storage.mount.as_ref().map(|mount| mount.options.join(",")),
            journal: storage.journal,
            device: storage.device.as_ref().map(|device| device.disk.clone()),
            rotational: storage.queue.rotational,
            volatile_write_cache: storage.queue.volatile_write_cache,
            fua: storage.queue.fua,
            remark: String::new(),
        }
    }

    fn json(&self) -> Json {
        json!({
            "name": self.name, "file_system": self.file_system,
            "mount_options": self.mount_options, "journal": self.journal, "device": self.device,
            "rotational": self.rotational, "volatile_write_cache": self.volatile_write_cache,
            "fua": self.fua, "remark": self.remark,
        })
    }
}

impl fmt::Display for StorageFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |answer: Option<bool>, yes, no| match answer {
            Some(true) => yes,
            Some(false) => no,
            None => "unknown",
        };
        if !self.name.is_empty() && self.name != self.file_system {
            write!(f, "{}: ", self.name)?;
        }
        write!(f, "{}", self.file_system)?;
        if let Some(options) = &self.mount_options {
            write!(f, " ({options})")?;
        }
        write!(f, ", journal {}", word(self.journal, "yes", "no"))?;
        write!(f, ", on {}", self.device.as_deref().unwrap_or("an unknown device"))?;
        if self.device.is_some() {
            let cache = word(self.volatile_write_cache, "volatile", "none");
            let fua = word(self.fua, "yes", "no");
            write!(f, ", write cache {cache}, FUA {fua}")?;
            write!(f, ", rotational: {}", word(self.rotational, "yes", "no"))?;
        }
        if self.remark.is_empty() { Ok(()) } else { write!(f, ", {}", self.remark) }
    }
}

impl fmt::Display for Host {
    /// Writes a line about the machine, a line about versions, and a line for each storage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNKNOWN: &str = "unknown";
        write!(f, "{}", self.cpu.as_deref().unwrap_or(UNKNOWN))?;
        if let Some(cores) = self.cores {
            write!(f, ", {cores} {}", if cores == 1 { "core" } else { "cores" })?;
        }
        if let Some(bytes) = self.memory_bytes {
            write!(f, ", {:.1} GiB of memory", bytes as f64 / f64::from(1 << 30))?;
        }
        write!(f, ", Linux {}", self.kernel.as_deref().unwrap_or(UNKNOWN))?;
        let versions: Vec<_> =
            self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        if !versions.is_empty() {
            write!(f, "\n{}", versions.join(", "))?;
        }
        self.storage.iter().try_for_each(|storage| write!(f, "\n{storage}"))
    }
}

/// Returns the processor's name from the text of `/proc/cpuinfo`, where the key of the name depends
/// on the architecture.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "uarch"].iter().find_map(|name| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            (key.trim() == *name && !value.is_empty()).then(|| value.to_owned())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ext4() -> StorageFacts {
        StorageFacts {
            name: "ext4-nojournal".into(),
            file_system: "ext4".into(),
            mount_options: Some("rw,noatime".into()),
            journal: Some(false),
            device: Some("loop3".into()),
            rotational: Some(false),
            volatile_write_cache: Some(true),
            fua: Some(false),
            remark: "a file on ext4".into(),
        }
    }

    #[test]
    fn host_is_displayed_in_a_few_lines() {
        let host = Host {
            cpu: Some("AMD EPYC".into()),
            cores: Some(2),
            memory_bytes: Some(24 << 30),
            kernel: Some("6.18.44".into()),
            versions: BTreeMap::from([("haul".into(), "0.1.0".into()), ("fio".into(), "3".into())]),
            storage: vec![ext4()],
        };
        let expected = "\
AMD EPYC, 2 cores, 24.0 GiB of memory, Linux 6.18.44
fio 3, haul 0.1.0
ext4-nojournal: ext4 (rw,noatime), journal no, on loop3, write cache volatile, FUA no, rotational: no, \
a file on ext4";
        assert_eq!(host.to_string(), expected);
    }

    #[test]
    fn processors_are_named_as_the_kernel_names_them() {
        for (text, expected) in [
            ("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n", Some("AMD EPYC")),
            ("processor : 0\nBogoMIPS : 1\n\nModel : Raspberry Pi 4\n", Some("Raspberry Pi 4")),
            ("model name :\n", None),
            ("", None),
        ] {
            assert_eq!(cpu_model(text).as_deref(), expected, "{text}");
        }
    }
}
