//! How the kernel treats the requests of a disk. Pure.

use haul_bench::storage::Rotation;
use haul_disk::{DiskFacts, DiskKind, FileSystem};

use super::{Finding, Weight};
use crate::tune::case::Place;
use crate::tune::rate::spins;
use crate::tune::setting::Setting;
use crate::units::Bytes;

const QUEUE: &str = "Linux, Documentation/ABI/stable/sysfs-block";
const SCHEDULERS: &str = "Linux, Documentation/block/bfq-iosched.rst, switching-sched.rst";
const READING: &str = "Haul, docs/reading.md";

/// What a spinning disk reads while its arm would move, or somewhat less.
const READAHEAD_SPINNING: u64 = 1 << 20;
const READAHEAD_SPINNING_MIN: u64 = 512 << 10;
/// Enough for streams, and not much to read for one page of a mapping.
const READAHEAD_SOLID: u64 = 1 << 20;
const READAHEAD_SOLID_MAX: u64 = 2 << 20;
/// The kernel's own choice.
const READAHEAD_USUAL: u64 = 128 << 10;
/// With fewer requests there is little to put in order.
const DEPTH_SPINNING_MIN: u64 = 32;
/// With more, reads stand behind seconds of writes.
const DEPTH_SPINNING_MAX: u64 = 1024;
/// What the kernel takes for a disk that spins (75 ms) is told apart from that for others by this.
const LATENCY_SOLID_US_MAX: u64 = 20_000;

/// The readahead of the device that a file system is on, which may be a volume.
pub(super) fn readahead(place: &Place) -> Option<Finding> {
    let (device, bytes) = (place.facts.device.as_ref()?, place.facts.queue.readahead_bytes?);
    if place.facts.file_system == FileSystem::Btrfs {
        // It has one of its own.
        return None;
    }
    let disk = device.disk.as_str();
    let set = |bytes_new: u64| {
        let kib = |bytes: u64| (bytes >> 10).to_string();
        vec![Setting::queue(disk, "read_ahead_kb", &kib(bytes), &kib(bytes_new))]
    };
    let finding = |weight, text| Finding::new("readahead", disk, weight, text).source(READING);
    match place.spins() {
        _ if bytes == 0 => {
            let text = "the kernel does not read ahead: files are read a page at a time, 256 requests \
                        for a MiB";
            let bytes =
                if place.spins() == Some(true) { READAHEAD_SPINNING } else { READAHEAD_USUAL };
            Some(finding(Weight::Slow, text.to_owned()).set(set(bytes)))
        }
        Some(true) if bytes < READAHEAD_SPINNING_MIN => {
            let text = format!(
                "the kernel reads {} ahead: where two files are read at a time, an arm that moves \
                 for 10 ms each time does little but move. {} is about what it reads in that time",
                Bytes(bytes),
                Bytes(READAHEAD_SPINNING)
            );
            Some(finding(Weight::Slow, text).set(set(READAHEAD_SPINNING)))
        }
        Some(false) if bytes > READAHEAD_SOLID_MAX => {
            let text = format!(
                "the kernel reads {} ahead, and around each page of a mapped file that is touched: \
                 for random ones nearly all of that is read for nothing. Streams are as fast with {}",
                Bytes(bytes),
                Bytes(READAHEAD_SOLID)
            );
            Some(finding(Weight::Slow, text).set(set(READAHEAD_SOLID)))
        }
        None if bytes > READAHEAD_SOLID_MAX => {
            let how = match place.rotation {
                Rotation::Unknown => ". --measure may tell whether it does",
                _ => ", which its reads did not deny",
            };
            let text = format!(
                "the kernel reads {} ahead, and around each page of a mapped file that is touched: \
                 much, unless the disk spins{how}",
                Bytes(bytes)
            );
            Some(finding(Weight::Note, text))
        }
        _ => None,
    }
}

pub(super) fn findings(disk: &DiskFacts, measured: Rotation) -> Vec<Finding> {
    let spins = spins(disk, measured);
    [
        claim(disk, measured),
        scheduler(disk, spins),
        depth(disk, spins),
        latency(disk, spins),
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

/// A disk that says it spins, and does not.
fn claim(disk: &DiskFacts, measured: Rotation) -> Option<Finding> {
    (measured == Rotation::Denied).then(|| {
        let text = "it says that it spins, and its random reads deny it: programs and the kernel \
                    spare an arm that is not there";
        Finding::new("does not spin", &disk.name, Weight::Slow, text)
            .by_hand(format!("echo 0 > {}", path(disk, "rotational")))
            .source(QUEUE)
    })
}

fn scheduler(disk: &DiskFacts, spins: Option<bool>) -> Option<Finding> {
    let now = disk.queue.scheduler.as_deref()?;
    // Zones are written in order, which only some schedulers keep.
    if disk.is_zoned {
        return None;
    }
    let finding =
        |weight, text| Finding::new("scheduler", &disk.name, weight, text).source(SCHEDULERS);
    let set = |new: &str| {
        let offered = disk.schedulers.iter().any(|one| one == new);
        let setting = || Setting::queue(&disk.name, "scheduler", now, new);
        offered.then(setting).into_iter().collect()
    };
    match (disk.kind, spins, now) {
        (DiskKind::Scsi | DiskKind::Card, Some(true), "none") => {
            let text = "none is its scheduler: requests reach the arm as they come, up to what the \
                        disk itself puts in order. mq-deadline sorts them by place, and lets no \
                        read wait long behind writes";
            Some(finding(Weight::Slow, text).set(set("mq-deadline")))
        }
        (DiskKind::Nvme | DiskKind::Virtual | DiskKind::Loop, Some(false), "bfq") => {
            let text = "bfq is its scheduler, which shares out a slow disk fairly: on one that \
                        answers in microseconds, or whose host has a scheduler of its own, it costs \
                        more processor than it spares waiting";
            Some(finding(Weight::Slow, text).set(set("none")))
        }
        (DiskKind::Scsi, Some(false), "bfq") => {
            let text = "bfq is its scheduler: good where somebody sits at the machine; for a server \
                        mq-deadline gets more out of a solid disk";
            let by_hand = format!("echo mq-deadline > {}", path(disk, "scheduler"));
            Some(finding(Weight::Note, text).by_hand(by_hand))
        }
        _ => None,
    }
}

fn depth(disk: &DiskFacts, spins: Option<bool>) -> Option<Finding> {
    let depth = disk.queue.depth.filter(|_| spins == Some(true))?;
    let finding = |text| Finding::new("queue depth", &disk.name, Weight::Note, text).source(QUEUE);
    let by_hand = |depth| format!("echo {depth} > {}", path(disk, "nr_requests"));
    if depth < DEPTH_SPINNING_MIN {
        let text = format!("it queues {depth} requests: too few to put in an order the arm likes");
        return Some(finding(text).by_hand(by_hand(64)));
    }
    let is_held_back = disk.read_latency_us.is_some_and(|us| us > 0);
    (depth > DEPTH_SPINNING_MAX && !is_held_back).then(|| {
        let text = format!(
            "it queues {depth} requests, and nothing holds writes back: a read may stand behind \
             seconds of them"
        );
        finding(text).by_hand(by_hand(256))
    })
}

/// The kernel holds writes of the background back when reads take longer than this.
fn latency(disk: &DiskFacts, spins: Option<bool>) -> Option<Finding> {
    let us = disk.read_latency_us?;
    let finding =
        |text| Finding::new("write throttling", &disk.name, Weight::Note, text).source(QUEUE);
    let by_hand = |us: i32| format!("echo {us} > {}", path(disk, "wbt_lat_usec"));
    // bfq does this itself, and switches it off.
    if us == 0 && disk.queue.scheduler.as_deref() != Some("bfq") {
        let text = "nothing holds the background writer back when reads wait (wbt_lat_usec is 0): \
                    while it writes, reads take long. -1 is the kernel's own value";
        return Some(finding(text.to_owned()).by_hand(by_hand(-1)));
    }
    (spins == Some(false) && us > LATENCY_SOLID_US_MAX).then(|| {
        let text = format!(
            "reads may take {} ms before the background writer is held back: right for an arm; 2 ms \
             is usual for a solid disk",
            us / 1000
        );
        finding(text).by_hand(by_hand(2000))
    })
}

fn write_cache(disk: &DiskFacts) -> Option<Finding> {
    let is_through = disk.queue.volatile_write_cache == Some(false);
    (is_through && disk.kind == DiskKind::Scsi).then(|| {
        let text = "\"write through\": the kernel never tells it to empty its write cache. Right \
                    where it has none, or one that survives a power cut; if somebody wrote that into \
                    the file for speed, a power cut takes what was synced";
        Finding::new("write through", &disk.name, Weight::Note, text)
            .by_hand(format!("echo write back > {}", path(disk, "write_cache")))
            .source(QUEUE)
    })
}

fn file(disk: &DiskFacts) -> Option<Finding> {
    let file = disk.file.as_deref().filter(|_| disk.kind == DiskKind::Loop)?;
    let text = format!(
        "it is the file {file}: what is written here is written there, too, through the page cache \
         of that file system unless the loop device has direct I/O. Tune that one"
    );
    Some(Finding::new("a file as a disk", &disk.name, Weight::Note, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::advice::settings;
    use crate::tune::advice::tests::names;
    use crate::tune::case::tests::{disk as facts, mount, place};

    const KIB: u64 = 1 << 10;

    #[test]
    fn readahead_follows_what_the_disk_is() {
        for (kind, rotation, kib, set, is_told) in [
            (DiskKind::Scsi, Rotation::Unknown, 0, Some("1024"), true),
            (DiskKind::Scsi, Rotation::Unknown, 128, Some("1024"), true),
            (DiskKind::Scsi, Rotation::Unknown, 512, None, false),
            (DiskKind::Scsi, Rotation::Unknown, 8192, None, false),
            (DiskKind::Nvme, Rotation::Unknown, 0, Some("128"), true),
            (DiskKind::Nvme, Rotation::Unknown, 128, None, false),
            (DiskKind::Nvme, Rotation::Unknown, 8192, Some("1024"), true),
            // A virtual disk says that it spins: nobody knows, until it is measured.
            (DiskKind::Virtual, Rotation::Unknown, 128, None, false),
            (DiskKind::Virtual, Rotation::Unknown, 8192, None, true),
            (DiskKind::Virtual, Rotation::Denied, 8192, Some("1024"), true),
            (DiskKind::Virtual, Rotation::Believable, 128, None, false),
            (DiskKind::Virtual, Rotation::Believable, 8192, None, true),
        ] {
            let mut mount = mount("/");
            mount.disks = vec![facts("sda", kind)];
            mount.queue.readahead_bytes = Some(kib * KIB);
            let place = Place { rotation, ..place(mount) };
            let found: Vec<_> = readahead(&place).into_iter().collect();
            assert_eq!(!found.is_empty(), is_told, "{kind:?} {rotation:?} {kib}: {found:?}");
            let new = settings(&found).first().map(|setting| setting.new.clone());
            assert_eq!(new.as_deref(), set, "{kind:?} {rotation:?} {kib}");
        }
        let mut own = mount("/");
        own.file_system = FileSystem::Btrfs;
        own.queue.readahead_bytes = Some(0);
        assert_eq!(readahead(&place(own)), None);
    }

    #[test]
    fn the_scheduler_follows_what_the_disk_is() {
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
        // It can have no other: that is told, and nothing is set.
        disk.schedulers = vec!["none".to_owned()];
        assert_eq!(settings(&findings(&disk, Unknown)), []);
        let mut solid = facts("sda", Scsi);
        solid.queue.rotational = Some(false);
        solid.queue.scheduler = Some("bfq".to_owned());
        solid.read_latency_us = None;
        assert_eq!(names(&findings(&solid, Unknown)), ["scheduler"]);
        assert_eq!(settings(&findings(&solid, Unknown)), [], "for people to decide");
    }

    #[test]
    fn queues_and_caches_are_judged_by_kind() {
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
            // 75 ms stand in the file: right for what it says it is, not for what it is.
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
