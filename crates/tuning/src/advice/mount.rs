//! Reports mount options and journals that risk data or cause delays.
//!
//! `haul tune --apply` changes none of these options, because a change affects stored data or
//! requires a new mount.

use haul_disk::FileSystem;

use crate::case::Target;
use crate::finding::{Finding, Severity};

const EXT4: &str = "Linux, Documentation/admin-guide/ext4.rst";
const XFS: &str = "Linux, Documentation/admin-guide/xfs.rst";
const BTRFS: &str = "btrfs documentation, btrfs(5)";
const MOUNT: &str = "mount(8)";
const BDI: &str = "Linux, Documentation/ABI/testing/sysfs-class-bdi";

/// The mount options that disable write barriers.
const NO_BARRIERS: [&str; 3] = ["nobarrier", "barrier=0", "nobarriers"];
/// The maximum length of a journal transaction, in blocks, below which the journal is reported as
/// small: changing many files then waits for the journal.
const TRANSACTION_BLOCKS_MIN: u64 = 1024;
/// The maximum acceptable average duration of a journal commit, in microseconds.
const COMMIT_US_MAX: u64 = 50_000;
/// The minimum number of commits from which an average duration is meaningful.
const COMMITS_MIN: u64 = 20;

/// The mount options of ext4 that have risks or costs, with the severity and the text of their
/// finding.
const EXT4_OPTIONS: [(&str, Severity, &str); 5] = [
    (
        "data=writeback",
        Severity::Danger,
        "after a power failure, files that grew may contain old data of other files, including \
             deleted ones",
    ),
    (
        "noauto_da_alloc",
        Severity::Danger,
        "after a power failure, a file replaced by rename or truncated without a sync may be \
             empty",
    ),
    (
        "data=journal",
        Severity::Slow,
        "data is written twice, to the journal and in place, and direct I/O and delayed \
             allocation are disabled. Only short syncs of little data become faster",
    ),
    (
        "nodelalloc",
        Severity::Slow,
        "blocks are allocated at each write: files become fragmented, and writers wait for it",
    ),
    (
        "journal_async_commit",
        Severity::Note,
        "the commit block is written together with the transaction: after a power failure only \
             checksums detect an incomplete one, and data=ordered is not possible",
    ),
];

pub(crate) fn findings(place: &Target) -> Vec<Finding> {
    if place.facts.device.is_none() {
        return without_device(place).into_iter().collect();
    }
    let mut findings = any(place);
    findings.extend(match place.facts.file_system {
        FileSystem::Ext4 => ext4(place),
        FileSystem::Xfs => xfs(place),
        FileSystem::Btrfs => btrfs(place),
        _ => Vec::new(),
    });
    findings.extend(journal(place));
    findings.extend(share(place));
    findings
}

/// Returns a function that creates findings about the mount of `place`, with the reference
/// `source`.
fn about<'a>(
    place: &'a Target,
    source: &'static str,
) -> impl Fn(&'static str, Severity, &str) -> Finding + 'a {
    move |what, severity, text| Finding::new(what, place.point(), severity, text).source(source)
}

fn remount(place: &Target, option: &str) -> String {
    format!("mount -o remount,{option} {}", quoted(place.point()))
}

/// Quotes a path for a shell if it contains special characters.
fn quoted(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:".contains(&byte);
    if !path.is_empty() && path.bytes().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

fn fstab(option: &str) -> String {
    format!("add {option} to the options in /etc/fstab, then unmount and mount it")
}

fn without(option: &str) -> String {
    format!("remove {option} from the options in /etc/fstab, then unmount and mount it")
}

fn without_device(place: &Target) -> Option<Finding> {
    let text = match &place.facts.file_system {
        FileSystem::Tmpfs => {
            "file system in memory: nothing is written to a disk, and its pages do not count as \
             dirty"
        }
        FileSystem::Overlay => "an overlay hides the disk below: use a path on that disk, or --all",
        FileSystem::Nfs | FileSystem::Fuse => {
            "remote or user-space file system: only the dirty limits of this machine apply"
        }
        _ => "no block device found below it: only the dirty limits apply",
    };
    Some(Finding::new("no disk", place.point(), Severity::Note, text))
}

/// Returns the findings about mount options that do not depend on the file system.
fn any(place: &Target) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, MOUNT));
    let mut findings = Vec::new();
    if let Some(option) = NO_BARRIERS.iter().find(|option| facts.has(option)) {
        let text = format!(
            "mounted with {option}: syncs do not flush the cache of the device, and a power failure \
             may lose synced data and metadata. Safe only with a cache that survives power \
             failures, where barriers cost nothing"
        );
        let finding = about("no barrier", Severity::Danger, &text);
        findings.push(finding.by_hand(remount(place, "barrier")));
    }
    for option in ["sync", "dirsync"] {
        if facts.has(option) {
            let text = format!("mounted with {option}: every change waits for the disk");
            let finding = about("synchronous mount", Severity::Slow, &text);
            findings.push(finding.by_hand(remount(place, "async")));
        }
    }
    // The kernel lists neither `noatime` nor `relatime` if every read updates the access time.
    if !["noatime", "relatime", "ro"].iter().any(|option| facts.has(option)) {
        let text = "each read updates the access time of a file, which causes writes";
        let finding = about("access times", Severity::Slow, text);
        findings.push(finding.by_hand(remount(place, "relatime")));
    } else if facts.has("relatime") && !facts.has("noatime") {
        let text = "relatime: the first read of a file each day writes its inode. noatime avoids \
                    that, unless a program needs access times";
        let finding = about("access times", Severity::Note, text);
        findings.push(finding.by_hand(remount(place, "noatime")));
    }
    if facts.has("discard") || facts.has("discard=sync") {
        let text = "mounted with discard: blocks are discarded on deletion, and commits and syncs \
                    wait for it. A weekly trim is sufficient";
        let finding = about("discard", Severity::Note, text);
        let trim = "systemctl enable --now fstrim.timer";
        findings.push(finding.by_hand(format!("{} && {trim}", remount(place, "nodiscard"))));
    }
    findings
}

fn ext4(place: &Target) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, EXT4));
    let mut findings = Vec::new();
    if facts.journal == Some(false) && !facts.has("ro") {
        let device = facts.mount.as_ref().map_or("DEVICE", |mount| mount.source.as_str());
        let text = "no journal: e2fsck must repair it after each power failure, before it is \
                    mounted. Otherwise new files fail, or overwrite existing ones";
        let finding = about("no journal", Severity::Danger, text);
        let hand = format!("unmount it, e2fsck -f {device}, then tune2fs -O has_journal {device}");
        findings.push(finding.by_hand(hand));
    }
    for (option, severity, text) in EXT4_OPTIONS {
        // `data=journal` implies `nodelalloc`, so `nodelalloc` is then not reported separately.
        let is_implied = option == "nodelalloc" && facts.has("data=journal");
        if facts.has(option) && !is_implied {
            findings.push(about(option, severity, text).by_hand(without(option)));
        }
    }
    findings.extend(late_commit(place, 5, 30));
    findings
}

fn xfs(place: &Target) -> Vec<Finding> {
    let size = place.facts.value("logbsize").unwrap_or("32k");
    if !["32k", "16k", "32768", "16384"].contains(&size) || place.facts.has("ro") {
        return Vec::new();
    }
    let text = format!(
        "log buffers of {size} (logbsize): creating and deleting many files is faster with 256k"
    );
    let finding = about(place, XFS)("small log buffers", Severity::Note, &text);
    vec![finding.by_hand(fstab("logbsize=256k"))]
}

fn btrfs(place: &Target) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, BTRFS));
    let mut findings = Vec::new();
    for option in ["nodatacow", "nodatasum"] {
        if facts.has(option) {
            let text = format!(
                "mounted with {option}: files have no checksums, so corruption is not detected. \
                 chattr +C disables them for a single directory"
            );
            findings.push(about("no checksums", Severity::Note, &text).by_hand(without(option)));
        }
    }
    findings.extend(late_commit(place, 30, 120));
    findings
}

fn late_commit(place: &Target, usual_s: u64, most_s: u64) -> Option<Finding> {
    let seconds: u64 = place.facts.value("commit")?.parse().ok()?;
    (seconds > most_s).then(|| {
        let text = format!(
            "commit={seconds}: a power failure loses unsynced metadata of that many seconds; \
             {usual_s} is usual"
        );
        Finding::new("late commits", place.point(), Severity::Note, text)
            .by_hand(remount(place, &format!("commit={usual_s}")))
    })
}

/// Returns the findings about the journal of an ext4.
fn journal(place: &Target) -> Vec<Finding> {
    let Some(info) = place.facts.journal_info else { return Vec::new() };
    let about = about(place, EXT4);
    let mut findings = Vec::new();
    if info.blocks_max < TRANSACTION_BLOCKS_MIN {
        let text = format!(
            "a small journal: a transaction has at most {} blocks, so that changing many files \
             waits for checkpoints",
            info.blocks_max
        );
        let hand = "unmount it, e2fsck -f, tune2fs -O ^has_journal, then tune2fs -J size=128 (MiB)";
        findings.push(about("small journal", Severity::Note, &text).by_hand(hand));
    }
    if let Some(us) = info.commit_us.filter(|us| *us > COMMIT_US_MAX)
        && info.transactions >= COMMITS_MIN
    {
        let text = format!(
            "a journal commit took {} ms on average ({} of {} were requested by syncs): a sync of a \
             new or growing file waits that long",
            us / 1000,
            info.requested,
            info.transactions
        );
        findings.push(about("slow commits", Severity::Slow, &text));
    }
    findings
}

/// Returns a finding if the device may use only a part of the dirty limit.
fn share(place: &Target) -> Option<Finding> {
    let (share, disk) = (place.facts.share, &place.facts.device.as_ref()?.disk);
    let percent = share.percent_max.filter(|percent| *percent < 100);
    let is_strict = share.is_strict == Some(true);
    if percent.is_none() && !is_strict {
        return None;
    }
    let text = format!(
        "this device is limited to {} % of the dirty limit{}",
        percent.unwrap_or(100),
        if is_strict { ", enforced at any amount of dirty data" } else { "" },
    );
    let finding = Finding::new("share of the device", place.point(), Severity::Note, text);
    let dir = format!("/sys/block/{disk}/bdi");
    let hand = format!("echo 100 > {dir}/max_ratio; echo 0 > {dir}/strict_limit");
    Some(finding.by_hand(hand).source(BDI))
}

#[cfg(test)]
mod tests {
    use haul_disk::{DeviceShare, JournalInfo, MountFacts};

    use super::*;
    use crate::advice::tests::names;
    use crate::case::tests::{mount, place};

    fn found(facts: MountFacts) -> Vec<Finding> {
        findings(&place(facts))
    }

    fn with(file_system: FileSystem, options: &[&str]) -> Vec<Finding> {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        found(MountFacts { file_system, options, ..mount("/srv") })
    }

    #[test]
    fn mount_options_have_findings() {
        use FileSystem::{Btrfs, Ext4, Xfs};
        for (file_system, options, expected) in [
            (Ext4, &["noatime", "barrier", "data=ordered", "commit=5"][..], &[][..]),
            (Ext4, &["noatime", "nobarrier"], &["no barrier"]),
            (Ext4, &["noatime", "barrier=0"], &["no barrier"]),
            (Ext4, &["relatime"], &["access times"]),
            (Ext4, &["rw"], &["access times"]),
            (Ext4, &["ro"], &[]),
            (Ext4, &["noatime", "data=writeback"], &["data=writeback"]),
            (Ext4, &["noatime", "data=journal", "nodelalloc"], &["data=journal"]),
            (Ext4, &["noatime", "journal_async_commit"], &["journal_async_commit"]),
            (Ext4, &["noatime", "noauto_da_alloc"], &["noauto_da_alloc"]),
            (Ext4, &["noatime", "nodelalloc"], &["nodelalloc"]),
            (Ext4, &["noatime", "commit=31"], &["late commits"]),
            (Ext4, &["noatime", "commit=soon"], &[]),
            (Ext4, &["noatime", "discard", "sync"], &["synchronous mount", "discard"]),
            (Xfs, &["noatime"], &["small log buffers"]),
            (Xfs, &["noatime", "logbsize=32k"], &["small log buffers"]),
            (Xfs, &["noatime", "logbsize=256k"], &[]),
            (Btrfs, &["noatime", "discard=async", "commit=30"], &[]),
            (Btrfs, &["noatime", "discard=sync"], &["discard"]),
            (Btrfs, &["noatime", "nodatacow", "commit=300"], &["no checksums", "late commits"]),
            (FileSystem::Other("vfat".to_owned()), &["relatime"], &["access times"]),
        ] {
            let found = with(file_system.clone(), options);
            assert_eq!(names(&found), expected, "{file_system} {options:?}");
            for finding in found {
                assert!(finding.remedy.is_some(), "{finding:?}");
            }
        }
    }

    #[test]
    fn options_that_lose_data_are_dangers() {
        let danger = |options: &[&str]| with(FileSystem::Ext4, options)[0].severity;
        for option in ["nobarrier", "data=writeback", "noauto_da_alloc"] {
            assert_eq!(danger(&["noatime", option]), Severity::Danger, "{option}");
        }
        assert_eq!(danger(&["relatime"]), Severity::Note);
        assert_eq!(danger(&["rw"]), Severity::Slow);
    }

    #[test]
    fn missing_small_and_slow_journals_are_found() {
        let bare = found(MountFacts { journal: Some(false), ..mount("/") });
        assert_eq!(names(&bare), ["no journal"]);
        assert!(format!("{bare:?}").contains("has_journal /dev/sda1"), "{bare:?}");
        let info = |blocks_max, transactions, commit_us| {
            let info = JournalInfo { transactions, requested: 1, blocks_max, commit_us };
            found(MountFacts { journal_info: Some(info), ..mount("/") })
        };
        assert_eq!(names(&info(8192, 100, Some(735))), <[&str; 0]>::default());
        assert_eq!(names(&info(512, 0, None)), ["small journal"]);
        assert_eq!(names(&info(8192, 100, Some(80_000))), ["slow commits"]);
        assert_eq!(names(&info(8192, 3, Some(80_000))), <[&str; 0]>::default());
    }

    #[test]
    fn reduced_device_shares_are_found() {
        for (percent, strict, expected) in [
            (Some(100), Some(false), false),
            (None, None, false),
            (Some(40), Some(false), true),
            (Some(100), Some(true), true),
        ] {
            let share = DeviceShare { percent_max: percent, is_strict: strict };
            let found = found(MountFacts { share, ..mount("/") });
            assert_eq!(names(&found).contains(&"share of the device"), expected, "{share:?}");
        }
    }

    #[test]
    fn mounts_without_a_disk_have_one_finding() {
        for file_system in [FileSystem::Tmpfs, FileSystem::Overlay, FileSystem::Nfs] {
            let facts = MountFacts { file_system, device: None, ..mount("/") };
            assert_eq!(names(&found(facts)), ["no disk"]);
        }
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("/srv/a-b"), "/srv/a-b");
        assert_eq!(quoted("/my disk; rm 'x'"), "'/my disk; rm '\\''x'\\'''");
    }
}
