//! Collects the facts that a report of a problem needs.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use haul_disk::{Disk, KernelFiles, OsDisk, Ring, Storage, error_chain, probe};
use haul_measure::Rotation;
use haul_tuning::{Case, Check, Rate, Target, advise, checks};
use rustix::process::{Resource, geteuid, getrlimit};

use super::redact::without_names;
use crate::probe::directory;
use crate::report::{Exit, OrFail, Result};

/// The settings of the kernel to report.
const SETTINGS: [&str; 13] = [
    "fs.file-max",
    "fs.pipe-max-size",
    "fs.pipe-user-pages-soft",
    "kernel.io_uring_disabled",
    "net.core.somaxconn",
    "net.ipv4.tcp_congestion_control",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_ratio",
    "vm.dirty_writeback_centisecs",
    "vm.swappiness",
];

/// The facts of this machine. Unknown facts are `None`.
pub(super) struct Facts {
    pub(super) system: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) cores: Option<usize>,
    pub(super) load: Option<String>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) available_bytes: Option<u64>,
    pub(super) swap_bytes: Option<u64>,
    pub(super) storage: Storage,
    pub(super) free_bytes: Option<u64>,
    /// The reason why io_uring is not available, or an empty text if it is.
    pub(super) ring_refusal: String,
    /// The maximum number of open descriptors; `None` if it is unlimited.
    pub(super) descriptors_max: Option<u64>,
    /// The maximum amount of locked memory; `None` if it is unlimited.
    pub(super) locked_bytes_max: Option<u64>,
    pub(super) is_clock_synchronized: Option<bool>,
    /// Settings of the kernel that exist, with their values.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) checks: Vec<Check>,
}

impl Facts {
    /// Collects the facts of the machine and of the storage below `dir`, and checks them.
    pub(super) fn collect(dir: &Path) -> Result<Self> {
        let files = KernelFiles::default();
        let storage = probe(dir)
            .or_fail(|| format!("cannot examine {}", dir.display()))
            .map_err(|failure| failure.exit(Exit::NotStarted))?;
        let machine = files.machine();
        let available_bytes = machine.available_bytes();
        let memory = machine.memory;
        let facts = files.mounted(&storage);
        let target = Target {
            path: dir.to_string_lossy().into_owned(),
            rate: Rate::by_kind(&facts),
            rotation: Rotation::Unknown,
            notes: Vec::new(),
            facts,
        };
        let case = Case { machine, targets: vec![target], oddities: files.anomalies() };
        let mut facts = Self {
            system: fs::read_to_string("/etc/os-release").ok().and_then(|text| pretty_name(&text)),
            kernel: files.setting("/proc/sys/kernel/osrelease").ok(),
            cores: available_parallelism().ok().map(Into::into),
            load: fs::read_to_string("/proc/loadavg").ok().map(|text| text.trim().to_owned()),
            memory_bytes: memory.total_bytes,
            available_bytes,
            swap_bytes: memory.swap_bytes,
            storage,
            free_bytes: free_bytes(dir),
            ring_refusal: Ring::<File>::new(8)
                .err()
                .map(|error| error_chain(&error))
                .unwrap_or_default(),
            descriptors_max: getrlimit(Resource::Nofile).maximum,
            locked_bytes_max: locked_bytes_max(),
            is_clock_synchronized: is_clock_synchronized(),
            settings: SETTINGS
                .iter()
                .filter_map(|name| Some((*name, files.setting(&path_of(name)).ok()?)))
                .collect(),
            checks: Vec::new(),
        };
        facts.checks = checks(&haul_tuning::Facts {
            kernel: facts.kernel.as_deref(),
            storage: &facts.storage,
            free_bytes: facts.free_bytes,
            memory_bytes: facts.memory_bytes,
            ring_refusal: &facts.ring_refusal,
            descriptors_max: facts.descriptors_max,
            locked_bytes_max: facts.locked_bytes_max,
            is_clock_synchronized: facts.is_clock_synchronized,
            findings: &advise(&case),
        });
        without_names(&mut facts.storage);
        Ok(facts)
    }
}

/// Returns the name of the distribution in the text of `os-release(5)`.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

/// Returns the path of a setting: `/proc/sys/vm/dirty_bytes` for `vm.dirty_bytes`.
fn path_of(setting: &str) -> String {
    format!("/proc/sys/{}", setting.replace('.', "/"))
}

fn free_bytes(dir: &Path) -> Option<u64> {
    OsDisk::open(directory(dir)).and_then(|disk| disk.free_bytes()).ok().flatten()
}

/// Returns the limit of locked memory, which does not apply to root.
fn locked_bytes_max() -> Option<u64> {
    if geteuid().is_root() { None } else { getrlimit(Resource::Memlock).current }
}

/// Returns the answer of systemd's time service; `None` without it.
fn is_clock_synchronized() -> Option<bool> {
    let mut command = Command::new("timedatectl");
    command.args(["show", "--property=NTPSynchronized", "--value"]).stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    match output.stdout.trim_ascii() {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_is_read_from_os_release() {
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        assert_eq!(pretty_name(text).unwrap(), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(pretty_name("PRETTY_NAME=Arch\n").unwrap(), "Arch");
        assert_eq!(pretty_name("NAME=x\n"), None);
    }

    #[test]
    fn settings_have_paths() {
        assert_eq!(path_of("vm.dirty_bytes"), "/proc/sys/vm/dirty_bytes");
        let path = "/proc/sys/net/ipv4/tcp_congestion_control";
        assert_eq!(path_of("net.ipv4.tcp_congestion_control"), path);
        assert!(SETTINGS.is_sorted());
    }
}
