//! What mount options and journals cost, and what they risk. Pure.
//!
//! Nothing of this is set by the program: it touches what is kept, or needs a new mount.

use haul_disk::FileSystem;

use super::{Finding, Weight};
use crate::tune::case::Place;

const EXT4: &str = "Linux, Documentation/admin-guide/ext4.rst";
const XFS: &str = "Linux, Documentation/admin-guide/xfs.rst";
const BTRFS: &str = "btrfs documentation, btrfs(5)";
const MOUNT: &str = "mount(8)";
const BDI: &str = "Linux, Documentation/ABI/testing/sysfs-class-bdi";

/// With these a file system does not wait for the device.
const NO_WAITING: [&str; 3] = ["nobarrier", "barrier=0", "nobarriers"];
/// A journal whose transactions are smaller than this makes who changes many files wait.
const TRANSACTION_BLOCKS_MIN: u64 = 1024;
/// A commit that takes longer than this is felt by who syncs.
const COMMIT_US_MAX: u64 = 50_000;
/// From so many commits on their average means something.
const COMMITS_MIN: u64 = 20;

/// Options of ext4 that somebody should know of.
const EXT4_OPTIONS: [(&str, Weight, &str); 5] = [
    (
        "data=writeback",
        Weight::Danger,
        "after a power cut files that grew may show what was in their blocks before, deleted files \
         of others too",
    ),
    (
        "noauto_da_alloc",
        Weight::Danger,
        "a file that is replaced by rename or truncated, and not synced, may be empty after a power \
         cut",
    ),
    (
        "data=journal",
        Weight::Slow,
        "every byte is written twice, to the journal and to its place, and there is neither direct \
         I/O nor delayed allocation. It helps short syncs of little data alone",
    ),
    (
        "nodelalloc",
        Weight::Slow,
        "blocks are chosen at each write: files fall into pieces, and writers wait for that",
    ),
    (
        "journal_async_commit",
        Weight::Note,
        "the end of a commit is written along with the rest of it: after a power cut checksums alone \
         tell whether it is whole, and data=ordered cannot be had with it",
    ),
];

pub(super) fn findings(place: &Place) -> Vec<Finding> {
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

/// Begins a finding about the place.
fn about<'a>(
    place: &'a Place,
    source: &'static str,
) -> impl Fn(&'static str, Weight, &str) -> Finding + 'a {
    move |what, weight, text| Finding::new(what, place.point(), weight, text).source(source)
}

fn remount(place: &Place, option: &str) -> String {
    format!("mount -o remount,{option} {}", quoted(place.point()))
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:".contains(&byte);
    if !path.is_empty() && path.bytes().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

fn fstab(option: &str) -> String {
    format!("write {option} into the options in /etc/fstab, and mount it anew")
}

fn without(option: &str) -> String {
    format!("take {option} out of the options in /etc/fstab, and mount it anew")
}

fn without_device(place: &Place) -> Option<Finding> {
    let text = match &place.facts.file_system {
        FileSystem::Tmpfs => {
            "it is in memory: nothing of it is written to a disk, and its pages are not \
                              counted as dirty"
        }
        FileSystem::Overlay => {
            "an overlay hides the disk it lies on: name a path of that, or --all"
        }
        FileSystem::Nfs | FileSystem::Fuse => {
            "another machine or program keeps the files: the limits on dirty data hold, the rest is \
             for there"
        }
        _ => "no block device is known below it: the limits on dirty data alone can be told",
    };
    Some(Finding::new("no disk", place.point(), Weight::Note, text))
}

/// What is the same for all.
fn any(place: &Place) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, MOUNT));
    let mut findings = Vec::new();
    if let Some(option) = NO_WAITING.iter().find(|option| facts.has(option)) {
        let text = format!(
            "mounted with {option}: nothing makes the device keep what is synced, and a power cut \
             takes it, the file system's own blocks too. Only a cache that survives a power cut \
             makes that safe, and with one there is nothing to gain"
        );
        let finding = about("no barrier", Weight::Danger, &text);
        findings.push(finding.by_hand(remount(place, "barrier")));
    }
    for option in ["sync", "dirsync"] {
        if facts.has(option) {
            let text =
                format!("mounted with {option}: each change waits for the disk, wanted or not");
            let finding = about("synchronous mount", Weight::Slow, &text);
            findings.push(finding.by_hand(remount(place, "async")));
        }
    }
    // The kernel names neither where each read is noted.
    if !["noatime", "relatime", "ro"].iter().any(|option| facts.has(option)) {
        let text = "each read of a file is noted in its inode, so reading writes";
        let finding = about("access times", Weight::Slow, text);
        findings.push(finding.by_hand(remount(place, "relatime")));
    } else if facts.has("relatime") && !facts.has("noatime") {
        let text = "relatime: the first read of a file in a day writes its inode. noatime spares \
                    that where no program asks when a file was read";
        let finding = about("access times", Weight::Note, text);
        findings.push(finding.by_hand(remount(place, "noatime")));
    }
    if facts.has("discard") || facts.has("discard=sync") {
        let text = "mounted with discard: what is deleted is discarded at once, and commits and \
                    syncs wait behind that. A trim once a week does as well";
        let finding = about("discard", Weight::Note, text);
        let trim = "systemctl enable --now fstrim.timer";
        findings.push(finding.by_hand(format!("{} && {trim}", remount(place, "nodiscard"))));
    }
    findings
}

fn ext4(place: &Place) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, EXT4));
    let mut findings = Vec::new();
    if facts.journal == Some(false) && !facts.has("ro") {
        let device = facts.mount.as_ref().map_or("DEVICE", |mount| mount.source.as_str());
        let text = "no journal: after a power cut it must be checked before use, and directories and \
                    files may be lost, synced ones too. Good for what can be made again";
        let finding = about("no journal", Weight::Danger, text);
        findings.push(finding.by_hand(format!("unmount it, then tune2fs -O has_journal {device}")));
    }
    for (option, weight, text) in EXT4_OPTIONS {
        // Data that goes to the journal is never allocated late, which needs no second word.
        let is_told = option == "nodelalloc" && facts.has("data=journal");
        if facts.has(option) && !is_told {
            findings.push(about(option, weight, text).by_hand(without(option)));
        }
    }
    findings.extend(late_commit(place, 5, 30));
    findings
}

fn xfs(place: &Place) -> Vec<Finding> {
    let size = place.facts.value("logbsize").unwrap_or("32k");
    if !["32k", "16k", "32768", "16384"].contains(&size) || place.facts.has("ro") {
        return Vec::new();
    }
    let text = format!(
        "the journal is written {size} at a time (logbsize): who makes or removes many files waits \
         less with 256k"
    );
    let finding = about(place, XFS)("small log buffers", Weight::Note, &text);
    vec![finding.by_hand(fstab("logbsize=256k"))]
}

fn btrfs(place: &Place) -> Vec<Finding> {
    let (facts, about) = (&place.facts, about(place, BTRFS));
    let mut findings = Vec::new();
    for option in ["nodatacow", "nodatasum"] {
        if facts.has(option) {
            let text = format!(
                "mounted with {option}: files have no checksums, so damage is not noticed. One \
                 directory can have it alone (chattr +C)"
            );
            findings.push(about("no checksums", Weight::Note, &text).by_hand(without(option)));
        }
    }
    findings.extend(late_commit(place, 30, 120));
    findings
}

fn late_commit(place: &Place, usual_s: u64, most_s: u64) -> Option<Finding> {
    let seconds: u64 = place.facts.value("commit")?.parse().ok()?;
    (seconds > most_s).then(|| {
        let text = format!(
            "commit={seconds}: new names and sizes that nobody syncs are lost with the power for so \
             many seconds; {usual_s} is usual"
        );
        Finding::new("late commits", place.point(), Weight::Note, text)
            .by_hand(remount(place, &format!("commit={usual_s}")))
    })
}

/// What the journal of an ext4 tells of itself.
fn journal(place: &Place) -> Vec<Finding> {
    let Some(info) = place.facts.journal_info else { return Vec::new() };
    let about = about(place, EXT4);
    let mut findings = Vec::new();
    if info.blocks_max < TRANSACTION_BLOCKS_MIN {
        let text = format!(
            "a small journal: a transaction takes {} blocks at most, so who changes many files waits \
             until old ones are written to their place",
            info.blocks_max
        );
        let hand = "unmount it, tune2fs -O ^has_journal, then tune2fs -J size=128 (in MiB)";
        findings.push(about("small journal", Weight::Note, &text).by_hand(hand));
    }
    if let Some(us) = info.commit_us.filter(|us| *us > COMMIT_US_MAX)
        && info.transactions >= COMMITS_MIN
    {
        let text = format!(
            "a commit of the journal took {} ms on average ({} of {} were asked for by syncs): who \
             syncs a new or a growing file waits so long",
            us / 1000,
            info.requested,
            info.transactions
        );
        findings.push(about("slow commits", Weight::Slow, &text));
    }
    findings
}

/// A device that may not have all of what may be dirty.
fn share(place: &Place) -> Option<Finding> {
    let (share, disk) = (place.facts.share, &place.facts.device.as_ref()?.disk);
    let percent = share.percent_max.filter(|percent| *percent < 100);
    let is_strict = share.is_strict == Some(true);
    if percent.is_none() && !is_strict {
        return None;
    }
    let text = format!(
        "this device may have {} % of what may be dirty{}",
        percent.unwrap_or(100),
        if is_strict { ", and its writers are held to that from the beginning" } else { "" },
    );
    let finding = Finding::new("share of the device", place.point(), Weight::Note, text);
    let dir = format!("/sys/block/{disk}/bdi");
    let hand = format!("echo 100 > {dir}/max_ratio; echo 0 > {dir}/strict_limit");
    Some(finding.by_hand(hand).source(BDI))
}

#[cfg(test)]
mod tests {
    use haul_disk::{DeviceShare, JournalInfo, MountFacts};

    use super::*;
    use crate::tune::advice::tests::names;
    use crate::tune::case::tests::{mount, place};

    fn found(facts: MountFacts) -> Vec<Finding> {
        findings(&place(facts))
    }

    fn with(file_system: FileSystem, options: &[&str]) -> Vec<Finding> {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        found(MountFacts { file_system, options, ..mount("/srv") })
    }

    #[test]
    fn options_are_told_of_by_what_they_risk_and_cost() {
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
    fn what_loses_data_is_a_danger() {
        let danger = |options: &[&str]| with(FileSystem::Ext4, options)[0].weight;
        for option in ["nobarrier", "data=writeback", "noauto_da_alloc"] {
            assert_eq!(danger(&["noatime", option]), Weight::Danger, "{option}");
        }
        assert_eq!(danger(&["relatime"]), Weight::Note);
        assert_eq!(danger(&["rw"]), Weight::Slow);
    }

    #[test]
    fn journals_are_told_of_when_missing_small_or_slow() {
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
    fn a_device_with_a_share_of_its_own_is_told() {
        for (percent, strict, is_told) in [
            (Some(100), Some(false), false),
            (None, None, false),
            (Some(40), Some(false), true),
            (Some(100), Some(true), true),
        ] {
            let share = DeviceShare { percent_max: percent, is_strict: strict };
            let found = found(MountFacts { share, ..mount("/") });
            assert_eq!(names(&found).contains(&"share of the device"), is_told, "{share:?}");
        }
    }

    #[test]
    fn what_has_no_disk_says_so_and_nothing_else() {
        for file_system in [FileSystem::Tmpfs, FileSystem::Overlay, FileSystem::Nfs] {
            let facts = MountFacts { file_system, device: None, ..mount("/") };
            assert_eq!(names(&found(facts)), ["no disk"]);
        }
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted("/srv/a-b"), "/srv/a-b");
        assert_eq!(quoted("/my disk; rm 'x'"), "'/my disk; rm '\\''x'\\'''");
    }
}
