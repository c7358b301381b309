//! Compares a machine with the needs of Haul's programs.

use haul_disk::{DirectIo, FileSystem, Storage};
use haul_units::Bytes;

use crate::finding::{Finding, Remedy, Severity};
use crate::warnings::file_system;

/// The oldest kernel with all system calls that Haul needs.
const KERNEL_MIN: (u32, u32) = (5, 6);
/// The oldest kernel that reports the alignment of direct I/O, and whose io_uring has all options
/// that Haul uses.
const KERNEL_RECOMMENDED: (u32, u32) = (6, 1);
/// The descriptors that `haul serve` needs for its default number of connections, rounded up.
const DESCRIPTORS_MIN: u64 = 16_384;
/// The free space below which a store may refuse writes soon: a few volumes.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// The free space below which a store cannot create a volume.
const FREE_BYTES_NEEDED: u64 = 256 << 20;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing needs to be done.
    Ok,
    /// Haul works, but slower or with a risk.
    Warning,
    /// Haul does not work, or loses data.
    Problem,
}

/// A check of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The name of the check, such as `free space`.
    pub name: &'static str,
    /// The result.
    pub status: Status,
    /// The observation, as a sentence without a final dot.
    pub text: String,
    /// A command or an instruction that removes the cause, unless the status is [`Status::Ok`].
    pub remedy: Option<String>,
}

/// The facts that [`checks`] considers. Unknown facts are `None` and are not checked.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The release of the kernel, such as `6.1.0-13-amd64`.
    pub kernel: Option<&'a str>,
    /// The storage below the examined directory.
    pub storage: &'a Storage,
    /// The free space on it.
    pub free_bytes: Option<u64>,
    /// The memory of the machine.
    pub memory_bytes: Option<u64>,
    /// The reason why io_uring is not available, or an empty text if it is.
    pub ring_refusal: &'a str,
    /// The maximum number of open descriptors (the hard limit).
    pub descriptors_max: Option<u64>,
    /// The maximum amount of locked memory; `None` if it is unlimited.
    pub locked_bytes_max: Option<u64>,
    /// `true` if the clock of the machine is synchronized.
    pub is_clock_synchronized: Option<bool>,
    /// The findings about the machine and the file system: see [`crate::advise`].
    pub findings: &'a [Finding],
}

/// Returns the result of each check, in a fixed order; then one for each finding about writeback,
/// mounts and disks that risks data or causes delays.
#[must_use]
pub fn checks(facts: &Facts<'_>) -> Vec<Check> {
    let mut checks: Vec<Check> = [
        facts.kernel.and_then(kernel),
        Some(mount(facts.storage)),
        Some(storage(facts.storage)),
        facts.free_bytes.map(free),
        facts.storage.direct_io.map(direct_io),
        Some(ring(facts.ring_refusal)),
        facts.descriptors_max.map(descriptors),
        Some(locked(facts.locked_bytes_max, facts.memory_bytes)),
        facts.is_clock_synchronized.map(clock),
    ]
    .into_iter()
    .flatten()
    .collect();
    checks.extend(facts.findings.iter().filter_map(finding));
    checks
}

fn ok(name: &'static str, text: impl Into<String>) -> Check {
    Check { name, status: Status::Ok, text: text.into(), remedy: None }
}

fn warning(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Check {
    let remedy = Some(remedy.into());
    Check { name, status: Status::Warning, text: text.into(), remedy }
}

fn problem(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { status: Status::Problem, ..warning(name, text, remedy) }
}

fn kernel(release: &str) -> Option<Check> {
    let mut numbers = release.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next()?);
    let text = format!("Linux {release}");
    let (least, better) = (KERNEL_MIN, KERNEL_RECOMMENDED);
    Some(if version < least {
        problem("kernel", text, format!("use Linux {}.{} or newer", least.0, least.1))
    } else if version < better {
        let text = format!("{text}: does not report the alignment of direct I/O");
        warning("kernel", text, format!("use Linux {}.{} or newer", better.0, better.1))
    } else {
        ok("kernel", text)
    })
}

fn mount(storage: &Storage) -> Check {
    match &storage.mount {
        Some(mount) if mount.has_option("ro") => {
            let text = format!("{} is mounted read-only", mount.point);
            let remedy = "look for file system errors (dmesg), then remount it with rw";
            problem("mount", text, remedy)
        }
        Some(mount) => ok("mount", format!("{} is mounted read-write", mount.point)),
        None => ok("mount", "unknown"),
    }
}

fn storage(storage: &Storage) -> Check {
    const NAME: &str = "file system";
    // A finding covers an ext4 without a journal.
    let text = file_system(storage).filter(|_| storage.file_system != FileSystem::Ext4);
    let Some(text) = text else { return ok(NAME, storage.file_system.to_string()) };
    let is_in_memory = match &storage.file_system {
        FileSystem::Tmpfs => true,
        FileSystem::Other(name) => name == "ramfs",
        _ => false,
    };
    let text = format!("{}: {text}", storage.file_system);
    if is_in_memory {
        problem(NAME, text, "use a directory on a disk for data that must not be lost")
    } else {
        warning(NAME, text, "use ext4 (with a journal) or xfs on a disk of this machine")
    }
}

fn free(bytes: u64) -> Check {
    const NAME: &str = "free space";
    const REMEDY: &str = "delete objects, then run haul store compact, or enlarge the disk";
    let text = format!("{} free", Bytes(bytes));
    match bytes {
        0..FREE_BYTES_NEEDED => problem(NAME, text, REMEDY),
        FREE_BYTES_NEEDED..FREE_BYTES_MIN => warning(NAME, text, REMEDY),
        FREE_BYTES_MIN.. => ok(NAME, text),
    }
}

fn direct_io(direct_io: DirectIo) -> Check {
    match direct_io {
        DirectIo::Aligned { .. } => ok("direct I/O", "supported"),
        DirectIo::Unsupported => warning(
            "direct I/O",
            "not supported: large transfers evict other files from the page cache",
            "use ext4 or xfs",
        ),
    }
}

fn ring(refusal: &str) -> Check {
    match refusal {
        "" => ok("io_uring", "available"),
        reason => warning(
            "io_uring",
            format!("not available ({reason}): reads from a disk are slower"),
            "set kernel.io_uring_disabled=0 (sysctl), or allow io_uring in the sandbox",
        ),
    }
}

fn descriptors(limit: u64) -> Check {
    let text = format!("at most {limit}");
    match limit {
        DESCRIPTORS_MIN.. => ok("descriptors", text),
        _ => warning(
            "descriptors",
            format!("{text}: servers accept fewer connections"),
            "raise the limit: ulimit -Hn, or LimitNOFILE= of systemd",
        ),
    }
}

fn locked(limit: Option<u64>, memory_bytes: Option<u64>) -> Check {
    const NAME: &str = "locked memory";
    let Some(limit) = limit else { return ok(NAME, "unlimited") };
    let text = format!("at most {}", Bytes(limit));
    match memory_bytes {
        Some(memory) if limit < memory / 8 => warning(
            NAME,
            format!("{text}: haul serve reads big objects that are requested often from the disk"),
            "raise the limit: ulimit -l, or LimitMEMLOCK= of systemd",
        ),
        _ => ok(NAME, text),
    }
}

fn clock(is_synchronized: bool) -> Check {
    if is_synchronized {
        return ok("clock", "synchronized");
    }
    warning(
        "clock",
        "not synchronized: signatures of S3 clients and lifecycle rules depend on it",
        "run a time service, such as systemd-timesyncd or chrony",
    )
}

fn finding(finding: &Finding) -> Option<Check> {
    let status = match finding.severity {
        Severity::Danger => Status::Problem,
        Severity::Slow => Status::Warning,
        Severity::Note => return None,
    };
    let remedy = finding.remedy.as_ref().map(|remedy| match remedy {
        Remedy::ByHand(command) => command.clone(),
        Remedy::Settings(settings) => {
            let all: Vec<_> = settings.iter().map(|setting| setting.describe()).collect();
            format!("haul tune --measure --apply sets {}", all.join(", "))
        }
    });
    let text = format!("{}: {}", finding.about, finding.text);
    Some(Check { name: finding.name, status, text, remedy })
}

#[cfg(test)]
mod tests {
    use haul_disk::Mount;

    use super::*;
    use crate::choices::tests::storage;
    use crate::setting::Setting;

    fn good(storage: &Storage) -> Facts<'_> {
        Facts {
            kernel: Some("6.12.0-1-amd64"),
            storage,
            free_bytes: Some(1 << 40),
            memory_bytes: Some(16 << 30),
            ring_refusal: "",
            descriptors_max: Some(524_288),
            locked_bytes_max: None,
            is_clock_synchronized: Some(true),
            findings: &[],
        }
    }

    /// Returns the checks that are not ok.
    fn bad(facts: &Facts<'_>) -> Vec<(&'static str, Status)> {
        let all = checks(facts);
        assert!(all.iter().all(|check| check.remedy.is_some() == (check.status != Status::Ok)));
        let bad = all.iter().filter(|check| check.status != Status::Ok);
        bad.map(|check| (check.name, check.status)).collect()
    }

    #[test]
    fn well_equipped_machine_passes_all_checks() {
        let storage = storage(FileSystem::Ext4);
        let facts = good(&storage);
        assert_eq!(bad(&facts), []);
        assert!(checks(&facts).len() >= 8);
    }

    #[test]
    fn each_fact_is_checked() {
        use Status::{Problem, Warning};
        let storage = storage(FileSystem::Xfs);
        let facts = good(&storage);
        for (facts, expected) in [
            (Facts { kernel: Some("5.4.0-200-generic"), ..facts }, ("kernel", Problem)),
            (Facts { kernel: Some("5.6"), ..facts }, ("kernel", Warning)),
            (Facts { kernel: Some("6.0.19"), ..facts }, ("kernel", Warning)),
            (Facts { free_bytes: Some((256 << 20) - 1), ..facts }, ("free space", Problem)),
            (Facts { free_bytes: Some((1 << 30) - 1), ..facts }, ("free space", Warning)),
            (Facts { ring_refusal: "EPERM", ..facts }, ("io_uring", Warning)),
            (Facts { descriptors_max: Some(4096), ..facts }, ("descriptors", Warning)),
            (Facts { locked_bytes_max: Some(8 << 20), ..facts }, ("locked memory", Warning)),
            (Facts { is_clock_synchronized: Some(false), ..facts }, ("clock", Warning)),
        ] {
            assert_eq!(bad(&facts), [expected]);
        }
        let half = Facts { locked_bytes_max: Some(8 << 30), ..facts };
        assert_eq!(bad(&half), []);
    }

    #[test]
    fn storage_that_loses_data_is_a_problem() {
        use Status::{Problem, Warning};
        for (file_system, expected) in [
            (FileSystem::Tmpfs, Problem),
            (FileSystem::Other("ramfs".to_owned()), Problem),
            (FileSystem::Nfs, Warning),
        ] {
            let storage = storage(file_system);
            assert_eq!(bad(&good(&storage)), [("file system", expected)]);
        }
        let mount = Mount {
            point: "/srv".to_owned(),
            file_system: "ext4".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: vec!["ro".to_owned()],
        };
        let direct_io = Some(DirectIo::Unsupported);
        let ext4 = storage(FileSystem::Ext4);
        let read_only = Storage { mount: Some(mount), direct_io, ..ext4 };
        assert_eq!(bad(&good(&read_only)), [("mount", Problem), ("direct I/O", Warning)]);
    }

    #[test]
    fn unknown_facts_are_not_checked() {
        let storage = Storage { direct_io: None, mount: None, ..storage(FileSystem::Ext4) };
        let unknown = Facts {
            kernel: None,
            free_bytes: None,
            memory_bytes: None,
            descriptors_max: None,
            is_clock_synchronized: None,
            ..good(&storage)
        };
        assert_eq!(bad(&unknown), []);
        assert_eq!(bad(&Facts { kernel: Some("unknown"), ..unknown }), []);
    }

    #[test]
    fn findings_follow_with_their_remedies() {
        let storage = storage(FileSystem::Ext4);
        let setting = Setting::queue("sda", "read_ahead_kb", "0", "1024");
        let findings = [
            Finding::new("no barrier", "/", Severity::Danger, "text").by_hand("mount it"),
            Finding::new("readahead", "sda", Severity::Slow, "text").set(vec![setting]),
            Finding::new("access times", "/", Severity::Note, "text"),
        ];
        let facts = Facts { findings: &findings, ..good(&storage) };
        let expected = [("no barrier", Status::Problem), ("readahead", Status::Warning)];
        assert_eq!(bad(&facts), expected);
        let remedies: Vec<_> = checks(&facts).into_iter().filter_map(|one| one.remedy).collect();
        assert_eq!(remedies[0], "mount it");
        assert!(remedies[1].contains("read_ahead_kb"), "{remedies:?}");
    }
}
