//! Reports request queue settings that do not suit the kind of disk: readahead, scheduler, queue
//! depth, write cache.

use haul_disk::{DiskFacts, DiskKind, FileSystem};
use haul_measure::Rotation;

use crate::case::Target;
use crate::finding::{Finding, Severity};
use crate::rate::is_rotational;
use crate::setting::Setting;
use haul_units::Bytes;

const QUEUE: &str = "Linux, Documentation/ABI/stable/sysfs-block";
const SCHEDULERS: &str = "Linux, Documentation/block/bfq-iosched.rst, switching-sched.rst";
const READING: &str = "Haul, docs/reading.md";

/// The recommended readahead of a rotational disk, in bytes: the disk reads this amount in about
/// the time of a seek.
const READAHEAD_SPINNING: u64 = 1 << 20;
const READAHEAD_SPINNING_MIN: u64 = 512 << 10;
/// The recommended readahead in bytes of an SSD whose readahead exceeds `READAHEAD_SOLID_MAX`:
/// enough for sequential reads, and not too much for a page fault in a mapped file.
const READAHEAD_SOLID: u64 = 1 << 20;
const READAHEAD_SOLID_MAX: u64 = 2 << 20;
/// The kernel's default readahead, in bytes.
const READAHEAD_USUAL: u64 = 128 << 10;
/// The minimum queue depth of a rotational disk, in requests: with fewer requests a scheduler has
/// too few to sort.
const DEPTH_SPINNING_MIN: u64 = 32;
/// The maximum queue depth of a rotational disk, in requests: with more requests, a read may wait
/// behind seconds of writes.
const DEPTH_SPINNING_MAX: u64 = 1024;
/// The read latency target of writeback throttling (`wbt_lat_usec`), in microseconds, above which
/// the target is too high for an SSD. This value lies between the kernel's defaults for rotational
/// disks (75 ms) and for other disks (2 ms).
const LATENCY_SOLID_US_MAX: u64 = 20_000;

/// Returns a finding if the readahead of the device of a file system does not suit its disks. The
/// device may be a volume on several disks.
pub(crate) fn readahead(place: &Target) -> Option<Finding> {
    let (device, bytes) = (place.facts.device.as_ref()?, place.facts.queue.readahead_bytes?);
    if place.facts.file_system == FileSystem::Btrfs {
        // Btrfs ignores the readahead of the device and has a separate setting.
        return None;
    }
    let disk = device.disk.as_str();
    let set = |bytes_new: u64| {
        let kib = |bytes: u64| (bytes >> 10).to_string();
        vec![Setting::queue(disk, "read_ahead_kb", &kib(bytes), &kib(bytes_new))]
    };
    let finding = |severity, text| Finding::new("readahead", disk, severity, text).source(READING);
    match place.is_rotational() {
        _ if bytes == 0 => {
            let text = "readahead is disabled: files are read one page at a time, 256 requests per \
                        MiB";
            let bytes = if place.is_rotational() == Some(true) {
                READAHEAD_SPINNING
            } else {
                READAHEAD_USUAL
            };
            Some(finding(Severity::Slow, text.to_owned()).set(set(bytes)))
        }
        Some(true) if bytes < READAHEAD_SPINNING_MIN => {
            let text = format!(
                "readahead is {}: when two files are read in parallel, each request is preceded by \
                 a seek of about 10 ms. {} takes about as long to read",
                Bytes(bytes),
                Bytes(READAHEAD_SPINNING)
            );
            Some(finding(Severity::Slow, text).set(set(READAHEAD_SPINNING)))
        }
        Some(false) if bytes > READAHEAD_SOLID_MAX => {
            let text = format!(
                "readahead is {}, also around each accessed page of a mapped file: with random \
                 access most of it is wasted. Sequential reads are as fast with {}",
                Bytes(bytes),
                Bytes(READAHEAD_SOLID)
            );
            Some(finding(Severity::Slow, text).set(set(READAHEAD_SOLID)))
        }
        None if bytes > READAHEAD_SOLID_MAX => {
            let how = match place.rotation {
                Rotation::Unknown => " (check with --measure)",
                _ => ", which its latencies do not contradict",
            };
            let text = format!(
                "readahead is {}, also around each accessed page of a mapped file: too much unless \
                 the disk is rotational{how}",
                Bytes(bytes)
            );
            Some(finding(Severity::Note, text))
        }
        _ => None,
    }
}

pub(crate) fn findings(disk: &DiskFacts, measured: Rotation) -> Vec<Finding> {
    let rotational = is_rotational(disk, measured);
    [
        claim(disk, measured),
        scheduler(disk, rotational),
        depth(disk, rotational),
        latency(disk, rotational),
        write_cache(disk),
        file(disk),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn path(disk: &DiskFacts, file: &str) -> String {
    format!("/sys/block/{}/queue/{file}", disk.name)
}

/// Returns a finding if the disk wrongly reports itself as rotational.
fn claim(disk: &DiskFacts, measured: Rotation) -> Option<Finding> {
    (measured == Rotation::Denied).then(|| {
        let text = "it reports itself as rotational, which its random reads contradict: the kernel \
                    and programs avoid seeks needlessly";
        Finding::new("does not spin", &disk.name, Severity::Slow, text)
            .by_hand(format!("echo 0 > {}", path(disk, "rotational")))
            .source(QUEUE)
    })
}

fn scheduler(disk: &DiskFacts, rotational: Option<bool>) -> Option<Finding> {
    let now = disk.queue.scheduler.as_deref()?;
    // Zoned disks require writes in order, and only some schedulers preserve this order.
    if disk.is_zoned {
        return None;
    }
    let finding =
        |severity, text| Finding::new("scheduler", &disk.name, severity, text).source(SCHEDULERS);
    let set = |new: &str| {
        let offered = disk.schedulers.iter().any(|one| one == new);
        let setting = || Setting::queue(&disk.name, "scheduler", now, new);
        offered.then(setting).into_iter().collect()
    };
    match (disk.kind, rotational, now) {
        (DiskKind::Scsi | DiskKind::Card, Some(true), "none") => {
            let text = "scheduler none passes requests to the disk in order of arrival. mq-deadline \
                        sorts them by offset, and limits the time reads wait behind writes";
            Some(finding(Severity::Slow, text).set(set("mq-deadline")))
        }
        (DiskKind::Nvme | DiskKind::Virtual | DiskKind::Loop, Some(false), "bfq") => {
            let text = "scheduler bfq, made for slow disks, costs more CPU time than it saves on a \
                        device with microsecond latencies or with a scheduler on its host";
            Some(finding(Severity::Slow, text).set(set("none")))
        }
        (DiskKind::Scsi, Some(false), "bfq") => {
            let text = "scheduler bfq suits desktops; on a server, mq-deadline gives an SSD more \
                        throughput";
            let by_hand = format!("echo mq-deadline > {}", path(disk, "scheduler"));
            Some(finding(Severity::Note, text).by_hand(by_hand))
        }
        _ => None,
    }
}

fn depth(disk: &DiskFacts, rotational: Option<bool>) -> Option<Finding> {
    let depth = disk.queue.depth.filter(|_| rotational == Some(true))?;
    let finding =
        |text| Finding::new("queue depth", &disk.name, Severity::Note, text).source(QUEUE);
    let by_hand = |depth| format!("echo {depth} > {}", path(disk, "nr_requests"));
    if depth < DEPTH_SPINNING_MIN {
        let text = format!("the queue holds {depth} requests: too few to sort");
        return Some(finding(text).by_hand(by_hand(64)));
    }
    let is_held_back = disk.read_latency_us.is_some_and(|us| us > 0);
    (depth > DEPTH_SPINNING_MAX && !is_held_back).then(|| {
        let text = format!(
            "the queue holds {depth} requests, and writeback is not throttled: a read may wait \
             behind seconds of writes"
        );
        finding(text).by_hand(by_hand(256))
    })
}

/// Returns a finding about `wbt_lat_usec`, the read latency above which the kernel throttles
/// background writeback, so that reads do not wait behind writes.
fn latency(disk: &DiskFacts, rotational: Option<bool>) -> Option<Finding> {
    let us = disk.read_latency_us?;
    let finding =
        |text| Finding::new("write throttling", &disk.name, Severity::Note, text).source(QUEUE);
    let by_hand = |us: i32| format!("echo {us} > {}", path(disk, "wbt_lat_usec"));
    // The scheduler bfq sets `wbt_lat_usec` to 0, since bfq itself throttles writes.
    if us == 0 && disk.queue.scheduler.as_deref() != Some("bfq") {
        let text = "background writeback is not throttled while reads wait (wbt_lat_usec is 0), \
                    which slows reads down. -1 restores the kernel's default";
        return Some(finding(text.to_owned()).by_hand(by_hand(-1)));
    }
    (rotational == Some(false) && us > LATENCY_SOLID_US_MAX).then(|| {
        let text = format!(
            "background writeback is throttled only when reads take more than {} ms: a value for \
             rotational disks; 2 ms is usual for SSDs",
            us / 1000
        );
        finding(text).by_hand(by_hand(2000))
    })
}

fn write_cache(disk: &DiskFacts) -> Option<Finding> {
    let is_through = disk.queue.volatile_write_cache == Some(false);
    (is_through && disk.kind == DiskKind::Scsi).then(|| {
        let text = "\"write through\": the kernel never flushes its write cache. Correct if it has \
                    none, or one that survives a power failure; if this was set for speed, a power \
                    failure may lose synced data";
        Finding::new("write through", &disk.name, Severity::Note, text)
            .by_hand(format!("echo write back > {}", path(disk, "write_cache")))
            .source(QUEUE)
    })
}

fn file(disk: &DiskFacts) -> Option<Finding> {
    let file = disk.file.as_deref().filter(|_| disk.kind == DiskKind::Loop)?;
    let text = format!(
        "it is backed by the file {file}: writes pass through the page cache of that file system, \
         too, unless the loop device uses direct I/O. Tune that file system"
    );
    Some(Finding::new("a file as a disk", &disk.name, Severity::Note, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::settings;
    use crate::advice::tests::names;
    use crate::case::tests::{disk as facts, mount, place};

    const KIB: u64 = 1 << 10;

    #[test]
    fn readahead_depends_on_the_kind_of_disk() {
        for (kind, rotation, kib, set, has_finding) in [
            (DiskKind::Scsi, Rotation::Unknown, 0, Some("1024"), true),
            (DiskKind::Scsi, Rotation::Unknown, 128, Some("1024"), true),
            (DiskKind::Scsi, Rotation::Unknown, 512, None, false),
            (DiskKind::Scsi, Rotation::Unknown, 8192, None, false),
            (DiskKind::Nvme, Rotation::Unknown, 0, Some("128"), true),
            (DiskKind::Nvme, Rotation::Unknown, 128, None, false),
            (DiskKind::Nvme, Rotation::Unknown, 8192, Some("1024"), true),
            // A virtual disk's report that it is rotational is not trusted until measured.
            (DiskKind::Virtual, Rotation::Unknown, 128, None, false),
            (DiskKind::Virtual, Rotation::Unknown, 8192, None, true),
            (DiskKind::Virtual, Rotation::Denied, 8192, Some("1024"), true),
            (DiskKind::Virtual, Rotation::Believable, 128, None, false),
            (DiskKind::Virtual, Rotation::Believable, 8192, None, true),
        ] {
            let mut mount = mount("/");
            mount.disks = vec![facts("sda", kind)];
            mount.queue.readahead_bytes = Some(kib * KIB);
            let place = Target { rotation, ..place(mount) };
            let found: Vec<_> = readahead(&place).into_iter().collect();
            assert_eq!(!found.is_empty(), has_finding, "{kind:?} {rotation:?} {kib}: {found:?}");
            let new = settings(&found).first().map(|setting| setting.new.clone());
            assert_eq!(new.as_deref(), set, "{kind:?} {rotation:?} {kib}");
        }
        let mut own = mount("/");
        own.file_system = FileSystem::Btrfs;
        own.queue.readahead_bytes = Some(0);
        assert_eq!(readahead(&place(own)), None);
    }

    #[test]
    fn scheduler_depends_on_the_kind_of_disk() {
        use DiskKind::{Nvme, Other, Scsi, Virtual};
        use Rotation::{Denied, Unknown};
        for (kind, rotation, now, new) in [
            (Scsi, Unknown, "none", Some("mq-deadline")),
            (Scsi, Unknown, "mq-deadline", None),
            (Scsi, Unknown, "bfq", None),
            (Nvme, Unknown, "none", None),
            (Nvme, Unknown, "mq-deadline", None),
            (Nvme, Unknown, "bfq", Some("none")),
            (Virtual, Unknown, "none", None),
            (Virtual, Unknown, "bfq", None),
            (Virtual, Denied, "bfq", Some("none")),
            (Other, Unknown, "bfq", None),
        ] {
            let mut disk = facts("sda", kind);
            disk.queue.scheduler = Some(now.to_owned());
            let found = findings(&disk, rotation);
            let set = settings(&found).first().map(|setting| setting.new.clone());
            assert_eq!(set.as_deref(), new, "{kind:?} {rotation:?} {now}: {found:?}");
        }
        let mut disk = facts("sda", Scsi);
        disk.queue.scheduler = Some("none".to_owned());
        let zoned = DiskFacts { is_zoned: true, ..disk.clone() };
        assert_eq!(findings(&zoned, Unknown), []);
        // If the recommended scheduler is not available, there is a finding, but no change.
        disk.schedulers = vec!["none".to_owned()];
        assert_eq!(settings(&findings(&disk, Unknown)), []);
        let mut solid = facts("sda", Scsi);
        solid.queue.rotational = Some(false);
        solid.queue.scheduler = Some("bfq".to_owned());
        solid.read_latency_us = None;
        assert_eq!(names(&findings(&solid, Unknown)), ["scheduler"]);
        assert_eq!(settings(&findings(&solid, Unknown)), [], "left to the administrator");
    }

    #[test]
    fn queues_and_caches_depend_on_the_kind_of_disk() {
        type Change = fn(&mut DiskFacts);
        let cases: [(Change, Rotation, &[&str]); 9] = [
            (|_| (), Rotation::Unknown, &[]),
            (|disk| disk.queue.depth = Some(4), Rotation::Unknown, &["queue depth"]),
            (|disk| disk.queue.depth = Some(5000), Rotation::Unknown, &[]),
            (
                |disk| {
                    disk.queue.depth = Some(5000);
                    disk.read_latency_us = None;
                },
                Rotation::Unknown,
                &["queue depth"],
            ),
            (|disk| disk.read_latency_us = Some(0), Rotation::Unknown, &["write throttling"]),
            (
                |disk| {
                    disk.read_latency_us = Some(0);
                    disk.queue.scheduler = Some("bfq".to_owned());
                },
                Rotation::Unknown,
                &[],
            ),
            // The disk reports itself as rotational, but is an SSD: 75 ms is too high for it.
            (|_| (), Rotation::Denied, &["does not spin", "write throttling"]),
            (
                |disk| disk.queue.volatile_write_cache = Some(false),
                Rotation::Unknown,
                &["write through"],
            ),
            (|disk| disk.file = Some("/a".to_owned()), Rotation::Unknown, &[]),
        ];
        for (number, (change, rotation, expected)) in cases.into_iter().enumerate() {
            let mut disk = facts("sda", DiskKind::Scsi);
            change(&mut disk);
            assert_eq!(names(&findings(&disk, rotation)), expected, "case {number}");
        }
        let mut file = facts("loop0", DiskKind::Loop);
        file.file = Some("/srv/image".to_owned());
        assert_eq!(names(&findings(&file, Rotation::Unknown)), ["a file as a disk"]);
    }
}
